/*
 * Charts by hand in SVG: bars or lines over one time axis, bands behind them, one crosshair over all that stand together,
 * dragging chooses a range, and behind each a table with the same figures.
 */
import { el, svg } from "./dom.js";
import { axisTime, clock, exact, number, t, term } from "./words.js";

const HEIGHT = 150, TOP = 8, BOTTOM = 22, LEFT = 46, RIGHT = 6;
export const POINTS_MAX = 240; // of one chart: more than a screen shows apart
const open = new Set(); // tables that somebody opened

/* As the style sheet lays them out: two beside each other where there is room. */
export const chartWidth = (room) => Math.max(260, matchMedia("(min-width: 70rem)").matches ? Math.floor((room - 58) / 2) : room - 36);

/* Steps of the same mode as stretches: [{mode, from, to}]; a mode is null where none was noted. */
function stretches(modes, from, step) {
  const out = [];
  modes.forEach((mode, i) => {
    const last = out.at(-1), start = from + i * step;
    if (last && last.mode === (mode || null)) last.to += step;
    else out.push({ mode: mode || null, from: start, to: start + step });
  });
  return out;
}

/* Modes, a step each, as bands; where none was noted, as in the minute that runs, what incidents tell. */
export function bandsOf(modes, from, step, incidents, now) {
  const told = incidents.map((one) => ({ css: "contingency", from: Date.parse(one.entered_at || one.first_sign_at), to: one.restored_at ? Date.parse(one.restored_at) : now, name: one.summary || one.id }));
  if (!modes?.some((mode) => mode)) return told;
  const within = (gap) => told.map((one) => ({ ...one, from: Math.max(one.from, gap.from), to: Math.min(one.to, gap.to) })).filter((one) => one.from < one.to);
  return [...stretches(modes, from, step), { mode: null, from: from + modes.length * step, to: Infinity }].flatMap((one) =>
    one.mode ? (one.mode === "normal" ? [] : [{ ...one, css: one.mode, name: term("state", one.mode) }]) : within(one));
}

/* A round number at or above the greatest, whose half is whole too, so that the scale can be read. */
function ceiling(most) {
  if (!(most > 2)) return 2;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= most);
}

const short = (value) => (value >= 1e6 ? number(value / 1e6) + " M" : value >= 1e4 ? number(value / 1e3) + " k" : number(value));

function stackOf(series) {
  const under = [];
  return series.map(({ values }) => values.map((value, i) => {
    const from = under[i] || 0;
    under[i] = from + (value || 0);
    return [from, under[i]];
  }));
}

/* What the scale must reach. */
const mostOf = (series, stacks) => (stacks ? Math.max(0, ...(stacks.at(-1) || []).map(([, to]) => to)) : Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0))));

function linePath(values, x, y) {
  let path = "", pen = false;
  values.forEach((value, i) => {
    if (value === null || value === undefined) pen = false; // nothing known: a gap, never a zero
    else {
      path += `${pen ? "L" : "M"}${x(i + 0.5).toFixed(1)} ${y(value).toFixed(1)}${pen ? "" : "h.01"}`;
      pen = true;
    }
  });
  return path;
}

const barPath = (stack, x, y) => stack.map(([from, to], i) => (to > from
  ? `M${x(i + 0.08).toFixed(1)} ${y(from).toFixed(1)}H${x(i + 0.92).toFixed(1)}V${Math.min(y(from) - 1, y(to)).toFixed(1)}H${x(i + 0.08).toFixed(1)}Z` : "")).join("");

function ticks({ from, step, count }, x, width) {
  const span = step * count, days = span > 2 * 86400e3;
  const every = [60e3, 300e3, 600e3, 1800e3, 3600e3, 3 * 3600e3, 6 * 3600e3, 12 * 3600e3, 86400e3, 7 * 86400e3, 28 * 86400e3]
    .find((size) => (span / size) * 64 < width) || span;
  const shift = new Date(from).getTimezoneOffset() * 60e3; // on the reader's full hours
  const marks = [];
  for (let at = Math.ceil((from - shift) / every) * every + shift; at < from + span; at += every) {
    const px = x((at - from) / step);
    if (px < width - 24) marks.push(svg("text", { class: "tick", x: px, y: HEIGHT - 6, "text-anchor": "middle" }, axisTime(at, days)));
  }
  return marks;
}

const nameAt = (bands, at) => bands.filter((band) => band.from <= at && at < band.to).map((band) => band.name).join(", ");

/* A band tells what it is where there is room, else when somebody points at it. */
function bandMarks(bands, inside) {
  return bands.map((band) => ({ ...band, left: inside(band.from), room: inside(band.to) - inside(band.from) })).filter(({ room }) => room > 0).map(({ css, name, left, room }) => [
    svg("rect", { class: "band " + css, x: left, width: Math.max(2, room), y: TOP, height: HEIGHT - TOP - BOTTOM }, svg("title", {}, name)),
    room > name.length * 6.5 ? svg("text", { class: "tick", x: left + 4, y: TOP + 11 }, name) : null]);
}

const pinMarks = (pins, axis, inside) => pins.filter(({ at }) => at >= axis.from && at <= axis.from + axis.step * axis.count).map(({ at, name }) =>
  svg("path", { class: "pin", d: `M${inside(at).toFixed(1)} ${TOP}l-4 -8h8zv${HEIGHT - TOP - BOTTOM}` }, svg("title", {}, `${clock(at)} ${name}`)));

/* Over all charts of the group: the line, and the figures beside the names. */
function point(group, ratio) {
  for (const node of group.querySelectorAll("svg.chart")) {
    const { axis, series, bands, unit, width } = node.own.chart;
    const i = ratio === null ? -1 : Math.min(axis.count - 1, Math.floor(ratio * axis.count));
    const cross = node.querySelector(".cross");
    const px = LEFT + ((i + 0.5) / axis.count) * (width - LEFT - RIGHT);
    cross.setAttribute("d", i < 0 ? "" : `M${px} ${TOP}V${HEIGHT - BOTTOM}`);
    node.closest("figure").querySelectorAll("output").forEach((output, s) => {
      const value = series[s].values[i];
      output.textContent = i < 0 || value === null || value === undefined ? "" : number(value) + (unit ? " " + unit : "");
    });
    const at = node.closest("figure").querySelector(".at");
    at.textContent = i < 0 ? "" : [clock(axis.from + i * axis.step), nameAt(bands, axis.from + (i + 0.5) * axis.step)].filter(Boolean).join(" · ");
  }
}

function pointer(choose) {
  let began = null;
  const ratioOf = (node, event) => {
    const box = node.getBoundingClientRect(), scale = box.width / node.own.chart.width;
    return Math.max(0, Math.min(0.9999, ((event.clientX - box.left) / scale - LEFT) / (node.own.chart.width - LEFT - RIGHT)));
  };
  return {
    pointermove(event) { point(this.closest(".charts") || this.closest("figure"), ratioOf(this, event)); },
    pointerleave() { point(this.closest(".charts") || this.closest("figure"), null); },
    pointerdown(event) { began = choose && event.button === 0 ? ratioOf(this, event) : null; },
    pointerup(event) {
      const ended = ratioOf(this, event), { from, step, count } = this.own.chart.axis;
      if (began !== null && Math.abs(ended - began) > 0.03) {
        choose(Math.round(from + Math.min(began, ended) * step * count), Math.round(from + Math.max(began, ended) * step * count));
      }
      began = null;
    },
  };
}

function behind(title, rows) {
  return el("details", { toggle() {
    if (this.open === open.has(title)) return;
    if (this.open) open.add(title);
    else open.delete(title);
    if (this.open && !this.querySelector("table")) this.append(rows());
  } }, el("summary", { text: t("as_table") }), open.has(title) ? rows() : null);
}

function rowsOf(title, axis, series, unit, bands) {
  return el("div", { class: "scroll" }, el("table", { "aria-label": title },
    el("thead", {}, el("tr", {}, el("th", { scope: "col", text: t("time") }), series.map(({ name }) => el("th", { scope: "col", class: "number", text: name + (unit ? `, ${unit}` : "") })),
      bands.length ? el("th", { scope: "col", text: t("state") }) : null)),
    el("tbody", {}, Array.from({ length: axis.count }, (_, i) => el("tr", {}, el("th", { scope: "row", text: exact(axis.from + i * axis.step) }),
      series.map(({ values }) => el("td", { class: "number", text: number(values[i] ?? NaN) })),
      bands.length ? el("td", { text: nameAt(bands, axis.from + (i + 0.5) * axis.step) }) : null)))));
}

/*
 * axis: {from, step, count} in ms. series: [{name, css, values}], null where nothing is known. bands: [{from, to, css, name}].
 * pins: [{at, name}], what somebody did. choose(from, to): what dragging does. least: what its scale reaches at least.
 */
export function chart({ title, unit, axis, series, stacked, bands = [], pins = [], width, choose, least = 0 }) {
  const stacks = stacked ? stackOf(series) : null;
  const most = mostOf(series, stacks);
  const top = ceiling(Math.max(most, least));
  const x = (i) => LEFT + (i / axis.count) * (width - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const inside = (at) => Math.max(LEFT, Math.min(width - RIGHT, x((at - axis.from) / axis.step)));
  const last = series.map(({ name, values }) => `${name} ${number(values.findLast((value) => value !== null && value !== undefined) ?? NaN)}`).join(", ");
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img",
      "aria-label": [`${title}${unit ? " (" + unit + ")" : ""}: ${t("at_most", { value: number(most) })}`, `${t("last")}: ${last}`,
        ...bands.slice(0, 8).map((band) => `${band.name}: ${clock(band.from)} – ${clock(band.to)}`)].join("; "),
      chart: { axis, series, bands, unit, width }, ...pointer(choose) },
    bandMarks(bands, inside),
    [0, 0.5, 1].map((part) => [svg("path", { class: "grid", d: `M${LEFT} ${y(part * top)}H${width - RIGHT}` }),
      svg("text", { class: "tick", x: LEFT - 6, y: y(part * top) + 4, "text-anchor": "end" }, short(part * top))]),
    ticks(axis, x, width),
    series.map(({ css, values }, s) => svg("path", stacks ? { class: "fill " + css, d: barPath(stacks[s], x, y) } : { class: "line " + css, d: linePath(values, x, y) })),
    pinMarks(pins, axis, inside), svg("path", { class: "cross", "data-kept": true }));
  return el("figure", { "data-key": title },
    el("figcaption", {}, el("strong", { text: title + (unit ? `, ${unit}` : "") }),
      series.map(({ name, css }) => el("span", { class: "key " + css }, el("span", { text: name }), el("output", { "data-kept": true }))), el("span", { class: "at", "data-kept": true })),
    drawing, behind(title, () => rowsOf(title, axis, series, unit, bands)));
}

/* Delivered upwards, failed downwards: told apart by where they stand, too. */
export function strip(delivered, failed, label) {
  const count = Math.max(delivered.length, failed.length);
  const most = Math.max(0, ...delivered), worst = Math.max(0, ...failed), width = 120 / Math.max(1, count);
  const scale = 22 / Math.max(1, most + worst), up = most + worst ? 1 + most * scale : 22;
  let good = "", bad = "";
  for (let i = 0; i < count; i++) {
    if (delivered[i]) good += `M${i * width} ${up}h${width * 0.75}v${-Math.max(1, delivered[i] * scale)}h${-width * 0.75}z`;
    if (failed[i]) bad += `M${i * width} ${up + 1}h${width * 0.75}v${Math.max(1, failed[i] * scale)}h${-width * 0.75}z`;
  }
  return svg("svg", { class: "spark", viewBox: "0 0 120 24", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("path", { class: "grid", d: `M0 ${up + 0.5}h120` }), svg("path", { class: "fill good", d: good }), svg("path", { class: "fill bad", d: bad }));
}
