"""What a person does on the page with data that is known: reads, zooms, shares links, walks with the
keyboard alone, has no right, asks for too much. And names of jobs that are markup."""
import json
import os
import pathlib
import re

import harness  # First: it makes the stubs importable.
from browser_case import SCREENSHOTS, BrowserCase, Trainer

TOP = "#/job/bert/metrics?full=loss"
PRESSED = "[...document.querySelectorAll('[aria-pressed=true]')].map(e => e.innerText)"
ROWS = "[...document.querySelectorAll('.chart-table tbody tr')].map(r => [...r.children].map(c => c.innerText))"
# Text that must stay text: each would show in the console, in a request, or in window.owned.
MARKUP = [
    "<img src=x onerror=owned=1>", "<script>owned=2</script>", "\"><svg onload=owned=3>",
    "javascript:owned=4", "{{7*7}}</textarea><iframe src=//evil.example>", "</script><b>fat</b>",
    "&lt;i&gt;twice&lt;/i&gt;",
]  # fmt: skip


def value(step, task):
    return 1 + step / 1000 + (0.25 if task else -0.25)


class ScreenCase(BrowserCase):
    def begin(self, config="", steps=300, **trainer):
        self.start("conditions: {interval: 1s}\n" + config)
        self.trainer = Trainer(self, "bert", **trainer)
        self.trainer.steps(steps, value, seconds=0.2)

    def ctl(self, *arguments):
        done = harness.tachoctl(self.collector.address, *arguments)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))

    def chart(self, page):
        page.wait("document.querySelector('.stack canvas') && document.querySelector('.chart-table summary')")
        page.wait("document.querySelector('.figures td')?.innerText.length > 0")

    def rows(self, page):
        page.js("document.querySelectorAll('.chart-table:not([open]) summary').forEach(e => e.click())")
        page.wait(f"{ROWS}.length > 0")
        return page.js(ROWS)


class ChartTest(ScreenCase):
    def setUp(self):
        super().setUp()
        self.begin()

    def test_a_drag_zooms_to_every_sample_and_back_undoes_it(self):
        page = self.open(TOP)
        self.chart(page)
        self.assertEqual(len(self.rows(page)), 151)  # Every other step of 300, and the last.
        page.drag(".stack", 0.4, 0.5)
        page.wait("location.hash.includes('r=')")
        first, last = map(int, re.search(r"[?&]r=(\d+)\.\.(\d+)", page.hash()).groups())
        self.assertTrue(90 < first < last < 160, page.hash())
        page.wait(f"{ROWS}.length === {last - first + 1}")
        page.js("[...document.querySelectorAll('button')].find(b => b.innerText === 'Every sample').click()")
        # Two tasks, each with its own value at each step.
        page.wait(f"{ROWS}[0].length === 3")
        row = self.rows(page)[3]
        step = int(row[0])
        self.assertEqual(row[1:], [f"{value(step, task):.4g}" for task in (0, 1)])
        page.js("history.back()")
        page.wait("!location.hash.includes('r=')")
        page.wait(f"{ROWS}.length === 151")
        self.clean(page)

    def test_keys_zoom_move_and_read_the_chart(self):
        page = self.open(TOP)
        self.chart(page)
        page.js("document.querySelector('.stack').focus()")
        page.press("Home")
        page.press("ArrowRight")
        page.press("ArrowRight")
        read = "document.querySelector('.stack-read').innerText"
        page.wait(f"{read}.includes('1.002')")
        said = page.js(read)
        self.assertIn("0.752 to 1.252", said)
        page.wait("location.hash.includes('c=2')")
        # Screen readers hear the same.
        page.wait(f"document.querySelector('.stack-box [aria-live=polite]').textContent === {json.dumps(said)}")
        page.press("w")
        page.wait("/r=\\d\\.\\.1\\d\\d/.test(location.hash)")
        page.press("d")
        page.wait("!/r=\\d\\.\\./.test(location.hash)")
        page.press("0")
        page.wait("!location.hash.includes('r=')")
        page.press("Escape")
        page.wait("!location.hash.includes('c=')")
        self.clean(page)

    def test_m_marks_a_stretch_of_the_timeline_and_a_verdict_has_a_link(self):
        self.trainer.steps(5, lambda step, task: float("nan"), seconds=0.2)
        page = self.open("#/job/bert/timeline")
        page.wait("document.querySelector('.stack canvas') && document.body.innerText.includes('All of it')")
        page.js("document.querySelector('.stack').focus()")
        page.press("m")  # Without a cursor there is nothing to begin at.
        for key in ("ArrowRight", "m", *["ArrowRight"] * 20, "m"):
            page.press(key)
        page.wait("location.hash.includes('r=')")
        page.wait_text("In view")
        page = self.open("#/job/bert")
        page.wait("document.querySelector('[data-verdict=Diverged]')", 60)
        # A headless browser has no clipboard.
        page.js("Object.defineProperty(navigator, 'clipboard', {value: {writeText: async t => { window.copied = t; }}})")
        page.js("[...document.querySelectorAll('[data-verdict=Diverged] button')].find(b => b.innerText === 'Copy link').click()")
        page.wait("window.copied")
        link = page.js("copied")
        self.assertTrue(link.startswith(f"http://127.0.0.1:{self.collector.http}/ui/#/job/bert?v=Diverged"), link)
        self.clean(page)

    def test_the_table_has_the_value_at_the_cursor(self):
        page = self.open(TOP + "&r=100..140&c=120")
        self.chart(page)
        page.wait("document.querySelector('.stack-read').innerText.includes('1.12')")
        rows = {row[0]: row[1:] for row in self.rows(page)}
        self.assertEqual(len(rows), 41)
        self.assertEqual(rows["120"], ["1.12", "0.87", "1.37"])
        figures = page.js("[...document.querySelectorAll('.figures td')].map(c => c.innerText)")
        self.assertEqual(figures, ["1.14", "0.85", "1.39", "0"])  # Of what is in view.
        self.clean(page)

    def test_a_link_shows_the_same_to_somebody_else(self):
        Trainer(self, "vit").steps(20, value, seconds=0.2)
        for hash, pressed in {
            "#/job/bert/metrics?full=loss&r=100..140&c=120&y=log": ["log", "step"],
            "#/job/bert/metrics?q=lo&by=task&at=latest": ["by task", "step"],
            "#/job/bert?x=time&y=all": ["time", "all"],
            "#/job/bert/tasks?m=loss&order=worst": ["step"],
            "#/compare?s=bert,vit&x=elapsed": [],
        }.items():
            with self.subTest(link=hash):
                page = self.open(hash)
                page.expected = ("404",)  # No agent has sent anything, so there is no job "hosts".
                page.wait("document.querySelector('.stack canvas')")
                now = page.js(PRESSED)
                self.assertEqual([word for word in pressed if word not in now], [])
                self.assertEqual(page.hash(), hash)
                title = page.js("document.title")
                again = self.open(page.hash())
                again.expected = page.expected
                again.wait("document.querySelector('.stack canvas')")
                again.wait(f"document.title === {json.dumps(title)}")
                self.assertEqual(again.js(PRESSED), now)
                self.clean(page)
                self.clean(again)

    def test_a_phone_and_dark_colours_are_legible(self):
        for name, options in {"phone": {"width": 320, "height": 800}, "dark": {"dark": True}}.items():
            for screen in ("", "/metrics", "/tasks", "/timeline", "/goodput", "/about"):
                with self.subTest(look=name, screen=screen):
                    page = self.open("#/job/bert" + screen, **options)
                    page.expected = ("404",)  # Of the job "hosts".
                    page.wait("document.querySelector('.job-head')")
                    page.wait("!document.querySelector('.loading')")
                    self.assertLessEqual(page.js("document.documentElement.scrollWidth"), options.get("width", 1366))
                    background = page.js("getComputedStyle(document.body).backgroundColor")
                    self.assertEqual(background == "rgb(16, 18, 22)", name == "dark")
                    page.screenshot(SCREENSHOTS / f"{name}{screen.replace('/', '-') or '-job'}.png")
                    self.accessible(page)
                    self.clean(page)

    def test_everything_is_reached_with_the_tab_key(self):
        """From the top of the fleet into the job, its tabs, its chart and the table, without a mouse."""
        page = self.open()
        page.wait("document.querySelector('.fleet tbody tr[data-row]')")

        def tab_to(what, most=60):
            for _ in range(most):
                page.press("Tab")
                # The focus is always on something, and it can be seen where.
                seen = page.js(
                    "(e => e && e !== document.body && e.getBoundingClientRect().width > 0)(document.activeElement)"
                )
                if page.js(f"document.activeElement.matches({json.dumps(what)})"):
                    outline = page.js("getComputedStyle(document.activeElement).outlineStyle")
                    self.assertTrue(seen and outline != "none", what)
                    return
            self.fail(f"Tab does not reach {what}")

        tab_to("a.skip", 3)
        page.press("Enter")
        page.wait("document.activeElement.id === 'main'")
        tab_to("a[href^='#/job/bert']")
        page.press("Enter")
        page.wait("location.hash.startsWith('#/job/bert')")
        page.wait("document.querySelector('nav.tabs') && document.activeElement.id === 'main'")
        tab_to("nav.tabs a[href*='/metrics']")
        page.press("Enter")
        page.wait("document.querySelector('.metric-panel .name')")
        tab_to(".metric-panel .name")
        page.press("Enter")
        self.chart(page)
        tab_to(".stack")
        page.press("End")
        page.wait("document.querySelector('.stack-read').innerText.includes('1.299')")
        tab_to(".chart-table summary")
        page.press("Enter")
        page.wait(f"{ROWS}.length > 100")
        self.clean(page)


class SweepTest(ScreenCase):
    def test_runs_of_a_group_show_which_attribute_goes_with_which_loss(self):
        self.start()
        for i, rate in enumerate(("1e-4", "1e-3", "1e-2")):
            run = Trainer(self, f"run-{i}", tasks=1)
            run.steps(20, lambda step, task, i=i: [3.0, 1.0, 2.0][i])
            run.attributes(learning_rate=rate, batch_size="32", seed=str(i))
            self.ctl("group", run.job, "rates")
        Trainer(self, "another").steps(5)
        page = self.open("#/compare?group=rates")
        page.wait_text("3 runs")
        rows = page.js("[...document.querySelectorAll('table tbody tr')].map(r => [...r.children].map(c => c.innerText.trim()))")
        self.assertEqual([row[0].split()[0] for row in rows], ["run-1", "run-2", "run-0"])
        self.assertEqual([row[1] for row in rows], ["1", "2", "3"])
        self.assertEqual({row[2] for row in rows}, {"1e-4", "1e-3", "1e-2"})
        self.assertNotIn("batch_size", page.js("document.querySelector('svg').textContent"))
        self.assertEqual(page.js("document.querySelectorAll('path.run').length"), 3)
        self.assertEqual(page.js("document.querySelectorAll('circle').length"), 3)
        # The rate was tried in powers: the middle one stands in the middle.
        places = sorted(map(float, page.js("[...document.querySelectorAll('circle')].map(c => c.getAttribute('cx'))")))
        self.assertAlmostEqual(places[1], (places[0] + places[2]) / 2, delta=1)
        page.js("document.querySelector('[aria-label=\"Mark run-1 in the charts\"]').click()")
        page.wait("document.querySelectorAll('.picked').length === 2")
        self.assertIn("row=run-1", page.hash())
        page.screenshot(SCREENSHOTS / "sweep.png")
        self.accessible(page)
        page.js("[...document.querySelectorAll('a')].find(a => a.innerText.startsWith('Compare the curves')).click()")
        page.wait("location.hash.includes('s=run-1,run-2,run-0')")
        self.clean(page)


class RefusedTest(ScreenCase):
    def test_another_team_s_job_is_not_permitted_and_another_token_is_offered(self):
        for name, roles, jobs in [("writer", "write", ".*"), ("vision", "read", "vision-.*"), ("all", "read", ".*")]:
            self.token(name, roles, jobs)
        self.begin(token=self.secret("writer"))
        page = self.open("#/job/bert")
        page.expected = ("401", "403")
        page.wait("document.querySelector('.signin input')")
        self.sign_in(page, "vision")
        page.wait("document.querySelector('.failed')")
        self.assertIn("Not permitted", page.text())
        self.assertIn("bert", page.js("document.querySelector('.failed').innerText"))
        page.screenshot(SCREENSHOTS / "not-permitted.png")
        self.accessible(page)
        page.js("[...document.querySelectorAll('button')].find(b => b.innerText === 'Use another token').click()")
        page.wait("document.querySelector('.signin input')")
        self.sign_in(page, "all")
        page.wait("document.querySelector('.job-head')")
        self.clean(page)

    def test_a_token_without_the_role_read_is_told_so(self):
        for name, roles in [("writer", "write")]:
            self.token(name, roles)
        self.begin(token=self.secret("writer"))
        page = self.open()
        page.expected = ("401", "403")
        page.wait("document.querySelector('.signin input')")
        self.sign_in(page, "writer")
        page.wait("document.querySelector('.failed')")
        self.assertIn("role", page.js("document.querySelector('.failed > p').innerText"))
        self.clean(page)

    def sign_in(self, page, name):
        page.js("document.querySelector('#token').focus()")
        page.type(self.secret(name))
        page.press("Enter")
        page.wait("!document.querySelector('.signin')")

    def test_more_than_the_collector_gives_is_said_in_words(self):
        self.begin("query: {max_samples: 100}\n")
        page = self.open(TOP + "&raw=1")
        page.expected = ("429",)
        page.wait("document.querySelector('.failed')")
        said = page.js("document.querySelector('.failed').innerText")
        self.assertIn("More than the collector gives at once", said)
        self.assertIn("max_samples", said)
        self.assertNotIn("RESOURCE_EXHAUSTED", said)
        self.clean(page)


class VersionTest(ScreenCase):
    def test_a_collector_of_another_version_offers_its_page(self):
        self.begin(steps=5)
        page = self.open()
        page.expected = ("net::ERR_", "503")
        page.wait_text("bert")
        self.assertNotIn("Load the new page", page.text())
        self.collector.stop()
        newer = pathlib.Path(self.directory) / "newer"
        program = pathlib.Path(os.environ["TACHO_COLLECTOR"]).read_bytes()
        version = re.search(rb"tacho-collector (\d+\.\d+\.)(\d+)\n", program)
        here, next = version[1] + version[2], version[1] + b"%d" % (int(version[2]) + 1)
        self.assertEqual(len(here), len(next))
        newer.write_bytes(program.replace(here + b"\0", next + b"\0"))
        newer.chmod(0o755)
        before = os.environ["TACHO_COLLECTOR"]
        self.addCleanup(os.environ.__setitem__, "TACHO_COLLECTOR", before)
        os.environ["TACHO_COLLECTOR"] = str(newer)
        self.collector.start()
        page.wait_text(f"The collector is now version {next.decode()}", 60)
        page.click(".banner button")
        page.wait("!document.querySelector('.banner') && document.querySelector('.fleet')")
        self.clean(page)


class MarkupTest(ScreenCase):
    def test_names_that_are_markup_stay_text_everywhere(self):
        self.start("conditions: {interval: 1s}\n")
        metrics = ["loss"] + [(f"metric {text}", "1") for text in MARKUP[:2]]
        jobs = MARKUP[:3]
        for job in jobs:
            run = Trainer(self, job, tasks=2, metrics=metrics)
            run.attributes(**{text: text for text in MARKUP}, user=MARKUP[0])
            for text in MARKUP:
                run.event("text", text, **{"field": text})
            run.steps(30, lambda step, task: float("nan") if step > 20 else 1.0, seconds=0.1)
            self.ctl("note", job, MARKUP[1])
            self.ctl("group", job, MARKUP[0])
        name = jobs[0].replace("<", "%3C").replace(">", "%3E").replace(" ", "%20").replace("=", "%3D")
        seen = ""
        for hash in (
            "#/", "#/?cols=why,user", f"#/job/{name}", f"#/job/{name}/metrics", f"#/job/{name}/tasks",
            f"#/job/{name}/timeline", f"#/job/{name}/nan", f"#/job/{name}/goodput", f"#/job/{name}/about",
            f"#/compare?group={name}", f"#/compare?s={name}", "#/hosts", "#/agents", "#/collector",
            f"#/runbook/TachoJobDiverged?job={name}", f"#/{name}/{name}", f"#/job/{name}?v={name}&r={name}&c={name}",
            f"#/runbook/{name}", f"#/host/{name}",
        ):  # fmt: skip
            with self.subTest(screen=hash):
                page = self.open(hash)
                page.expected = ("404",)
                page.wait("document.querySelector('main')?.innerText.length > 20")
                page.wait("!document.querySelector('.loading')")
                page.press("k", control=True)
                page.wait("document.querySelector('[role=combobox]')")
                page.type("<img")
                page.wait("document.querySelector('dialog').innerText.length > 10")
                self.assertIsNone(page.js("window.owned ?? null"))
                self.assertEqual(page.js("document.querySelectorAll('main img, main script, iframe, [onerror], [onload]').length"), 0)
                self.assertEqual([u for u in page.requests if u.endswith("/x") or "evil" in u], [])
                seen += page.text()
                self.clean(page)
        for text in MARKUP:
            self.assertIn(text, seen)


if __name__ == "__main__":
    harness.main()
