/*
 * What is watched over: alerts, incidents, tenants with their fairness, nodes.
 */
import { button, el, facts, link, panel, set, table } from "./dom.js";
import { ask, askIfThere, askText, known, mayHold, mayOperate, post, query, renew } from "./live.js";
import { duration, exact, number, percent, t, term, when } from "./words.js";
import { confirmThat } from "./acts.js";
import { alertItem, incidentItem } from "./now.js";

const tabs = (screen, name, chosen, list, word) => el("p", { class: "ranges" }, list.map((value) =>
  link(`#/${screen}` + query({ [name]: value }), word(value), { class: "tab", "aria-current": (chosen || list[0]) === value ? "true" : null })));

export const alerts = {
  title: () => t("screen.alerts"),
  load: (at) => ask("v1/alerts" + query({ limit: 200, ...at.query })),
  draw: (at) => panel(t("screen.alerts"), tabs("alerts", "state", at.query.state, ["standing", "cleared", "all"], (value) => t("alerts." + value)),
    at.data.alerts.length ? el("ul", { class: "cards", id: "alerts-list" }, at.data.alerts.map(alertItem)) : el("p", { class: "hint", text: t("no_alerts") }),
    at.data.next ? el("p", { class: "hint", text: t("first_shown", { n: at.data.alerts.length }) }) : null),
};

export const incidents = {
  title: () => t("screen.incidents"),
  load: (at) => ask("v1/incidents" + query({ limit: 100, ...at.query })),
  draw: (at) => panel(t("screen.incidents"), at.data.incidents.length ? el("ul", { class: "cards" }, at.data.incidents.map(incidentItem)) : el("p", { class: "hint", text: t("no_incidents") }),
    at.data.next ? el("p", {}, link("#/incidents" + query({ ...at.query, cursor: at.data.next }), t("more"))) : null),
};

function lessons(at) {
  const one = at.data.incident;
  if (!mayOperate()) return panel(t("lessons"), el("p", { text: one.lessons_learned || t("nothing_yet") }));
  const text = el("textarea", { id: "lessons", rows: 6, "aria-label": t("lessons") });
  text.value = one.lessons_learned || "";
  return panel(t("lessons"), text, el("p", { class: "acts" }, button(t("keep"), async function () {
    const problem = this.closest("section").querySelector(".hint");
    try {
      await ask("v1/incidents/" + encodeURIComponent(one.id), { method: "PATCH", body: { lessons_learned: this.closest("section").querySelector("textarea").value } });
      set(problem, t("kept"));
    } catch (error) {
      set(problem, t("not_done", { why: error.message }));
    }
    renew();
  }, { class: "main" })), el("p", { class: "hint", role: "status", text: one.lessons_at ? `${one.lessons_by || ""} ${exact(one.lessons_at)}` : "" }));
}

export const incident = {
  title: (at) => `${t("incident")} ${at.path[0]}`,
  async load(at) {
    const id = encodeURIComponent(at.path[0]);
    const [one, report] = await Promise.all([ask("v1/incidents/" + id), askText(`v1/incidents/${id}/report`, "text/markdown")]);
    return { incident: one, report };
  },
  draw(at) {
    const one = at.data.incident;
    const steps = [[t("first_sign"), one.first_sign_at], [t("entered"), one.entered_at], ...(one.changes || []).map((change) => [`${term("state", change.mode)}: ${change.text || term("cause", change.cause)}`, change.at]), [t("restored"), one.restored_at]]
      .filter(([, time]) => time).sort((a, b) => Date.parse(a[1]) - Date.parse(b[1]));
    return [panel(`${one.destination}: ${term("state", one.state)}`, el("p", { text: one.summary }),
        facts([[t("destination"), link("#/destination/" + encodeURIComponent(one.destination) + query(one.entered_at ? { from: new Date(Date.parse(one.first_sign_at || one.entered_at) - 600e3).toISOString(), to: one.restored_at ? new Date(Date.parse(one.restored_at) + 600e3).toISOString() : "" } : {}), one.destination)],
          [t("cause_word"), [term("cause", one.cause), one.reason].filter(Boolean).join(": ")], [t("lasted"), one.lasted_ms ? duration(one.lasted_ms) : ""], [t("recovery"), one.recovery_ms ? duration(one.recovery_ms) : ""], [t("relapses"), one.relapses ? number(one.relapses) : ""],
          [t("held_most"), number(one.held_max)], [t("unspent"), one.unspent === undefined ? "" : number(one.unspent)], [t("processed"), one.processed === undefined ? "" : number(one.processed)], [t("dead"), one.dead === undefined ? "" : number(one.dead)]])),
      el("div", { class: "columns" }, panel(t("timeline"), el("ol", { class: "timeline" }, steps.map(([text, time]) => el("li", {}, el("time", { datetime: time, text: exact(time) }), " ", el("strong", { text }))))), lessons(at)),
      panel(t("report"), el("p", { class: "acts" }, button(t("copy"), async function () {
        try {
          await navigator.clipboard.writeText(at.data.report);
          set(this, t("copied"));
        } catch {
          getSelection().selectAllChildren(this.closest("section").querySelector("pre")); // a page without https may not write there
        }
      }), button(t("print"), () => print())), el("pre", { class: "payload report", tabindex: 0, role: "region", "aria-label": t("report") }, at.data.report))];
  },
};

/* ---- tenants ---- */

/* In that order when they are first shown; then they stay where they are. */
function steady({ state }, rows, keyOf, order) {
  if (state.steadyOf !== location.hash) Object.assign(state, { steadyOf: location.hash, places: new Map([...rows].sort(order).map((one, i) => [keyOf(one), i])) });
  const place = (one) => state.places.get(keyOf(one)) ?? rows.length;
  return [...rows].sort((a, b) => place(a) - place(b));
}

export const tenants = {
  title: () => t("screen.tenants"),
  load: (at) => ask("v1/tenants" + query({ limit: 100, ...at.query })),
  draw(at) {
    const at_ = at.query.destination, waits = (one) => (one.pending > 0 ? Date.parse(one.fairness?.lastProcessedAt) || 0 : Infinity);
    const rows = steady(at, at.data.tenants, (one) => `${one.tenant}/${one.destination}`, (a, b) => waits(a) - waits(b) || 0); // who waits longest comes first
    const weight = rows.reduce((sum, one) => sum + (one.fairness?.weight || 0), 0), done = rows.reduce((sum, one) => sum + (one.fairness?.totalProcessed || 0), 0);
    const share = (part, all) => (all ? part / all : NaN);
    const meter = (value) => (Number.isFinite(value) ? [el("meter", { min: 0, max: 1, value, "aria-label": percent(value) }), " " + percent(value)] : "–");
    return panel(t("tenants_fairness"), el("p", { class: "fields bar" }, el("label", {}, t("destination") + " ", el("select", { change() { location.hash = "#/tenants" + query({ destination: this.value }); } },
        el("option", { value: "", text: t("all_destinations") }), known.stats.destinations.map(({ name }) => el("option", { value: name, text: name, selected: name === at_ }))))),
      el("p", { class: "hint", text: at_ ? t("share_hint") : t("choose_destination") }),
      el("div", { class: "wide" }, table(t("screen.tenants"), [[t("tenant"), (one) => link("#/jobs" + query({ tenant: one.tenant, destination: one.destination }), one.tenant || t("none")), ""],
        ...(at_ ? [] : [[t("destination"), (one) => one.destination, ""]]), [t("pending"), (one) => number(one.pending), "number"], [t("running"), (one) => number(one.running), "number"], [t("waiting"), (one) => number(one.waiting), "number"],
        [t("dead"), (one) => (one.dead ? link("#/dead" + query({ tenant: one.tenant, destination: one.destination }), number(one.dead)) : "0"), "number"], [t("delivered"), (one) => number(one.completed), "number"],
        ...(at_ ? [[t("entitled"), (one) => meter(share(one.fairness?.weight, weight)), ""], [t("had"), (one) => meter(share(one.fairness?.totalProcessed, done)), ""]] : []),
        [t("passed_over"), (one) => number(one.fairness?.roundsWithoutProcessing), "number"], [t("last_turn"), (one) => when(one.fairness?.lastProcessedAt), "tight"]],
      rows, { key: (one) => `${one.tenant}/${one.destination}` })), rows.length ? null : el("p", { class: "hint", text: t("none_match") }),
      at.data.next ? el("p", {}, link("#/tenants" + query({ ...at.query, cursor: at.data.next }), t("more"))) : null);
  },
};

/* ---- nodes ---- */

export const nodes = {
  title: () => t("screen.nodes"),
  load: async () => (await askIfThere("v1/nodes", "nodes")) || { none: true },
  draw(at) {
    if (at.data.none) return panel(t("screen.nodes"), el("p", { class: "hint", text: t("no_nodes") }));
    return panel(t("screen.nodes"), el("div", { class: "wide" }, table(t("screen.nodes"), [[t("node"), (one) => one.name, ""], [t("address"), (one) => one.url || "–", ""], [t("version_word"), (one) => one.version, ""], [t("since_word"), (one) => when(one.since), "tight"],
      [t("seen"), (one) => (one.last_seen_ms === undefined ? "–" : t("ago", { time: duration(one.last_seen_ms) })), "number"],
      [t("owns"), (one) => (one.destinations || []).slice(0, 20).map((name, i) => [i ? ", " : "", link("#/destination/" + encodeURIComponent(name), name)]), "wordy"],
      ...(mayHold() ? [["", (one) => button(t("act.drain"), () => confirmThat({ title: t("ask.drain", { name: one.name }), text: t("will.drain", { n: (one.destinations || []).length }), button: t("act.drain"), run: () => post(`v1/nodes/${encodeURIComponent(one.name)}/drain`) })), "acts"]] : [])],
    at.data.nodes, { key: (one) => one.name })));
  },
};
