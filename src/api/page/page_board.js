/*
 * What the page shows of `known` and `link`: the link, the banner, the sums, the destinations and the panels.
 */
"use strict";

const GROUPS_SHOWN = 15;

/* ---- the whole ---- */

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
  const open = (known.alerts || []).filter((alert) => !alert.acknowledged);
  const critical = open.filter((alert) => alert.severity === "critical");
  const summaries = (alerts) => alerts.slice(0, 3).map((alert) => alert.summary).concat(alerts.length > 3 ? [`and ${alerts.length - 3} more`] : []);
  const list = (items) => items.slice(0, 8).map(({ name, state }) => `${name}: ${state.word.toLowerCase()}${state.why ? " (" + state.why + ")" : ""}`)
    .concat(items.length > 8 ? [`and ${items.length - 8} more`] : []).join("; ");
  if (down.length || bad.length) {
    const text = [down.length ? many(down.length, "destination in contingency", "destinations in contingency") : "",
                  bad.length ? many(bad.length, "destination held", "destinations held") : ""].filter(Boolean).join(", ");
    return { tone: "bad", shape: "bad", text, note: list([...down, ...bad, ...odd]) };
  }
  if (critical.length) return {
    tone: "bad", shape: "bad", text: many(critical.length, "critical alert", "critical alerts"),
    note: summaries(critical).concat(list(odd) || []).join("; ") };
  if (odd.length) return { tone: "warn", shape: "warn", text: many(odd.length, "destination needs a look", "destinations need a look"), note: list(odd) };
  const unacknowledged = Math.max(open.length, known.stats.alerts ? known.stats.alerts.unacknowledged : 0);
  if (unacknowledged) return {
    tone: "warn", shape: "warn", text: many(unacknowledged, "alert that nobody has acknowledged", "alerts that nobody has acknowledged"), note: summaries(open).join("; ") };
  if (!states.length) return { tone: "info", shape: "wait", text: "No destination is configured", note: "" };
  return { tone: "good", shape: "good", text: "All well", note: `${many(states.length, "destination", "destinations")}, none held` +
    ((known.alerts || []).length ? `; ${many(known.alerts.length, "alert stands that somebody has acknowledged", "alerts stand that somebody has acknowledged")}` : "") };
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

/* ---- destinations ---- */

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
  if (destination.fallback_blocked !== undefined) parts.push("its second address is held");
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
  set(row.flight, destination.under_way === undefined ? "" : destination.transport === "pull" ? number(destination.under_way) : `${number(destination.under_way)} of ${number(limit)}`);
  attribute(row.flight, "title", destination.concurrency_why ?? null);
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

/* ---- the other panels ---- */

/* A list drawn anew only when it says something else. */
const drawn = new Map();
function drawList(id, count, items) {
  const key = JSON.stringify(items.map(({ tone, lines, act }) => [tone, lines, Boolean(act)]));
  show($(id), items.length > 0);
  set($(id + "-count"), count);
  if (drawn.get(id) === key) return;
  drawn.set(id, key);
  $(id + "-list").replaceChildren(...items.map(({ tone, mark, lines, act }) => {
    const item = el("li", { "data-tone": tone },
      el("strong", {}, shape(mark), " " + lines[0]), ...lines.slice(1).filter(Boolean).map((text) => el("span", { class: "sub", text })));
    if (act) {
      const button = el("button", { type: "button", class: "quiet", text: act.text, "aria-label": `${act.text}: ${lines[0]}` });
      button.addEventListener("click", act.run);
      item.append(button);
    }
    return item;
  }));
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
            alert.summary || "", `since ${clock(alert.raised_at)}`,
            alert.acknowledged ? `acknowledged ${clock(alert.acknowledged.at)}${alert.acknowledged.by ? " by " + alert.acknowledged.by : ""}${alert.acknowledged.note ? ": " + alert.acknowledged.note : ""}` : ""],
    act: !alert.acknowledged && mayOperate() ? { text: "Acknowledge", run: () => ackAlert(alert) } : null,
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
