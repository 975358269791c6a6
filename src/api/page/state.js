/*
 * How a destination, a job, an event stands: a word, a tone and a shape, never a colour alone.
 */
import { el, shape } from "./dom.js";
import { clock, language, number, t, term } from "./words.js";

/* What holds a destination in its normal mode. What is missing here is part of normal work. */
const HOLDS = {
  breaker: ["warn", "breaker"], throttle: ["warn", "throttled"], rate: ["info", "throttled"], maintenance: ["hold", "paused"],
  dead_full: ["bad", "bad"], store_full: ["bad", "bad"], unconfigured: ["warn", "warn"],
};
const MODES = { paused: ["hold", "paused"], blocked: ["bad", "bad"], contingency: ["bad", "bad"], recovering: ["info", "recovering"] };
const RANK = { bad: 0, warn: 1, hold: 2, info: 3, good: 4 };
const FAILING_LEAST = 5;

const state = (name, [tone, mark], more) => ({ name, word: t("state." + name), tone, shape: mark, why: "", ...more });

/* Lists are sorted and counted by it, with a thousand of them: it is worked out once for each answer of the daemon. */
const known = new WeakMap();
export function stateOf(destination) {
  let found = known.get(destination);
  if (!found || found.language !== language) known.set(destination, (found = { ...workedOut(destination), language }));
  return found;
}

function workedOut(destination) {
  const blocked = destination.held_by === "blocked", paused = destination.mode === "paused";
  const mode = blocked ? "blocked" : destination.mode;
  if (MODES[mode]) {
    const own = term("cause", destination.mode_cause), because = (...parts) => parts.filter(Boolean).join(": ");
    const cause = blocked ? t("cause.blocked") : paused ? t("cause.operator") : own;
    const hidden = MODES[destination.mode_behind] && { name: destination.mode_behind, word: t("state." + destination.mode_behind), since: destination.mode_since,
      why: because(own, destination.mode_behind_reason) };
    return state(mode, MODES[mode], { since: paused ? destination.held_since : destination.mode_since,
      until: destination.held_until, why: because(cause, destination.pause_reason), behind: hidden || null });
  }
  const hold = HOLDS[destination.held_by] ? destination.held_by : destination.breaker === "open" ? "breaker" : "";
  if (hold) return state(hold, HOLDS[hold], { since: destination.held_since, until: destination.held_until, why: t("why." + hold) });
  if (destination.breaker === "half_open") return state("trying", ["warn", "breaker"], { why: t("why.trying") });
  const failed = destination.failed_last_minute || 0, good = destination.delivered_last_minute || 0;
  if (failed >= FAILING_LEAST && failed > good) return state("failing", ["warn", "warn"], { why: t("why.failing", { failed, n: failed + good }) });
  return state("normal", ["good", "good"]);
}

/* Worst first: what needs a person, then what waits longest, then what has most. */
export function worse(a, b) {
  const rank = (one) => RANK[stateOf(one).tone] * 2 + (one.dead > 0 ? 0 : 1);
  const age = (one) => (one.oldest_at ? Date.parse(one.oldest_at) : Infinity);
  return rank(a) - rank(b) || (b.dead || 0) - (a.dead || 0) || age(a) - age(b) || a.name.localeCompare(b.name);
}

export const chip = ({ tone, shape: mark, word }) => el("span", { class: "state", "data-tone": tone }, shape(mark), el("span", { text: word }));

const JOBS = { completed: ["good", "good"], dead: ["bad", "bad"], waiting: ["warn", "throttled"], running: ["info", "recovering"],
               pending: ["info", "wait"], cancelled: ["hold", "paused"] };
export const jobChip = (name) => chip({ tone: (JOBS[name] || JOBS.pending)[0], shape: (JOBS[name] || JOBS.pending)[1], word: term("job", name) });

const RUNS = { canary: ["info", "recovering"], running: ["info", "recovering"], done: ["good", "good"], cancelled: ["hold", "paused"],
               aborted: ["bad", "bad"], undone: ["hold", "paused"] };
export const runChip = (name) => chip({ tone: (RUNS[name] || RUNS.done)[0], shape: (RUNS[name] || RUNS.done)[1], word: term("run", name) });

export const severity = (alert) => (alert.severity === "critical" ? ["bad", "bad"] : alert.severity === "info" ? ["info", "wait"] : ["warn", "warn"]);

/* ---- events ---- */

const TONES = { retry_scheduled: "warn", dead: "bad", expired: "bad", destination: "info", note: "info" };
export const eventTone = (event) => TONES[event.type];

export function eventWords(event) {
  const data = event.data || {};
  if (event.type === "destination") return t("event.destination_is", { change: String(data.change || data.mode || "").replaceAll("_", " ") });
  if (event.type === "note" && data.alert) return term("event", data.note);
  return term("event", event.type);
}

export function eventDetails(event) {
  const data = event.data || {};
  if (event.type === "note" && data.alert) return data.alert.summary;
  const tried = event.attempt > 0 ? t("attempt_n", { n: event.attempt }) : "";
  return [data.code, data.error, data.note, data.cause && term("cause", data.cause), data.reason, tried,
          data.next_at && t("next_at", { at: clock(data.next_at) }),
          event.type === "completed" && Number.isFinite(data.duration_ms) && `${number(data.duration_ms)} ms`, data.by]
    .filter(Boolean).map(String).join("; ");
}
