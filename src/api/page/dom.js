/*
 * Elements, and how a screen that was drawn anew is put in place of the one that is shown: only what differs changes, so
 * that focus, selections, what somebody types and screen readers are left in peace. Whatever comes from the daemon is put in
 * as text, never as markup: an error's text may hold any.
 */
export const $ = (id) => document.getElementById(id);

/* An element's handlers and data are its `own`, which `place` hands over to the element that stays. */
function hear(event) {
  const run = this.own?.[event.type];
  if (run) run.call(this, event);
}

/* What it was made with is noted as `made`: to compare that takes a tenth of the time that asking the document takes. */
function build(node, attributes, children) {
  node.made = {};
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function" || typeof value === "object") {
      (node.own ??= {})[name] = value;
      if (typeof value === "function") node.addEventListener(name, hear);
    } else if (name === "text") node.textContent = value;
    else node.setAttribute(name, (node.made[name] = value === true ? "" : String(value)));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return node;
}

export const el = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

export const shape = (name) =>
  svg("svg", { class: "shape", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("use", { href: "#shape-" + name }));

export function set(node, text) {
  const value = String(text ?? "");
  if (node.textContent !== value) node.textContent = value;
}

export function attribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export function show(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}

const keyOf = (node) => node.made?.["data-key"];
const isKept = (node) => node.made?.["data-kept"] !== undefined;
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

/* What stands in the page's file was made by nobody here, and has its attributes in the document alone. */
const given = (node) => node.made ?? Object.fromEntries([...node.attributes].map(({ name, value }) => [name, value]));

function placeAttributes(old, wanted) {
  const had = given(old);
  for (const name in had) if (wanted.made[name] === undefined) old.removeAttribute(name);
  for (const name in wanted.made) if (had[name] !== wanted.made[name]) old.setAttribute(name, wanted.made[name]);
  old.made = wanted.made;
  if (!wanted.own && !old.own) return;
  for (const [name, value] of Object.entries(wanted.own || {})) {
    if (typeof value === "function" && !old.own?.[name]) old.addEventListener(name, hear);
  }
  old.own = wanted.own;
}

/*
 * An element whose inside is made only where it is not shown already: `mark` stands for all that is to be seen in it. Most
 * rows of a long table are the same as a moment ago.
 */
let unfilled = [];
function later(node, mark, fill) {
  unfilled.push(Object.assign(node, { mark, fill }));
  return node;
}

function filled(node) {
  if (node.fill) node.append(...node.fill());
  node.fill = null;
  return node;
}

/* Makes `old` what `wanted` is. What a person has typed or chosen stays, and what is marked as kept by whoever made it. */
export function place(old, wanted) {
  placeInside(old, wanted);
  for (const node of unfilled) if (node.isConnected) filled(node);
  unfilled = [];
}

function placeInside(old, wanted) {
  if (old.nodeType === 3) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return;
  }
  if (wanted.mark !== undefined && old.mark === wanted.mark) return;
  old.mark = filled(wanted).mark;
  const kept = isKept(old);
  if (!kept) placeAttributes(old, wanted);
  if (old.nodeName === "TEXTAREA" || old.nodeName === "INPUT" || kept) return;
  const keyed = new Map();
  for (const child of old.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = old.firstChild;
  for (const child of [...wanted.childNodes]) {
    let match = keyOf(child) ? keyed.get(keyOf(child)) : at;
    if (!match || !alike(match, child)) match = null;
    if (!match) {
      old.insertBefore(child, at);
      continue;
    }
    if (match === at) at = at.nextSibling;
    else old.insertBefore(match, at);
    placeInside(match, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/* ---- parts that all screens use ---- */

/* The screen that is shown is drawn anew, as what it keeps for itself has changed. */
let drawing = () => {};
export const onRedraw = (run) => (drawing = run);
export const redraw = () => drawing();

export const button = (text, click, more) => el("button", { type: "button", click, text, ...more });
export const link = (href, text, more) => el("a", { href, text, ...more });
export const panel = (title, ...children) =>
  el("section", { class: "panel", "aria-label": title }, title ? el("h2", { text: title }) : null, ...children);

export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== "" && value !== undefined && value !== null)
    .map(([name, value]) => [el("dt", { text: name }), el("dd", {}, value)]));
}

/*
 * Columns are [name, of row -> cell, class]; `number` stands right. The roles keep it a table where a small screen shows its
 * rows as cards. `sign` tells all that a row's cells show, so that those of one that is as it was are not made again.
 */
export function table(label, columns, rows, { key, attributes, head, sign } = {}) {
  const cells = (row) => columns.map(([name, cell, kind], i) =>
    el(i === 0 ? "th" : "td", { role: i === 0 ? "rowheader" : "cell", scope: i === 0 ? "row" : null, class: kind, "data-label": name }, cell(row)));
  const names = columns.map(([name]) => name).join();
  return el("table", { role: "table", class: "rows", "aria-label": label },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, columns.map(([name, , kind], i) =>
      el("th", { role: "columnheader", scope: "col", class: kind }, head?.[i] ?? (name || el("span", { class: "unseen", text: "·" })))))),
    el("tbody", { role: "rowgroup" }, rows.map((row) => {
      const made = { role: "row", "data-key": key?.(row), ...attributes?.(row) };
      return sign ? later(el("tr", made), `${names} ${sign(row)}`, () => cells(row)) : el("tr", made, cells(row));
    })));
}
