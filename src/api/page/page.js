/*
 * The page's script. It speaks only the HTTP API, with addresses relative to the page's own.
 *
 * It follows /v1/events/stream and asks for the figures when something happened, and every few seconds anyhow; without
 * the stream only that. Whatever comes from the daemon is put in as text, never as markup: an error's text may hold any.
 */
"use strict";

const POLL_MS = 5000;            // the figures are asked for this often, whatever happens
const REFRESH_LEAST_MS = 400;    // and not more often than this, nor for more than a fifth of the time
const REFRESH_SHARE = 5;
const ANSWER_MS = 10000;         // how long an answer may take
const SILENCE_MS = 40000;        // the stream says something each 15 s
const STREAM_AGAIN_MS = 1000;
const STREAM_REFUSED_MS = 15000;
const DEAD_EVERY_MS = 5000;     // counting dead letters costs the daemon more than the rest
const DESTINATIONS_MAX = 200;
const EVENTS_KEPT = 300;
const EVENTS_SHOWN = 100;
const GROUPS_SHOWN = 15;
const TOKEN_KEY = "insist.token";

const $ = (id) => document.getElementById(id);

const known = {
  stats: null, destinations: [], more: false, incidents: [], alerts: null, alertsMore: false, dead: null,
  scopes: null, tenant: null,
};
const link = { lastOk: 0, since: 0, failed: "", streaming: false, refused: "", needsToken: false };
let skewMs = 0; // the daemon's clock less ours

/* ---- elements ---- */

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
  contingency: { word: "Contingency", tone: "bad", shape: "bad" },
  recovering: { word: "Recovering", tone: "info", shape: "recovering" },
};

function isFailing(destination) {
  const failed = destination.failed_last_minute || 0;
  return failed >= 5 && failed > (destination.delivered_last_minute || 0);
}

/* One of the page's states: a word, a tone and a shape, since when, and why. */
function stateOf(destination) {
  const mode = MODES[destination.mode];
  const cause = destination.mode === "paused" ? "an operator said so" : CAUSES[destination.mode_cause] || "";
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

/* ---- asking the daemon ---- */

function token() {
  try {
    return sessionStorage.getItem(TOKEN_KEY) || "";
  } catch {
    return ""; // storage may be forbidden: the token is then asked for each time
  }
}

function headers(more) {
  const all = { Accept: "application/json", ...more };
  if (token()) all.Authorization = "Bearer " + token();
  return all;
}

class Refusal extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status; // 0: there was no answer
  }
}

async function refusalOf(response) {
  let detail = "";
  try {
    detail = (await response.json()).detail || "";
  } catch {
    detail = "";
  }
  return new Refusal(response.status, detail || `the daemon answered with status ${response.status}`);
}

async function ask(path, { method = "GET", body } = {}) {
  const give = new AbortController();
  const timer = setTimeout(() => give.abort(), ANSWER_MS);
  try {
    const options = { method, headers: headers(body ? { "Content-Type": "application/json" } : {}), signal: give.signal, cache: "no-store" };
    if (body) options.body = JSON.stringify(body);
    const response = await fetch(path, options);
    const date = Date.parse(response.headers.get("Date") || "");
    if (!Number.isNaN(date)) skewMs = Math.abs(date - Date.now()) > 3000 ? date - Date.now() : 0;
    if (!response.ok) throw await refusalOf(response);
    return await response.json();
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal(0, give.signal.aborted ? "no answer for 10 s" : "no connection");
  } finally {
    clearTimeout(timer);
  }
}

/* For what this daemon may not have, or not for this token: it is not asked for again, until the page or the token is new. */
const missing = new Set();
async function askIfThere(path) {
  if (missing.has(path)) return null;
  try {
    return await ask(path);
  } catch (error) {
    if (error.status !== 404 && error.status !== 403) throw error;
    missing.add(path);
    return null;
  }
}

/* ---- figures: when ---- */

let refreshTimer = 0;
let refreshAt = 0;
let refreshing = false;
let refreshedAt = 0;
let refreshCost = 0;
let retryMs = 1000;
let deadAskedAt = 0;
let deadAskedOf = -1;

function wishRefresh(delayMs) {
  if (document.hidden || link.needsToken) return;
  const earliest = refreshedAt + Math.max(REFRESH_LEAST_MS, refreshCost * REFRESH_SHARE);
  const at = Math.max(Date.now() + delayMs, earliest);
  if (refreshing || (refreshTimer && refreshAt <= at)) return;
  clearTimeout(refreshTimer);
  refreshAt = at;
  refreshTimer = setTimeout(refresh, Math.max(0, at - Date.now()));
}

async function readDead() {
  const total = known.stats.totals.dead;
  const now = Date.now();
  if (total === deadAskedOf || now - deadAskedAt < DEAD_EVERY_MS) return;
  deadAskedAt = now;
  deadAskedOf = total;
  known.dead = total > 0 ? await askIfThere("v1/dead/summary?by=code") : { groups: [], dead: 0, others: 0 };
}

async function readAll() {
  const [stats, destinations, incidents, alerts] = await Promise.all([
    ask("v1/stats"),
    ask("v1/destinations?limit=" + DESTINATIONS_MAX),
    askIfThere("v1/incidents?limit=50"),
    askIfThere("v1/alerts"),
  ]);
  known.stats = stats;
  known.scopes = stats.scopes || null;
  known.tenant = stats.tenant ?? null;
  known.destinations = destinations.destinations;
  known.more = Boolean(destinations.next);
  known.incidents = (incidents ? incidents.incidents : []).filter((incident) => incident.state !== "restored");
  known.alerts = alerts ? alerts.alerts : null;
  known.alertsMore = Boolean(alerts && alerts.next);
  await readDead();
}

async function refresh() {
  clearTimeout(refreshTimer);
  refreshTimer = 0;
  refreshing = true;
  const began = Date.now();
  try {
    await readAll();
    link.lastOk = Date.now();
    link.failed = "";
    retryMs = 1000;
  } catch (error) {
    if (error.status === 401 || error.status === 403) askForToken(error);
    if (!link.failed) link.since = Date.now();
    link.failed = error instanceof Refusal ? error.message : String(error);
    retryMs = Math.min(retryMs * 1.5, POLL_MS);
  }
  refreshing = false;
  refreshedAt = Date.now();
  refreshCost = refreshedAt - began;
  if (known.stats && !link.needsToken) draw();
  drawLink();
  wishRefresh(link.failed ? retryMs : POLL_MS);
}

/* ---- the stream ---- */

let streamStop = null; // ends the one that runs
let lastEventId = "";

/* Calls `take` with each event of the text so far; returns what is not complete yet. */
function parseEvents(text, take) {
  const parts = text.split("\n\n");
  const rest = parts.pop();
  for (const part of parts) {
    const event = { id: null, name: "message", data: [] };
    for (const line of part.split("\n")) {
      const colon = line.indexOf(":");
      if (colon <= 0) continue;
      const field = line.slice(0, colon);
      const value = line.slice(colon + 1).replace(/^ /, "");
      if (field === "id") event.id = value;
      else if (field === "event") event.name = value;
      else if (field === "data") event.data.push(value);
    }
    take(event);
  }
  return rest;
}

function takeEvent(event) {
  if (event.id !== null) lastEventId = event.id;
  if (event.data.length === 0) return;
  let data;
  try {
    data = JSON.parse(event.data.join("\n"));
  } catch {
    return; // cut in the middle
  }
  if (event.name === "message") addEvent(data);
  wishRefresh(0);
}

async function readStream(stop) {
  const place = lastEventId ? { "Last-Event-ID": lastEventId } : {};
  const response = await fetch("v1/events/stream?newest=100&after=0", {
    headers: headers({ Accept: "text/event-stream", ...place }), signal: stop.signal, cache: "no-store",
  });
  if (!response.ok) throw await refusalOf(response);
  link.streaming = true;
  link.refused = "";
  drawLink();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const silence = setTimeout(() => stop.abort(), SILENCE_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    text = parseEvents(text + value, takeEvent);
  }
}

/* Runs as long as the page is looked at. */
async function follow() {
  if (streamStop || document.hidden || link.needsToken) return;
  const stop = new AbortController();
  streamStop = stop;
  let wait = STREAM_AGAIN_MS;
  try {
    await readStream(stop);
  } catch (error) {
    if (error instanceof Refusal) {
      link.refused = error.message;
      wait = error.status === 503 && !link.streaming ? STREAM_AGAIN_MS * 3 : STREAM_REFUSED_MS;
      if (error.status === 401) askForToken(error);
    }
  }
  if (streamStop === stop) streamStop = null;
  link.streaming = false;
  wishRefresh(0);
  if (!document.hidden) setTimeout(follow, wait);
}

/* ---- drawing: the whole ---- */

function drawLink() {
  const online = !link.failed && link.lastOk > 0;
  const tone = link.needsToken ? null : !online ? "bad" : link.streaming ? "good" : "warn";
  attribute($("link"), "data-tone", tone);
  attribute($("link-shape"), "href", link.needsToken ? "#shape-wait" : !online ? "#shape-cut" : link.streaming ? "#shape-live" : "#shape-wait");
  const at = link.lastOk ? `updated ${timeOfDay.format(link.lastOk)}` : "";
  set($("link-text"), link.needsToken ? "No token" : !online ? (link.lastOk ? `Disconnected, ${at}` : "Disconnected")
    : link.streaming ? `Live, ${at}` : `Every ${POLL_MS / 1000} s, ${at}`);
  document.body.classList.toggle("stale", !online && !link.needsToken && link.lastOk > 0);
  drawBanner();
}

function bannerOf() {
  if (link.needsToken) return { tone: "info", shape: "wait", text: "Sign in to see how the destinations are", note: "" };
  if (link.failed) {
    const last = link.lastOk ? `The last update was at ${timeOfDay.format(link.lastOk)}, ${duration(Date.now() - link.lastOk)} ago: what is below is from then. ` : "";
    return { tone: "bad", shape: "cut", text: "Disconnected from the daemon", note: `${last}Trying again: ${link.failed}.` };
  }
  if (!known.stats) return { tone: "wait", shape: "wait", text: "Asking the daemon…", note: "" };
  const states = known.destinations.map((destination) => ({ name: destination.name, state: stateOf(destination) }));
  const down = states.filter(({ state }) => state.word === "Contingency");
  const bad = states.filter(({ state }) => state.tone === "bad" && state.word !== "Contingency");
  const odd = states.filter(({ state }) => state.tone === "warn" || state.tone === "hold" || state.word === "Recovering");
  const critical = (known.alerts || []).filter((alert) => alert.severity === "critical");
  const list = (items) => items.slice(0, 8).map(({ name, state }) => `${name}: ${state.word.toLowerCase()}${state.why ? " (" + state.why + ")" : ""}`)
    .concat(items.length > 8 ? [`and ${items.length - 8} more`] : []).join("; ");
  if (down.length || bad.length) {
    const text = [down.length ? many(down.length, "destination in contingency", "destinations in contingency") : "",
                  bad.length ? many(bad.length, "destination held", "destinations held") : ""].filter(Boolean).join(", ");
    return { tone: "bad", shape: "bad", text, note: list([...down, ...bad, ...odd]) };
  }
  if (critical.length) return {
    tone: "bad", shape: "bad", text: many(critical.length, "critical alert", "critical alerts"),
    note: critical.slice(0, 3).map((alert) => alert.summary).concat(critical.length > 3 ? [`and ${critical.length - 3} more`] : [], list(odd) || []).join("; ") };
  if (odd.length) return { tone: "warn", shape: "warn", text: many(odd.length, "destination needs a look", "destinations need a look"), note: list(odd) };
  if (!states.length) return { tone: "info", shape: "wait", text: "No destination is configured", note: "" };
  return { tone: "good", shape: "good", text: "All well", note: `${many(states.length, "destination", "destinations")}, none held` };
}

function drawBanner() {
  const banner = bannerOf();
  attribute($("banner"), "data-tone", banner.tone);
  attribute($("banner-shape"), "href", "#shape-" + banner.shape);
  set($("banner-text"), banner.text);
  set($("banner-note"), banner.note);
  const title = banner.tone === "good" ? "insist: all well" : `${banner.text} – insist`;
  if (document.title !== title) document.title = title;
}

function draw() {
  show($("login"), false);
  show($("board"), true);
  const { stats } = known;
  set($("about"), `${location.host}, version ${stats.version}, up for ${duration(stats.uptime_s * 1000)}` +
    (known.tenant ? `, tenant ${known.tenant}` : ""));
  show($("forget"), Boolean(token()));
  drawTotals();
  drawDestinations();
  drawIncidents();
  drawAlerts();
  drawDead();
}

function drawTotals() {
  const { totals } = known.stats;
  const sum = (name) => known.destinations.reduce((all, destination) => all + (destination[name] || 0), 0);
  const rows = [["Pending", totals.pending], ["Running", totals.running], ["Waiting for a retry", totals.waiting],
                ["Dead letters", totals.dead, totals.dead > 0 ? "bad" : null]];
  if (known.destinations.some((destination) => destination.delivered_last_minute !== undefined)) {
    rows.push(["Delivered, last minute", sum("delivered_last_minute")], ["Failed, last minute", sum("failed_last_minute")]);
  }
  const list = $("totals");
  while (list.children.length > rows.length) list.lastElementChild.remove();
  rows.forEach(([name, value, tone], i) => {
    if (!list.children[i]) list.append(el("div", {}, el("dt"), el("dd")));
    const [dt, dd] = list.children[i].children;
    attribute(list.children[i], "data-tone", tone);
    set(dt, name);
    set(dd, number(value));
  });
}

/* ---- drawing: destinations ---- */

const rows = new Map(); // name -> { tr, word, ... }

function mayOperate() {
  return !known.tenant && (!known.scopes || known.scopes.includes("operate"));
}

function makeRow(name) {
  const cell = (className, label) => el("td", { role: "cell", class: className, "data-label": label });
  const row = {
    name, word: null, sub: el("span", { class: "sub" }), chip: el("span", { class: "state" }), chipText: el("span"),
    why: el("span", { class: "sub" }), figures: ["Pending", "Running", "Waiting", "Dead"].map((label) => cell("number", label)),
    oldest: cell("number", "Oldest"), flight: cell("number flight", "In flight"), flowText: el("span"), failed: el("span", { class: "failed" }),
    spark: svg("svg", { class: "spark", viewBox: "0 0 120 24", preserveAspectRatio: "none", role: "img" }), sparkOf: "",
    hold: el("button", { type: "button" }), mode: el("button", { type: "button" }),
  };
  row.hold.addEventListener("click", () => actOn(name, row.hold.dataset.act));
  row.mode.addEventListener("click", () => actOn(name, row.mode.dataset.act));
  row.acts = el("td", { role: "cell", class: "acts" }, row.hold, row.mode);
  row.tr = el("tr", { role: "row", "data-name": name },
    el("th", { role: "rowheader", scope: "row" }, el("span", { text: name }), row.sub),
    el("td", { role: "cell", class: "where-state" }, row.chip, row.why),
    ...row.figures, row.oldest, row.flight,
    el("td", { role: "cell", class: "flow" }, row.flowText, row.failed, row.spark),
    row.acts);
  return row;
}

/* Delivered upwards, failed downwards: told apart by where they stand, too. */
function drawSpark(row, delivered, failed) {
  const key = delivered.join() + "/" + failed.join();
  if (row.sparkOf === key) return;
  row.sparkOf = key;
  const most = Math.max(0, ...delivered), worst = Math.max(0, ...failed);
  const scale = 22 / Math.max(1, most + worst); // the same for both
  const up = most + worst ? 1 + most * scale : 22;
  const bars = [svg("line", { class: "base", x1: 0, x2: 120, y1: up + 0.5, y2: up + 0.5 })];
  delivered.forEach((count, i) => {
    if (count) {
      const height = Math.max(1, count * scale);
      bars.push(svg("rect", { class: "good", x: i * 4, width: 3, y: up - height, height }));
    }
    if (failed[i]) bars.push(svg("rect", { class: "bad", x: i * 4, width: 3, y: up + 1, height: Math.max(1, failed[i] * scale) }));
  });
  row.spark.replaceChildren(...bars);
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  row.spark.setAttribute("aria-label", `last 30 minutes: ${number(sum(delivered))} delivered, ${number(sum(failed))} attempts failed`);
}

function drawState(row, destination) {
  const state = stateOf(destination);
  const parts = [state.since ? since(state.since) : "", state.why, state.until ? until(state.until) : ""];
  if (destination.fallback) parts.push("jobs go to its second address");
  if (destination.tenants_paused) parts.push(`${many(destination.tenants_paused, "tenant", "tenants")} paused`);
  set(row.why, parts.filter(Boolean).join("; "));
  if (row.word === state.word) return;
  attribute(row.chip, "data-tone", state.tone);
  set(row.chipText, state.word);
  row.chip.replaceChildren(shape(state.shape), row.chipText);
  if (row.word !== null) {
    set($("news"), `${destination.name}: ${state.word}. ${state.why || ""}`);
    row.chip.classList.remove("changed");
    void row.chip.offsetWidth; // so that the animation begins anew
    row.chip.classList.add("changed");
  }
  row.word = state.word;
}

function drawActs(row, destination) {
  const paused = destination.mode === "paused", down = destination.mode === "contingency";
  const give = (button, act, text) => {
    set(button, text);
    button.dataset.act = act;
    attribute(button, "aria-label", `${text}: ${destination.name}`);
  };
  give(row.hold, paused ? "resume" : "pause", paused ? "Resume" : "Pause");
  give(row.mode, down ? "leave" : "enter", down ? "End contingency" : "Contingency");
  show(row.mode, !paused && destination.configured !== false);
  row.acts.hidden = !mayOperate();
}

function drawDestination(row, destination) {
  set(row.sub, [destination.transport, destination.preset, destination.tenants ? many(destination.tenants, "tenant", "tenants") : ""].filter(Boolean).join(", "));
  drawState(row, destination);
  ["pending", "running", "waiting", "dead"].forEach((name, i) => set(row.figures[i], number(destination[name])));
  set(row.oldest, destination.oldest_at ? duration(serverNow() - Date.parse(destination.oldest_at)) : "–");
  attribute(row.oldest, "title", destination.oldest_at ? `the job that is next waits since about ${clock(destination.oldest_at)}` : null);
  attribute(row.figures[3], "data-tone", destination.dead > 0 ? "bad" : null);
  const limit = destination.concurrency_now ?? destination.concurrency;
  set(row.flight, destination.transport === "pull" ? number(destination.under_way) : `${number(destination.under_way)} of ${number(limit)}`);
  attribute(row.flight, "title", destination.concurrency_now !== undefined && destination.concurrency_now !== destination.concurrency
    ? `of ${destination.concurrency} configured; so many it has been found to bear` : null);
  const flows = destination.delivered_by_minute !== undefined;
  set(row.flowText, flows ? `${number(destination.delivered_last_minute)} delivered, ` : "–");
  set(row.failed, flows ? `${number(destination.failed_last_minute)} failed` : "");
  attribute(row.failed, "data-tone", destination.failed_last_minute > 0 ? "bad" : null);
  row.spark.classList.toggle("unseen", !flows);
  if (flows) drawSpark(row, destination.delivered_by_minute, destination.failed_by_minute);
  drawActs(row, destination);
}

function drawDestinations() {
  const body = $("destinations");
  const there = new Set(known.destinations.map((destination) => destination.name));
  for (const [name, row] of rows) {
    if (there.has(name)) continue;
    row.tr.remove();
    rows.delete(name);
  }
  known.destinations.forEach((destination, i) => {
    if (!rows.has(destination.name)) rows.set(destination.name, makeRow(destination.name));
    const row = rows.get(destination.name);
    if (body.children[i] !== row.tr) body.insertBefore(row.tr, body.children[i] || null);
    drawDestination(row, destination);
  });
  set($("destinations-count"), number(known.stats.destinations.length));
  show($("destinations-none"), known.destinations.length === 0);
  show($("destinations-more"), known.more);
  set($("destinations-more"), known.more ? `The first ${DESTINATIONS_MAX} are shown; insist dest list shows all.` : "");
}

/* ---- drawing: the other panels ---- */

/* A list drawn anew only when it says something else. */
const drawn = new Map();
function drawList(id, count, items) {
  const key = JSON.stringify(items.map(({ tone, lines }) => [tone, lines]));
  show($(id), items.length > 0);
  set($(id + "-count"), count);
  if (drawn.get(id) === key) return;
  drawn.set(id, key);
  $(id + "-list").replaceChildren(...items.map(({ tone, mark, lines }) => el("li", { "data-tone": tone },
    el("strong", {}, shape(mark), " " + lines[0]), ...lines.slice(1).filter(Boolean).map((text) => el("span", { class: "sub", text })))));
}

function drawIncidents() {
  drawList("incidents", number(known.incidents.length), known.incidents.map((incident) => ({
    tone: incident.state === "recovering" ? "info" : "bad",
    mark: incident.state === "recovering" ? "recovering" : "bad",
    lines: [`${incident.destination}: ${(MODES[incident.state] || { word: incident.state }).word.toLowerCase()} since ${clock(incident.entered_at || incident.first_sign_at)}`,
            incident.summary || CAUSES[incident.cause] || "",
            [incident.reason, incident.held_max > 0 ? `at most ${many(incident.held_max, "job was", "jobs were")} held at once` : ""].filter(Boolean).join("; "),
            `The whole report: insist incidents report ${incident.id}`],
  })));
}

function drawAlerts() {
  drawList("alerts", number((known.alerts || []).length) + (known.alertsMore ? " or more" : ""), (known.alerts || []).map((alert) => ({
    tone: alert.severity === "critical" ? "bad" : alert.severity === "info" ? "info" : "warn",
    mark: alert.severity === "critical" ? "bad" : "warn",
    lines: [`${alert.severity}: ${alert.alert}${alert.destination ? " at " + alert.destination : ""}${alert.tenant ? ", tenant " + alert.tenant : ""}`,
            alert.summary || "", `since ${clock(alert.raised_at)}`],
  })));
}

function drawDead() {
  const dead = known.dead;
  const groups = dead ? dead.groups.slice(0, GROUPS_SHOWN) : [];
  set($("dead-count"), number(dead ? dead.dead : known.stats.totals.dead));
  show($("dead-none"), groups.length === 0);
  set($("dead-none"), known.stats.totals.dead === 0 ? "None." : "Being counted…");
  show($("dead-table"), groups.length > 0);
  const key = JSON.stringify(groups) + (dead ? dead.groups.length : 0);
  if (drawn.get("dead") === key) return;
  drawn.set("dead", key);
  const line = (code, count, at) => el("tr", {}, el("td", {}, el("code", { text: code })), el("td", { class: "number", text: number(count) }), el("td", { text: at }));
  $("dead").replaceChildren(...groups.map((group) => line(group.code || "(none)", group.count, clock(group.newest_at))));
  const left = dead ? dead.groups.slice(GROUPS_SHOWN).reduce((all, group) => all + group.count, dead.others) : 0;
  if (left > 0) $("dead").append(line("others", left, ""));
}

/* ---- events ---- */

const kept = []; // newest first
let eventsTimer = 0;

const EVENT_WORDS = {
  accepted: "Accepted", claimed: "Being sent", completed: "Delivered", retry_scheduled: "Failed, retried later",
  released: "Given back unsent", dead: "Given up: dead letter", expired: "Expired: dead letter", cancelled: "Cancelled",
  prioritized: "Priority changed", redriven: "Sent back to work", lease_extended: "Lease extended",
  dead_expired: "Dead letter removed, too old", purged: "Dead letter purged", note: "Note", destination: "Destination",
};
const EVENT_TONES = { retry_scheduled: "warn", dead: "bad", expired: "bad", destination: "info", note: "info" };

function eventWords(event) {
  const data = event.data || {};
  if (event.type === "destination") return `Destination: ${String(data.change || data.mode || "changed").replaceAll("_", " ")}`;
  if (event.type === "note" && data.alert) return { alert_raised: "Alert raised", alert_grown: "Alert grown", alert_cleared: "Alert over" }[data.note] || "Alert";
  return EVENT_WORDS[event.type] || event.type;
}

function eventDetails(event) {
  const data = event.data || {};
  if (event.type === "note" && data.alert) return data.alert.summary;
  return [data.code, data.error, data.note, CAUSES[data.cause] || data.cause, data.reason,
          event.attempt > 0 && event.type !== "completed" ? `attempt ${event.attempt}` : "",
          data.next_at ? `next at ${clock(data.next_at)}` : "",
          event.type === "completed" && Number.isFinite(data.duration_ms) ? `${data.duration_ms} ms, attempt ${event.attempt}` : ""]
    .filter(Boolean).map(String).join("; ");
}

function addEvent(event) {
  kept.unshift(event);
  if (kept.length > EVENTS_KEPT) kept.length = EVENTS_KEPT;
  if (event.job && job.id === event.job && (event.tenant || "") === job.tenant) wishJob();
  if (!eventsTimer) eventsTimer = setTimeout(drawEvents, 150);
}

function eventRow(event) {
  const cell = (tight, ...children) => el("td", { role: "cell", class: tight ? "tight" : null }, ...children);
  const name = event.job ? el("button", { type: "button", class: "quiet", "aria-label": `Show job ${event.job}`, text: event.job }) : "";
  if (event.job) name.addEventListener("click", () => findJob(event.job, event.tenant || "", true));
  const row = el("tr", { role: "row", "data-tone": EVENT_TONES[event.type] },
    cell(true, clock(event.at)), cell(true, eventWords(event)), cell(true, event.destination || ""), cell(false, name),
    cell(false, eventDetails(event)));
  row.dataset.number = event.number;
  return row;
}

function drawEvents() {
  eventsTimer = 0;
  if ($("events-hold").getAttribute("aria-pressed") === "true") return;
  const wanted = kept.filter((event) => !$("events-failures").checked || EVENT_TONES[event.type]).slice(0, EVENTS_SHOWN);
  const body = $("events");
  const there = new Map([...body.children].map((row) => [row.dataset.number, row]));
  body.replaceChildren(...wanted.map((event) => there.get(String(event.number)) || eventRow(event)));
  show($("events-none"), wanted.length === 0);
}

$("events-failures").addEventListener("change", drawEvents);
$("events-hold").addEventListener("click", () => {
  const held = $("events-hold").getAttribute("aria-pressed") !== "true";
  attribute($("events-hold"), "aria-pressed", held);
  drawEvents();
});

/* ---- one job ---- */

const job = { id: "", tenant: "", asked: 0, timer: 0 };
const JOB_TONES = { completed: ["good", "good"], dead: ["bad", "bad"], waiting: ["warn", "throttled"], running: ["info", "recovering"],
                    pending: ["info", "wait"], cancelled: ["hold", "paused"] };

function jobPath(more) {
  return `v1/jobs/${encodeURIComponent(job.id)}${more}${job.tenant ? "?tenant=" + encodeURIComponent(job.tenant) : ""}`;
}

function wishJob() {
  if (!job.timer) job.timer = setTimeout(readJob, 300);
}

function findJob(id, tenant, focus) {
  job.id = id;
  job.tenant = tenant;
  $("job-id").value = id;
  $("job-tenant").value = tenant;
  readJob();
  if (focus) $("job-id").focus();
}

async function readJob() {
  clearTimeout(job.timer);
  job.timer = 0;
  const asked = ++job.asked;
  if (!job.id) return;
  try {
    const query = `job=${encodeURIComponent(job.id)}${job.tenant ? "&tenant=" + encodeURIComponent(job.tenant) : ""}`;
    const [facts, why, trail] = await Promise.all([ask(jobPath("")), ask(jobPath("/why")), ask(`v1/events?limit=200&${query}`)]);
    if (asked === job.asked) drawJob(facts, why, trail.events);
  } catch (error) {
    if (error.status === 401) askForToken(error);
    if (asked === job.asked) $("job").replaceChildren(el("p", { class: "problem", text: error.message }));
  }
}

const WORDY = new Set(["Error", "Details"]); // columns that take the room that is left

function facts(pairs) {
  const list = el("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value !== "" && value !== undefined && value !== null) list.append(el("dt", { text: name }), el("dd", { text: value }));
  }
  return list;
}

/* The roles keep it a table where a small screen shows its rows as paragraphs. */
function table(label, names, lines) {
  const row = (role, tag, attributes, texts) => el("tr", { role: "row" }, ...texts.map((text, i) =>
    el(tag, { role, ...attributes, class: WORDY.has(names[i]) ? null : "tight", text: text ?? "" })));
  return el("table", { class: "list", role: "table", "aria-label": label },
    el("thead", { role: "rowgroup" }, row("columnheader", "th", { scope: "col" }, names)),
    el("tbody", { role: "rowgroup" }, ...lines.map((line) => row("cell", "td", {}, line))));
}

function drawJob(shown, why, trail) {
  const [tone, mark] = JOB_TONES[shown.state] || ["info", "wait"];
  const retry = el("button", { type: "button", text: "Retry", "aria-label": `Retry job ${shown.id}` });
  retry.addEventListener("click", () => retryJob(shown));
  const mayRetry = shown.state === "dead" && (!known.scopes || known.scopes.includes("operate"));
  $("job").replaceChildren(
    el("p", { class: "job-head" }, el("strong", { text: shown.id }),
      el("span", { class: "state", "data-tone": tone }, shape(mark), el("span", { text: shown.state })), mayRetry ? retry : null),
    el("p", { class: "why", text: [why.reason, why.next].filter(Boolean).map((text) => text.charAt(0).toUpperCase() + text.slice(1)).join(". ") + "." }),
    facts([["Destination", shown.destination], ["Tenant", shown.tenant], ["Priority", shown.priority],
           ["Held by", shown.held_by], ["Came", clock(shown.created_at)], ["Next try", clock(shown.next_at)],
           ["Dead since", clock(shown.dead_at)], ["Because", shown.dead_code],
           ["Retries", `${number(shown.retry_count)} of ${number(shown.max_retries)} spent`], ["Last error", shown.last_error]]),
    ...((shown.attempts || []).length ? [el("h3", { text: "Attempts" }),
      table("Attempts", ["#", "At", "Took", "Came out as", "Code", "Error", "Next"], shown.attempts.slice(-50).map((attempt) =>
        [number(attempt.attempt), clock(attempt.at), Number.isFinite(attempt.duration_ms) ? `${number(attempt.duration_ms)} ms` : "", attempt.class, attempt.code, attempt.error, clock(attempt.next_at)]))] : []),
    el("h3", { text: "History" }),
    table("History", ["At", "What", "Details"], trail.slice(-50).map((event) => [clock(event.at), eventWords(event), eventDetails(event)])));
}

$("job-form").addEventListener("submit", (submit) => {
  submit.preventDefault();
  findJob($("job-id").value.trim(), $("job-tenant").value.trim(), false);
});

/* ---- acting ---- */

const dialog = $("confirm");
let confirmed = null; // what to do, given the reason

function confirmThat({ title, text, button, reason, run }) {
  set($("confirm-title"), title);
  set($("confirm-text"), text);
  set($("confirm-yes"), button);
  set($("confirm-problem"), "");
  $("confirm-reason").value = "";
  show($("confirm-reason-row"), Boolean(reason));
  $("confirm-yes").disabled = false;
  confirmed = run;
  dialog.showModal();
  (reason ? $("confirm-reason") : $("confirm-no")).focus();
}

$("confirm-no").addEventListener("click", () => dialog.close());
$("confirm-form").addEventListener("submit", async (submit) => {
  submit.preventDefault();
  $("confirm-yes").disabled = true;
  set($("confirm-problem"), "");
  try {
    await confirmed($("confirm-reason").value.trim());
    dialog.close();
  } catch (error) {
    set($("confirm-problem"), `It was not done: ${error.message}`);
  }
  $("confirm-yes").disabled = false;
  wishRefresh(0);
});

function actOn(name, act) {
  const destination = known.destinations.find((one) => one.name === name) || {};
  const waiting = many((destination.pending || 0) + (destination.waiting || 0), "job", "jobs");
  const post = (path, body) => ask(`v1/destinations/${encodeURIComponent(name)}/${path}`, { method: "POST", body });
  const acts = {
    pause: { title: `Pause ${name}?`, button: "Pause", reason: true, run: (reason) => post("pause", reason ? { reason } : {}),
             text: `Nothing more is sent to it until somebody resumes it. ${waiting} wait, new ones are still taken, and no retries are spent. What is under way ends as it would.` },
    resume: { title: `Resume ${name}?`, button: "Resume", run: () => post("resume", {}),
              text: `It is sent to again at once, within its limits. ${waiting} wait for it.` },
    enter: { title: `Put ${name} into contingency?`, button: "Enter contingency", reason: true, run: (reason) => post("contingency", reason ? { enter: true, reason } : { enter: true }),
             text: `It is treated as down until somebody ends it: ${waiting} are held, no retries are spent, an incident is opened, and afterwards the load comes back in growing steps.` },
    leave: { title: `End the contingency of ${name}?`, button: "End contingency", run: () => post("contingency", { enter: false }),
             text: `It is sent to again, in growing steps until it has been stable. ${waiting} wait for it.` },
  };
  confirmThat(acts[act]);
}

function retryJob(shown) {
  confirmThat({
    title: `Retry ${shown.id}?`, button: "Retry",
    text: `It becomes a pending job of ${shown.destination} again, with all its retries, and is sent at its turn. If the destination has it already, it may get it twice. Its history stays.`,
    run: async () => {
      await ask(jobPath("/retry"), { method: "POST", body: {} });
      await readJob();
    },
  });
}

/* ---- who is asking ---- */

function askForToken(refusal) {
  link.needsToken = true;
  if (streamStop) streamStop.abort();
  set($("login-text"), refusal.status === 403 ? `${token() ? "The token may not read" : "The daemon refuses"}: ${refusal.message}.`
    : token() ? "The daemon does not know this token, or not any more." : "This daemon asks who you are.");
  show($("board"), false);
  show($("login"), true);
  show($("forget"), false);
  $("token").focus();
}

function useToken(text) {
  try {
    if (text) sessionStorage.setItem(TOKEN_KEY, text);
    else sessionStorage.removeItem(TOKEN_KEY);
  } catch {
    set($("login-text"), "This browser keeps nothing for the page: allow session storage.");
    return;
  }
  link.needsToken = false;
  refreshedAt = 0;
  lastEventId = "";
  kept.length = 0;
  missing.clear();
  refresh();
  follow();
}

$("login-form").addEventListener("submit", (submit) => {
  submit.preventDefault();
  const text = $("token").value.trim();
  $("token").value = "";
  useToken(text);
});
$("forget").addEventListener("click", () => useToken(""));

/* ---- coming and going ---- */

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    clearTimeout(refreshTimer);
    refreshTimer = 0;
    if (streamStop) streamStop.abort();
    return;
  }
  wishRefresh(0);
  follow();
});
setInterval(() => {
  if (!document.hidden && link.failed) drawBanner(); // it says how old what is shown is
}, 1000);

refresh();
follow();
