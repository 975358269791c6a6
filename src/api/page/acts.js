/*
 * What a person may do, each with a question first that says in numbers what will happen.
 */
import { $, button, el, facts, set, show } from "./dom.js";
import { Refusal, ask, mayOperate, post, query, renew } from "./live.js";
import { t } from "./words.js";

const LONG_MS = 600000; // for an order that takes as long as it takes
const dialog = $("confirm");
let confirmed = null; // what to do, given the values of its fields

const valuesOf = () => Object.fromEntries([...$("confirm-text").querySelectorAll("[name]")].map((input) =>
  [input.name, input.dataset.exact === undefined ? input.value.trim() : input.value]));

/* A field is [name, label, attributes]; `area: true` makes it a text of many lines, `choices` a list. */
export function fields(list) {
  return list.map(([name, label, { area, choices, value, hint, ...more } = {}]) => {
    const input = choices ? el("select", { name, ...more }, choices.map(([id, text]) => el("option", { value: id, text, selected: id === value })))
      : el(area ? "textarea" : "input", { name, autocomplete: "off", spellcheck: "false", ...more });
    if (!choices && value !== undefined) input.value = value;
    return el("label", { class: "field" }, el("span", {}, label, hint ? el("span", { class: "hint", text: " " + hint }) : null), input);
  });
}

/* `run` gets the values; what it returns is put in the dialog's place when it is an element, else the dialog closes. */
export function confirmThat({ title, text, inputs = [], button: yes, run, danger }) {
  set($("confirm-title"), title);
  $("confirm-text").replaceChildren(...(Array.isArray(text) ? text : [el("p", { text })]), ...fields(inputs));
  set($("confirm-yes"), yes || "");
  show($("confirm-yes"), Boolean(yes));
  $("confirm-yes").classList.toggle("danger", Boolean(danger));
  set($("confirm-no"), yes ? t("leave_it") : t("close"));
  set($("confirm-problem"), "");
  $("confirm-yes").disabled = false;
  confirmed = run;
  if (!dialog.open) dialog.showModal();
  ($("confirm-text").querySelector("[name]") || $("confirm-no")).focus();
}

$("confirm-no").addEventListener("click", () => dialog.close());
$("confirm-form").addEventListener("submit", async (submit) => {
  submit.preventDefault();
  $("confirm-yes").disabled = true;
  set($("confirm-problem"), "");
  const asked = confirmed;
  try {
    await asked(valuesOf());
    if (confirmed === asked) dialog.close(); // else it asks the next question
  } catch (error) {
    set($("confirm-problem"), t("not_done", { why: error.message }));
  }
  $("confirm-yes").disabled = false;
  renew();
});

const reason = (name = "reason") => [name, t("why_reason"), { maxlength: 500, hint: t("reason_hint") }];
const some = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined));

/* ---- destinations ---- */

export function actOn(destination, act) {
  const { name } = destination;
  const n = (destination.pending || 0) + (destination.waiting || 0);
  const path = (order) => `v1/destinations/${encodeURIComponent(name)}/${order}`;
  const runs = {
    pause: (values) => post(path("pause"), some(values)),
    resume: () => post(path("resume")),
    enter: (values) => post(path("contingency"), { enter: true, ...some(values) }),
    leave: () => post(path("contingency"), { enter: false }),
  };
  confirmThat({ title: t(`ask.${act}`, { name }), text: t(`will.${act}`, { n }), button: t(`act.${act}`),
                inputs: act === "pause" || act === "enter" ? [reason()] : [], run: runs[act] });
}

export function destinationActs(destination) {
  const paused = destination.mode === "paused", down = [destination.mode, destination.mode_behind].includes("contingency");
  const act = (name) => button(t("act." + name), () => actOn(destination, name), { "aria-label": `${t("act." + name)}: ${destination.name}` });
  return [act(paused ? "resume" : "pause"), (!paused || down) && destination.configured !== false ? act(down ? "leave" : "enter") : null];
}

/* ---- alerts ---- */

const ENDS_BY_HAND = ["max_retries_exceeded", "permanent_error", "in_doubt", "partial", "expired", "dead_letters"];

export function ackAlert(alert) {
  confirmThat({ title: t("ask.ack"), button: t("act.ack"), inputs: [reason("note")],
    text: `${alert.summary}. ${t(ENDS_BY_HAND.includes(alert.alert) ? "will.ack_ends" : "will.ack")}`,
    run: (values) => post(`v1/alerts/${encodeURIComponent(alert.id)}/ack`, some(values)) });
}

/* ---- jobs ---- */

/* Browsers take these out of a path, however they are written: such a job is found in the list, and gets its orders by command. */
export const isDots = (id) => id === "." || id === "..";

export function jobPath(job, more = "", values = "") {
  if (isDots(job.id)) throw new Refusal(0, t("by_command", { name: job.id }));
  return `v1/jobs/${encodeURIComponent(job.id)}${more}${job.tenant ? "?tenant=" + encodeURIComponent(job.tenant) + values.replace("?", "&") : values}`;
}

export async function readJob(job, values = {}) {
  if (!isDots(job.id)) return ask(jobPath(job, "", query(values)));
  let page = { next: "" };
  do {
    page = await ask("v1/jobs" + query({ id: job.id, tenant: job.tenant, ...values, cursor: page.next }));
    const found = page.jobs.find((one) => (one.tenant || "") === (job.tenant || ""));
    if (found) return found;
  } while (page.next);
  throw new Refusal(404, t("none_match"), "job_not_found");
}

export function actOnJob(job, act) {
  const named = { name: job.id, destination: job.destination };
  confirmThat({ title: t(`ask.${act}`, named), text: t(`will.${act}`, named), button: t(`act.${act}`), danger: act === "cancel",
                run: () => post(jobPath(job, "/" + act)) });
}

const base64Of = (text) => btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));

/* `bytes`, in Base64: those of a payload that is no text. A field has one kind of line ends: what has several is shown as bytes, too. */
export function correctJob(job, payload, bytes) {
  const end = payload.includes("\r\n") ? "\r\n" : payload.includes("\r") ? "\r" : "\n";
  const coded = bytes ?? (payload.replace(/\r\n|\r|\n/g, end) === payload ? undefined : base64Of(payload));
  confirmThat({ title: t("ask.correct", { name: job.id }), text: t("will.correct", { destination: job.destination }), button: t("act.correct"),
    inputs: [["payload", t("payload") + (coded === undefined ? "" : ", Base64"), { area: true, rows: 12, value: coded ?? payload, "data-exact": true }]],
    run: ({ payload: text }) => post(jobPath(job, "/retry"), coded === undefined ? { payload: text.replaceAll("\n", end) } : { payload_base64: text.trim() }) });
}

/* ---- dead letters ---- */

const top = (counts) => Object.entries(counts || {}).sort((a, b) => b[1] - a[1]).slice(0, 5)
  .map(([name, count]) => `${name || t("none")}: ${count}`).join(", ");
const countsOf = (list, name) => (Array.isArray(list) ? Object.fromEntries(list.map((one) => [one[name], one.count])) : list);

/* What a filter would take, counted by the daemon itself. */
function planFacts(plan) {
  return facts([[t("letters"), t("n_letters", { n: plan.matched })], [t("by_code"), top(countsOf(plan.by_code, "code"))],
    [t("by_tenant"), top(countsOf(plan.by_tenant, "tenant"))], [t("oldest"), plan.oldest], [t("newest"), plan.newest]]);
}

const whole = (filter) => (Object.keys(filter).length ? { filter } : { filter, all: true });

export async function redrive(filter) {
  const plan = await post("v1/dead/redrives", { ...whole(filter), dry_run: true });
  confirmThat({
    title: t("ask.redrive", { n: plan.matched }), button: t("act.redrive"),
    text: [el("p", { text: t("will.redrive") }), planFacts(plan)],
    inputs: [["canary", t("canary"), { type: "number", min: 0, value: plan.matched > 20 ? "10" : "", hint: t("canary_hint") }],
             ["abort_at", t("abort_at"), { type: "number", min: 0, max: 100, value: "50", hint: "%" }],
             ["rate", t("rate"), { value: "", placeholder: "50/s", hint: t("rate_hint") }],
             ["patch", t("patch"), { area: true, rows: 2, value: "", placeholder: '[{"op": "replace", "path": "/plan", "value": "B"}]', hint: t("patch_hint") }]],
    run: async ({ canary, abort_at: share, rate, patch }) => {
      const body = { ...whole(filter), ...some({ rate }), ...(patch ? { payload_patch: JSON.parse(patch) } : {}) };
      if (Number(canary) > 0) Object.assign(body, { canary: Number(canary), abort_at: Number(share || 50) / 100 });
      const begun = await post("v1/dead/redrives", body);
      location.hash = `#/redrive/${encodeURIComponent(begun.id)}`;
    },
  });
}

/* How far a purge is, by how many dead letters there are at all. */
async function watched(all, done) {
  const bar = el("progress", { max: all, "aria-label": t("act.purge") });
  const left = async () => (await ask("v1/stats", { stays: true })).totals.dead;
  const before = await left();
  $("confirm-text").append(bar);
  const timer = setInterval(() => left().then((now) => (bar.value = Math.max(0, Math.min(all, before - now))), () => {}), 500);
  return done.finally(() => clearInterval(timer));
}

export async function purge(filter) {
  const plan = await post("v1/dead/purge", { ...whole(filter), dry_run: true });
  confirmThat({
    title: t("ask.purge", { n: plan.matched }), button: t("act.purge"), danger: true,
    text: [el("p", { text: t("will.purge") }), planFacts(plan)],
    inputs: [["typed", t("type_number", { n: String(plan.matched) }), { inputmode: "numeric" }]],
    run: async ({ typed }) => {
      if (typed !== String(plan.matched)) throw new Error(t("type_number", { n: String(plan.matched) }));
      const n = (await watched(plan.matched, post("v1/dead/purge", whole(filter), LONG_MS))).purged;
      confirmThat({ title: t("purged_n", { n }), text: t("purged_stays"), run: async () => {} });
    },
  });
}

/* Asks the daemon first what it would do; a refusal is told where the button was. */
export function planned(text, run, more) {
  return button(text, async function () {
    try {
      await run();
    } catch (error) {
      confirmThat({ title: text, text: t("not_done", { why: error.status === 404 || error.status === 405 ? t("not_there") : error.message }) });
    }
  }, { disabled: !mayOperate(), ...more });
}
