/*
 * Jobs by one filter, and one job's story.
 */
import { $, button, el, facts, link, panel, redraw, set, table } from "./dom.js";
import { Refusal, ask, askIfThere, decoded, mayOperate, post, query, renew } from "./live.js";
import { exact, number, t, term, when } from "./words.js";
import { eventDetails, eventWords, jobChip } from "./state.js";
import { views } from "./views.js";
import { actOnJob, confirmThat, correctJob, isDots, jobPath, readJob } from "./acts.js";

const STATES = ["pending", "running", "waiting", "completed", "dead", "cancelled"];
const NAMES = ["state", "destination", "tenant", "code", "id", "dead_code", "fingerprint", "since", "until", "text"];
const PAGE = 50, FOUND_LEAST = 10;

export const jobAddress = (job) => `#/job/${encodeURIComponent(job.tenant || "")}/${encodeURIComponent(job.id)}`;

/* `state:dead code:"http:422" hello` and back. What has no name is an id on the screen of jobs, a text among the dead. */
export function parseFilter(text, names, rest) {
  const filter = {};
  for (const [, name, , quoted, plain] of text.matchAll(/(?:(\w+):)?("([^"]*)"|(\S+))/g)) {
    if (name && names.includes(name)) filter[name] = quoted ?? plain;
    else filter[rest] = [filter[rest], (name ? name + ":" : "") + (quoted ?? plain)].filter(Boolean).join(" ");
  }
  return filter;
}

export const formatFilter = (filter, names) => names.filter((name) => filter[name]).map((name) =>
  `${name}:${/[\s"]/.test(filter[name]) ? `"${filter[name]}"` : filter[name]}`).join(" ");

export function filterBar(at, names, rest, screen) {
  return el("form", { class: "fields bar", role: "search", submit(event) {
    event.preventDefault();
    location.hash = `#/${screen}` + query(parseFilter(this.querySelector("input").value, names, rest));
  } }, el("label", { class: "grow" }, el("span", { class: "unseen", text: t("filter") }),
    el("input", { type: "search", name: "filter", "data-search": true, "data-key": location.hash, list: "filter-words", value: formatFilter(at.query, names), autocomplete: "off", spellcheck: "false",
      placeholder: `${names.slice(0, 4).map((name) => name + ":…").join(" ")}` })),
    el("datalist", { id: "filter-words" }, names.flatMap((name) => (name === "state" ? STATES.map((one) => `state:${one}`) : [name + ":"])).map((value) => el("option", { value }))),
    el("button", { type: "submit", class: "main", text: t("filter") }));
}

const nameOf = (job) => `${job.tenant}/${job.id}`;

/* The next rows behind those that are shown, which stay when the first ones are asked for again. */
async function readOn(at, path, member, filter) {
  const of = path + query(filter), more = at.state.moreOf === of ? at.state.more : { rows: [], next: at.data.next };
  const page = await ask(path + query({ ...filter, limit: PAGE, cursor: more.next }));
  if (at.state.firstOf !== of || at.data.refused) return false; // another list is shown, or none any more
  Object.assign(at.state, { moreOf: of, more: { rows: [...more.rows, ...page[member]], next: page.next } });
  at.data = { ...at.data, rows: [...at.data.rows, ...page[member]], next: page.next };
  redraw();
  return true;
}

/* The next refresh tells of a refusal. */
function untold(error) {
  if (!(error instanceof Refusal)) throw error;
}

/* Where few of many match, the daemon looks at some thousands for each answer: so it is asked on, until there is something to show. */
async function lookOn(at, path, member, filter) {
  at.state.looking = true;
  try {
    while (at.data.next && at.data.rows.length < FOUND_LEAST && await readOn(at, path, member, filter));
  } catch (error) {
    untold(error);
  }
  at.state.looking = false;
  redraw();
}

/*
 * The first page is asked for again and again. What is shown changes in place; what is new is told, and comes when the reader
 * asks for it. One that is no longer there goes, unless it may only have been pushed off the page.
 */
export async function listed(at, path, member, filter = at.query) {
  const of = path + query(filter), { [member]: page, next } = await ask(path + query({ ...filter, limit: PAGE }));
  const { state } = at, more = state.moreOf === of ? state.more : null;
  const had = new Set(state.firstOf === of ? state.first.map(nameOf) : []), fresh = new Map(page.map((one) => [nameOf(one), one]));
  const last = page.findLastIndex((one) => had.has(nameOf(one))); // what comes behind it moves no row
  const added = page.filter((one, i) => !had.has(nameOf(one)) && (i < last || last < 0)).length;
  const stay = had.size ? state.first.filter((one) => fresh.has(nameOf(one)) || (next && added)).map((one) => fresh.get(nameOf(one)) || one) : [];
  Object.assign(state, { firstOf: of, first: stay.length ? [...stay, ...(last < 0 ? [] : page.slice(last + 1))] : page });
  const shown = new Set(state.first.map(nameOf));
  return { rows: [...state.first, ...(more?.rows || []).filter((one) => !shown.has(nameOf(one)))], next: more ? more.next : next, waits: stay.length ? added : 0 };
}

export function newRows(at) {
  return at.data.waits ? el("p", { class: "again" }, button(t("n_new", { n: at.data.waits }), () => {
    Object.assign(at.state, { firstOf: "", moreOf: "" });
    renew();
  }, { class: "quiet" })) : null;
}

/* What stands below the rows: that none is there, that more are looked for, or that there are more. */
export function listEnd(at, path, member, filter = at.query) {
  if (at.data.next && at.data.rows.length < FOUND_LEAST && !at.state.looking && at.state.lookedOf !== at.state.firstOf) {
    at.state.lookedOf = at.state.firstOf;
    setTimeout(() => lookOn(at, path, member, filter));
  }
  if (at.state.looking) return el("p", { class: "hint", role: "status", text: t("looking") });
  return at.data.next ? button(t("more"), () => readOn(at, path, member, filter).catch(untold)) : at.data.rows.length ? null : el("p", { class: "hint", text: t("none_match") });
}

/* Beside the list where there is room for both; a new tab and a small screen get the whole of it. */
const openBeside = (at, job) => (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || !matchMedia("(min-width: 90rem)").matches) return;
  event.preventDefault();
  location.hash = "#/jobs" + query({ ...filterOf(at), open: jobAddress(job).slice("#/job/".length) });
};

export function jobTable(rows, chosen, at) {
  return el("div", { class: "wide" }, table(t("screen.jobs"), [
    [t("job"), (job) => [chosen ? el("input", { type: "checkbox", "aria-label": t("choose", { name: job.id }), change() {
      if (this.checked) chosen.set(nameOf(job), job);
      else chosen.delete(nameOf(job));
      redraw();
    } }) : null, link(jobAddress(job), job.id, { click: at ? openBeside(at, job) : null, "aria-current": at?.query.open === jobAddress(job).slice("#/job/".length) ? "true" : null })], ""],
    [t("state"), (job) => jobChip(job.state), "chip"], [t("destination"), (job) => job.destination, ""], [t("tenant"), (job) => job.tenant || "–", ""],
    [t("attempts"), (job) => number(job.attempts_total ?? job.attempt_count), "number"],
    [t("last_error"), (job) => (job.last_code || job.last_error ? [job.last_code ? el("code", { text: job.last_code }) : null, " ", el("span", { class: "cut", text: job.last_error || "" })] : null), "wordy"],
    [t("changed"), (job) => when(job.dead_at || job.updated_at), "tight"],
    [t("next"), (job) => when(job.next_at), "tight"]], rows, { key: nameOf }));
}

async function actOnMany(jobs, act) {
  let done = 0, refused = "";
  for (const job of jobs) {
    try {
      await post(jobPath(job, "/" + act));
      done += 1;
    } catch (error) {
      refused = error.message;
    }
    set($("news"), t("done_of", { a: done, b: jobs.length }));
  }
  if (done < jobs.length) throw new Error(`${t("done_of", { a: done, b: jobs.length })}: ${refused}`);
}

function manyActs(at) {
  const jobs = [...at.state.chosen.values()];
  if (!jobs.length || !mayOperate()) return null;
  const act = (name) => button(`${t("act." + name)} (${jobs.length})`, () => confirmThat({ title: t("ask.many", { act: t("act." + name), n: jobs.length }), text: t(`will.${name}`, { destination: "" }),
    button: t("act." + name), danger: name === "cancel", run: () => actOnMany(jobs, name).finally(() => at.state.chosen.clear()) }));
  return el("p", { class: "acts many" }, el("span", { text: t("chosen_n", { n: jobs.length }) }), act("retry"), act("resend"), act("cancel"));
}

export const jobs = {
  title: () => t("screen.jobs"),
  async load(at) {
    const { open } = at.query, path = open?.split("/").map(decoded);
    const [data, beside] = await Promise.all([listed(at, "v1/jobs", "jobs", filterOf(at)), path ? job.load({ path }) : null]);
    if (at.query.id && Object.keys(at.query).length === 1 && data.rows.length === 1) location.replace(jobAddress(data.rows[0]));
    if (at.state.openedOf !== open) Object.assign(at.state, { openedOf: open, opened: {} }); // another's payload
    return { ...data, beside };
  },
  draw(at) {
    at.state.chosen ??= new Map();
    const list = panel(t("screen.jobs"), filterBar(at, NAMES, "id", "jobs"), views(),
      el("p", { class: "ranges" }, ["", ...STATES].map((state) => link("#/jobs" + query({ ...at.query, state }), state ? term("job", state) : t("state.any"), { class: "tab", "aria-current": (at.query.state || "") === state ? "true" : null }))),
      newRows(at), manyActs(at), jobTable(at.data.rows, at.state.chosen, at), listEnd(at, "v1/jobs", "jobs", filterOf(at)));
    return at.data.beside ? el("div", { class: "halves" }, list, el("aside", { "aria-label": at.data.beside.job.id, class: "opened" }, el("p", { class: "acts" }, link("#/jobs" + query(filterOf(at)), t("close"))), job.draw(besideOf(at)))) : list;
  },
};

const filterOf = ({ query: { open: _, ...filter } }) => filter;
const besideOf = (at) => ({ data: at.data.beside, state: (at.state.opened ??= {}) });

/* ---- one job ---- */

/* Lines that differ, by the longest common run of lines at both ends: enough for a corrected field. */
function difference(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  return [...a.slice(head, a.length - tail).map((line) => ["−", line, "bad"]), ...b.slice(head, b.length - tail).map((line) => ["+", line, "good"])];
}

/* JSON with other blanks between its words and nothing else: what is made of its values has not all digits of a number. */
export function indented(text) {
  JSON.parse(text); // throws
  let out = "", depth = 0, empty = false;
  const line = () => "\n" + "  ".repeat(depth);
  for (const [word] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    const opens = word === "{" || word === "[", closes = word === "}" || word === "]";
    if (closes) depth -= 1;
    if (closes ? !empty : empty) out += line();
    out += word + (word === ":" ? " " : word === "," ? line() : "");
    if (opens) depth += 1;
    empty = opens;
  }
  return out;
}

function pretty({ payload = "", payload_base64: bytes }) {
  if (bytes !== undefined) return atob(bytes);
  try {
    return indented(payload);
  } catch {
    return payload;
  }
}

function payloadPanel(at) {
  const { job } = at.data, text = at.state.payload;
  const read = async () => {
    try {
      const full = await readJob(job, { payload: true });
      Object.assign(at.state, { payload: pretty(full), bytes: full.payload_base64 });
      at.state.first ??= at.state.payload;
    } catch (error) {
      at.state.payloadProblem = error.message;
    }
    redraw();
  };
  const changed = text !== undefined && at.state.first !== text ? difference(at.state.first, text) : [];
  return panel(t("payload"),
    at.state.payloadProblem ? el("p", { class: "problem", text: at.state.payloadProblem }) : null,
    text === undefined ? button(t("show_payload"), read) : el("pre", { class: "payload", tabindex: 0, role: "region", "aria-label": t("payload") }, text),
    changed.length ? el("pre", { class: "payload", "aria-label": t("corrected") }, changed.map(([sign, line, tone]) => el("span", { class: tone, text: `${sign} ${line}\n` }))) : null,
    text !== undefined && mayOperate() && !isDots(job.id) && ["dead", "waiting"].includes(job.state) ? button(t("act.correct"), () => {
      correctJob(job, text, at.state.bytes);
      at.state.payload = undefined;
    }) : null);
}

function priorityAct(job) {
  return el("label", {}, t("priority") + " ", el("select", { change() {
    const wish = this.value;
    confirmThat({ title: t("ask.priority", { name: job.id, priority: term("priority", wish) }), text: t("will.priority"), button: t("act.priority"),
      run: () => ask(jobPath(job), { method: "PATCH", body: { priority: wish } }) });
    this.value = job.priority;
  } }, ["critical", "high", "normal"].map((value) => el("option", { value, text: term("priority", value), selected: value === job.priority }))));
}

function jobActs(job) {
  if (!mayOperate() || isDots(job.id)) return null;
  const act = (name) => button(t("act." + name), () => actOnJob(job, name));
  return el("div", { class: "acts" }, ["dead", "waiting"].includes(job.state) ? act("retry") : null, job.state === "completed" ? act("resend") : null,
    ["pending", "waiting", "dead"].includes(job.state) ? act("cancel") : null, ["pending", "waiting"].includes(job.state) ? priorityAct(job) : null);
}

const localTimes = (text) => text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (at) => exact(at));
const sentence = (text) => (text ? text.charAt(0).toUpperCase() + text.slice(1).replace(/\.?$/, ".") : "");

function placeFacts(queue) {
  return queue ? [[t("ahead"), `${number(queue.ahead)}${queue.ahead_or_more ? " +" : ""}${queue.tenants ? ` · ${t("n_tenants", { n: queue.tenants })}` : ""}`], [t("limited_by"), queue.limited_by], [t("expected"), queue.expected_at ? when(queue.expected_at) : ""]] : [];
}

export const job = {
  title: (at) => at.path[1],
  async load(at) {
    const one = { id: at.path[1], tenant: at.path[0] };
    const about = query({ job: one.id, tenant: one.tenant, limit: 200 });
    const [facted, why, trail] = await Promise.all([readJob(one), isDots(one.id) ? { reason: t("by_command", { name: one.id }) } : ask(jobPath(one, "/why")), askIfThere("v1/events" + about, "events")]);
    return { job: facted, why, trail: trail?.events || [] };
  },
  draw(at) {
    const { job: one, why, trail } = at.data;
    return [
      el("section", { class: "panel", id: "job" }, el("div", { class: "title-row" }, el("h2", {}, one.id, " ", jobChip(one.state)), jobActs(one)),
        el("p", { class: "why", text: localTimes(`${sentence(why.reason)} ${sentence(why.next)}`) }),
        facts([[t("destination"), link("#/destination/" + encodeURIComponent(one.destination), one.destination)], [t("tenant"), one.tenant ? link("#/jobs" + query({ tenant: one.tenant }), one.tenant) : ""],
          [t("status"), one.status], [t("priority"), term("priority", one.priority)], [t("held_by"), one.held_by], ...placeFacts(why.queue),
          [t("came"), when(one.created_at)], [t("next_try"), one.next_at ? when(one.next_at) : ""], [t("deadline"), one.deadline ? when(one.deadline) : ""],
          [t("dead_since"), one.dead_at ? when(one.dead_at) : ""], [t("because"), one.dead_code], [t("removed_at"), one.expires_at ? when(one.expires_at) : ""],
          [t("retries"), t("of", { a: one.retry_count, b: one.max_retries })], [t("generation"), one.generation > 1 ? number(one.generation) : ""], [t("last_error"), [one.last_code, one.last_error].filter(Boolean).join(": ")],
          [t("correlation"), one.correlation_id], [t("reference"), one.reference], ...Object.entries(one.metadata || {}).map(([name, value]) => [name, String(typeof value === "object" ? JSON.stringify(value) : value)])])),
      el("div", { class: "columns" }, el("div", {},
        panel(t("attempts"), (one.attempts || []).length ? el("div", { class: "wide" }, table(t("attempts"), [["#", (try_) => number(try_.attempt), "number"], [t("time"), (try_) => when(try_.at, true), "tight"],
          [t("took"), (try_) => (Number.isFinite(try_.duration_ms) ? `${number(try_.duration_ms)} ms` : ""), "number"], [t("came_out"), (try_) => term("class", try_.class), ""], [t("code"), (try_) => el("code", { text: try_.code || "" }), ""],
          [t("error"), (try_) => try_.error || "", "wordy"], [t("next"), (try_) => (try_.next_at ? when(try_.next_at, true) : ""), "tight"]], one.attempts.slice(-50), { key: (try_) => `${try_.generation}.${try_.attempt}.${try_.step || ""}${try_.at}` }))
          : el("p", { class: "hint", text: one.attempts ? t("nothing_yet") : sentence(t("by_command", { name: one.id })) })), payloadPanel(at)),
      panel(t("timeline"), el("ol", { class: "timeline" }, trail.slice(-100).map((event) => el("li", { "data-key": event.id, "data-type": event.type },
        el("time", { datetime: event.at, title: exact(event.at), text: exact(event.at) }), " ", el("strong", { text: eventWords(event) }), " ", el("span", { class: "sub", text: eventDetails(event) })))))),
    ];
  },
};
