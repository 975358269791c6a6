/*
 * What a reader keeps in this browser alone: views, which are addresses by a name, and destinations that come first.
 */
import { button, el, link, redraw } from "./dom.js";
import { keep, keptWord, t } from "./words.js";
import { confirmThat } from "./acts.js";

const VIEWS_KEY = "insist.views", PINS_KEY = "insist.pins", KEPT_MAX = 50;

function read(key) {
  try {
    const list = JSON.parse(keptWord(key) || "[]");
    return Array.isArray(list) ? list : [];
  } catch {
    return []; // not ours
  }
}

const write = (key, list) => keep(key, list.length ? JSON.stringify(list.slice(-KEPT_MAX)) : "");

/* ---- pins ---- */

let text = "", pins = new Set();
export function pinned() {
  const now = keptWord(PINS_KEY) || "";
  if (now !== text) [text, pins] = [now, new Set(read(PINS_KEY))]; // each row of a list asks
  return pins;
}

export function pinButton(name) {
  const on = pinned().has(name);
  return button(on ? "★" : "☆", () => {
    const others = read(PINS_KEY).filter((one) => one !== name);
    write(PINS_KEY, on ? others : [...others, name]);
    redraw();
  }, { class: "quiet star", "aria-pressed": String(on), "aria-label": t("pin", { name }), title: t("pin", { name }) });
}

/* ---- views ---- */

const screenOf = (hash) => hash.replace(/^#\/?/, "").split(/[/?]/)[0];
const isView = (view) => typeof view?.name === "string" && typeof view.hash === "string" && view.hash.startsWith("#/");
const saved = () => read(VIEWS_KEY).filter(isView);

function keepView() {
  confirmThat({ title: t("view.keep"), text: t("view.where"), button: t("keep"), inputs: [["name", t("view.name"), { required: true, maxlength: 60 }]],
    run: async ({ name }) => {
      if (!name) throw new Error(t("view.name"));
      write(VIEWS_KEY, [...saved().filter((view) => view.name !== name), { name, hash: location.hash }]);
      redraw();
    } });
}

/* Those of the screen that is shown, and keeping what it shows now. */
export function views() {
  const here = saved().filter((view) => screenOf(view.hash) === screenOf(location.hash)), current = here.find((view) => view.hash === location.hash);
  return el("p", { class: "ranges views" }, here.map((view) => link(view.hash, view.name, { class: "tab", "aria-current": view === current ? "true" : null, "data-key": "v" + view.name })),
    current ? button(t("view.forget", { name: current.name }), () => {
      write(VIEWS_KEY, saved().filter((view) => view.name !== current.name));
      redraw();
    }, { class: "quiet" }) : location.hash.includes("?") ? button(t("view.keep"), keepView, { class: "quiet" }) : null);
}
