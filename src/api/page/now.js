/*
 * The first screen: every destination, the worst first; what needs a person beside it; the latest events.
 */
import { $, button, el, link, panel, redraw, set, shape, table } from "./dom.js";
import { POLL_MS, Refusal, ask, askIfThere, events, known, mayHold, query, renewedAt } from "./live.js";
import { clock, duration, number, serverNow, since, t, term, until, when } from "./words.js";
import { chip, eventDetails, eventTone, eventWords, severity, stateOf, worse } from "./state.js";
import { ackAlert, destinationActs } from "./acts.js";
import { strip } from "./chart.js";
import { pinButton, pinned, views } from "./views.js";

const PAGE = 1000, SHOWN = 60, FIRST = 20, EVENTS_SHOWN = 50;
const PART_WAIT_MS = 250; // the screen waits for a part of it no longer than this,
const PART_SHARE = 5;     // and asks for one that takes longer for a fifth of the time at most
const words = new Map(); // name -> state that was told

async function readDestinations() {
  const all = [];
  let cursor = null;
  do {
    const page = await ask("v1/destinations" + query({ limit: PAGE, cursor }));
    all.push(...page.destinations);
    cursor = page.next;
  } while (cursor);
  tellChanges(all);
  return all;
}

/* ---- its parts: each is shown when it is there, whatever becomes of the others ---- */

const PARTS = {
  destinations: readDestinations,
  alerts: async () => (await askIfThere("v1/alerts"))?.alerts || [],
  incidents: async () => ((await askIfThere("v1/incidents?limit=50"))?.incidents || []).filter((one) => one.state !== "restored"),
};

/* `missing`: those that have never been answered; `problems`: why the last answer of one is not there. */
function dataOf(parts) {
  const all = Object.entries(parts);
  return { ...Object.fromEntries(all.map(([name, part]) => [name, part.value ?? []])), missing: all.filter(([, part]) => !part.value).map(([name]) => name),
           problems: Object.fromEntries(all.filter(([, part]) => part.problem).map(([name, part]) => [name, part.problem.message])) };
}

function askPart(at, name) {
  const part = at.parts[name];
  if (part.asking || (Date.now() < part.nextAt && renewedAt < part.askedAt)) return part.asking;
  part.askedAt = Date.now();
  part.asking = PARTS[name]().then((value) => Object.assign(part, { value, problem: null }), (problem) => Object.assign(part, { problem })).then(() => {
    const took = Date.now() - part.askedAt;
    Object.assign(part, { asking: null, nextAt: took > PART_WAIT_MS ? Date.now() + (part.problem ? POLL_MS : took * PART_SHARE) : 0 });
    if (!at.data) return; // who loads takes it
    at.data = dataOf(at.parts);
    redraw();
  });
  return part.asking;
}

async function loadParts(at) {
  const names = Object.keys(PARTS), had = at.data || { missing: names };
  at.parts ??= Object.fromEntries(names.map((name) => [name, { value: had.missing.includes(name) ? undefined : had[name], problem: null, asking: null, askedAt: 0, nextAt: 0 }]));
  await Promise.race([Promise.all(names.map((name) => askPart(at, name))), new Promise((done) => setTimeout(done, PART_WAIT_MS))]);
  const problems = Object.values(at.parts).map((part) => part.problem).filter(Boolean);
  const worst = problems.find((one) => !(one instanceof Refusal) || one.status === 401) || (problems.length === names.length ? problems[0] : null);
  if (worst) throw worst;
  return dataOf(at.parts);
}

const problemOf = ({ problems }, name) => (problems[name] ? el("p", { class: "problem", role: "status", text: t("part_failed", { why: problems[name] }) }) : null);

export const SORTS = {
  worst: worse,
  name: (a, b) => a.name.localeCompare(b.name),
  pending: (a, b) => b.pending - a.pending,
  dead: (a, b) => b.dead - a.dead,
  oldest: (a, b) => Date.parse(a.oldest_at || "9999-01-01T00:00:00Z") - Date.parse(b.oldest_at || "9999-01-01T00:00:00Z"),
  failed: (a, b) => (b.failed_last_minute || 0) - (a.failed_last_minute || 0),
};

const filtered = ({ data, query: { q = "", state = "" } }) => data.destinations.filter((one) =>
  (!q || `${one.name} ${one.description || ""} ${one.url || ""} ${one.preset || ""}`.toLowerCase().includes(q.toLowerCase())) &&
  (!state || (state === "odd" ? stateOf(one).name !== "normal" : [stateOf(one).name, stateOf(one).behind?.name].includes(state))));

/* Rows move only when the reader asks: an order is kept until another is wished for, and new ones come last. */
function ordered(at) {
  const sort = SORTS[at.query.sort] ? at.query.sort : "worst";
  const pins = pinned(), first = (one) => (pins.has(one.name) ? 0 : 1);
  const wish = [sort, at.query.q, at.query.state, ...pins].join(" ");
  const list = filtered(at), best = [...list].sort((a, b) => first(a) - first(b) || SORTS[sort](a, b)).map((one) => one.name);
  if (at.state.wish !== wish || !at.state.order) Object.assign(at.state, { wish, order: best, begun: false });
  const there = new Map(list.map((one) => [one.name, one]));
  at.state.order = at.state.order.filter((name) => there.has(name));
  const had = new Set(at.state.order);
  at.state.order.push(...best.filter((name) => !had.has(name)));
  const moved = best.slice(0, SHOWN).filter((name, i) => at.state.order[i] !== name).length;
  return { list: at.state.order.map((name) => there.get(name)), moved };
}

function tellChanges(list) {
  for (const one of list) {
    const state = stateOf(one), before = words.get(one.name);
    if (before && before !== state.name) set($("news"), `${one.name}: ${state.word}. ${state.why}`);
    words.set(one.name, state.name);
  }
}

export function stateCell(one) {
  const state = stateOf(one);
  const { behind } = state;
  const parts = [state.since && since(state.since), state.why, state.until && until(state.until),
    behind && t("behind", { mode: [behind.word.toLowerCase(), behind.since && since(behind.since)].filter(Boolean).join(", "), why: behind.why ? ` (${behind.why})` : "" }), one.fallback && t("on_fallback"),
    one.fallback_blocked !== undefined && t("fallback_held"), one.tenants_paused > 0 && t("tenants_paused", { n: one.tenants_paused })];
  return [chip(state), el("span", { class: "sub", text: parts.filter(Boolean).join("; ") })];
}

const flight = (one) => (one.under_way === undefined ? "" : one.transport === "pull" ? number(one.under_way)
  : t("of", { a: one.under_way, b: one.concurrency_now ?? one.concurrency }));

function flow(one) {
  if (!one.delivered_by_minute) return "–";
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  return [el("span", { text: t("delivered_n", { n: one.delivered_last_minute }) + ", " }),
    el("span", { class: "failed", "data-tone": one.failed_last_minute > 0 ? "bad" : null, text: t("failed_n", { n: one.failed_last_minute }) }),
    strip(one.delivered_by_minute, one.failed_by_minute, t("strip", { n: one.delivered_by_minute.length, delivered: sum(one.delivered_by_minute), failed: sum(one.failed_by_minute) }))];
}

const COLUMNS = () => [
  [t("destination"), (one) => [pinButton(one.name), link("#/destination/" + encodeURIComponent(one.name), one.name),
    el("span", { class: "sub", text: [one.transport, one.preset, one.tenants ? t("n_tenants", { n: one.tenants }) : ""].filter(Boolean).join(", ") })], ""],
  [t("state"), stateCell, "where-state"],
  [t("pending"), (one) => number(one.pending), "number"],
  [t("running"), flight, "number"],
  [t("waiting"), (one) => number(one.waiting), "number"],
  [t("dead"), (one) => (one.dead > 0 ? link("#/dead?destination=" + encodeURIComponent(one.name), number(one.dead), { class: "bad" }) : "0"), "number"],
  [t("oldest"), (one) => (one.oldest_at ? el("time", { datetime: one.oldest_at, title: t("next_waits", { at: clock(one.oldest_at) }), text: duration(serverNow() - Date.parse(one.oldest_at)) }) : "–"), "number"],
  [t("last_minutes"), flow, "flow"],
];

/* All that a row shows: what the daemon said, and what follows from the time and from this browser. */
const sign = (one) => [JSON.stringify(one), pinned().has(one.name), since(stateOf(one).since), since(stateOf(one).behind?.since), until(stateOf(one).until), one.oldest_at && duration(serverNow() - Date.parse(one.oldest_at))].join();

function address(change) {
  location.replace("#/" + query({ ...Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] || "")), ...change })); // no step of the way back for each key
}

function bar(at) {
  let typing = 0;
  return el("div", { class: "fields bar" },
    el("label", { class: "grow" }, el("span", { class: "unseen", text: t("filter") }), el("input", { type: "search", id: "destinations-filter", "data-search": true, placeholder: t("filter_destinations"), value: at.query.q,
      autocomplete: "off", spellcheck: "false",
      input() {
        clearTimeout(typing);
        typing = setTimeout(() => address({ q: this.value.trim() }), 80);
      } })),
    el("label", {}, t("state") + " ", el("select", { id: "destinations-state", change() { address({ state: this.value }); } },
      ["", "odd", "contingency", "recovering", "paused", "blocked", "breaker", "throttle", "failing", "normal"].map((value) =>
        el("option", { value, selected: (at.query.state || "") === value, text: t("state." + (value || "any")) })))),
    el("label", {}, t("sort") + " ", el("select", { id: "destinations-sort", change() { address({ sort: this.value }); } },
      Object.keys(SORTS).map((value) => el("option", { value, selected: (at.query.sort || "worst") === value, text: t("sort." + value) })))));
}

/* Another list begins with what a screen has room for: a key that is pressed meanwhile need not wait for the rest. */
function countShown(at, length) {
  const most = at.state.more ? length : SHOWN;
  if (at.state.begun || length <= FIRST) return most;
  at.state.begun = true;
  setTimeout(redraw);
  return FIRST;
}

function destinations(at) {
  const { list, moved } = ordered(at), unknown = at.data.missing.includes("destinations");
  const count = countShown(at, list.length), left = list.length - (at.state.more ? list.length : SHOWN);
  return el("section", { class: "panel", "aria-labelledby": "destinations-title" },
    el("h2", { id: "destinations-title" }, t("screen.destinations") + " ", el("span", { class: "count", text: unknown ? "…" : list.length === at.data.destinations.length ? number(list.length) : t("of", { a: list.length, b: at.data.destinations.length }) })),
    problemOf(at.data, "destinations"), bar(at), views(),
    el("p", { class: "again", hidden: moved === 0 }, button(t("sort_again", { n: moved }), () => {
      at.state.order = null;
      redraw();
    }, { class: "quiet" })),
    el("div", { class: "wide", id: "destinations" }, table(t("screen.destinations"), [...COLUMNS(), ...(mayHold() ? [["", destinationActs, "acts"]] : [])], list.slice(0, count),
      { key: (one) => one.name, attributes: (one) => ({ "data-name": one.name }), sign })),
    list.length === 0 ? el("p", { class: "hint", text: t(unknown ? "asking" : at.data.destinations.length ? "none_match" : "no_destination") }) : null,
    left > 0 ? button(t("show_all", { n: list.length }), () => {
      at.state.more = true;
      redraw();
    }) : null);
}

function totals({ destinations: list, missing }) {
  const { totals: all } = known.stats;
  const sum = (name) => missing.includes("destinations") ? NaN : list.reduce((total, one) => total + (one[name] || 0), 0);
  const card = (name, value, href, bad) => el("div", { "data-tone": bad ? "bad" : null }, el("dt", { text: name }), el("dd", {}, href ? link(href, number(value)) : number(value)));
  return el("dl", { class: "totals", id: "totals", "aria-label": t("all_together") },
    card(t("pending"), all.pending, "#/jobs?state=pending"), card(t("running"), all.running, "#/jobs?state=running"),
    card(t("waiting_retry"), all.waiting, "#/jobs?state=waiting"), card(t("screen.dead"), all.dead, "#/dead", all.dead > 0),
    card(t("delivered_minute"), sum("delivered_last_minute")), card(t("failed_minute"), sum("failed_last_minute")));
}

export function alertItem(alert) {
  const [tone, mark] = severity(alert);
  const head = `${term("severity", alert.severity)}: ${term("alert", alert.alert)}`;
  return el("li", { "data-tone": tone, "data-key": alert.id, "data-alert": alert.alert }, el("strong", {}, shape(mark), " ", head),
    alert.destination ? [" ", link("#/destination/" + encodeURIComponent(alert.destination), alert.destination)] : null, alert.tenant ? el("span", { text: `, ${t("tenant_is", { tenant: alert.tenant })}` }) : null,
    el("span", { class: "sub", text: alert.summary || "" }), el("span", { class: "sub" }, t("raised") + " ", when(alert.raised_at), alert.cleared_at ? [", " + t("over") + " ", when(alert.cleared_at)] : null),
    alert.acknowledged ? el("span", { class: "sub" }, t("acknowledged") + " ", when(alert.acknowledged.at), [alert.acknowledged.by, alert.acknowledged.note].filter(Boolean).map((text) => ` · ${text}`)) : null,
    !alert.acknowledged && alert.state !== "cleared" && mayHold() ? button(t("act.ack"), () => ackAlert(alert), { "aria-label": `${t("act.ack")}: ${head} ${alert.destination || ""}` }) : null);
}

export function incidentItem(incident) {
  return el("li", { "data-tone": incident.state === "recovering" ? "info" : incident.state === "restored" ? null : "bad", "data-key": incident.id },
    el("strong", {}, link("#/incident/" + encodeURIComponent(incident.id), `${incident.destination}: ${term("state", incident.state)}`)),
    el("span", { class: "sub" }, incident.summary || term("cause", incident.cause), " · ", when(incident.entered_at || incident.first_sign_at)));
}

function aside(data) {
  const part = (name, title, items) => (items.length || data.problems[name] ? el("section", { class: "panel", id: name }, el("h2", {}, link("#/" + name, title)), problemOf(data, name),
    el("ul", { class: "cards", id: name + "-list" }, items)) : null);
  const parts = [part("alerts", t("screen.alerts"), data.alerts.slice(0, 12).map(alertItem)), part("incidents", t("open_incidents"), data.incidents.map(incidentItem))];
  return parts.some(Boolean) ? el("aside", { class: "side", "aria-label": t("needs_you") }, parts) : null;
}

function latest(at) {
  const list = (at.state.held || events).filter((event) => !at.state.failures || eventTone(event)).slice(0, EVENTS_SHOWN);
  const fresh = at.state.held ? events.findIndex((event) => event.id === at.state.held[0]?.id) : 0;
  return el("section", { class: "panel", "aria-labelledby": "events-title" },
    el("div", { class: "title-row" }, el("h2", { id: "events-title", text: t("latest_events") }),
      el("label", { class: "switch" }, el("input", { type: "checkbox", id: "events-failures", change() {
        at.state.failures = this.checked;
        redraw();
      } }), " " + t("only_failures")),
      button(at.state.held ? t("go_on", { n: fresh < 0 ? events.length : fresh }) : t("hold_still"), () => {
        at.state.held = at.state.held ? null : [...events];
        redraw();
      }, { "aria-pressed": String(Boolean(at.state.held)), id: "events-hold" })),
    el("div", { class: "scroll list", tabindex: 0, role: "region", "aria-labelledby": "events-title", id: "events" }, table(t("latest_events"), [
      [t("time"), (event) => when(event.at, true), "tight"], [t("what"), eventWords, "tight what"],
      [t("destination"), (event) => event.destination || "", "tight"],
      [t("job"), (event) => (event.job ? link(`#/job/${encodeURIComponent(event.tenant || "")}/${encodeURIComponent(event.job)}`, event.job) : ""), ""],
      [t("details"), eventDetails, "wordy"]], list, { key: (event) => event.id, attributes: (event) => ({ "data-tone": eventTone(event) }), sign: (event) => `${event.id} ${clock(event.at)}` })),
    list.length ? null : el("p", { class: "hint", text: t("nothing_yet") }));
}

export function bannerOf({ data }) {
  const [problem] = Object.values(data.problems || {});
  const states = data.destinations.map((one) => ({ name: one.name, state: stateOf(one) }));
  const down = states.filter(({ state }) => state.name === "contingency");
  const bad = states.filter(({ state }) => state.tone === "bad" && state.name !== "contingency");
  const odd = states.filter(({ state }) => state.tone === "warn" || state.tone === "hold" || state.name === "recovering");
  const open = data.alerts.filter((alert) => !alert.acknowledged), critical = open.filter((alert) => alert.severity === "critical");
  const more = (list, n) => (list.length > n ? [t("and_more", { n: list.length - n })] : []);
  const list = (items) => [...items.slice(0, 8).map(({ name, state }) => `${name}: ${[state.word, state.behind?.word].filter(Boolean).join(", ").toLowerCase()}${state.why ? " (" + state.why + ")" : ""}`), ...more(items, 8)].join("; ");
  const summaries = (alerts) => [...alerts.slice(0, 3).map((alert) => alert.summary), ...more(alerts, 3)].join("; ");
  if (down.length || bad.length) {
    return { tone: "bad", shape: "bad", note: list([...down, ...bad, ...odd]),
             text: [down.length && t("n_down", { n: down.length }), bad.length && t("n_held", { n: bad.length })].filter(Boolean).join(", ") };
  }
  if (critical.length) return { tone: "bad", shape: "bad", text: t("n_critical", { n: critical.length }), note: [summaries(critical), list(odd)].filter(Boolean).join("; ") };
  if (odd.length) return { tone: "warn", shape: "warn", text: t("n_look", { n: odd.length }), note: list(odd) };
  if (open.length) return { tone: "warn", shape: "warn", text: t("n_unacknowledged", { n: open.length }), note: summaries(open) };
  if (problem) return { tone: "warn", shape: "warn", text: t("not_all_known"), note: t("part_failed", { why: problem }) };
  if (data.missing?.length) return { tone: "info", shape: "wait", text: t("asking"), note: "" };
  if (!states.length) return { tone: "info", shape: "wait", text: t("no_destination_short"), note: "" };
  return { tone: "good", shape: "good", text: t("all_well"), note: t("none_held", { n: states.length }) };
}

export const now = {
  title: () => t("screen.now"),
  chooses: true,
  alarm: (at) => (bannerOf(at).tone === "good" ? "" : bannerOf(at).text),
  banner: bannerOf,
  load: loadParts,
  draw(at) {
    const side = aside(at.data);
    return [totals(at.data), el("div", { class: side ? "beside" : "alone" }, el("div", {}, destinations(at), latest(at)), side)];
  },
};
