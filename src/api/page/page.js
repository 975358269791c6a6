/*
 * The page's script. It speaks only the HTTP API, with addresses relative to the page's own.
 *
 * It follows /v1/events/stream and asks for the figures when something happened, and every few seconds anyhow; without
 * the stream only that. What is shown of them and done with them is in the page's other scripts, which share their names
 * with this one. This one is the last, as it starts.
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
const TOKEN_KEY = "insist.token";

const known = {
  stats: null, destinations: [], more: false, incidents: [], alerts: null, alertsMore: false, dead: null,
  scopes: null, tenant: null,
};
const link = { lastOk: 0, since: 0, failed: "", streaming: false, refused: "", needsToken: false };

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
