/*
 * The latest events, and one job's story.
 */
"use strict";

const EVENTS_KEPT = 300;
const EVENTS_SHOWN = 100;

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
  if (event.type === "note" && data.alert) return { alert_raised: "Alert raised", alert_grown: "Alert grown", alert_cleared: "Alert over", alert_acknowledged: "Alert acknowledged" }[data.note] || "Alert";
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
  row.dataset.id = event.id;
  return row;
}

function drawEvents() {
  eventsTimer = 0;
  if ($("events-hold").getAttribute("aria-pressed") === "true") return;
  const wanted = kept.filter((event) => !$("events-failures").checked || EVENT_TONES[event.type]).slice(0, EVENTS_SHOWN);
  const body = $("events");
  const there = new Map([...body.children].map((row) => [row.dataset.id, row]));
  body.replaceChildren(...wanted.map((event) => there.get(event.id) || eventRow(event)));
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
