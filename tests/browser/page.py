#!/usr/bin/env python3
"""The page in a real browser, with a real daemon: what it shows, how quickly, and what it does not let happen.

INSIST_PICTURES=FOLDER keeps pictures of what a person would have seen.
"""
import base64
import hashlib
import json
import os
import socket
import sys
import time

sys.dont_write_bytecode = True
from scene import Scene, process  # noqa: E402
from browser import Page  # noqa: E402

DESTINATIONS = """\
  claims: { transport: pull, errors: { permanent: [BROKEN] }, contingency: { ramp: [100], stable: 1s } }
  mail: { transport: pull }
  web: { transport: http, url: "http://127.0.0.1:%d/", allow_private: true, concurrency: 4, errors: { permanent: ["400"] } }
"""
MARKUP = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script><b>bold</b>"
STREAMS_MAX = 64


def state_is(name, word):
    return f"document.querySelector('tr[data-name={name}] .state')?.innerText.trim() === '{word}'"


def figure_is(name, column, value):
    return f"document.querySelector('tr[data-name={name}] td[data-label={column}]')?.innerText === '{value}'"


BANNER = "document.querySelector('#banner-text').innerText"


def is_empty_at_first(scene):
    tap, page = scene.tap, scene.page
    tap.check(page.until(f"{BANNER} === 'All well'"), "with nothing to do all is well", page.text("body"))
    tap.check(page.until("document.querySelector('#link').innerText.startsWith('Live, updated')"), "it is live",
              page.text("#link"))
    tap.check(page.run("document.querySelectorAll('#destinations tbody tr').length") == 3, "every destination has a row")
    scene.picture("empty")


def counts_change(scene):
    """S3-016"""
    tap, page = scene.tap, scene.page
    for i in range(7):
        scene.daemon.add("mail", f"m{i}")
    tap.check(page.until(figure_is("mail", "Pending", 7)), "counts change by themselves", page.text("#destinations"))
    tap.check(page.until("[...document.querySelectorAll('#events tr')].some(r => r.innerText.includes('m6'))"),
              "events appear as they happen", page.text("#events"))
    tap.check(page.until("/^\\d+ s$/.test(document.querySelector('tr[data-name=mail] td[data-label=Oldest]').innerText)"),
              "how long the oldest waits is shown", page.text("tr[data-name=mail]"))
    for i in range(12):
        scene.daemon.add("web", f"good{i}")
    # Right after a full minute the one before counts in part: one or two may already be rounded away.
    tap.check(page.until("/^1[0-2] delivered, 0 failed/.test(document.querySelector('tr[data-name=web] .flow').innerText)"),
              "what was delivered is counted by the minute", page.text("tr[data-name=web]"))
    tap.check(page.run("document.querySelector('tr[data-name=web] .spark .good').getAttribute('d').length") > 1, "and drawn")


def indicator_changes(scene):
    """S3-070"""
    tap, page = scene.tap, scene.page
    began = time.monotonic()
    done = scene.insist("dest", "contingency", "claims", "--reason", "the operator called " + MARKUP)
    tap.check(done.returncode == 0, "insist dest contingency works", done.stderr)
    tap.check(page.until(state_is("claims", "Contingency")), "the indicator shows the contingency", page.text("tr[data-name=claims]"))
    process.note(f"seen {time.monotonic() - began:.2f} s after the command was started")
    tap.check(page.until(f"{BANNER} === '1 destination in contingency'"), "so does the banner", page.text("#banner"))
    tap.check(page.run("document.querySelectorAll('tr[data-name=claims] .state svg use').length") == 1 and
              page.run("document.querySelector('tr[data-name=claims] .state use').getAttribute('href')") == "#shape-bad",
              "by a shape and a word, not by colour alone")
    tap.check(page.until("document.querySelector('#news').textContent.startsWith('claims: Contingency')"),
              "a screen reader is told", page.run("document.querySelector('#news').textContent"))
    tap.check("since" in page.text("tr[data-name=claims] .where-state") and "the operator called" in page.text("tr[data-name=claims]"),
              "since when and why is there", page.text("tr[data-name=claims]"))
    tap.check(page.until("document.querySelector('#incidents-list').innerText.includes('claims')"), "the incident is open",
              page.text("#incidents"))
    tap.check(page.until("document.querySelector('#alerts-list').innerText.includes('critical: contingency claims')"),
              "so does the alert", page.text("#alerts"))
    alert = page.text("#alerts-list")
    tap.check("jobs are held and lose no tries" in alert and "the operator called" in alert and "raised " in alert and
              "undefined" not in alert, "in words, and since when", alert)
    tap.check(page.until("[...document.querySelectorAll('#events tr')].some(r => r.innerText.includes('Alert raised') && r.innerText.includes('jobs are held'))"),
              "and it is among the events", page.text("#events"))
    scene.picture("outage")
    scene.insist("dest", "contingency", "claims", "--leave")
    tap.check(page.until(state_is("claims", "Recovering") + "||" + state_is("claims", "Normal")), "it leaves contingency",
              page.text("tr[data-name=claims]"))
    tap.check(page.until(state_is("claims", "Normal")), "and is normal again", page.text("tr[data-name=claims]"))
    tap.check(page.until("!document.querySelector('#alerts')"), "the alert goes away", page.text("#alerts"))
    scene.insist("dest", "contingency", "claims", "--reason", "they called")
    scene.insist("dest", "pause", "claims", "--reason", "counting")
    tap.check(page.until(state_is("claims", "Paused")), "a pause hides a contingency", page.text("tr[data-name=claims]"))
    cell = page.text("tr[data-name=claims] .where-state")
    tap.check("an operator said so: counting" in cell and "behind it: contingency, for " in cell and "(an operator said so: they called)" in cell,
              "which is shown with it, and both reasons", cell)
    tap.check("claims: paused, contingency (" in page.text("#banner-note"), "so does the banner", page.text("#banner"))
    scene.picture("behind")
    scene.say("End contingency: claims")
    scene.confirm("")
    tap.check(page.until("!document.querySelector('tr[data-name=claims]').innerText.includes('contingency')") and page.run(state_is("claims", "Paused")),
              "and can be ended without ending the pause", page.text("tr[data-name=claims]"))
    scene.insist("dest", "resume", "claims")
    tap.check(page.until(state_is("claims", "Normal")), "and it is normal when that ends", page.text("tr[data-name=claims]"))
    scene.insist("dest", "pause", "mail")
    tap.check(page.until(state_is("mail", "Paused")), "a pause is shown", page.text("tr[data-name=mail]"))
    scene.insist("dest", "resume", "mail")
    tap.check(page.until(state_is("mail", "Normal")), "and its end", page.text("tr[data-name=mail]"))


STATES = [  # what the API says, the word and the shape shown
    ({"mode": "normal", "breaker": "closed"}, "Normal", "good"),
    ({"mode": "normal", "held_by": "concurrency"}, "Normal", "good"),
    ({"mode": "contingency", "mode_cause": "health"}, "Contingency", "bad"),
    ({"mode": "contingency", "held_by": "contingency", "breaker": "open"}, "Contingency", "bad"),
    ({"mode": "recovering", "mode_cause": "checked"}, "Recovering", "recovering"),
    ({"mode": "paused", "pause_reason": "r"}, "Paused", "paused"),
    ({"mode": "paused", "held_by": "blocked", "pause_reason": "r"}, "Refused", "bad"),
    ({"mode": "normal", "held_by": "breaker", "breaker": "open"}, "Breaker open", "breaker"),
    ({"mode": "normal", "breaker": "half_open"}, "Breaker trying", "breaker"),
    ({"mode": "normal", "held_by": "throttle"}, "Throttled", "throttled"),
    ({"mode": "normal", "held_by": "rate"}, "At its rate limit", "throttled"),
    ({"mode": "normal", "held_by": "maintenance"}, "Maintenance", "paused"),
    ({"mode": "normal", "held_by": "dead_full"}, "Dead letters full", "bad"),
    ({"mode": "normal", "held_by": "store_full"}, "Store full", "bad"),
    ({"mode": "normal", "held_by": "unconfigured"}, "Not configured", "warn"),
    ({"mode": "normal", "failed_last_minute": 5, "delivered_last_minute": 4}, "Failing", "warn"),
    ({"mode": "normal", "failed_last_minute": 4, "delivered_last_minute": 0}, "Normal", "good"),
    ({"mode": "normal", "failed_last_minute": 9, "delivered_last_minute": 9}, "Normal", "good"),
]


def every_state_has_word_and_shape(scene):
    tap, page = scene.tap, scene.page
    for destination, word, shape in STATES:
        shown = page.run(f"import('/page/state.js').then(m => {{ const s = m.stateOf({json.dumps(destination)}); return [s.word, s.shape]; }})")
        drawn = page.run(f"document.getElementById('shape-{shape}') !== null")
        tap.check(shown == [word, shape] and drawn, f"{word}: {json.dumps(destination)}", shown)
    alert = {"id": "1", "alert": "dead_per_tenant", "severity": "critical", "state": "standing", "destination": "claims", "tenant": MARKUP,
             "summary": "claims: " + MARKUP, "value": 51, "limit": 50, "unit": "jobs", "raised_at": "2025-01-12T10:40:00.000Z"}
    text = page.run(f"import('/page/now.js').then(m => m.alertItem({json.dumps(alert)}).textContent)")
    tap.check(f"critical: dead per tenant claims, tenant {MARKUP}" in text and "claims: " + MARKUP in text, "alerts stand in words", text)
    banner = page.run(f"import('/page/now.js').then(m => m.bannerOf({{ data: {{ destinations: [], alerts: [{json.dumps(alert)}] }} }}))")
    tap.check(banner["text"] == "1 critical alert" and MARKUP in banner["note"], "a critical one is in the banner", banner)


def markup_stays_text(scene):
    tap, page, daemon = scene.tap, scene.page, scene.daemon
    daemon.call("POST", "/v1/jobs", {"destination": "claims", "id": "x-" + MARKUP, "tenant": MARKUP, "payload": MARKUP})
    status, leased = daemon.call("POST", "/v1/leases", {"destination": "claims", "wait_s": 10})
    lease = leased["leases"][0]["lease"]
    daemon.call("POST", "/v1/leases/nack", {"lease": lease, "error": "BROKEN " + MARKUP, "code": "BROKEN"})
    tap.check(page.until(figure_is("claims", "Dead", 1)), "the dead letter is counted", page.text("tr[data-name=claims]"))
    tap.check(page.until("[...document.querySelectorAll('#events tr')].some(r => r.innerText.includes('BROKEN <img'))"),
              "its error is shown as it is", page.text("#events"))
    page.key("/", 191, "/")
    tap.check(page.until("document.activeElement.type === 'search'"), "/ goes to the search", page.run("document.activeElement.outerHTML"))
    page.click("#find-text")
    page.type("x-" + MARKUP)
    page.key("Enter", 13, "\r")
    tap.check(page.until("document.querySelector('#job .state')?.innerText.trim() === 'dead'"), "a job is found by its id alone",
              page.text("#view"))
    found = page.text("#view")
    tap.check("BROKEN <img" in found and "Attempts" in found and "Timeline" in found, "with its error, attempts and history", found)
    tap.check(page.run("document.querySelector('#job .why').innerText.length > 10"), "and why, in words", found)
    scene.picture("job")
    tap.check(page.run("window.hacked === undefined && document.querySelectorAll('main img, main script, main b').length === 0"),
              "markup from outside stays text")
    scripts = page.run("performance.getEntriesByType('resource').map(e => e.name).filter(n => n.endsWith('.js'))")
    bad = page.run(f"Promise.all({json.dumps(scripts)}.map(s => fetch(s).then(r => r.text()).then(t => /innerHTML|insertAdjacentHTML|document\\.write|\\beval\\(/.test(t) ? s : null))).then(all => all.filter(Boolean))")
    tap.check(len(scripts) > 5 and not bad, "no script has a way to put in markup", [scripts, bad])


def actions_ask_first(scene):
    tap, page = scene.tap, scene.page
    page.key("Escape", 27)
    page.run("document.activeElement.blur()")
    page.key("g", 71, "g")
    page.key("n", 78, "n")
    tap.check(page.until("!!document.querySelector('tr[data-name=mail] .acts button')"), "g n goes to the first screen", page.text("#view"))
    page.run("document.querySelector('#destinations-sort').focus()")
    label = "document.activeElement.getAttribute('aria-label')"
    for _ in range(20):
        page.key("Tab", 9)
        if page.run(label) == "Pause: mail":
            break
    tap.check(page.run(label) == "Pause: mail", "a button is reached by keyboard", page.run("document.activeElement.outerHTML"))
    page.key("Enter", 13, "\r")
    tap.check(page.until("document.querySelector('#confirm').open"), "it asks first")
    tap.check("Nothing more is sent" in page.text("#confirm"), "and says what will happen", page.text("#confirm"))
    tap.check(page.run("document.querySelector('#confirm').contains(document.activeElement)"), "the focus is in the question")
    scene.picture("question")
    page.key("Escape", 27)
    tap.check(page.until("!document.querySelector('#confirm').open") and page.run(label) == "Pause: mail",
              "Escape leaves it as it is, and the focus where it was")
    tap.check(scene.daemon.counts("mail")["mode"] == "normal", "nothing was done")
    page.key("Enter", 13, "\r")
    page.until("document.querySelector('#confirm').open")
    page.type("counting the letters")
    page.click("#confirm-yes")
    tap.check(page.until(state_is("mail", "Paused")), "confirmed, it is done", page.text("#confirm"))
    tap.check(page.until("document.querySelector('tr[data-name=mail]').innerText.includes('counting the letters')"),
              "with the reason given", page.text("tr[data-name=mail]"))
    page.click("tr[data-name=mail] .acts button")
    page.until("document.querySelector('#confirm').open")
    page.click("#confirm-yes")
    tap.check(page.until(state_is("mail", "Normal")), "and taken back", page.text("tr[data-name=mail]"))
    page.run("history.back()")
    tap.check(page.until("!!document.querySelector('#job .acts button')"), "back goes back to the job", page.text("#view"))
    page.click("#job .acts button")
    page.until("document.querySelector('#confirm').open")
    tap.check("twice" in page.text("#confirm"), "a retry warns of a second delivery", page.text("#confirm"))
    page.click("#confirm-yes")
    tap.check(page.until("document.querySelector('#job .state')?.innerText.trim() === 'pending'"), "a dead letter is retried",
              page.text("#job"))
    page.open(scene.address() + "#/")
    page.until("!!document.querySelector('#destinations')")


def an_alert_ends_by_hand(scene):
    """Of dead letters: it stands until somebody says that it is known, by the page's button."""
    tap, page, daemon = scene.tap, scene.page, scene.daemon
    listed = "[...document.querySelectorAll('#alerts-list > *')].find(e => e.innerText.includes('permanent error web'))"
    tap.check(page.until(f"!!{listed}"), "the alert of a dead letter stands, also over a restart", page.text("#alerts"))
    scene.picture("alert")
    page.click("#alerts-list li[data-alert=permanent_error] button")
    tap.check(page.until("document.querySelector('#confirm').open"), "its button asks first", page.text("#alerts"))
    tap.check("It ends by it" in page.text("#confirm"), "and says what will happen", page.text("#confirm"))
    scene.picture("acknowledge")
    page.type("billing knows " + MARKUP)
    page.click("#confirm-yes")
    tap.check(page.until(f"!{listed} && !document.querySelector('#confirm').open"), "acknowledged, it stands no more", page.text("#alerts"))
    status, answer = daemon.call("GET", "/v1/alerts?state=cleared&destination=web")
    notes = [alert.get("acknowledged", {}).get("note") for alert in answer["alerts"]]
    tap.check(status == 200 and notes == ["billing knows " + MARKUP], "with the note that was given", answer)
    tap.check(page.until("[...document.querySelectorAll('#events tr')].some(r => r.innerText.includes('Alert acknowledged'))"),
              "and the trail has it", page.text("#events"))


CONTRAST = """(() => {
  const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return { rgb: m.slice(0, 3), a: m[3] ?? 1 }; };
  const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.a === 1) return c.rgb; } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.checkVisibility() || e.closest('.unseen, .skip, svg') || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const a = light(parse(getComputedStyle(e).color).rgb), b = light(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${e.tagName} ${e.className} ${e.innerText.slice(0, 40)}`);
  }
  return bad;
})()"""

NAMED = {"button", "textbox", "searchbox", "checkbox", "link", "table", "dialog", "region", "img", "combobox", "radio"}


def everybody_can_use_it(scene):
    tap, page = scene.tap, scene.page
    nameless = [role for role, name in page.names() if role in NAMED and not name.strip()]
    tap.check(not nameless, "every control, table and picture has a name", nameless)
    roles = [role for role, _ in page.names()]
    tap.check("table" in roles and "columnheader" in roles and "rowheader" in roles and "main" in roles and "banner" in roles,
              "tables and landmarks are there", sorted(set(roles)))
    tap.check(page.run("document.documentElement.lang === 'en' && document.querySelectorAll('h1').length === 1 && document.title.length > 0"),
              "it has a language, a heading and a title")
    tap.check(page.run("(() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id); return new Set(ids).size === ids.length; })()"),
              "no id is used twice")
    tap.check(page.run("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"]):not([tabindex=\"-1\"])').length === 0"),
              "the order of the keyboard is that of the page")
    tap.check(page.run("[...document.querySelectorAll('*')].every(e => [...e.attributes].every(a => !a.name.startsWith('on') && a.name !== 'style'))"),
              "no handler and no style stands in the markup")
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        bad = page.run(CONTRAST)
        tap.check(not bad, f"everything can be read: {scheme}", "\n".join(bad))
        scene.picture(scheme)
    tap.check(page.run("getComputedStyle(document.body).backgroundColor") != "rgb(243, 245, 248)", "dark is dark")
    page.scheme("light")
    for width in (820, 1024, 1280, 1600):
        page.size(width, 900)
        wide = page.run("document.documentElement.scrollWidth")
        tap.check(wide <= width, f"nothing sticks out, {width} wide", wide)
    page.size(360, 740, phone=True)
    wide = page.run("document.documentElement.scrollWidth")
    tap.check(wide <= 360, "on a phone nothing sticks out", wide)
    tap.check(page.run("document.querySelector('tr[data-name=mail] td[data-label=Pending]').getBoundingClientRect().right") <= 360,
              "and the figures are there")
    roles = [role for role, _ in page.names()]
    tap.check("rowheader" in roles and "cell" in roles, "it is a table there, too", sorted(set(roles)))
    scene.picture("phone")
    page.size(1280, 900)


def rests_when_nobody_looks(scene):
    tap, page = scene.tap, scene.page
    page.run("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });"
             "document.dispatchEvent(new Event('visibilitychange'))")
    scene.browser.listen(0.5)
    before = len(page.addresses)
    scene.daemon.add("mail", "unseen-1")
    scene.browser.listen(2)
    tap.check(len(page.addresses) == before, "a hidden tab asks for nothing", page.addresses[before:])
    page.run("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    tap.check(page.until(figure_is("mail", "Pending", 8)), "seen again, it catches up", page.text("tr[data-name=mail]"))
    tap.check(page.until("document.querySelector('#link').innerText.startsWith('Live')"), "and is live again", page.text("#link"))


def tells_when_the_daemon_is_gone(scene):
    tap, page, daemon = scene.tap, scene.page, scene.daemon
    daemon.add("web", "bad letter")
    tap.check(page.until("document.querySelector('#alerts-list').innerText.includes('permanent error web')"),
              "a dead letter raises an alert", page.text("#alerts"))
    code = daemon.stop()
    tap.check(code == 0, "an open page does not keep the daemon from stopping", code)
    tap.check(page.until(f"{BANNER} === 'Disconnected from the daemon'", 20), "the banner says that the daemon is gone",
              page.text("#banner"))
    note = page.text("#banner-note")
    tap.check("last update was at" in note, "and how old the figures are", note)
    scene.picture("disconnected")
    daemon.start()
    daemon.add("mail", "after")
    # That of claims ends by itself: its letter went back to work.
    tap.check(page.until(f"/^[12] critical alerts?$/.test({BANNER})", 30), "it recovers by itself", page.text("#banner"))
    tap.check("web: 1 job met a permanent error" in page.text("#banner-note"), "and still says what needs a person", page.text("#banner"))
    tap.check(page.until(figure_is("mail", "Pending", 9)), "and catches up", page.text("tr[data-name=mail]"))
    tap.check(page.until("document.querySelector('#link').innerText.startsWith('Live')", 30), "live again", page.text("#link"))


def falls_back_to_asking(scene):
    tap, page, daemon = scene.tap, scene.page, scene.daemon
    sockets = []
    page.open("about:blank")  # its own stream ends

    def take_one():
        one = socket.create_connection(("127.0.0.1", daemon.port), timeout=30)
        sockets.append(one)
        one.sendall(b"GET /v1/events/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        return one.recv(12) == b"HTTP/1.1 200"

    for _ in range(STREAMS_MAX):
        process.wait_until(take_one)
    page.open(scene.address())
    tap.check(page.until("document.querySelector('#link')?.innerText.startsWith('Every 5 s')"), "without a stream it says so",
              page.text("#link"))
    daemon.add("mail", "polled")
    tap.check(page.until(figure_is("mail", "Pending", 10), 20), "and asks every few seconds", page.text("tr[data-name=mail]"))
    for one in sockets:
        one.close()
    tap.check(page.until("document.querySelector('#link').innerText.startsWith('Live')", 40), "it is live as soon as it can be",
              page.text("#link"))


def the_last_choice_is_shown(scene):
    """Also where the file of the one before comes later."""
    tap, page = scene.tap, scene.page
    page.run("location.hash = '#/simulate'; new Promise(done => addEventListener('hashchange', done, {once: true}))"
             ".then(() => { location.hash = '#/'; })")
    page.run("import('/page/plan.js').then(() => new Promise(done => setTimeout(done)))")
    tap.check(page.until("!!document.querySelector('#destinations') && !document.querySelector('#simulate')"), "the last choice is shown",
              page.text("#view"))
    tap.check(page.run("document.querySelector('nav [aria-current]').getAttribute('href')") == "#/", "and marked as the one",
              page.run("document.querySelector('nav').innerHTML"))


def on_asking(script):
    """`script` with `path` and `options`: what is answered instead of the daemon's answer; undefined: that one."""
    return ("window.plain ??= fetch; window.fetch = (path, options) => {"
            f" const made = ((path, options) => {{ {script} }})(String(path), options); return made ?? plain(path, options); }}; true")


AS_BEFORE = "window.fetch = plain; true"


def no_screen_waits_for_another(scene):
    """What the one before has asked for is given up, be it answered or not."""
    tap, page = scene.tap, scene.page
    page.run("window.held = []; " + on_asking("if (path.startsWith('v1/tenants')) return new Promise(() => held.push(options.signal));"))
    page.run("location.hash = '#/tenants'")
    tap.check(page.until("held.length > 0"), "a screen asks, and has no answer", page.text("#view"))
    page.run("location.hash = '#/incidents'")
    tap.check(page.until("document.querySelector('#view section')?.getAttribute('aria-label') === 'Incidents'"),
              "another is opened and does not wait for it", page.text("body"))
    tap.check(page.run("held.length === 1 && held[0].aborted"), "what was asked is given up", page.run("held.length"))
    page.run(AS_BEFORE)


def each_part_stands_for_itself(scene):
    """One that is slow or fails hides no other, and nobody is told that all is well."""
    tap, page = scene.tap, scene.page
    well = f"!document.querySelector('#banner').hidden && {BANNER} === 'All well'"
    shown = {"destinations": "document.querySelectorAll('#destinations tbody tr').length === 3", "alerts": "!!document.querySelector('#alerts-list li')",
             "incidents": "!!document.querySelector('#incidents-list li')"}
    scene.insist("dest", "contingency", "claims", "--reason", "a drill")
    for part in shown:
        others = " && ".join(script for name, script in shown.items() if name != part)
        page.run("location.hash = '#/nodes'")
        page.until("document.querySelector('#view section')?.getAttribute('aria-label') === 'Nodes'")
        page.run(on_asking(f"if (path.startsWith('v1/{part}')) return new Promise(done => {{ window.answer = done; }});"))
        page.run("location.hash = '#/'")
        tap.check(page.until(f"{others} && !({shown[part]})"), f"the others do not wait for {part}", page.text("#view"))
        tap.check(not page.run(well), "nor is all well without", page.text("#banner"))
        page.run("answer(new Response('{\"detail\":\"the part is broken\"}', { status: 500 }))")
        tap.check(page.until("document.querySelector('#view .problem')?.innerText.includes('the part is broken')") and page.run(others),
                  f"{part} that failed say so in their place", page.text("#view"))
        page.run(AS_BEFORE)
        tap.check(page.until(f"{others} && {shown[part]} && !document.querySelector('#view .problem')"), "until they are there", page.text("#view"))
    scene.insist("dest", "contingency", "claims", "--leave")
    page.until(state_is("claims", "Normal"))


def figures_may_come_last(scene):
    """Those that all screens share, with who may do what: nothing is drawn before, whatever else has come and whatever is done meanwhile."""
    tap = scene.tap
    for hash_, asked, count, shown in (("#/", ("destinations", "alerts", "incidents"), 3, "#destinations"), ("#/tenants", ("tenants",), 1, "#view select"),
                                       ("#/simulate", (), 0, "#simulate")):
        page = Page(scene.browser)
        page.order("Page.addScriptToEvaluateOnNewDocument", {"source": "window.came = 0; " + on_asking(
            "if (path === 'v1/stats') return new Promise(done => { window.answer = () => plain(path, { ...options, signal: undefined }).then(done); });"
            f" if ({json.dumps(asked)}.some(name => path.startsWith('v1/' + name))) return plain(path, options).then(r => r.text()).then(t => {{ came++; return new Response(t); }});")})
        page.open(scene.address(hash_))
        tap.check(page.until(f"!!window.answer && came >= {count}"), f"{hash_} has all but the figures that all screens share", page.text("body"))
        # The page draws 150 ms after its window has another size, and what is set up later for the same time comes later.
        page.run("new Promise(done => { addEventListener('resize', () => setTimeout(done, 150), { once: true }); dispatchEvent(new Event('resize')); })")
        tap.check(not page.run(f"!!document.querySelector('{shown}')"), "it is not shown without them", page.text("#view"))
        page.run("answer()")
        tap.check(page.until(f"!!document.querySelector('{shown}')"), "but as soon as they are there", page.text("body"))
        tap.check(not page.complaints, "without a complaint", page.complaints)
        scene.browser.order("Target.closeTarget", {"targetId": page.target})


def a_screen_can_be_refused_whole(scene):
    """The first one, too, whose parts are refused one by one; it is asked for again when another view of it is chosen."""
    tap, page = scene.tap, scene.page
    page.run("location.hash = '#/nodes'")
    page.until("document.querySelector('#view section')?.getAttribute('aria-label') === 'Nodes'")
    page.run(on_asking("if (/^v1.(destinations|alerts|incidents)/.test(path)) return Promise.resolve(new Response('{\"detail\":\"not for you\"}', { status: 422 }));"))
    for hash_ in ("#/", "#/?sort=name"):
        page.run(f"location.hash = '{hash_}'; window.heard = false; addEventListener('hashchange', () => {{ heard = true; }}, {{ once: true }})")
        tap.check(page.until("heard && document.querySelector('#view .problem')?.innerText === 'not for you' && document.title.startsWith('Nothing here')"),
                  f"{hash_} says that it is refused", page.text("body"))
    page.run(AS_BEFORE)
    tap.check(page.until("!!document.querySelector('#destinations') && document.querySelector('#banner-text').innerText !== ''"),
              "and is shown when it is refused no more", page.text("body"))
    tap.check(page.run(f"!{BANNER}.startsWith('The page has a fault')"), "without a fault", page.text("#banner"))


def a_fault_is_not_the_end(scene):
    """An answer that the page cannot show is told, and the page goes on asking."""
    tap, page = scene.tap, scene.page
    told = f"(!document.querySelector('#banner').hidden && {BANNER}.startsWith('The page has a fault'))"
    for what, screen, odd in (("to draw", "alerts", "{}"), ("to read", "jobs", "null")):
        page.run("window.asked = 0; " + on_asking(f"if (path.startsWith('v1/{screen}?')) {{ asked++; return Promise.resolve(new Response('{odd}')); }}"))
        with scene.meant("TypeError"):
            page.run(f"location.hash = '#/{screen}'")
            tap.check(page.until(told), f"a fault {what} is told", page.text("body"))
            before = page.run("asked")
            tap.check(page.until(f"asked > {before}"), "and it is asked again", page.text("body"))
            page.run(AS_BEFORE)
            tap.check(page.until(f"!!document.querySelector('#view section.panel') && !{told}"), "until it is well", page.text("body"))


def stays_small(scene):
    """A long queue costs it nothing: it asks for counts, never for lists of jobs."""
    tap, page, daemon = scene.tap, scene.page, scene.daemon
    for first in range(0, 20000, 2000):
        jobs = [{"destination": "claims", "id": f"bulk-{first + i}", "tenant": "t", "payload": 1} for i in range(2000)]
        status, answer = daemon.call("POST", "/v1/jobs/batch", jobs)
        assert status == 200 and answer["accepted"] == 2000, answer
    tap.check(page.until("document.querySelector('tr[data-name=claims] td[data-label=Pending]').innerText.replace(/\\D/g, '') === '20001'"),
              "a long queue is a number", page.text("tr[data-name=claims]"))
    lists = [address for address in page.addresses if "?id=" not in address and address.split("?")[0].endswith(("/v1/jobs", "/v1/dead", "/v1/dead/export"))]
    tap.check(not lists, "no list of jobs is asked for", lists)
    rows = page.run("document.querySelectorAll('tr').length")
    tap.check(rows < 200, "the page stays small", rows)


PAYLOADS = [  # a job's, and what is shown of it
    (b'{"number":12345678901234567890,"total":19.90,"e":{},"l":[1,[]],"t":"a,\\"{ b"}',
     '{\n  "number": 12345678901234567890,\n  "total": 19.90,\n  "e": {},\n  "l": [\n    1,\n    []\n  ],\n  "t": "a,\\"{ b"\n}'),
    (b" MSH|1\rPID|2\r", None),
    (b"a\r\nb\r\n", None),
    (b"a\r\nb\nc", None),
    (b"\x00\xc8\xffA", "\x00\u00c8\u00ffA"),
]


def corrections_change_nothing_else(scene):
    """What a person leaves as it is goes back as it was, whatever it is made of."""
    tap, page, daemon = scene.tap, scene.page, scene.daemon
    daemon.call("POST", "/v1/jobs", {"destination": "mail", "id": "to come", "payload": "p"})
    page.run("location.hash = '#/job//to%20come'")
    page.until("document.querySelector('#job h2')?.innerText.startsWith('to come')")
    scene.say("Show the payload")
    tap.check(page.until("!!document.querySelector('pre.payload')") and "Correct" not in page.text("#view"),
              "what has not been tried is not tried again", page.text("#view"))
    for i, (payload, shown) in enumerate(PAYLOADS):
        daemon.call("POST", "/v1/jobs", {"destination": "web", "id": f"bad-{i}", "payload_base64": base64.b64encode(payload).decode()})
        process.wait_until(lambda: daemon.call("GET", f"/v1/jobs/bad-{i}")[1]["state"] == "dead")
        page.run(f"location.hash = '#/job//bad-{i}'")
        tap.check(page.until(f"document.querySelector('#job h2')?.innerText.startsWith('bad-{i}')"), f"bad-{i} is shown", page.text("#view"))
        scene.say("Show the payload")
        page.until("!!document.querySelector('pre.payload')")
        text = page.run("document.querySelector('pre.payload').textContent")
        tap.check(text == (payload.decode() if shown is None else shown), "with its payload", repr(text))
        page.run("window.bodies = []; window.plain = fetch; window.fetch = (path, options) => {"
                 " if (options?.method === 'POST') bodies.push(options.body); return plain(path, options); }")
        scene.say("Correct and retry")
        scene.confirm("gets this payload")
        page.until("bodies.length > 0")
        sent = json.loads(page.run("window.fetch = plain, bodies[0]"))
        data = base64.b64decode(sent["payload_base64"]) if "payload_base64" in sent else sent["payload"].encode()
        if payload.startswith(b"{"):
            data = data.replace(b"\n", b"").replace(b"  ", b"").replace(b": ", b":")
        tap.check(data == payload, f"{payload} is the same when nothing was changed", data)
        tap.check(page.until("!document.querySelector('#confirm').open"), "and is taken", page.text("#confirm"))


def odd_addresses_open(scene):
    """An address that was cut off on its way, or that nobody made, leaves a page that works."""
    tap = scene.tap
    for hash_, shown in (("#/job/t/50%", "50%"), ("#/constructor", "claims"), ("#/__proto__", "claims"), ("#/jobs?open=%25", "")):
        page = Page(scene.browser)
        page.open(scene.address(hash_))
        tap.check(page.until("document.querySelector('#link')?.innerText.startsWith('Live')") and
                  page.until(f"document.querySelector('#view').innerText.includes({json.dumps(shown)})"), f"{hash_} opens", page.text("body"))
        odd = [one for one in page.complaints if "404" not in one]
        tap.check(not odd, "without a complaint", odd)
        scene.browser.order("Target.closeTarget", {"targetId": page.target})


def jobs_of_dots_open(scene):
    """A browser takes . and .. out of an address, also where they are written otherwise."""
    tap, page, daemon = scene.tap, scene.page, scene.daemon
    for name in (".", ".."):
        daemon.call("POST", "/v1/jobs", {"destination": "mail", "id": name, "tenant": "t", "payload": f"of {name}"})
        daemon.call("POST", "/v1/jobs", {"destination": "mail", "id": name, "payload": "another's"})
        scene.go(f"#/job/t/{name}", f"document.querySelector('#job h2')?.innerText.startsWith('{name} ')")
        tap.check(page.until("!!document.querySelector('#view .timeline li')"), "with its story", page.text("#view"))
        text = page.text("#job")
        tap.check(f"insist why {name}" in text and not page.run("!!document.querySelector('#job .acts button')"),
                  "and what tells the rest of it, with no button that could not work", text)
        scene.say("Show the payload")
        tap.check(page.until(f"document.querySelector('pre.payload')?.textContent === 'of {name}'"), "and its payload", page.text("#view"))
    done = scene.insist("why", "..", "--tenant", "t")
    tap.check(done.returncode == 0 and "mail" in done.stdout, "the command can ask for it", done.stdout + done.stderr)
    scene.go("#/jobs?id=..", "document.querySelectorAll('#view tbody tr').length === 2")
    page.run("document.querySelector('#view tbody input').click()")
    scene.say("Cancel (1)")
    scene.confirm("")
    tap.check(page.until("document.querySelector('#confirm-problem').innerText.includes('insist why ..')"), "an order that cannot be sent says so",
              page.text("#confirm"))
    page.click("#confirm-no")


def one_refusal_is_not_all(scene):
    """What a token may not see is told where it would be; the token stays, and so does all else."""
    tap, page = scene.tap, scene.page
    for hash_ in ("#/jobs?tenant=other", "#/job/other/m0"):
        page.run(f"location.hash = '{hash_}'")
        tap.check(page.until("document.querySelector('#view').innerText.includes('may act for tenant \"t\" only')"), f"{hash_} is refused in its place",
                  page.text("body"))
        tap.check(page.run("document.querySelector('#login').hidden && !document.querySelector('#view').hidden"), "no other token is asked for",
                  page.text("body"))
    page.run("location.hash = '#/job/t/m0'")
    tap.check(page.until("!!document.querySelector('#view .timeline li')"), "what it may see is shown with all that belongs to it", page.text("#view"))
    page.run("location.hash = '#/'")
    tap.check(page.until("!!document.querySelector('#destinations')"), "and so is the rest", page.text("#view"))


def tokens_are_asked_for(scene):
    tap = scene.tap
    names = {"reader-0123456789abcdef": ["read"], "operator-0123456789abcdef": ["read", "operate"], "tenant-0123456789abcdef": ["read"]}
    path = os.path.join(scene.folder, "tokens.yaml")
    with open(path, "w") as out:
        out.write("tokens:\n")
        for secret, scopes in names.items():
            digest = hashlib.sha256(secret.encode()).hexdigest()
            bound = ", tenant: t" if secret.startswith("tenant") else ""
            out.write(f"  - {{ name: {secret[:6]}, sha256: {digest}, scopes: [{', '.join(scopes)}]{bound} }}\n")
    scene.daemon.stop()
    scene.daemon.write_config(DESTINATIONS % scene.receiver.port, f"auth: {{ tokens_file: {path} }}\n")
    scene.daemon.start(wait=True)
    page = scene.page = Page(scene.browser)
    page.open(scene.address())
    tap.check(page.until("document.querySelector('#login') && !document.querySelector('#login').hidden"), "it asks for a token",
              page.text("body"))
    tap.check(page.run("document.querySelector('#view').hidden"), "and shows nothing before")
    tap.check(page.until("document.activeElement.id === 'token'"), "ready to be typed")
    scene.picture("token")
    page.type("\u201creader-0123456789abcdef\u201d")
    page.key("Enter", 13, "\r")
    tap.check(page.until("document.querySelector('#login-text').innerText.includes('does not know this token')", 10) and
              not page.run("document.querySelector('#login').hidden"), "one that cannot be sent is told", page.text("body"))
    page.run("window.plain = fetch; window.fetch = (path, options) => !String(path).includes('stream') ? plain(path, options)"
             " : new Promise(done => { window.late = () => plain(path, { ...options, signal: undefined }).then(done); })")
    page.type("wrong")
    page.key("Enter", 13, "\r")
    tap.check(page.until("document.querySelector('#login-text').innerText.includes('does not know this token')"),
              "a wrong one is told", page.text("#login"))
    page.run("document.querySelector('#token').focus(); window.fetch = plain")
    page.type("reader-0123456789abcdef")
    page.key("Enter", 13, "\r")
    page.run("window.late?.()")  # what the wrong one asked for is refused only now
    tap.check(page.until("!document.querySelector('#view').hidden && !!document.querySelector('#destinations')"), "a good one opens the page", page.text("body"))
    tap.check(page.until("document.querySelector('#link').innerText.startsWith('Live')"), "and the stream", page.text("#link"))
    tap.check(page.run("[...document.querySelectorAll('.acts button')].every(b => !b.checkVisibility())"),
              "who may only read is offered no action")
    page.run("import('/page/acts.js').then(m => { m.actOn({ name: 'mail' }, 'pause'); })")
    page.click("#confirm-yes")
    tap.check(page.until("document.querySelector('#confirm-problem').innerText.includes('scope')"),
              "a refusal is shown in words", page.text("#confirm"))
    page.click("#confirm-no")
    kept = page.run("JSON.stringify([Object.values(sessionStorage), Object.values(localStorage), document.cookie])")
    tap.check(json.loads(kept) == [["reader-0123456789abcdef"], [], ""], "the token is in the tab's own storage only", kept)
    page.click("#forget")
    tap.check(page.until("!document.querySelector('#login').hidden"), "it can be forgotten")
    page.run("document.querySelector('#token').focus()")
    page.type("operator-0123456789abcdef")
    page.key("Enter", 13, "\r")
    tap.check(page.until("document.querySelector('tr[data-name=mail] .acts button')?.checkVisibility()"),
              "who may act is offered it", page.text("#destinations"))
    page.run(on_asking("if (path === 'v1/stats') return new Promise(() => {});"))
    page.click("#forget")
    tap.check(page.run("!document.querySelector('#destinations, nav [data-count]') && document.title === 'insist' && document.querySelector('#about').innerText === ''"),
              "forgotten, nothing stays of what it could see", page.text("body"))
    tap.check(page.until("!document.querySelector('#login').hidden"), "and another is asked for, whichever question is refused first", page.text("body"))
    page.run(AS_BEFORE)
    page.run("document.querySelector('#token').focus()")
    page.type("tenant-0123456789abcdef")
    page.key("Enter", 13, "\r")
    tap.check(page.until("!!document.querySelector('#destinations')"), "a tenant's opens the page", page.text("body"))
    one_refusal_is_not_all(scene)
    told = [one for one in page.addresses if "0123456789abcdef" in one]
    tap.check(not told and "0123456789abcdef" not in page.run("location.href"), "no address has the token", told)
    odd = [one for one in page.complaints if "401" not in one and "403" not in one]
    tap.check(not odd, "nothing but the refusals is complained of", odd)


def main():
    tap = process.Tap()
    scene = Scene(tap, DESTINATIONS, lambda key: 400 if "bad" in key else 200, os.environ.get("INSIST_PICTURES"))
    try:
        if not tap.check(scene.daemon.start(), "the daemon starts", scene.daemon.said()):
            return tap.end()
        scene.open()
        scene.page.until("document.readyState === 'complete'")
        is_empty_at_first(scene)
        scene.page.run("window.sameLoad = true")
        counts_change(scene)
        indicator_changes(scene)
        every_state_has_word_and_shape(scene)
        markup_stays_text(scene)
        actions_ask_first(scene)
        everybody_can_use_it(scene)
        rests_when_nobody_looks(scene)
        with scene.meant("net::ERR_"):
            tells_when_the_daemon_is_gone(scene)
        an_alert_ends_by_hand(scene)
        tap.check(scene.page.run("window.sameLoad === true"), "all of this without loading the page again")
        the_last_choice_is_shown(scene)
        stays_small(scene)
        with scene.meant("/v1/events/stream"):
            falls_back_to_asking(scene)
        no_screen_waits_for_another(scene)
        a_fault_is_not_the_end(scene)
        figures_may_come_last(scene)
        a_screen_can_be_refused_whole(scene)
        each_part_stands_for_itself(scene)
        scene.nothing_odd()
        corrections_change_nothing_else(scene)
        jobs_of_dots_open(scene)
        odd_addresses_open(scene)
        tokens_are_asked_for(scene)
    finally:
        scene.end()
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
