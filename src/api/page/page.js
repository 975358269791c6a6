/*
 * The page: which screen an address means, the keys, the language, the colours, who is asking, and how live it is.
 */
import { $, attribute, el, link as anchor, onRedraw, place, set, show } from "./dom.js";
import { LANGUAGES, duration, keep, keptWord, language, loadWords, t, timeOf, zone } from "./words.js";
import { POLL_MS, begin, begun, decoded, known, line, token, useToken } from "./live.js";
import { confirmThat } from "./acts.js";

const THEME_KEY = "insist.theme";

/* Address -> file and name of the screen. In the order of the menu; those without a key are reached from others. */
const SCREENS = {
  "": ["now", "now", "n"], jobs: ["jobs", "jobs", "j"], dead: ["dead", "dead", "d"], alerts: ["watch", "alerts", "a"],
  incidents: ["watch", "incidents", "i"], tenants: ["watch", "tenants", "t"], nodes: ["watch", "nodes", "o"],
  simulate: ["plan", "simulate", "s"], reports: ["plan", "reports", "r"],
  destination: ["destination", "destination"], job: ["jobs", "job"], redrive: ["dead", "redrive"], incident: ["watch", "incident"],
  fairness: ["watch", "tenants"],
};
const UNDER = { destination: "", job: "jobs", redrive: "dead", incident: "incidents", fairness: "tenants" };

let at = null; // the screen that is shown: {name, path, query, state, screen, data}

function addressOf() {
  const [path, text] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(decoded);
  return { name: parts[0], path: parts.slice(1), query: Object.fromEntries(new URLSearchParams(text || "")) };
}

async function go() {
  const address = addressOf();
  const [file, part] = Object.hasOwn(SCREENS, address.name) ? SCREENS[address.name] : [];
  if (!file) {
    location.replace("#/");
    return;
  }
  const same = at && at.name === address.name && at.path.join("/") === address.path.join("/");
  const asked = location.hash;
  const module = await import(`./${file}.js`);
  if (location.hash !== asked) return; // another was chosen while its file came
  at = { ...address, screen: module[part], state: same ? at.state : {}, data: same && !at.data?.refused ? at.data : null };
  drawNav();
  if (!same) {
    tellAsking();
    scrollTo(0, 0);
    if (document.activeElement !== $("find-text")) $("view").focus({ preventScroll: true });
  } else if (at.data) drawScreen();
  $("confirm").close();
  if (!(same && at.data && at.screen.chooses)) begun(); // who only chooses from what is there need not ask for it again
}

const tellAsking = () => $("view").replaceChildren(el("p", { class: "hint", text: t("asking") }));

/* What another token could see is neither shown nor kept, and answers to it that come late change nothing. */
function anew() {
  at = at && { ...at, state: {}, data: null, parts: null };
  document.title = "insist";
  set($("about"), "");
  set($("news"), "");
  tellAsking();
  drawNav();
  drawBanner();
}

async function load() {
  const mine = at;
  if (!mine) return;
  try {
    const data = await mine.screen.load(mine);
    if (mine === at) mine.data = data;
  } catch (error) {
    if (![403, 404, 405, 422].includes(error.status)) throw error; // who may read nothing hears it of the figures that all screens have
    if (mine === at) mine.data = { refused: error };
  }
}

/* Not before the figures that all screens share, however early its own are there: they tell who may do what, too. */
function drawScreen() {
  if (!at?.data || !known.stats) return;
  const { refused } = at.data;
  const content = refused ? el("section", { class: "panel" }, el("h2", { text: t("nothing_here") }),
      el("p", { class: "problem", text: refused.status === 403 ? t("may_not_read", { why: refused.message }) : refused.status === 422 || refused.type !== "not_found" ? refused.message : t("not_there") }))
    : at.screen.draw(at);
  const wanted = el("div", { id: "view", tabindex: -1 }, content);
  place($("view"), wanted);
  show($("login"), false);
  const name = refused ? t("nothing_here") : at.screen.alarm?.(at) || at.screen.title(at);
  const title = `${name} – insist`;
  if (document.title !== title) document.title = title;
}

function draw() {
  drawScreen();
  const { stats } = known;
  set($("about"), [location.host, t("version", { version: stats.version }), t("up_for", { time: duration(stats.uptime_s * 1000) }),
    known.tenant ? t("tenant_is", { tenant: known.tenant }) : "", t("times_in", { zone: zone() })].filter(Boolean).join(" · "));
  show($("forget"), Boolean(token()));
  drawNav();
}

function drawNav() {
  const here = UNDER[at?.name] ?? at?.name;
  const counts = known.stats ? { alerts: known.stats.alerts?.unacknowledged, dead: known.stats.totals.dead } : {};
  place($("nav"), el("nav", { id: "nav", "aria-label": t("menu") }, Object.entries(SCREENS).filter(([, [, , key]]) => key).map(([name, [, , key]]) =>
    anchor("#/" + name, t("screen." + (name || "now")), { "aria-current": name === here ? "page" : null, "data-count": counts[name] > 0 ? (counts[name] > 999 ? "999+" : counts[name]) : null,
      title: `g ${key}` }))));
}

/* ---- how live it is ---- */

function drawLine() {
  const online = !line.failed && line.lastOk > 0;
  attribute($("link"), "data-tone", line.needsToken ? null : !online ? "bad" : line.streaming ? "good" : "warn");
  attribute($("link-shape"), "href", "#shape-" + (line.needsToken ? "wait" : !online ? "cut" : line.streaming ? "live" : "wait"));
  const updated = line.lastOk ? t("updated", { at: timeOf(line.lastOk) }) : "";
  set($("link-text"), line.needsToken ? t("no_token") : !online ? (line.lastOk ? t("cut_since", { updated }) : t("cut"))
    : line.streaming ? t("live", { updated }) : t("every", { s: POLL_MS / 1000, updated }));
  document.body.classList.toggle("stale", !online && !line.needsToken && line.lastOk > 0);
  drawBanner();
}

function drawBanner() {
  const banner = line.needsToken ? { tone: "info", shape: "wait", text: t("sign_in"), note: "" }
    : line.failed ? { tone: "bad", shape: "cut", text: t("disconnected"), note:
        (line.lastOk ? t("last_update", { at: timeOf(line.lastOk), time: duration(Date.now() - line.lastOk) }) + " " : "") + t("trying_again", { why: line.failed }) }
    : line.fault ? { tone: "bad", shape: "bad", text: t("page_fault"), note: line.fault }
    : at?.data && !at.data.refused ? at.screen.banner?.(at) : null;
  show($("banner"), Boolean(banner));
  if (!banner) return;
  attribute($("banner"), "data-tone", banner.tone);
  attribute($("banner-shape"), "href", "#shape-" + banner.shape);
  set($("banner-text"), banner.text);
  set($("banner-note"), banner.note);
}

setInterval(() => {
  if (!document.hidden && line.failed) drawBanner(); // it says how old what is shown is
}, 1000);

/* ---- who is asking ---- */

function needToken(refusal) {
  set($("login-text"), refusal.status === 403 ? t("may_not_read", { why: refusal.message }) : token() ? t("unknown_token") : t("who_are_you"));
  show($("view"), false);
  show($("login"), true);
  show($("forget"), false);
  $("token").focus();
}

$("login-form").addEventListener("submit", (submit) => {
  submit.preventDefault();
  const text = $("token").value.trim();
  $("token").value = "";
  if (!/^[!-~]+$/.test(text)) { // no header can carry it
    set($("login-text"), t("unknown_token"));
    return;
  }
  show($("view"), true);
  if (!useToken(text)) set($("login-text"), t("storage_forbidden"));
});
$("forget").addEventListener("click", () => useToken(""));

/* ---- keys ---- */

let lead = 0; // when `g` was pressed

function showKeys() {
  const row = (keys, text) => el("tr", {}, el("td", {}, keys.split(" ").map((key) => el("kbd", { text: key }))), el("td", { text }));
  confirmThat({ title: t("keys"), text: [el("table", { class: "plain", "aria-label": t("keys") }, el("tbody", {}, row("/", t("key.search")), row("?", t("key.help")), row("Esc", t("close")),
    Object.entries(SCREENS).filter(([, [, , key]]) => key).map(([name, [, , key]]) => row(`g ${key}`, t("screen." + (name || "now"))))))] });
}

document.addEventListener("keydown", (press) => {
  if (press.ctrlKey || press.altKey || press.metaKey || $("confirm").open) return;
  if (press.target.matches("input, textarea, select")) {
    if (press.key === "Escape") press.target.blur();
    return;
  }
  const led = Date.now() - lead < 1500;
  lead = press.key === "g" ? Date.now() : 0;
  const [name] = led ? Object.entries(SCREENS).find(([, [, , key]]) => key === press.key) || [] : [];
  if (name !== undefined) location.hash = "#/" + name;
  else if (press.key === "/") (document.querySelector("#view [data-search]") || $("find-text")).focus();
  else if (press.key === "?") showKeys();
  else return;
  press.preventDefault();
});

$("find").addEventListener("submit", (submit) => {
  submit.preventDefault();
  const id = $("find-text").value.trim();
  if (id) location.hash = "#/jobs?id=" + encodeURIComponent(id);
});
$("skip").addEventListener("click", (click) => {
  click.preventDefault(); // an address is a screen
  $("view").focus();
});
$("keys").addEventListener("click", showKeys);

/* ---- language and colours ---- */

function dress() {
  for (const node of document.querySelectorAll("[data-t]")) set(node, t(node.dataset.t));
  attribute($("find-text"), "placeholder", t("find_job"));
  attribute($("find-text"), "aria-label", t("find_job"));
  $("language").replaceChildren(...Object.entries(LANGUAGES).map(([value, text]) => el("option", { value, text, lang: value })));
  $("language").value = language;
  $("theme").replaceChildren(...["", "light", "dark"].map((value) => el("option", { value, text: t("theme." + (value || "system")) })));
  $("theme").value = keptWord(THEME_KEY) || "";
}

function colour() {
  attribute(document.documentElement, "data-theme", keptWord(THEME_KEY));
}

$("language").addEventListener("change", async () => {
  await loadWords($("language").value);
  dress();
  if (known.stats) draw();
  drawLine();
});
$("theme").addEventListener("change", () => {
  keep(THEME_KEY, $("theme").value);
  attribute(document.documentElement, "data-theme", $("theme").value || null);
});

let sized = 0;
addEventListener("resize", () => {
  clearTimeout(sized);
  sized = setTimeout(drawScreen, 150);
});

colour();
await loadWords();
dress();
show($("view"), true);
onRedraw(() => {
  drawScreen();
  drawBanner();
});
addEventListener("hashchange", go);
await go();
begin({ load, draw, line: drawLine, token: needToken, event: () => {}, anew });
