/*
 * Dead letters by the thousand: their causes, the letters of one, and redrives and purges with their plan first.
 */
import { button, el, facts, link, panel, redraw, table } from "./dom.js";
import { ask, askBlob, askIfThere, known, mayOperate, post, query } from "./live.js";
import { exact, number, percent, t, term, when } from "./words.js";
import { runChip } from "./state.js";
import { confirmThat, planned, purge, redrive as beginRedrive } from "./acts.js";
import { strip } from "./chart.js";
import { filterBar, jobTable, listEnd, listed, newRows } from "./jobs.js";
import { views } from "./views.js";

const NAMES = ["destination", "tenant", "code", "dead_code", "fingerprint", "since", "until", "text"];
const SUMMARY_MS = 5000;    // counting dead letters costs the daemon more than the rest,
const SUMMARY_SHARE = 5;    // so it is done for a fifth of the time at most,
const SUMMARY_WAIT_MS = 250; // and the screen waits for it no longer than this

async function exportLetters(filter) {
  const blob = await askBlob("v1/dead/export" + query(filter));
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: "dead-letters.ndjson" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function acts(filter, name, main) {
  const label = (text) => ({ "aria-label": `${text}: ${name}` });
  return [mayOperate() ? planned(t("act.redrive") + "…", () => beginRedrive(filter), { class: main ? "main" : null, ...label(t("act.redrive")) }) : null,
    mayOperate() ? planned(t("act.purge") + "…", () => purge(filter), label(t("act.purge"))) : null,
    planned(t("act.export"), () => exportLetters(filter), { disabled: false, ...label(t("act.export")) })];
}

function causes(at) {
  const { summary } = at.state, { by } = summary;
  const filterOf = (group) => ({ ...at.data.filter, [by]: group[by] ?? "" });
  const nameOf = (group) => group[by] || t("none");
  return el("div", { class: "wide" }, table(t("causes"), [
    [t("cause_word"), (group) => [link("#/dead" + query({ ...filterOf(group), list: 1 }), by === "fingerprint" ? group.sample || group.code || t("none") : nameOf(group)),
      el("span", { class: "sub", text: by === "fingerprint" ? [group.code, (group.fingerprint || "").slice(0, 12)].filter(Boolean).join(" · ") : group.sample || "" })], "wordy"],
    [t("letters"), (group) => [number(group.count), " ", el("meter", { min: 0, max: summary.dead || 1, value: group.count, "aria-label": percent(group.count / (summary.dead || 1)) })], "number"],
    [t("screen.tenants"), (group) => number(group.tenants) + (summary.tenants_or_more ? " +" : ""), "number"],
    [t("first"), (group) => when(group.oldest_at), "tight"], [t("newest"), (group) => when(group.newest_at), "tight"],
    [t("trend"), (group) => strip([], group.by_hour, t("trend_hours", { hours: group.by_hour.length, n: group.by_hour.reduce((a, b) => a + b, 0), last: group.by_hour.at(-1) })), ""],
    ["", (group) => acts(filterOf(group), nameOf(group)), "acts"]], summary.groups.slice(0, 50), { key: (group) => "g" + group[by] }),
    summary.others > 0 ? el("p", { class: "hint", text: t("and_others", { n: summary.others }) }) : null);
}

function runs(list) {
  return list?.length ? panel(t("redrives"), el("div", { class: "wide" }, table(t("redrives"), [
    [t("redrive"), (run) => link("#/redrive/" + encodeURIComponent(run.id), `#${run.id}`), ""], [t("state"), (run) => runChip(run.state), ""], [t("letters"), (run) => number(run.matched), "number"],
    [t("delivered"), (run) => number(run.delivered), "number"], [t("dead_again"), (run) => number(run.dead_again), "number"], [t("who"), (run) => run.by || "–", ""], [t("began"), (run) => when(run.started_at), "tight"]],
    list.slice(0, 20), { key: (run) => "r" + run.id }))) : null;
}

/* Counts when it is time to; what was counted is kept at `state`. */
function count(state, by, filter) {
  const of = location.hash;
  if (state.of !== of) Object.assign(state, { of, summary: null, refused: null, nextAt: 0, counting: null });
  if (state.counting || Date.now() < state.nextAt) return state.counting;
  const began = Date.now();
  state.counting = ask("v1/dead/summary" + query({ by, ...filter })).then((summary) => [summary, null], (error) => [state.summary, error])
    .then(([summary, refused]) => {
      if (state.of !== of) return; // somebody asked for another
      Object.assign(state, { summary, refused, counting: null, nextAt: Date.now() + Math.max(SUMMARY_MS, (Date.now() - began) * SUMMARY_SHARE) });
      redraw();
    });
  return state.counting;
}

export const dead = {
  title: () => t("screen.dead"),
  async load(at) {
    const { list: _, by, ...filter } = at.query;
    const one = Boolean(filter.fingerprint || filter.text || filter.dead_code || at.query.list);
    const soon = new Promise((done) => setTimeout(done, SUMMARY_WAIT_MS));
    const [, page, redrives] = await Promise.all([Promise.race([count(at.state, by || "fingerprint", filter), soon]),
      one ? listed(at, "v1/dead", "dead", filter) : { rows: [], next: null },
      askIfThere("v1/dead/redrives?limit=20", "redrives")]);
    if (at.state.refused) throw at.state.refused;
    return { ...page, one, filter, redrives: redrives?.redrives };
  },
  draw(at) {
    const { one, filter } = at.data, { summary } = at.state, by = at.query.by || "fingerprint";
    const n = summary ? summary.dead : null;
    return [
      el("section", { class: "panel", "aria-label": t("screen.dead") }, el("div", { class: "title-row" }, el("h2", {}, t("screen.dead") + " ", el("span", { class: "count", id: "dead-count", text: summary ? number(n) : "…" })),
          n !== 0 ? el("div", { class: "acts" }, acts(filter, t("all_shown"), true)) : null),
        filterBar(at, NAMES, "text", "dead"), views(),
        el("p", { class: "ranges" }, ["fingerprint", "code", "tenant", "destination"].map((name) => link("#/dead" + query({ ...filter, by: name }), t("by." + name), { class: "tab", "aria-current": !one && by === name ? "true" : null })),
          link("#/dead" + query({ ...filter, list: 1 }), t("one_by_one"), { class: "tab", "aria-current": one ? "true" : null })),
        n === 0 ? el("p", { class: "hint", text: known.stats.totals.dead ? t("none_match") : t("no_dead") })
          : one ? [newRows(at), jobTable(at.data.rows), listEnd(at, "v1/dead", "dead", filter)]
            : summary ? causes(at) : el("p", { class: "hint", role: "status", text: t("counting") })),
      runs(at.data.redrives)];
  },
};

/* ---- a redrive ---- */

function redriveActs(run) {
  if (!mayOperate()) return null;
  const act = (name) => button(t("act." + name), () => confirmThat({ title: t(`ask.${name}_run`), text: t(`will.${name}_run`, { n: run.left ?? 0 }), button: t("act." + name), danger: name === "cancel",
    run: () => post(`v1/dead/redrives/${encodeURIComponent(run.id)}/${name}`) }));
  return el("div", { class: "acts" }, ["canary", "running"].includes(run.state) ? act("cancel") : null, run.state === "undone" || run.undoing || run.redriven === 0 ? null : act("undo"));
}

export const redrive = {
  title: (at) => `${t("redrive")} #${at.path[0]}`,
  load: (at) => ask("v1/dead/redrives/" + encodeURIComponent(at.path[0])),
  draw(at) {
    const run = at.data, ended = (run.delivered || 0) + (run.dead_again || 0);
    const bar = (name, value) => el("div", { class: "progress" }, el("span", { text: name }), el("progress", { max: run.matched || 1, value: value || 0, "aria-label": name }), el("span", { class: "number", text: t("of", { a: value || 0, b: run.matched }) }));
    return el("section", { class: "panel", id: "redrive" }, el("div", { class: "title-row" }, el("h2", {}, `${t("redrive")} #${run.id} `, runChip(run.state)), redriveActs(run)),
      el("p", { class: "why", role: "status", text: t("run_is." + run.state, { n: run.left ?? 0, dead: run.dead_again || 0 }) }),
      bar(t("sent_back"), run.redriven), bar(t("delivered"), run.delivered), bar(t("dead_again"), run.dead_again),
      facts([[t("left"), number(run.left)], [t("ended"), number(ended)], [t("under_way"), run.under_way ? number(run.under_way) : ""], [t("undone"), run.undone ? number(run.undone) : ""], [t("skipped"), run.skipped ? number(run.skipped) : ""], [t("patch"), run.payload_patch ? JSON.stringify(run.payload_patch) : ""], [t("patch_failed"), run.patch_failed ? number(run.patch_failed) : ""], [t("died_share"), ended ? percent(run.dead_again / ended) : ""], [t("filter"), Object.entries(run.filter || {}).map(([name, value]) => `${name}: ${value}`).join(", ") || t("all_letters")],
        [t("canary"), run.canary ? number(run.canary) : ""], [t("abort_at"), run.canary && run.abort_at !== undefined ? percent(run.abort_at) : ""], [t("rate"), run.rate], [t("who"), run.by],
        [t("began"), run.started_at ? exact(run.started_at) : ""], [t("ended_at"), run.ended_at ? exact(run.ended_at) : ""], [t("why_reason"), run.reason]]),
      el("p", {}, link("#/dead", t("screen.dead"))));
  },
};
