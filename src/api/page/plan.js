/*
 * What would be and what was: the simulator as a form, and the reports.
 */
import { $, button, el, facts, link, panel, redraw, table } from "./dom.js";
import { askIfThere, known, post, query } from "./live.js";
import { duration, exact, has, number, percent, serverNow, t, term } from "./words.js";
import { fields } from "./acts.js";
import { POINTS_MAX, bandsOf, chart, chartWidth } from "./chart.js";

const FORM = () => [["policy", t("sim.policy"), { required: true }], ["load", t("sim.load"), { value: "100/m" }], ["for", t("sim.for"), { value: "1d" }], ["outage", t("sim.outage"), { value: "4h..6h", hint: t("sim.outage_hint") }],
  ["tenants", t("screen.tenants"), { type: "number", min: 1, max: 10000, value: "10" }], ["latency", t("latency"), { value: "200ms" }], ["errors", t("sim.errors"), { value: "transient=2%,permanent=1%" }], ["limit", t("sim.limit"), { placeholder: "50/s" }]];

const quoted = (text) => (/^[\w.%=,:/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const command = (values) => "insist simulate " + Object.entries(values).filter(([, value]) => value).map(([name, value]) => `--${name} ${quoted(value)}`).join(" ");

const SHARES = ["successAfterRetry", "lost", "permanent", "exhausted", "longestWait", "waitDeviation", "requestsFailed", "goodput"];
const isShare = (target) => String(target).includes("%");
const valueText = (name, value, target = "") => (typeof value !== "number" ? String(value ?? "–") : /(Ms|_ms)$/.test(name) ? duration(value) : SHARES.includes(name) || isShare(target) ? percent(value) : number(value));
const met = (row) => (row.met === undefined || row.met === null ? "" : row.met ? t("met") : el("strong", { class: "bad", text: t("missed") }));

const dayOf = (text) => String(text).replace(/^(\d{4})(\d\d)(\d\d)$/, "$1-$2-$3");

/* A list that the documents ask for, by their rules: the first of them, and how many there are beyond. */
const asked = (name, { rules, more, jobs }) => [el("h3", {}, term("report", name), el("span", { class: "sub", text: rules })),
  jobs.length ? anything("", jobs) : el("p", { class: "hint", text: t("report.none") }), more ? el("p", { class: "hint", text: t("and_more", { n: more }) }) : null];

/* Whatever has rows becomes a table, whatever is a figure a line: reports grow without this page. */
function anything(name, value) {
  if (Array.isArray(value?.jobs) && value.rules) return asked(name, value);
  if (Array.isArray(value) && value.length && typeof value[0] === "object") {
    const columns = [...new Set(value.flatMap((row) => Object.keys(row)))].filter((key) => value.some((row) => typeof row[key] !== "object"));
    return [name ? el("h3", { text: term("report", name) }) : null, el("div", { class: "wide" }, table(term("report", name), columns.map((key) => [term("report", key), (row) => {
      const cell = row[key];
      return typeof cell === "boolean" ? (key === "met" ? met(row) : cell ? "✓" : "–") : typeof cell === "number" ? number(cell) : /_at$/.test(key) && cell ? exact(cell) : key === "date" ? dayOf(cell) : String(cell ?? "–");
    }, typeof value.find((row) => row[key] !== undefined)?.[key] === "number" ? "number" : ""]), value.slice(0, 200)))];
  }
  if (Array.isArray(value)) return value.length ? [el("h3", { text: term("report", name) }), el("p", { text: value.join(", ") })] : null;
  if (value && typeof value === "object" && Object.values(value).some((one) => !Array.isArray(one) || one.length)) return [el("h3", { text: term("report", name) }), plain(value)];
  return null;
}

function kpis(list) {
  return el("div", { class: "wide" }, table(t("figures"), [[t("figure"), (row) => [row.name, el("span", { class: "sub", text: [row.rule, has("kpi." + row.rule) ? t("kpi." + row.rule) : row.means].filter(Boolean).join(" · ") })], "wordy"],
    [t("value"), (row) => (row.value === null ? "–" : `${number(row.value)} ${row.unit || ""}`), "number"], [t("target"), (row) => (row.target === null || row.target === undefined ? "" : `${row.bound || ""} ${number(row.target)} ${row.unit || ""}`), "number"], [t("met"), met, ""]], list));
}

const plain = (object) => [facts(Object.entries(object).filter(([, value]) => typeof value !== "object" && typeof value !== "boolean").map(([name, value]) => [term("report", name), typeof value === "number" ? number(value) : /_at$|^from$|^to$/.test(name) ? exact(value) || String(value) : String(value)])),
  Object.entries(object).map(([name, value]) => anything(name, value))];

const longest = (series) => Math.max(0, ...series.map(({ values }) => values.length));
const greatest = (series, stacked) => Math.max(0, ...(stacked ? Array.from({ length: longest(series) }, (_, i) => series.reduce((sum, { values }) => sum + (values[i] || 0), 0)) : series.flatMap(({ values }) => values)));

const stepOf = (all, stepMs) => stepMs * Math.max(1, Math.ceil(all.delivered.length / POINTS_MAX));

/* Counts and the queue in steps of about `wanted`: as many as the screen has room for. */
function thinned(all, stepMs, wanted) {
  const by = Math.max(1, Math.round(wanted / stepMs)), size = Math.ceil(all.delivered.length / by);
  const thin = (name, join) => Array.from({ length: size }, (_, i) => (all[name] || []).slice(i * by, i * by + by).reduce((a, b) => join(a, b || 0), 0));
  return { step: stepMs * by, count: size,
    flow: [{ name: t("delivered"), css: "good", values: thin("delivered", (a, b) => a + b) }, { name: t("failed"), css: "bad", values: thin("failed", (a, b) => a + b) }],
    queue: [{ name: t("queue"), css: "accent", values: thin("queue", Math.max) }] };
}

/* What the destination itself did in a time of the same length, for the same charts. */
async function realOf(name, spanMs) {
  if (!known.stats?.destinations.some((one) => one.name === name)) return null;
  const to = serverNow(), step = spanMs <= 2 * 86400e3 ? 60 : 3600;
  const history = await askIfThere(`v1/destinations/${encodeURIComponent(name)}/history` + query({ from: new Date(to - spanMs).toISOString(), to: new Date(to).toISOString(), step }), "history");
  if (!history) return null;
  const { delivered, pending, failed, mode } = history.series, from = Date.parse(history.from);
  return { from, stepMs: step * 1000, all: { delivered, queue: pending, failed: delivered.map((_, i) => Object.values(failed).reduce((sum, values) => sum + (values[i] || 0), 0)) },
    bands: bandsOf(mode, from, step * 1000, [], to) };
}

/* Those of the simulation and those of the destination beside each other, on the same scale. */
function curves({ curves: all, outages }, real, width) {
  if (!all?.delivered?.length) return null;
  const from = new Date(2024, 0, 1).getTime(); // its time starts at midnight
  const bands = (outages || []).map((outage) => ({ css: "contingency", from: from + outage.fromMs, to: from + outage.toMs, name: outage.failure }));
  const { stepMs, ...counted } = all;
  const step = Math.max(stepOf(counted, stepMs), real ? stepOf(real.all, real.stepMs) : 0);
  const sides = [{ from, bands, ...thinned(counted, stepMs, step) }, ...(real ? [{ from: real.from, bands: real.bands, real: true, ...thinned(real.all, real.stepMs, step) }] : [])];
  const draw = (title, part, unit, stacked) => sides.map((side) => chart({ title: side.real ? t("sim.real", { what: title }) : title, unit: unit(side), axis: side, width, bands: side.bands, stacked, series: side[part],
    least: Math.max(...sides.map((one) => greatest(one[part], stacked))) }));
  return el("div", { class: "charts" }, draw(t("throughput"), "flow", (side) => t("per_step", { time: duration(side.step) }), true), draw(t("queue"), "queue", () => t("jobs_unit"), false));
}

function outcome(run, real, width) {
  const targets = (run.targets || []).filter((row) => row.value !== null);
  return panel(run.destination, curves(run, real, width),
    el("div", { class: "columns" },
      targets.length ? el("div", {}, el("h3", { text: t("target") }), el("div", { class: "wide" }, table(t("target"), [[t("figure"), (row) => [term("figure", row.figure), el("span", { class: "sub", text: row.rule || "" })], "wordy"],
        [t("value"), (row) => valueText(row.figure, row.value, row.target), "number"], [t("target"), (row) => row.target, ""], [t("met"), met, ""]], targets))) : null,
      el("div", {}, el("h3", { text: t("figures") }), facts(Object.entries(run.figures || {}).filter(([, value]) => value !== null).map(([name, value]) => [term("figure", name), valueText(name, value)])))));
}

export const simulate = {
  title: () => t("screen.simulate"),
  load: async () => ({}),
  draw(at) {
    const { state } = at;
    const width = chartWidth($("view").clientWidth);
    const form = el("form", { class: "grid", id: "simulate", async submit(event) {
      event.preventDefault();
      const values = Object.fromEntries([...this.querySelectorAll("[name]")].map((input) => [input.name, input.value.trim()]).filter(([, value]) => value));
      Object.assign(state, { values, problem: "", result: null, running: true });
      redraw();
      try {
        const result = await post("v1/simulate", { ...values, ...(values.tenants ? { tenants: Number(values.tenants) } : {}) });
        const drawn = result.runs?.[0]?.curves;
        state.real = drawn?.delivered?.length ? await realOf(values.policy, Math.min(drawn.stepMs * drawn.delivered.length, 90 * 86400e3)) : null;
        state.result = result;
      } catch (error) {
        state.problem = error.status === 404 || error.status === 405 ? t("sim.not_there") : error.message;
      }
      state.running = false;
      redraw();
    } }, fields(FORM()), el("p", { class: "acts" }, el("button", { type: "submit", class: "main", text: t("sim.run") })));
    form.querySelector("[name=policy]").setAttribute("list", "policies");
    const runs = state.result?.runs || [];
    return [panel(t("screen.simulate"), el("p", { class: "hint", text: t("sim.hint") }), form, el("datalist", { id: "policies" }, known.stats.destinations.map(({ name: value }) => el("option", { value }))),
        state.running ? el("p", { role: "status", text: t("asking") }) : null, state.problem ? el("p", { class: "problem", role: "alert", text: state.problem }) : null,
        state.values ? el("p", {}, t("sim.command") + " ", el("code", { class: "command", text: command(state.values) })) : null),
      runs.map((run) => outcome(run, state.real, width))];
  },
};

function report({ title: _, every: __, from, to, unfinished, kpis: list, ...rest }, weekly) {
  const kind = t(weekly ? "report.weekly" : "report.daily");
  return el("div", { id: "report" }, el("h3", { text: t("report.of", { kind, from: exact(from), to: exact(to) }) }),
    unfinished ? el("p", { class: "hint", text: t("report.unfinished") }) : null, kpis(list || []), plain(rest));
}

export const reports = {
  title: () => t("screen.reports"),
  async load(at) {
    const kind = at.query.kind === "weekly" ? "weekly" : "daily";
    const report = await askIfThere(`v1/reports/${kind}` + query(kind === "daily" ? { date: at.query.date } : { week: at.query.week }), "reports " + kind);
    return report ? { report } : { none: true };
  },
  draw(at) {
    const weekly = at.query.kind === "weekly";
    return panel(t("screen.reports"), el("p", { class: "ranges" }, link("#/reports", t("report.daily"), { class: "tab", "aria-current": weekly ? null : "true" }), link("#/reports?kind=weekly", t("report.weekly"), { class: "tab", "aria-current": weekly ? "true" : null }),
        weekly ? null : el("label", {}, t("day") + " ", el("input", { type: "date", value: at.query.date, change() { location.hash = "#/reports" + query({ date: this.value }); } })), button(t("print"), () => print())),
      at.data.none ? el("p", { class: "hint", text: t("no_reports") }) : report(at.data.report, weekly));
  },
};
