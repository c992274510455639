"""A collector and Chromium before it: what the tests of the page share."""
import collections
import pathlib
import time

import browser
import client
import harness  # First: it makes the stubs importable.
from security_case import SecurityCase

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SCREENSHOTS = REPOSITORY / "build" / "screenshots"


def need_browser():
    found = browser.find_browser()
    if found is None:
        raise harness.unittest.SkipTest("no chromium: deploy/packages.sh test installs it")
    return found


class BrowserCase(SecurityCase):
    def setUp(self):
        super().setUp()
        chromium = browser.Browser(need_browser())
        self.addCleanup(chromium.__exit__)
        self.browser = chromium

    def open(self, hash="", **options):
        origin = f"http://127.0.0.1:{self.collector.http}"
        page = self.browser.page(origin, **options)
        page.open(f"{origin}/ui/{hash}")
        return page

    def accessible(self, page):
        script = browser.axe_script()
        if script is None:
            print("axe-core is left out: npm cannot reach its registry")
            return
        self.assertEqual(page.axe(script), [])

    def clean(self, page):
        self.assertEqual(page.problems, [])


def calls(page, since=0):
    """How often the page called each method, from its request number `since` on."""
    marker = "/tacho.v1."
    return collections.Counter(
        url.rpartition("/")[2] for url in page.requests[since:] if marker in url
    )


class Trainer:
    """Records rows of one job: at each step one row of each task, durable when step() returns."""

    def __init__(self, case, job, tasks=2, metrics=("loss",), attempt=0):
        self.case = case
        self.job = job
        self.tasks = tasks
        self.metrics = metrics
        self.attempt = attempt
        self.next = 0  # Step.
        self.sequence = 0
        self.stream = None
        self.generation = time.time_ns()
        self.connect()

    def connect(self):
        """Anew, after the collector was away."""
        if self.stream is not None:
            self.stream.close()
        self.stream = client.Stream(
            self.case.collector.address, f"agent-{self.job}-{self.attempt}", self.generation, self.sequence + 1
        )
        self.case.addCleanup(self.stream.close)
        self.case.assertTrue(self.stream.welcomed(), self.stream.error)
        names = [(name, "1") for name in self.metrics]
        for task in range(self.tasks):
            message = client.layout(task, self.job, f"host-{task}", names, task, self.attempt, True)
            self.stream.send(message)

    def steps(self, count, value=lambda step, task: 1.0, seconds=0.0):
        """`count` steps, the last of them now, with `seconds` between two."""
        now = time.time_ns()
        for i in range(count):
            step, self.next = self.next, self.next + 1
            when = now - int((count - 1 - i) * seconds * 1e9)
            for task in range(self.tasks):
                self.sequence += 1
                values = [value(step, task) for _ in self.metrics]
                self.stream.send(client.batch(self.sequence, task, [when], values, [step]))
        self.case.assertTrue(self.stream.wait_durable(self.sequence), self.stream.error)
