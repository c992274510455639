"""The page in a real browser, on a real collector: what a person sees of a fleet with faults.

68 simulated tasks of seven jobs train on 17 hosts. In one job a host slows down, in one a task hangs, in
one a chip's memory fills up, in one a task turns NaN, in one a chip is throttled, in one a chip's
memory has errors. Whoever opens the page must read within seconds which job is sick, and why.
Screenshots go to build/screenshots/."""
import re
import time

import client
import fleet
import harness  # First: it makes the stubs importable.
from browser_case import SCREENSHOTS, BrowserCase
from tacho.v1 import query_pb2, view_pb2, view_pb2_grpc

# Only times are shorter than by default; thresholds are the defaults.
CONDITIONS = """
conditions:
  interval: 1s
  progress:
    stalled: {floor: 15s, for: 1s}
    straggling: {for: 2s}
    throughput_dropped: {for: 5s}
    trainer_silent: {silent_after: 120s, for: 5s}
  hardware:
    memory_pressure: {span: 10s, for: 1s}
    throttled: {span: 10s, for: 2s}
"""
JOBS = ["slow:tasks=16", "hung:tasks=16", "hbm:tasks=8", "nan:tasks=12", "hot:tasks=8", "broken:tasks=4", "well:tasks=4"]
# What may be the first sentence of each job, and the culprit that it names.
FAULTS = {
    "slow": ("slow job=slow host={host} factor=1.8", {"Straggling"}),
    "hung": ("hang job=hung task=2", {"Stalled"}),
    "hbm": ("leak job=hbm host={host} chip=1 bytes=60e9", {"MemoryPressure"}),
    "nan": ("nan job=nan task=3", {"Diverged"}),
    "hot": ("throttle job=hot host={host} factor=0.5", {"Throttled"}),
    "broken": ("ecc job=broken host={host} chip=1", {"HardwareErrors"}),
}
GLANCE_S = 2.0  # From the load of the page to the answer; times three on a busy machine.
BUSY = 3
TRAINED = 150  # Steps without fault.
ROWS = """[...document.querySelectorAll('.fleet tbody tr[data-row]')].map(tr => ({
  job: tr.querySelector('.jobname').textContent,
  sign: tr.querySelector('.sign').innerText.replace(/[^a-z]/g, ''),
  why: tr.querySelector('.whylink')?.innerText ?? ''}))"""


class FleetTest(BrowserCase):
    """One fleet for all: it takes longer to train than to look at."""

    def setUp(self):
        super().setUp()
        self.start(CONDITIONS)
        self.fleet = fleet.Fleet(self.directory, self.collector, JOBS, ["--history", "60"]).start()
        self.addCleanup(self.fleet.kill)
        hosts = self.fleet.hosts()
        self.faulty = {job: hosts[job][-1] for job in FAULTS}
        for job, (line, _) in FAULTS.items():
            self.fleet.fault(line.format(host=self.faulty[job]) + self.after(job))

    def after(self, job):
        return f" step={TRAINED}" if job == "hung" else ""

    def rows(self, page):
        return {row["job"]: row for row in page.js(ROWS)}

    def test_whoever_looks_knows_which_job_is_sick_and_why(self):
        page = self.open()
        page.wait_text("critical")
        try:
            harness.wait_until(lambda: self.missing(page) == [], "all faults are shown", 300, 0.5)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.missing(page)} of {self.rows(page)}") from None
        for look in (
            self.glance, self.order, self.click_and_back, self.keys_only, self.filter_and_columns,
            self.palette, self.live_and_paused, self.other_looks, self.runbook, self.screens,
            self.first_nan, self.worst_task, self.collector_dies,
        ):  # fmt: skip
            with self.subTest(look=look.__name__):
                look()

    def missing(self, page):
        rows = self.rows(page)
        return [
            job for job, (_, names) in FAULTS.items()
            if job not in rows or not any(rows[job]["why"].startswith(name) for name in names)
        ]  # fmt: skip

    def glance(self):
        """The page is opened anew, and nobody touches anything."""
        page = self.open()
        begun = time.monotonic()
        page.wait("document.querySelectorAll('.whylink').length >= 6", GLANCE_S * BUSY)
        print(f"six faults are shown {time.monotonic() - begun:.2f} s after the load")
        self.assertEqual(self.missing(page), [])
        rows = self.rows(page)
        self.assertIn(self.faulty["slow"], rows["slow"]["why"])
        self.assertIn("task 3", rows["nan"]["why"])
        self.assertIn(self.faulty["hot"], rows["hot"]["why"])
        self.assertIn(self.faulty["broken"], rows["broken"]["why"])
        self.assertNotIn("hosts", rows)
        page.screenshot(SCREENSHOTS / "fleet-light.png")
        self.accessible(page)
        self.clean(page)

    def order(self):
        """Sick jobs stand above healthy ones, and the rows agree with the gRPC API."""
        page = self.open()
        page.wait("document.querySelectorAll('.whylink').length >= 6")
        shown = page.js(ROWS)
        places = {row["job"]: i for i, row in enumerate(shown)}
        self.assertEqual(max(places, key=places.get), "well")
        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        answer = view_pb2_grpc.ViewStub(channel).Fleet(view_pb2.FleetRequest(), timeout=10)
        self.assertEqual(
            {row["job"]: row["why"].split(" ")[0] for row in shown if row["why"]},
            {j.job.name: j.conditions[0].condition for j in answer.jobs if j.conditions},
        )

    def click_and_back(self):
        page = self.open("#/?q=nan")
        page.wait("document.querySelector('.whylink')")
        page.click(".whylink")
        page.wait("location.hash.startsWith('#/job/nan')")
        self.assertIn("v=Diverged", page.hash())
        page.wait_text("nan")
        page.js("history.back()")
        page.wait("document.querySelector('.whylink')")
        self.assertEqual(page.hash(), "#/?q=nan")
        self.assertEqual(list(self.rows(page)), ["nan"])
        self.clean(page)

    def keys_only(self):
        page = self.open()
        page.wait("document.querySelector('.whylink')")
        for key in ("j", "j", "k"):
            page.press(key)
        page.wait("document.querySelector('tr.selected')?.dataset.row === '0'")
        first = page.js(ROWS)[0]["job"]
        page.press("Enter")
        page.wait(f"location.hash.startsWith('#/job/{first}')")
        page.press("g")
        page.press("f")
        page.wait("document.querySelector('.whylink')")
        page.press("?")
        page.wait("document.querySelector('dialog[open] dl.keys')")
        page.press("Escape")
        page.wait("!document.querySelector('dialog')")
        page.press("f")
        page.type("jobx")
        page.wait_text("No job matches the filter")
        self.assertEqual(page.hash(), "#/?q=jobx")
        self.clean(page)

    def filter_and_columns(self):
        page = self.open("#/?q=state:running sev:critical&cols=why,chips,attempts&sort=job")
        page.wait("document.querySelector('.whylink')")
        rows = page.js(ROWS)
        self.assertTrue(all(row["sign"] == "critical" for row in rows))
        self.assertEqual([r["job"] for r in rows], sorted(r["job"] for r in rows))
        heads = page.js("[...document.querySelectorAll('.fleet thead th')].map(h => h.innerText.trim())")
        self.assertEqual([re.sub(r" [↑↓]", "", h) for h in heads], ["State", "Job", "Why", "Chips", "Attempts"])
        host = self.faulty["slow"]
        page = self.open(f"#/?q=host:{host}")
        page.wait("document.querySelectorAll('.fleet tbody tr[data-row]').length === 1")
        self.assertEqual(list(self.rows(page)), ["slow"])
        self.clean(page)

    def palette(self):
        page = self.open()
        page.wait("document.querySelector('.whylink')")
        page.press("k", control=True)
        page.wait("document.querySelector('dialog[open] [role=combobox]') === document.activeElement")
        page.type("diverg")
        page.wait("document.querySelector('[role=option][aria-selected=true]')?.innerText.includes('nan')")
        page.screenshot(SCREENSHOTS / "palette.png")
        self.accessible(page)
        page.press("Enter")
        page.wait("location.hash === '#/job/nan'")
        page.press("/")
        page.wait("document.querySelector('dialog[open] [role=combobox]')")
        host = self.faulty["hot"]
        page.type(host)
        page.wait(f"document.querySelector('[role=option]')?.innerText.includes('{host}')")
        page.press("Enter")
        page.wait(f"location.hash === '#/host/{host}'")
        self.clean(page)

    def live_and_paused(self):
        """Steps go on without a touch, and stand still while the page is paused."""
        step = "[...document.querySelectorAll('tr[data-row]')].find(r => r.querySelector('.jobname').textContent === 'well').querySelector('[data-title=Step]').innerText"
        page = self.open()
        page.wait("document.querySelector('.whylink')")
        before = page.js(step)
        page.wait(f"{step} !== {before!r}", 60)
        page.press("p")
        page.wait("document.querySelector('.live').innerText === 'paused'")
        still = page.js(step)
        time.sleep(7)  # Longer than a round of the page.
        self.assertEqual(page.js(step), still)
        page.press("p")
        page.wait(f"{step} !== {still!r}", 60)
        self.clean(page)

    def other_looks(self):
        for name, options in {
            "fleet-dark": {"dark": True},
            "fleet-phone": {"width": 320, "height": 800},
            "fleet-phone-dark": {"width": 390, "height": 844, "dark": True},
        }.items():
            page = self.open(**options)
            page.wait("document.querySelectorAll('.whylink').length >= 6")
            self.assertLessEqual(page.js("document.documentElement.scrollWidth"), options.get("width", 1366))
            background = page.js("getComputedStyle(document.body).backgroundColor")
            self.assertEqual(background == "rgb(16, 18, 22)", "dark" in options)
            page.screenshot(SCREENSHOTS / f"{name}.png")
            self.accessible(page)
            self.clean(page)

    def runbook(self):
        page = self.open("#/runbook/TachoJobStraggling?job=slow")
        page.wait_text("Cordon them")
        self.assertIn("tachoctl conditions slow", page.text())
        self.accessible(page)
        self.clean(page)

    def screens(self):
        """Each screen by its address, with what it must say of the fleet."""
        slow, nan = self.faulty["slow"], self.faulty["nan"]
        for name, (hash, texts) in {
            "job": ("#/job/slow", ["Straggling", slow, "compute_seconds", "Show where"]),
            "metrics": ("#/job/slow/metrics", ["loss", "step_time_seconds", "grad_norm"]),
            "tasks": ("#/job/slow/tasks", ["Worst tasks", slow, "16 of 16 rows"]),
            "timeline": ("#/job/slow/timeline", ["productive", "Straggling"]),
            "goodput": ("#/job/slow/goodput", ["productive", "checkpoint"]),
            "about": ("#/job/slow/about", ["device_kind"]),
            "nan": ("#/job/nan/nan", ["The first value that is not finite", "task 3"]),
            "compare": ("#/compare?s=slow,well", ["loss", "step_time_seconds"]),
            "hosts": ("#/hosts", [slow, nan]),
            "host": (f"#/host/{slow}", ["slow"]),
            "agents": ("#/agents", [slow, nan]),
            "collector": ("#/collector", ["Queries at work", "Jobs with the most series"]),
        }.items():
            with self.subTest(screen=name):
                page = self.open(hash)
                for text in texts:
                    page.wait_text(text)
                page.wait("!document.querySelector('.skeleton, [aria-busy=true]')")
                page.screenshot(SCREENSHOTS / f"{name}.png")
                self.accessible(page)
                self.clean(page)

    def first_nan(self):
        """It says what the gRPC API says."""
        query = client.Query(self.collector.address)
        self.addCleanup(query.close)
        selector = query_pb2.Selector(job="nan")
        answer = query.stub.FirstNonFinite(query_pb2.FirstNonFiniteRequest(selector=selector))
        first = answer.spread[0]
        page = self.open("#/job/nan/nan")
        page.wait_text("In the order of turning")
        said = page.text()
        self.assertIn(f"{first.series.metric.name} of task {first.series.task} on", said)
        self.assertIn(f"step {first.step:,}", said)
        self.assertIn(f"{answer.series_turned} of {answer.series_examined} series turned", said)

    def worst_task(self):
        """The table names the slow host first; a click on its task shows that task's own chart."""
        page = self.open("#/job/slow/tasks")
        page.wait_text("Worst tasks")
        page.wait("document.querySelector('main table tbody tr td:nth-child(2)')")
        rows = page.js("[...document.querySelectorAll('main table')].at(-1).innerText")
        self.assertIn(self.faulty["slow"], rows.split("\n")[1] + rows.split("\n")[2])
        page.click("section.wide table tbody a")
        page.wait("document.querySelector('.row-detail canvas')")
        task = re.search(r"[?&]row=(\d+)", page.hash())[1]
        heading = page.js("document.querySelector('.row-detail h2').innerText")
        self.assertTrue(heading.startswith(f"Task {task} on host-"), heading)
        self.clean(page)

    def collector_dies(self):
        """Killed and back while the page is open: old rows stay, and the page goes on by itself."""
        page = self.open()
        page.expected = ("net::ERR_", "503")
        page.wait("document.querySelectorAll('.whylink').length >= 6")
        self.collector.kill()
        page.wait("document.querySelector('.live').innerText.startsWith('no answer')", 60)
        self.assertIn("slow", self.rows(page))
        page.wait_text("The collector does not answer")
        page.screenshot(SCREENSHOTS / "fleet-stale.png")
        self.collector.start()
        page.wait("document.querySelector('.live').innerText.startsWith('live')", 120)
        page.wait("!document.querySelector('.fleet.old')")
        self.clean(page)


class SignInTest(BrowserCase):
    def setUp(self):
        super().setUp()
        self.token("reader", "read")
        self.token("vision", "read", "vision-.*")
        self.start()
        self.page = self.open("#/?q=abc")
        self.page.expected = ("401",)
        self.page.wait("document.querySelector('.signin input')")

    def sign_in(self, token, keep=False):
        self.page.js("document.querySelector('#token').focus()")
        self.page.js("document.querySelector('#token').select()")
        self.page.type(token)
        if keep:
            self.page.click(".keep input")
        self.page.press("Enter")

    def test_a_wrong_token_is_refused_in_the_collectors_words(self):
        self.sign_in("wrong")
        self.page.wait("document.querySelector('.problem').innerText.includes('auth.tokens_file')")
        self.page.screenshot(SCREENSHOTS / "sign-in.png")
        self.accessible(self.page)
        self.clean(self.page)

    def test_the_right_one_opens_the_same_link_and_is_in_no_link_and_no_text(self):
        token = self.secret("reader")
        self.sign_in(token)
        self.page.wait_text("No job")
        self.assertEqual(self.page.hash(), "#/?q=abc")
        self.assertFalse(any(token in url for url in self.page.requests))
        self.assertNotIn(token, self.page.js("document.documentElement.outerHTML"))
        self.assertIsNone(self.page.js("localStorage.getItem('tacho-token')"))
        self.assertEqual(self.page.js("document.cookie"), "")
        self.clean(self.page)

    def test_another_tab_gets_it_from_this_one_and_a_kept_one_survives(self):
        self.sign_in(self.secret("reader"), keep=True)
        self.page.wait_text("No job")
        other = self.open()
        other.wait_text("No job has sent anything yet")
        self.assertEqual(self.page.js("localStorage.getItem('tacho-token')"), self.secret("reader"))
        self.clean(other)

    def test_a_token_that_is_removed_asks_again(self):
        self.sign_in(self.secret("reader"))
        self.page.wait_text("No job")
        del self.tokens["reader"]
        self.write_tokens()
        self.reload()
        self.page.wait("document.querySelector('.signin input')", 60)
        self.clean(self.page)


if __name__ == "__main__":
    harness.main()
