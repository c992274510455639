"""A collector and Chromium before it: what the tests of the page share."""
import collections
import pathlib
import time

import browser
import client
import harness  # First: it makes the stubs importable.
from security_case import SecurityCase
from tacho.v1 import ingest_pb2, types_pb2

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SCREENSHOTS = REPOSITORY / "build" / "screenshots"


class BrowserCase(SecurityCase):
    def setUp(self):
        super().setUp()
        chromium = browser.Browser(harness.tool(*browser.BINARIES))
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

    def __init__(self, case, job, tasks=2, metrics=("loss",), attempt=0, token=None):
        self.case = case
        self.job = job
        self.tasks = tasks
        self.metrics = metrics
        self.attempt = attempt
        self.token = token
        self.agent_id = f"agent-{time.time_ns()}"
        self.ahead = 0  # Steps by which task 0 is in front of the others.
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
            self.case.collector.address, self.agent_id, self.generation, self.sequence + 1,
            token=self.token,
        )  # fmt: skip
        self.case.addCleanup(self.stream.close)
        self.case.assertTrue(self.stream.welcomed(), self.stream.error)
        # A metric is a name, or what client.layout() wants.
        names = [(m, "1") if isinstance(m, str) else m for m in self.metrics]
        for task in range(self.tasks):
            message = client.layout(task, self.job, f"host-{task}", names, task, self.attempt, True)
            self.stream.send(message)

    def attributes(self, **values):
        self.sequence += 1
        message = ingest_pb2.Attributes(
            sequence=self.sequence, job=self.job, attempt=self.attempt, values=values
        )
        self._durable(ingest_pb2.ClientMessage(attributes=message))

    def event(self, kind, message, **fields):
        self.sequence += 1
        source = types_pb2.Source(job=self.job, host="host-0", task=0, attempt=self.attempt)
        event = ingest_pb2.Event(
            sequence=self.sequence, source=source, time_unix_ns=time.time_ns(), kind=kind,
            message=message, fields=fields,
        )  # fmt: skip
        self._durable(ingest_pb2.ClientMessage(event=event))

    def _durable(self, message):
        self.stream.send(message)
        self.case.assertTrue(self.stream.wait_durable(self.sequence), self.stream.error)

    def steps(self, count, value=lambda step, task: 1.0, seconds=0.0):
        """`count` steps, the last of them now, with `seconds` between two."""
        now = time.time_ns()
        for i in range(count):
            step, self.next = self.next, self.next + 1
            when = now - int((count - 1 - i) * seconds * 1e9)
            for task in range(self.tasks):
                self.sequence += 1
                at = step + (0 if task else self.ahead)
                values = [value(at, task) for _ in self.metrics]
                self.stream.send(client.batch(self.sequence, task, [when], values, [at]))
        self.case.assertTrue(self.stream.wait_durable(self.sequence), self.stream.error)
