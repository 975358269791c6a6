/*
 * Asking the daemon: only the HTTP API, with addresses relative to the page's own. The token is kept in the tab's storage and
 * sent as Authorization, so that no address has it.
 *
 * The screen's figures are asked for when the stream of events says that something happened, and every few seconds anyhow;
 * without the stream only that; and not at all while nobody looks. What the screen before has asked for is given up.
 */
import { setSkew, t } from "./words.js";

export const POLL_MS = 5000;     // the figures are asked for this often, whatever happens
const REFRESH_LEAST_MS = 500;    // and not more often than this, nor for more than a fifth of the time
const REFRESH_SHARE = 5;
const ANSWER_MS = 10000;         // how long an answer may take
const SILENCE_MS = 40000;        // the stream says something each 15 s
const STREAM_AGAIN_MS = 1000;
const STREAM_REFUSED_MS = 15000;
const STATS_MS = 4000;
const EVENTS_KEPT = 300;
const TOKEN_KEY = "insist.token";

export const known = { stats: null, scopes: null, tenant: null };
export const events = []; // newest first
export const line = { lastOk: 0, since: 0, failed: "", fault: "", streaming: false, needsToken: false }; // `fault`: of the page itself
const hooks = { load: async () => {}, draw: () => {}, line: () => {}, event: () => {}, token: () => {}, anew: () => {} };

export const mayOperate = () => !known.scopes || known.scopes.includes("operate");
export const mayHold = () => !known.tenant && mayOperate();

export function token() {
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

export class Refusal extends Error {
  constructor(status, detail, type) {
    super(detail);
    this.status = status; // 0: there was no answer
    this.type = type;
  }
}

async function refusalOf(response) {
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    problem = {};
  }
  const type = String(problem.type || "").split(/[:/]/).pop();
  return new Refusal(response.status, problem.detail || t("answered_with", { status: String(response.status) }), type);
}

let reads = new AbortController(); // what was asked for the screen that is shown

/* `stays`: also when another screen is opened, as whatever is no mere question. */
async function fetched(path, { method = "GET", body, accept, patience = ANSWER_MS, stays = method !== "GET" } = {}, take) {
  const give = new AbortController(), left = stays ? null : reads.signal, end = () => give.abort();
  const timer = setTimeout(end, patience);
  left?.addEventListener("abort", end);
  try {
    const more = { ...(body ? { "Content-Type": "application/json" } : {}), ...(accept ? { Accept: accept } : {}) };
    const response = await fetch(path, {
      method, headers: headers(more), signal: give.signal, cache: "no-store", body: body ? JSON.stringify(body) : undefined });
    const date = Date.parse(response.headers.get("Date") || "");
    if (!Number.isNaN(date)) setSkew(Math.abs(date - Date.now()) > 3000 ? date - Date.now() : 0);
    if (!response.ok) throw await refusalOf(response);
    return await take(response);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal(0, give.signal.aborted ? t("no_answer", { time: `${patience / 1000} s` }) : t("no_connection"));
  } finally {
    clearTimeout(timer);
    left?.removeEventListener("abort", end);
  }
}

export const ask = (path, options) => fetched(path, options, (response) => response.json());
export const askText = (path, accept) => fetched(path, { accept }, (response) => response.text());
export const askBlob = (path) => fetched(path, { accept: "*/*", stays: true }, (response) => response.blob());
export const post = (path, body = {}, patience) => ask(path, { method: "POST", body, patience });

export function query(values) {
  const text = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null)).toString();
  return text ? "?" + text : "";
}

/* A part of an address; who cut one off in the middle of a character gets what is left of it. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/* For what this daemon may not have: it is not asked for again, until the page or the token is new. null: it is not there. */
const missing = new Set();
export async function askIfThere(path, name = path) {
  if (missing.has(name)) return null;
  try {
    return await ask(path);
  } catch (error) {
    const gone = error.status === 405 || (error.status === 404 && (!error.type || error.type === "not_found"));
    const may = error.status !== 403 || /[?&]tenant=/.test(path); // what is refused of one tenant is there for another
    if (!gone && may) throw error;
    missing.add(name);
    return null;
  }
}

/* ---- figures: when ---- */

export let renewedAt = 0; // when somebody last wished for new figures
let timer = 0, timerAt = 0, refreshing = false, refreshedAt = 0, cost = 0, retryMs = 1000, statsAt = 0, again = false;

function wish(delayMs = 0) {
  if (document.hidden || line.needsToken) return;
  if (refreshing) {
    again ||= delayMs === 0;
    return;
  }
  const at = Math.max(Date.now() + delayMs, refreshedAt + Math.max(REFRESH_LEAST_MS, cost * REFRESH_SHARE));
  if (timer && timerAt <= at) return;
  clearTimeout(timer);
  timerAt = at;
  timer = setTimeout(refresh, Math.max(0, at - Date.now()));
}

async function readStats(all) {
  if (!all && known.stats && Date.now() - statsAt < STATS_MS) return;
  statsAt = Date.now();
  known.stats = await ask("v1/stats");
  known.scopes = known.stats.scopes || null;
  known.tenant = known.stats.tenant ?? null;
}

export async function refresh() {
  clearTimeout(timer);
  timer = 0;
  refreshing = true;
  again = false;
  const began = Date.now(), asked = token(), mine = reads;
  const refused = await Promise.all([readStats(false), hooks.load()]).then(() => null, (error) => error);
  if (mine !== reads) return; // another screen is shown, and asks for itself
  refreshing = false;
  refreshedAt = Date.now();
  cost = refreshedAt - began;
  heed(refused, asked);
  try {
    if (known.stats && !line.needsToken) hooks.draw();
    hooks.line();
  } catch (error) {
    tellFault(error);
  }
  wish(again ? 0 : line.failed ? retryMs : POLL_MS);
}

/* `refused`: null where all was answered. */
function heed(refused, asked) {
  const answered = !refused || !(refused instanceof Refusal);
  line.fault = "";
  if (!answered && (refused.status === 401 || refused.status === 403)) needToken(refused, asked);
  if (!answered && !line.failed) line.since = Date.now();
  line.failed = answered ? "" : refused.message;
  retryMs = answered ? 1000 : Math.min(retryMs * 1.5, POLL_MS);
  if (!refused) line.lastOk = Date.now();
  else if (answered) tellFault(refused);
}

/* A fault of the page leaves what is shown as it was; it is told, and the next answer may be better. */
function tellFault(error) {
  line.fault = error.message;
  reportError(error);
  hooks.line();
}

/* At once, for an act that was just done. */
export function renew() {
  refreshedAt = 0;
  statsAt = 0;
  renewedAt = Date.now();
  wish(0);
}

/* At once, for a screen that was just opened: it does not wait for what the one before has asked. */
export function begun() {
  reads.abort();
  reads = new AbortController();
  refreshing = false;
  renew();
}

/* ---- the stream ---- */

let stop = null; // ends the one that runs
let lastEventId = "";

/* Calls `take` with each event of the text so far; returns what is not complete yet. */
function parseEvents(text, take) {
  const parts = text.split("\n\n");
  const rest = parts.pop();
  for (const part of parts) {
    const event = { id: null, name: "message", data: [] };
    for (const row of part.split("\n")) {
      const colon = row.indexOf(":");
      if (colon <= 0) continue;
      const field = row.slice(0, colon), value = row.slice(colon + 1).replace(/^ /, "");
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
  if (event.name === "message") {
    events.unshift(data);
    if (events.length > EVENTS_KEPT) events.length = EVENTS_KEPT;
    hooks.event(data);
  }
  wish(0);
}

async function readStream(end) {
  const more = lastEventId ? { "Last-Event-ID": lastEventId } : {};
  const response = await fetch("v1/events/stream?newest=100&after=0", {
    headers: headers({ Accept: "text/event-stream", ...more }), signal: end.signal, cache: "no-store" });
  if (!response.ok) throw await refusalOf(response);
  line.streaming = true;
  hooks.line();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const silence = setTimeout(() => end.abort(), SILENCE_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    text = parseEvents(text + value, takeEvent);
  }
}

/* Runs as long as the page is looked at. */
export async function follow() {
  if (stop || document.hidden || line.needsToken) return;
  const end = (stop = new AbortController()), asked = token();
  let wait = STREAM_AGAIN_MS;
  try {
    await readStream(end);
  } catch (error) {
    if (error instanceof Refusal) {
      wait = asked !== token() ? 0 : error.status === 503 ? STREAM_AGAIN_MS * 3 : STREAM_REFUSED_MS;
      if (error.status === 401) needToken(error, asked);
    }
  }
  if (stop === end) stop = null;
  line.streaming = false;
  wish(0);
  if (!document.hidden) setTimeout(follow, wait);
}

/* ---- who is asking ---- */

/* `asked` with: what is refused late says nothing of the token that was typed since. */
function needToken(refusal, asked) {
  if (asked !== token()) return;
  line.needsToken = true;
  stop?.abort();
  hooks.token(refusal);
}

/* False: this browser keeps nothing. */
export function useToken(text) {
  try {
    if (text) sessionStorage.setItem(TOKEN_KEY, text);
    else sessionStorage.removeItem(TOKEN_KEY);
  } catch {
    return false;
  }
  line.needsToken = false;
  lastEventId = "";
  events.length = 0;
  Object.assign(known, { stats: null, scopes: null, tenant: null });
  missing.clear();
  hooks.anew();
  begun();
  follow();
  return true;
}

/* `given`: load, draw, line (how live it is has changed), event, token (one is needed), anew (another asks from now on). */
export function begin(given) {
  Object.assign(hooks, given);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      clearTimeout(timer);
      timer = 0;
      stop?.abort();
      return;
    }
    wish(0);
    follow();
  });
  refresh();
  follow();
}
