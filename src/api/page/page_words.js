/*
 * The page's elements, and its words for figures, times and states. Whatever comes from the daemon is put in as text,
 * never as markup: an error's text may hold any.
 */
"use strict";

/* ---- elements ---- */

const $ = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "text") node.textContent = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function shape(name) {
  return svg("svg", { class: "shape", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("use", { href: "#shape-" + name }));
}

/* Changes only what differs, so that selections, focus and screen readers are left in peace. Returns whether it did. */
function set(node, text) {
  const value = String(text ?? "");
  if (node.textContent === value) return false;
  node.textContent = value;
  return true;
}

function attribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

function show(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}

/* ---- words ---- */

let skewMs = 0; // the daemon's clock less ours

const whole = new Intl.NumberFormat(undefined);
const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const number = (value) => (Number.isFinite(value) ? whole.format(value) : "–");
const serverNow = () => Date.now() + skewMs;

function many(count, one, more) {
  return `${number(count)} ${count === 1 ? one : more}`;
}

function duration(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

function clock(text) {
  const at = Date.parse(text);
  return Number.isNaN(at) ? "" : (Math.abs(serverNow() - at) < 12 * 3600e3 ? timeOfDay : dateAndTime).format(at);
}

function since(text) {
  const at = Date.parse(text);
  return Number.isNaN(at) ? "" : `for ${duration(serverNow() - at)}, since ${clock(text)}`;
}

function until(text) {
  const at = Date.parse(text);
  return Number.isNaN(at) || at < serverNow() ? "" : `until ${clock(text)}`;
}

const CAUSES = {
  health: "its health check fails",
  signal: "its answers say that it is down",
  breaker: "its breaker kept opening",
  exhausted: "jobs used up their retries",
  maintenance: "planned maintenance",
  operator: "an operator said so",
  relapse: "it failed again on its way back",
  checked: "it answers again",
  configuration: "the configuration changed",
  stable: "it has been stable",
};

/* What holds a destination in its normal mode. What is missing here is part of normal work. */
const HOLDS = {
  breaker: { word: "Breaker open", tone: "warn", shape: "breaker", why: "too many attempts failed; it is tried again soon" },
  throttle: { word: "Throttled", tone: "warn", shape: "throttled", why: "it asked for a pause" },
  rate: { word: "At its rate limit", tone: "info", shape: "throttled", why: "rate: in the configuration" },
  maintenance: { word: "Maintenance", tone: "hold", shape: "paused", why: "planned in the configuration" },
  dead_full: { word: "Dead letters full", tone: "bad", shape: "bad", why: "dead.max is reached: retry or purge some" },
  unconfigured: { word: "Not configured", tone: "warn", shape: "warn", why: "jobs are there, but the configuration has no such destination" },
};

const MODES = {
  paused: { word: "Paused", tone: "hold", shape: "paused" },
  blocked: { word: "Refused", tone: "bad", shape: "bad" },
  contingency: { word: "Contingency", tone: "bad", shape: "bad" },
  recovering: { word: "Recovering", tone: "info", shape: "recovering" },
};

function isFailing(destination) {
  const failed = destination.failed_last_minute || 0;
  return failed >= 5 && failed > (destination.delivered_last_minute || 0);
}

/* One of the page's states: a word, a tone and a shape, since when, and why. */
function stateOf(destination) {
  const blocked = destination.held_by === "blocked";
  const mode = blocked ? MODES.blocked : MODES[destination.mode];
  const cause = blocked ? "it refuses jobs, or nothing can be sent" :
    destination.mode === "paused" ? "an operator said so" : CAUSES[destination.mode_cause] || "";
  if (mode) {
    return { ...mode, since: destination.mode === "paused" ? destination.held_since : destination.mode_since,
             until: destination.held_until, why: [cause, destination.pause_reason].filter(Boolean).join(": ") };
  }
  const hold = HOLDS[destination.held_by] || (destination.breaker === "open" ? HOLDS.breaker : null);
  if (hold) return { ...hold, since: destination.held_since, until: destination.held_until };
  if (destination.breaker === "half_open") {
    return { word: "Breaker trying", tone: "warn", shape: "breaker", why: "a few jobs show whether it works again" };
  }
  if (isFailing(destination)) {
    const failed = destination.failed_last_minute;
    const all = failed + (destination.delivered_last_minute || 0);
    return { word: "Failing", tone: "warn", shape: "warn", why: `${number(failed)} of ${many(all, "attempt", "attempts")} failed in the last minute` };
  }
  return { word: "Normal", tone: "good", shape: "good", why: "" };
}
