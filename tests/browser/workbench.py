#!/usr/bin/env python3
"""A person's paths through every screen of the page, against a real daemon.

Pictures of each screen at three widths, light and dark, stay in INSIST_BUILD/pictures.
"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from scene import Scene, includes, process  # noqa: E402
from browser import Page  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "docs"))
import ten_commands  # noqa: E402
WIDTHS = (320, 1024, 1600)  # and nothing sticks out at WIDEST
WIDEST = 2560
DESTINATIONS = """\
  claims: { transport: pull, description: "Claims of the clinic", errors: { permanent: [BROKEN] }, contingency: { ramp: [100], stable: 1s } }
  mail: { transport: pull }
  web: { transport: http, url: "http://127.0.0.1:%d/in", allow_private: true, concurrency: 4, errors: { permanent: ["400", "422"] } }
"""


def fill(scene):
    daemon = scene.daemon
    for i in range(20):
        daemon.add("web", f"good-{i}")
    for i in range(30):
        daemon.call("POST", "/v1/jobs", {"destination": "web", "id": f"bad-{'a' if i < 18 else 'b'}-{i}", "tenant": f"t{i % 3}",
                                         "payload": {"patient": "Ana", "amount": i}})
    for i in range(5):
        daemon.add("mail", f"m-{i}")
    process.wait_until(lambda: daemon.counts("web")["dead"] == 30)


def now_is_worst_first(scene):
    tap, page = scene.tap, scene.page
    names = "[...document.querySelectorAll('#destinations tbody tr')].map(r => r.dataset.name)"
    scene.go("#/", "document.querySelectorAll('#destinations tbody tr').length === 3")
    order = page.run(names)
    scene.daemon.call("POST", "/v1/destinations/mail/contingency", {"enter": True, "reason": "storm"})
    tap.check(page.until(includes("tr[data-name=mail]", "Contingency") + " && " + includes("#banner", "1 destination in contingency")),
              "an outage is seen live", page.text("#view"))
    tap.check(page.run(names) == order, "rows do not move by themselves", page.run(names))
    tap.check(page.until("!document.querySelector('.again').hidden"), "but it is said that the order is old", page.text("#view"))
    page.click(".again button")
    tap.check(page.until(f"{names}[0] === 'mail'"), "asked for, the worst comes first", page.run(names))
    page.run("(() => { const f = document.querySelector('#destinations-filter'); f.focus(); f.value = 'clinic'; f.dispatchEvent(new Event('input')); })()")
    tap.check(page.until(f"{names}.length === 0 || {names}.join() === 'claims'"), "it filters", page.run(names))
    tap.check(page.until("location.hash.includes('q=clinic')"), "the filter is in the address", page.run("location.hash"))
    tap.check(page.run("document.activeElement.id") == "destinations-filter", "and typing is not disturbed")


def one_destination(scene):
    tap, page = scene.tap, scene.page
    scene.go("#/destination/web", includes("#view section[data-name=web]", "web"))
    text = page.text("#view")
    tap.check(f":{scene.receiver.port}/in" in text and "tried again up to 5 times" in text, "address and rules stand in words", text)
    tap.check(page.until("document.querySelectorAll('svg.chart').length >= 1"), "there are charts", text)
    page.run("document.querySelector('figure summary').click()")
    tap.check(page.until("document.querySelectorAll('figure table tbody tr').length > 10"), "behind each is a table")
    tap.check(page.run("new Set([...document.querySelectorAll('svg.chart')].map(c => c.viewBox.baseVal.width)).size === 1"), "all on one axis")
    box = page.run("(() => { const c = document.querySelector('svg.chart'); c.scrollIntoView({ block: 'center' }); const r = c.getBoundingClientRect(); return [r.x + r.width * 0.9, r.y + 40]; })()")
    page.order("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": box[0], "y": box[1]})
    tap.check(page.until("[...document.querySelectorAll('figure output')].some(o => o.textContent !== '')"), "a crosshair tells the figures")
    bands = "[...document.querySelectorAll('svg.chart .band title')].map(b => b.textContent)"
    scene.go("#/destination/mail", f"{bands}.some(b => b.includes('Contingency') || b.includes('storm'))")
    tap.check(page.run("document.querySelectorAll('svg.chart .pin title').length") >= 1, "an order is a pin", page.run(bands))
    scene.go("#/destination/web?last=day", includes(".ranges [aria-current]", "Last day"))
    scene.say("Pause")
    scene.confirm("Nothing more is sent", {"reason": "looking"})
    tap.check(page.until(includes("#view", "looking")), "paused, with the reason", page.text("#view"))
    scene.say("Resume")
    scene.confirm("sent to again at once")
    tap.check(page.until("!" + includes("#view .state", "Paused")), "and resumed", page.text("#view"))


MINUTE = 60000
STORM = {"id": "1", "entered_at": "1970-01-01T00:01:10.000Z", "summary": "storm"}
ENDED = {**STORM, "restored_at": "1970-01-01T00:01:30.000Z"}
BANDS = [  # a mode for each minute, incidents, and what is shown by 150 s: from when to when, and what
    (None, [STORM], [[70000, 150000, "storm"]]),
    ([None, None, None], [STORM], [[70000, 150000, "storm"]]),
    (["normal", None, None], [STORM], [[70000, 150000, "storm"]]),
    (["normal", "contingency", None], [STORM], [[60000, 120000, "Contingency"], [120000, 150000, "storm"]]),
    (["normal", "contingency"], [STORM], [[60000, 120000, "Contingency"], [120000, 150000, "storm"]]),
    (["normal", "contingency", "contingency"], [STORM], [[60000, 180000, "Contingency"]]),
    ([None, "normal", "paused"], [STORM], [[120000, 180000, "Paused"]]),
    (["normal", None, "normal"], [ENDED], [[70000, 90000, "storm"]]),
    (["normal", "normal", None], [ENDED], []),
    (["recovering", None, "recovering"], [], [[0, 60000, "Recovering"], [120000, 180000, "Recovering"]]),
]


def modes_stand_behind_charts(scene):
    """Those that were noted; for a time that was not, as the minute that runs, what incidents tell."""
    tap, page = scene.tap, scene.page
    for modes, incidents, wanted in BANDS:
        bands = page.run(f"import('/page/chart.js').then(m => m.bandsOf({json.dumps(modes)}, 0, {MINUTE}, {json.dumps(incidents)}, 150000).map(b => [b.from, b.to, b.name]))")
        tap.check(bands == wanted, f"{modes} with {len(incidents)} incidents are {len(wanted)} bands", bands)


def what_a_reader_keeps(scene):
    """Pins and views: in this browser alone, and still there when the page is loaded again."""
    tap, page = scene.tap, scene.page
    names = "[...document.querySelectorAll('#destinations tbody tr')].map(r => r.dataset.name)"
    scene.go("#/?sort=name", f"{names}.join() === 'claims,mail,web'")
    scene.say("Pin web: it comes first")
    tap.check(page.until(f"{names}.join() === 'web,claims,mail'"), "a pinned destination comes first", page.run(names))
    scene.go("#/jobs?state=dead&tenant=t2", "document.querySelectorAll('#view tbody tr').length === 10")
    scene.say("Keep this view…")
    scene.confirm("this browser alone", {"name": "Bad ones of t2"})
    tap.check(page.until(includes(".views [aria-current]", "Bad ones of t2")), "a view has a name", page.text("#view"))
    page.open("about:blank")
    page.open(scene.address("#/"))
    tap.check(page.until(f"{names}.join() === 'web,mail,claims' || {names}.join() === 'web,claims,mail'"), "kept over a reload", page.text("#view"))
    scene.go("#/jobs", includes(".views", "Bad ones of t2"))
    scene.say("Bad ones of t2")
    tap.check(page.until("location.hash === '#/jobs?state=dead&tenant=t2' && document.querySelectorAll('#view tbody tr').length === 10"), "a view is opened by its name",
              page.run("location.hash"))
    scene.say("Forget “Bad ones of t2”")
    tap.check(page.until("!" + includes(".views", "Bad ones of t2")), "and forgotten", page.text("#view"))
    scene.go("#/", f"{names}.length === 3")
    scene.say("Pin web: it comes first")
    tap.check(page.until("Object.keys(localStorage).length === 0"), "nothing is left of it", page.run("JSON.stringify(localStorage)"))


def jobs_by_filter(scene):
    tap, page = scene.tap, scene.page
    rows = "document.querySelectorAll('#view tbody tr').length"
    scene.go("#/jobs?state=dead&tenant=t1", f"{rows} === 10")
    page.run("(() => { const f = document.querySelector('#view form input'); f.value = 'state:completed'; f.form.requestSubmit(); })()")
    tap.check(page.until(f"{rows} === 20 && location.hash === '#/jobs?state=completed'"), "the filter is typed in words", page.text("#view"))
    page.run("history.back()")
    tap.check(page.until(f"{rows} === 10"), "back works", page.text("#view"))
    scene.go("#/jobs?destination=claims", includes("#view", "None match."))
    scene.daemon.add("claims", "c-1")
    tap.check(page.until(f"{rows} === 1"), "what comes into an empty list is shown", page.text("#view"))
    scene.daemon.add("claims", "c-2")
    tap.check(page.until(includes("#view", "1 new: show it")) and page.run(rows) == 1, "what comes then is told, and no row moves", page.text("#view"))
    scene.say("1 new: show it")
    tap.check(page.until(f"{rows} === 2"), "and shown when asked for", page.text("#view"))
    page.size(WIDTHS[2], 900)
    scene.say("c-1")
    tap.check(page.until(includes(".opened #job", "c-1")) and page.run(f"{rows} >= 2 && location.hash.includes('open=')"), "a row opens beside the list", page.text("#view"))
    scene.picture("jobs-beside")
    page.size(WIDTHS[1], 900)
    other = Page(scene.browser)
    other.open(scene.address("#/jobs?state=dead&tenant=t1"))
    tap.check(other.until(f"{rows} === 10"), "a link opened in a new tab shows the same", other.text("body"))
    tap.check(not other.complaints, "without a complaint", other.complaints)
    scene.browser.order("Target.closeTarget", {"targetId": other.target})


def one_job(scene):
    tap, page = scene.tap, scene.page
    scene.go("#/job/t1/bad-a-1", includes("#job .state", "dead"))
    tap.check(page.until("document.querySelectorAll('.timeline li').length >= 3"), "its story is told", page.text("#view"))
    scene.say("Show the payload")
    tap.check(page.until(includes("pre.payload", "Ana")), "its payload is shown when asked for", page.text("#view"))
    scene.say("Correct and retry")
    scene.confirm("gets this payload", {"payload": '{"patient": "Bia"}'})
    tap.check(page.until("document.querySelectorAll('#view .wide tbody tr').length === 2"), "corrected, it is tried again", page.text("#view"))
    tap.check(page.until(includes("#job .state", "dead")), "and refused again", page.text("#job"))
    scene.go("#/job/t/m-1", includes("#job .state", "pending"))
    tap.check(page.until(includes("#job .why", "contingency")), "why it waits stands in words", page.text("#job"))
    scene.say("Cancel")
    scene.confirm("never sent")
    tap.check(page.until(includes("#job .state", "cancelled")), "and it can be cancelled", page.text("#job"))


def dead_by_cause(scene):
    tap, page = scene.tap, scene.page
    scene.go("#/dead", "document.querySelectorAll('#view .wide')[0]?.querySelectorAll('tbody tr').length === 2")
    tap.check(page.until("document.querySelector('#dead-count').innerText === '30'"), "counted", page.text("#view"))
    row = page.text("#view .wide tbody tr")
    tap.check("http:400" in row and row.count("ago") + row.count("now") >= 2, "a cause has its code, its first and its last", row)
    tap.check(page.run("[...document.querySelectorAll('#view .wide tbody tr')].map(r => [...r.cells].find(c => c.dataset.label === 'Tenants').innerText)") == ["3", "3"],
              "and how many tenants have it", row)
    tap.check("18 died" in page.run("document.querySelector('#view .wide tbody .spark').getAttribute('aria-label')"), "and its trend", row)
    scene.say("http 400")
    tap.check(page.until("document.querySelectorAll('#view .wide')[0]?.querySelectorAll('tbody tr').length === 18"), "a cause opens to its letters", page.text("#view"))


def run_of(scene):
    return scene.daemon.call("GET", "/v1/dead/redrives/" + scene.page.run("location.hash.split('/').pop()"))[1]


def dead_letters_are_sent_back(scene):
    """A canary that aborts, a redrive that is taken back, one that is delivered, and a purge."""
    tap, page, daemon = scene.tap, scene.page, scene.daemon
    scene.go("#/dead?code=http%3A400", "document.querySelector('#dead-count')?.innerText === '18'")
    scene.say("Redrive…")
    scene.confirm("Redrive 18 dead letters?", {"canary": "3", "abort_at": "50"})
    tap.check(page.until("location.hash.startsWith('#/redrive/')") and page.until(includes("#redrive .state", "Aborted")),
              "a canary that dies again aborts the redrive", page.text("#view"))
    tap.check(page.until(includes("#redrive", "15 were not touched")), "and says how many were not touched", page.text("#redrive"))
    scene.picture("redrive-aborted")
    daemon.call("POST", "/v1/destinations/web/pause", {})
    scene.go("#/dead", "document.querySelectorAll('#view .wide')[0]?.querySelectorAll('tbody tr').length === 2")
    scene.say("http 422")
    tap.check(page.until("document.querySelector('#dead-count')?.innerText === '12'"), "the other cause", page.text("#view"))
    scene.say("Redrive…")
    scene.confirm("Redrive 12 dead letters?", {"canary": ""})
    tap.check(page.until(includes("#redrive .state", "Done")) and daemon.counts("web")["dead"] == 18, "all of it are sent back", page.text("#view"))
    scene.say("Undo")
    scene.confirm("dead letters again, as they were")
    tap.check(page.until(includes("#redrive .state", "Undone")) and process.wait_until(lambda: daemon.counts("web")["dead"] == 30) is not False,
              "and taken back", page.text("#view"))
    scene.heal()
    daemon.call("POST", "/v1/destinations/web/resume", {})
    scene.go("#/dead?code=http%3A422", "document.querySelector('#dead-count')?.innerText === '12'")
    scene.say("Redrive…")
    scene.confirm("http:422", {"canary": "2", "rate": "200/s"})
    tap.check(page.until(includes("#redrive .state", "Done") + " && " + includes("#redrive", "12 of 12")), "repaired, all are delivered", page.text("#view"))
    process.wait_until(lambda: run_of(scene)["delivered"] == 12)
    scene.picture("redrive-done")
    scene.go("#/dead", "document.querySelector('#dead-count')?.innerText === '18'")
    scene.say("Purge…")
    scene.confirm("Purge 18 dead letters?", {"typed": "17"})
    tap.check(page.until(includes("#confirm-problem", "Type 18")), "a purge wants its number", page.text("#confirm"))
    page.run("document.querySelector('#confirm [name=typed]').value = '18'")
    page.click("#confirm-yes")
    tap.check(page.until(includes("#confirm", "18 dead letters purged")), "then it is done", page.text("#confirm"))
    page.click("#confirm-no")
    tap.check(page.until(includes("#view", "No dead letters.")), "none is left", page.text("#view"))


def watching(scene):
    tap, page, daemon = scene.tap, scene.page, scene.daemon
    scene.go("#/alerts", includes("#alerts-list", "permanent error"))
    scene.go("#/incidents", includes("#view", "mail"))
    incident = daemon.call("GET", "/v1/incidents")[1]["incidents"][0]["id"]
    scene.go(f"#/incident/{incident}", includes("pre.report", "mail"))
    page.run("document.querySelector('#lessons').value = 'Ask the operator earlier.'")
    scene.say("Keep")
    tap.check(page.until(includes("p.hint[role=status]", "loopback")), "lessons are written down, and by whom", page.text("#view"))
    tap.check(daemon.call("GET", f"/v1/incidents/{incident}")[1].get("lessons_learned") == "Ask the operator earlier.", "as they were given")
    scene.go("#/tenants?destination=web", "document.querySelectorAll('#view tbody tr').length >= 3")
    tap.check(page.run("document.querySelectorAll('#view meter').length >= 6"), "shares against weights are drawn")
    scene.go("#/nodes", includes("#view", "Nodes"))
    scene.go("#/reports", includes("#view", "Daily"))


def three_nodes(scene):
    """Those that docs/cluster.md leads to: the page of each tells of all, and of whose each destination is."""
    tap, machines = scene.tap, scene.machines
    if not machines:
        return
    machines.join()
    if not all([tap.check(good, name, detail) for good, name, detail in machines.results]):
        return

    def owned():
        answer = machines.ask("c", "/v1/nodes")
        return {node["name"]: sorted(node["destinations"]) for node in answer[1]["nodes"]} if answer[0] == 200 else {}
    parts = [1, 2, 2]  # and the steward's office
    if not tap.check(process.wait_until(lambda: sorted(map(len, owned().values())) == parts, every=0.1), "each has its part of the destinations", owned()):
        return
    owns = "Object.fromEntries([...document.querySelectorAll('#view tbody tr')].map(r => [r.cells[0].innerText, [...r.querySelectorAll('a')].map(a => a.innerText).sort()]))"
    page = Page(scene.browser)
    page.open(f"http://{ten_commands.HOSTS['b']}:{machines.port}/#/nodes")
    tap.check(page.until(f"Object.keys({owns}).sort().join() === 'a,b,c'"), "the page shows three nodes", page.text("body"))
    tap.check(page.until(f"JSON.stringify(Object.entries({owns}).sort()) === {json.dumps(json.dumps([[name, owned()[name]] for name in 'abc'], separators=(',', ':')))}"),
              "and what each of them owns", f"{page.run(owns)} {owned()}")
    text = page.text("#view")
    tap.check(all(f"http://{host}:{machines.port}" in text for host in ten_commands.HOSTS.values()), "and where it is", text)
    for name, (destination, *_) in owned().items():
        page.run(f"location.hash = '#/destination/{destination}'")
        tap.check(page.until(f"[...document.querySelectorAll('#view dt')].some(t => t.innerText === 'Owner' && t.nextElementSibling.innerText === {json.dumps(name)})"),
                  f"a destination tells whose it is: {destination}", page.text("#view"))
    tap.check(not page.complaints, "the console of that page has no complaint", page.complaints)
    scene.browser.order("Target.closeTarget", {"targetId": page.target})


def simulating(scene):
    tap, page = scene.tap, scene.page
    scene.go("#/simulate", "!!document.querySelector('#simulate')")
    page.run("(() => { const set = (n, v) => { document.querySelector(`#simulate [name=${n}]`).value = v; }; set('policy', 'web'); set('for', '1h'); set('load', '20/m'); set('outage', '10m..20m'); })()")
    scene.say("Simulate")
    tap.check(page.until("document.querySelectorAll('svg.chart').length === 4 && document.querySelectorAll('#view .facts dd').length > 5"),
              "the simulator is a form, and its curves stand beside the real ones", page.text("#view"))
    scales = page.run("[...document.querySelectorAll('svg.chart')].map(c => [...c.querySelectorAll('.tick[text-anchor=end]')].map(n => n.textContent).join() + c.closest('figure').querySelector('strong').innerText.split(',').pop())")
    tap.check(scales[0] == scales[1] and scales[2] == scales[3], "on the same scale", scales)
    scene.picture("simulated")
    with scene.meant("422"):
        page.run("document.querySelector('#simulate [name=load]').value = 'much'")
        scene.say("Simulate")
        tap.check(page.until(includes(".problem", "it is a rate as 100/m")), "and says what is wrong", page.text("#view"))


def three_languages(scene):
    tap, page = scene.tap, scene.page
    files = {}
    for name in ("en", "pt-BR", "es-PY"):
        with open(os.path.join(ROOT, "src/api/page", name + ".json"), encoding="utf-8") as file:
            files[name] = json.load(file)
    tap.check(all(list(words) == list(files["en"]) for words in files.values()), "all languages have the same words")
    holes = [f"{name}: {key}" for name, words in files.items() for key, text in words.items()
             if sorted(set(p for p in split_holes(text))) != sorted(set(split_holes(files["en"][key])))]
    tap.check(not holes, "and the same places to fill in", holes)
    for name, word in (("pt-BR", "Destinos"), ("es-PY", "Cartas muertas"), ("en", "Dead letters")):
        page.run(f"(() => {{ const s = document.querySelector('#language'); s.value = '{name}'; s.dispatchEvent(new Event('change')); }})()")
        scene.go("#/", f"document.documentElement.lang === '{name}' && document.body.innerText.includes('{word}')")
        left = untranslated(page)
        tap.check(not left, f"no word is missing: {name}", left)
        if name == "en":
            continue
        for screen, hash_ in SCREENS.items():
            scene.go(hash_, SHOWN_WHOLE)
            left = untranslated(page)
            tap.check(not left, f"no word is missing: {name}, {screen}", left)
        scene.go("#/dead", "!!document.querySelector('#view .wide tbody th')")
        room = "document.querySelector('#view .wide tbody th').clientWidth >= 200"
        tap.check(page.until(room), f"a cause has room beside its buttons: {name}", page.text("#view"))


def untranslated(page):
    """Keys without a word, and places in a sentence that nothing was filled into."""
    return page.run("[...document.querySelectorAll('#view *, header *, footer *')].flatMap(e => [...e.childNodes]).filter(n => n.nodeType === 3 && /^[a-z_]+\\.[a-z_]+$|\\{\\w+\\}/.test(n.data.trim())).map(n => n.data)")


def split_holes(text):
    texts = text.values() if isinstance(text, dict) else [text]
    return [part.split("}")[0] for one in texts for part in one.split("{")[1:]]


SHOWN_WHOLE = "!!document.querySelector('#view section') && !document.querySelector('#view > p.hint')"
SCREENS = {"now": "#/", "destination": "#/destination/web", "jobs": "#/jobs", "job": "#/job/t1/bad-a-1", "dead": "#/dead", "alerts": "#/alerts",
           "incidents": "#/incidents", "tenants": "#/tenants?destination=web", "nodes": "#/nodes", "simulate": "#/simulate", "reports": "#/reports"}


def axe_source():
    """From npm, installed once beside the other clients' needs."""
    script = f'root={ROOT}; work=$(mktemp -d); . "{ROOT}/tests/clients/npm.sh"; rm -r "$work"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=240)
    path = os.path.join(ROOT, "tests/clients/node_modules/axe-core/axe.min.js")
    if not os.path.exists(path):
        process.note(done.stdout + done.stderr)
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def everybody_can_use_every_screen(scene):
    tap, page = scene.tap, scene.page
    source = axe_source()
    tap.check(source is not None, "axe is there")
    page.run((source or "") + "; true")
    for number, (name, hash_) in enumerate(SCREENS.items()):
        page.size(WIDTHS[2], 900)
        page.scheme("dark" if number % 2 else "light")
        scene.go(hash_, "!!document.querySelector('#view section') && !document.body.innerText.includes('Asking the daemon')")
        found = page.run("axe.run(document, { resultTypes: ['violations'] }).then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact))"
                         ".map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => n.html).join(' ')}`))")
        tap.check(not found, f"axe finds nothing serious: {name}", "\n".join(found or []))
        for width in (*WIDTHS, WIDEST):
            page.size(width, 900, phone=width < 500)
            scene.browser.listen(0.2)
            wide = page.run("document.documentElement.scrollWidth")
            tap.check(wide <= width, f"nothing sticks out: {name}, {width} wide", wide)
            if width == WIDTHS[0]:
                cut = page.run("[...document.querySelectorAll('#view .wide td')].filter(c => c.checkVisibility() && c.scrollWidth > c.clientWidth + 1)"
                               ".map(c => `${c.dataset.label}: ${c.innerText}`).slice(0, 5)")
                tap.check(not cut, f"no value sticks out of its place on a phone: {name}", cut)
            if width != WIDEST:
                page.picture(os.path.join(scene.pictures, f"{name}-{width}.png"))
    page.size(WIDTHS[1], 900)
    page.scheme("light")


def keys_and_colours(scene):
    tap, page = scene.tap, scene.page
    page.run("document.activeElement.blur()")
    page.key("g", 71, "g")
    page.key("d", 68, "d")
    tap.check(page.until("location.hash === '#/dead'"), "g d goes to the dead letters", page.run("location.hash"))
    page.key("?", 191, "?")
    tap.check(page.until(includes("#confirm", "g d") + "||" + includes("#confirm", "g")), "? lists the keys", page.text("#confirm"))
    page.key("Escape", 27)
    page.run("(() => { const s = document.querySelector('#theme'); s.value = 'dark'; s.dispatchEvent(new Event('change')); })()")
    tap.check(page.run("getComputedStyle(document.body).backgroundColor") == "rgb(15, 20, 27)", "dark can be chosen")
    page.run("(() => { const s = document.querySelector('#theme'); s.value = ''; s.dispatchEvent(new Event('change')); })()")


def main():
    tap = process.Tap()
    receiver = {"healed": False}
    scene = Scene(tap, DESTINATIONS, lambda key: 200 if receiver["healed"] or "bad" not in key else 400 if "bad-a" in key else 422,
                  os.path.join(os.environ.get("INSIST_BUILD", os.path.join(ROOT, "build")), "pictures"))
    scene.heal = lambda: receiver.update(healed=True)
    programs = process.postgres_programs(tap, "three nodes in the page")
    scene.machines = ten_commands.Machines(programs) if programs else None
    try:
        if scene.machines:
            scene.machines.start()  # they take their time, beside all the rest
        if not tap.check(scene.daemon.start(), "the daemon starts", scene.daemon.said()):
            return tap.end()
        fill(scene)
        scene.open(WIDTHS[1])
        scene.page.until("document.querySelectorAll('#destinations tbody tr').length === 3")
        for step in (now_is_worst_first, one_destination, modes_stand_behind_charts, what_a_reader_keeps, jobs_by_filter, one_job, dead_by_cause, watching, simulating, three_languages,
                     keys_and_colours, everybody_can_use_every_screen, dead_letters_are_sent_back, three_nodes):
            step(scene)
        scene.nothing_odd()
    finally:
        scene.end()
        if scene.machines:
            scene.machines.end()
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
