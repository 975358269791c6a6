/*
 * What the page says, in the reader's language: words from one file a language, figures and times by the browser's locale.
 */
import { el } from "./dom.js";

export const LANGUAGES = { en: "English", "pt-BR": "Português", "es-PY": "Español" };
const LANGUAGE_KEY = "insist.language";

let words = {};
let plural, whole, timeOfDay, dateAndTime, exactTime, relative;
export let language = "en";

function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // storage may be forbidden
  }
}

export function keep(name, value) {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch {
    return; // it holds until the page is closed
  }
}

export const keptWord = kept;

function chosen() {
  const wish = kept(LANGUAGE_KEY);
  if (wish in LANGUAGES) return wish;
  for (const tag of navigator.languages || []) {
    const found = Object.keys(LANGUAGES).find((name) => name.slice(0, 2) === tag.slice(0, 2));
    if (found) return found;
  }
  return "en";
}

export async function loadWords(wish) {
  if (wish) keep(LANGUAGE_KEY, wish);
  language = wish || chosen();
  words = await (await fetch(`page/${language}.json`)).json();
  const tag = (navigator.languages || []).find((one) => one.slice(0, 2) === language.slice(0, 2)) || language;
  plural = new Intl.PluralRules(tag);
  whole = new Intl.NumberFormat(tag, { maximumFractionDigits: 1 });
  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
  timeOfDay = new Intl.DateTimeFormat(tag, time);
  dateAndTime = new Intl.DateTimeFormat(tag, { dateStyle: "medium", timeStyle: "medium" });
  exactTime = new Intl.DateTimeFormat(tag, { year: "numeric", month: "short", day: "numeric", ...time, fractionalSecondDigits: 3, timeZoneName: "short" });
  relative = new Intl.RelativeTimeFormat(tag, { numeric: "always", style: "short" });
  document.documentElement.lang = language;
}

export const has = (key) => key in words;

/* A sentence by its key; {name} is filled in; a key with forms chooses by `n`. */
export function t(key, values) {
  let text = words[key];
  if (text === undefined) return key;
  if (typeof text === "object") text = text[plural.select(values.n)] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (all, name) => {
    const value = values?.[name];
    return value === undefined || value === null ? "" : typeof value === "number" ? number(value) : value;
  });
}

/* A word of the API, translated where the file has it; else as it is. */
export const term = (group, word) => (word === undefined || word === null ? "" : words[`${group}.${word}`] ?? String(word).replaceAll("_", " "));

/* ---- figures and times ---- */

let skewMs = 0; // the daemon's clock less ours
export const setSkew = (ms) => (skewMs = ms);
export const serverNow = () => Date.now() + skewMs;

export const number = (value) => (Number.isFinite(value) ? whole.format(value) : "–");
export const percent = (value) => (Number.isFinite(value) ? `${whole.format(value * 100)} %` : "–");

export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  const s = Math.max(0, Math.round(ms / 1000));
  if (ms > 0 && ms < 1000) return `${Math.round(ms)} ms`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 && s < 600 ? ` ${s % 60} s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h${s % 3600 >= 60 ? ` ${Math.floor((s % 3600) / 60)} min` : ""}`;
  return `${Math.floor(s / 86400)} d${s % 86400 >= 3600 ? ` ${Math.floor((s % 86400) / 3600)} h` : ""}`;
}

const instant = (text) => (typeof text === "number" ? text : Date.parse(text));
export const zone = () => exactTime.formatToParts().find((part) => part.type === "timeZoneName").value;
export const timeOf = (at) => timeOfDay.format(at);
export const axisTime = (at, days) => new Intl.DateTimeFormat(language, days ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit", hour12: false }).format(at);

export function clock(text) {
  const at = instant(text);
  return Number.isNaN(at) ? "" : (Math.abs(serverNow() - at) < 12 * 3600e3 ? timeOfDay : dateAndTime).format(at);
}

export const exact = (text) => (Number.isNaN(instant(text)) ? "" : exactTime.format(instant(text)));

function ago(at) {
  const s = Math.round((at - serverNow()) / 1000), size = Math.abs(s);
  if (size < 60) return relative.format(s < 0 ? s : s || -0, "second");
  if (size < 3600) return relative.format(Math.trunc(s / 60), "minute");
  if (size < 172800) return relative.format(Math.trunc(s / 3600), "hour");
  return relative.format(Math.trunc(s / 86400), "day");
}

/* Relative, with the exact time and its zone on hover and for a screen reader; or the time of day. */
export function when(text, plain) {
  const at = instant(text);
  if (text === undefined || text === null || Number.isNaN(at)) return "";
  return el("time", { datetime: new Date(at).toISOString(), title: exact(at), text: plain ? clock(at) : ago(at) });
}

export function since(text) {
  const at = instant(text);
  return Number.isNaN(at) ? "" : t("for_since", { time: duration(serverNow() - at), at: clock(at) });
}

export function until(text) {
  const at = instant(text);
  return Number.isNaN(at) || at < serverNow() ? "" : t("until", { at: clock(at) });
}
