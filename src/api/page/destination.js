/*
 * One destination: charts on one axis with its modes behind them, where it sends and by what rules, and what can be done.
 */
import { $, el, facts, link, panel, table } from "./dom.js";
import { ask, askIfThere, events, mayHold, query } from "./live.js";
import { clock, duration, exact, has, number, percent, serverNow, t, term } from "./words.js";
import { destinationActs } from "./acts.js";
import { POINTS_MAX, bandsOf, chart, chartWidth } from "./chart.js";
import { pinButton } from "./views.js";
import { eventDetails, eventWords } from "./state.js";
import { stateCell, incidentItem } from "./now.js";

const RANGES = { hour: 3600e3, day: 86400e3, week: 7 * 86400e3 };
const MINUTES_KEPT_MS = 2 * 86400e3;

function rangeOf({ from, to, last }) {
  const now = serverNow(), end = Date.parse(to) || now;
  const start = Date.parse(from) || end - (RANGES[last] || RANGES.hour);
  const step = end - start <= 86400e3 && now - start < MINUTES_KEPT_MS ? 60 : 3600;
  return { from: start, to: end, step };
}

/* Fewer points than the screen has room for: sums of what is counted, the greatest of what is a state. */
function thin(values, by, sums) {
  if (by === 1) return values;
  const out = [];
  for (let i = 0; i < values.length; i += by) {
    const part = values.slice(i, i + by).filter((value) => value !== null && value !== undefined);
    out.push(part.length === 0 ? null : sums ? part.reduce((a, b) => a + b, 0) : Math.max(...part));
  }
  return out;
}

/* What somebody ordered, as far as the stream tells of it. */
const pinsOf = (name) => events.filter((event) => event.type === "destination" && event.destination === name && event.data?.by)
  .map((event) => ({ at: Date.parse(event.at), name: `${eventWords(event)}; ${eventDetails(event)}` }));

const CLASSES = ["transient", "throttled", "wait", "blocked", "permanent", "in_doubt", "unknown"];

/* What history has not noted yet, as the minute that runs, is in the daemon's memory by the minute; a failure's class is not. */
function filled(history, destination, now) {
  const { delivered_by_minute: good, failed_by_minute: bad } = destination;
  if (history.step !== 60 || !good) return history.series;
  const from = Date.parse(history.from), first = Math.floor(now / 60e3) - good.length + 1, s = history.series;
  const minute = (i) => Math.floor(from / 60e3) + i - first;
  const noted = (i) => s.delivered[i] !== null || Object.values(s.failed).some((values) => values[i] !== null);
  return { ...s, delivered: s.delivered.map((value, i) => (noted(i) ? value : good[minute(i)] ?? null)),
           failed: { ...s.failed, "": s.delivered.map((_, i) => (noted(i) ? null : bad[minute(i)] || null)) } };
}

function charts(at, width) {
  const { history, destination, incidents } = at.data;
  const now = serverNow();
  if (!history) {
    const good = destination.delivered_by_minute || [], count = good.length;
    if (!count) return null;
    const axis = { from: Math.floor(now / 60e3 - count + 1) * 60e3, step: 60e3, count };
    return [chart({ title: t("throughput"), unit: t("per_minute"), axis, width, stacked: true, bands: bandsOf(null, 0, 0, incidents, now),
      series: [{ name: t("delivered"), css: "good", values: good }, { name: t("failed"), css: "bad", values: destination.failed_by_minute }] })];
  }
  const s = filled(history, destination, now), from = Date.parse(history.from), raw = history.step * 1000, length = (s.delivered || []).length;
  const by = Math.max(1, Math.ceil(length / POINTS_MAX)), step = raw * by, axis = { from, step, count: Math.ceil(length / by) };
  const bands = bandsOf(s.mode, from, raw, incidents, now);
  const choose = (a, b) => (location.hash = `#/destination/${encodeURIComponent(destination.name)}` + query({ from: new Date(a).toISOString(), to: new Date(b).toISOString() }));
  const per = step === 60e3 ? t("per_minute") : t("per_step", { time: duration(step) });
  const one = (name, css, values, sums) => ({ name, css, values: thin(values || [], by, sums) });
  const pins = pinsOf(destination.name);
  const draw = (title, unit, series, stacked) => chart({ title, unit, axis, series, stacked, bands, pins, width, choose });
  const failed = Object.entries(s.failed || {}).filter(([name, values]) => name || values.some(Boolean)).sort(([a], [b]) => CLASSES.indexOf(a) - CLASSES.indexOf(b));
  return [
    draw(t("delivered"), per, [one(t("delivered"), "good", s.delivered, true)], true),
    draw(t("failed_by_class"), per, failed.map(([name, values]) => one(name ? term("class", name) : t("failed"), name ? "c" + Math.max(0, CLASSES.indexOf(name)) : "bad", values, true)), true),
    draw(t("queue"), t("jobs_unit"), [one(t("pending"), "accent", s.pending)]),
    draw(t("age"), "s", [one(t("oldest"), "accent", s.oldest_s)]),
    draw(t("latency"), "ms", [one("p50", "l0", s.latency_p50_ms), one("p95", "l1", s.latency_p95_ms), one("p99", "l2", s.latency_p99_ms)]),
    draw(t("concurrency"), "", [one(t("in_flight"), "accent", s.in_flight), one(t("limit"), "l0", s.limit)]),
  ];
}

function ranges(at) {
  const here = "#/destination/" + encodeURIComponent(at.path[0]);
  const last = at.query.from ? "" : RANGES[at.query.last] ? at.query.last : "hour";
  const { from, to } = rangeOf(at.query);
  return el("p", { class: "ranges" }, el("span", { role: "group", "aria-label": t("range") }, Object.keys(RANGES).map((name) => link(`${here}?last=${name}`, t("last." + name), { "aria-current": name === last ? "true" : null, class: "tab" }))),
    el("span", { class: "hint", text: at.query.from ? `${exact(from)} – ${exact(to)}` : t("drag_hint") }));
}

/* Rules in words: each sentence needs its figures, and is left out without them. */
function policyWords(policy, destination) {
  if (!policy) return null;
  const out = [];
  for (const [name, value] of Object.entries(policy)) {
    const values = typeof value === "object" && value ? { ...value } : { value };
    for (const [key, one] of Object.entries(values)) {
      if (key.endsWith("_ms")) values[key.slice(0, -3)] = duration(one);
      else if (Array.isArray(one)) values[key] = one.map((item) => (typeof item === "number" ? number(item) : item)).join(", ");
      else if (key === "failure_rate" || key === "jitter") values[key] = percent(one);
      else if (key === "clamp" || typeof one === "string") values[key] = String(one);
    }
    const key = "policy." + name;
    if (has(key)) out.push(el("li", { text: t(key, values) }));
  }
  return panel(t("policy"), el("ul", { class: "sentences" }, out), el("p", { class: "hint", text: destination.preset ? t("from_preset", { preset: destination.preset }) : "" }));
}

function tenantsPanel({ tenants }, name) {
  if (!tenants?.tenants.length) return null;
  return panel(t("screen.tenants"), el("div", { class: "wide" }, table(t("screen.tenants"), [
    [t("tenant"), (one) => link("#/jobs" + query({ destination: name, tenant: one.tenant }), one.tenant || t("none")), ""],
    [t("pending"), (one) => number(one.pending), "number"], [t("waiting"), (one) => number(one.waiting), "number"],
    [t("dead"), (one) => number(one.dead), "number"], [t("weight"), (one) => number(one.fairness?.weight), "number"]], tenants.tenants, { key: (one) => "t" + one.tenant })),
    el("p", {}, link("#/tenants?destination=" + encodeURIComponent(name), t("all_tenants"))));
}

export const destination = {
  title: (at) => at.path[0],
  async load(at) {
    const name = encodeURIComponent(at.path[0]), { from, to, step } = rangeOf(at.query);
    const fresh = at.state.historyAt && Date.now() - at.state.historyAt < 10000 && at.state.historyOf === location.hash;
    const [one, history, incidents, tenants] = await Promise.all([ask("v1/destinations/" + name),
      fresh ? at.data?.history ?? null : askIfThere(`v1/destinations/${name}/history` + query({ from: new Date(from).toISOString(), to: new Date(to).toISOString(), step }), "history"),
      askIfThere("v1/incidents?limit=20&destination=" + name, "incidents"), askIfThere("v1/tenants?limit=10&destination=" + name, "tenants")]);
    if (!fresh) Object.assign(at.state, { historyAt: Date.now(), historyOf: location.hash });
    return { destination: one, history, incidents: incidents?.incidents || [], tenants };
  },
  draw(at) {
    const one = at.data.destination;
    const width = chartWidth($("view").clientWidth);
    return [
      el("section", { class: "panel", "data-name": one.name }, el("div", { class: "title-row" }, el("h2", {}, pinButton(one.name), one.name), mayHold() ? el("div", { class: "acts" }, destinationActs(one)) : null),
        one.description ? el("p", { text: one.description }) : null, el("p", {}, stateCell(one)),
        facts([[t("sends_to"), [one.transport, one.url].filter(Boolean).join(" ")], [t("pending"), link("#/jobs" + query({ destination: one.name, state: "pending" }), number(one.pending))],
          [t("running"), one.under_way === undefined ? null : t("of", { a: one.under_way, b: one.concurrency_now ?? one.concurrency }) + (one.concurrency_why ? ` · ${one.concurrency_why}` : "")],
          [t("waiting"), link("#/jobs" + query({ destination: one.name, state: "waiting" }), number(one.waiting))],
          [t("dead"), link("#/dead" + query({ destination: one.name }), number(one.dead))],
          [t("oldest"), one.oldest_at ? `${duration(serverNow() - Date.parse(one.oldest_at))} · ${clock(one.oldest_at)}` : null], [t("owner"), one.owner]])),
      el("section", { class: "panel", "aria-label": t("history") }, ranges(at), at.data.history ? null : el("p", { class: "hint", text: t("no_history") }), el("div", { class: "charts" }, charts(at, width))),
      el("div", { class: "columns" }, el("div", {}, policyWords(one.policy, one), tenantsPanel(at.data, one.name)),
        at.data.incidents.length ? panel(t("screen.incidents"), el("ul", { class: "cards" }, at.data.incidents.slice(0, 10).map(incidentItem))) : null),
    ];
  },
};
