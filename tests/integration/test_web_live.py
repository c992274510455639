"""The page follows a job by one stream: rows appear without a reload and without polls, whatever
becomes of the stream."""
import math
import threading
import time

import client
import harness  # First: it makes the stubs importable.
from browser_case import BrowserCase, Trainer, calls
from tacho.v1 import query_pb2

VALUE = "document.querySelector('[data-metric=loss] .value')?.innerText ?? ''"
# What draws curves; the head of a job has three calls of its own, each half minute.
CHART_CALLS = {"Compare", "Range", "Matrix", "ListEvents", "Fleet"}
HEAD_CALLS = {"GetJob", "Goodput", "Conditions"}
LOSS = "#/job/bert/metrics"


class LiveTest(BrowserCase):
    def begin(self, config=""):
        self.start("conditions: {interval: 1s}\n" + config)
        self.trainer = Trainer(self, "bert")
        self.trainer.steps(60, seconds=0.3)

    def shows(self, page, text, seconds=harness.PATIENCE_S):
        page.wait(f"({VALUE}).startsWith({text!r})", seconds)

    def followed(self, page):
        """Rows go on until one of them appears without a call."""

        def quiet():
            before = len(page.requests)
            value = self.trainer.next + 0.5
            self.trainer.steps(1, lambda step, task: value)
            self.shows(page, f"{value:g}")
            return not calls(page, before)

        harness.wait_until(quiet, "a row appears without a call", pause_s=1)

    def test_a_new_sample_appears_without_a_reload_and_without_polls(self):
        self.begin()
        page = self.open(LOSS)
        self.shows(page, "1")
        self.followed(page)
        before = len(page.requests)
        begun = time.monotonic()
        delays = []
        for i in range(10):
            sent = time.monotonic()
            # The mean of both tasks: 10, 20, …
            self.trainer.steps(1, lambda step, task: 10.0 * (i + 1) + (1 if task else -1))
            self.shows(page, f"{10 * (i + 1)}")
            delays.append(time.monotonic() - sent)
            time.sleep(0.5)
        took = time.monotonic() - begun
        called = calls(page, before)
        print(f"10 samples in {took:.1f} s, each shown {max(delays):.2f} s after at the latest: {dict(called)}")
        self.assertEqual(set(called) - HEAD_CALLS, set())
        self.assertLessEqual(max(called.values(), default=0), took // 20 + 1)
        step = page.js("document.querySelector('.job-progress').innerText")
        self.assertIn(f"step {self.trainer.next - 1}", step)
        self.clean(page)

    def test_a_value_that_is_not_finite_shows_at_once(self):
        self.begin()
        page = self.open(LOSS)
        self.followed(page)
        self.trainer.steps(1, lambda step, task: math.nan if task else 3.0)
        self.shows(page, "3")
        self.trainer.steps(1, lambda step, task: 4.0)
        page.wait("document.querySelector('[data-metric=loss] .bad-word')")
        self.clean(page)


if __name__ == "__main__":
    harness.main()
