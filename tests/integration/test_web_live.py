"""The page follows a job by one stream: rows appear without a reload and without polls, whatever
becomes of the stream."""
import math
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
# The chart with its table open, as texts.
TABLE = """[...document.querySelectorAll('.chart-table tbody tr')]
    .map(tr => [...tr.children].map(cell => cell.innerText))"""
AWAY = ("net::ERR_CONNECTION_REFUSED", "net::ERR_CONNECTION_RESET", "net::ERR_EMPTY_RESPONSE",
        "net::ERR_INCOMPLETE_CHUNKED_ENCODING", "503")  # fmt: skip


def value(step, task):
    """Different for each step, and for each task around the mean; nothing that a condition minds."""
    return 1 + step / 1000 + (0.25 if task else -0.25)


def shown(step):
    """The mean of both tasks as the page prints it."""
    return f"{1 + step / 1000:g}"


class LiveTest(BrowserCase):
    maxDiff = 2000

    def begin(self, config="", ahead=0):
        self.start("conditions: {interval: 1s}\n" + config)
        self.trainer = Trainer(self, "bert")
        self.trainer.ahead = ahead
        self.trainer.steps(60, value, seconds=0.3)

    def shows(self, page, text, seconds=harness.PATIENCE_S):
        page.wait(f"({VALUE}).startsWith({text!r})", seconds)

    def followed(self, page):
        """Rows go on until one of them appears without a call."""
        harness.wait_until(lambda: self.quiet(page), "a row appears without a call", 120, 1)

    def quiet(self, page):
        before = len(page.requests)
        self.trainer.steps(1, value)
        self.shows(page, shown(self.trainer.next - 1))
        return not calls(page, before)

    def test_a_new_sample_appears_without_a_reload_and_without_polls(self):
        self.begin()
        page = self.open(LOSS)
        self.shows(page, shown(59))
        self.followed(page)
        before = len(page.requests)
        begun = time.monotonic()
        delays = []
        for _ in range(10):
            sent = time.monotonic()
            self.trainer.steps(1, value)
            self.shows(page, shown(self.trainer.next - 1))
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
        self.trainer.steps(1, lambda step, task: math.nan if task else 1.5)
        self.shows(page, "1.5")
        page.wait("document.querySelector('[data-metric=loss] .bad-word')")
        self.clean(page)

    def table(self, page):
        """{step: [mean, lowest, highest]}, read once the page shows the newest step."""
        page.wait("document.querySelector('.chart-table summary')")
        page.js("document.querySelectorAll('.chart-table:not([open]) summary').forEach(e => e.click())")
        newest = f"{self.trainer.next - 1 + self.trainer.ahead:,}"
        page.wait(f"{TABLE}.some(row => row[0] === {newest!r})")
        return {row[0]: row[1:] for row in page.js(TABLE)}

    def expected(self):
        ahead, next = self.trainer.ahead, self.trainer.next

        def row(step):
            values = [value(step, task) for task in (0, 1) if (0 <= step - ahead if task == 0 else step < next)]
            return [f"{v:.4g}" for v in (sum(values) / len(values), min(values), max(values))]

        return {f"{step:,}": row(step) for step in range(next + ahead)}

    def test_the_curve_grows_as_the_collector_would_fold_it(self):
        """One task is in front of the other, so that the newest steps are not complete."""
        self.begin(ahead=3)
        page = self.open(LOSS + "?full=loss")
        self.assertEqual(self.table(page), self.expected())
        harness.wait_until(lambda: self.grows(page), "the page has its stream", pause_s=1)
        before = len(page.requests)
        for _ in range(20):
            self.trainer.steps(1, value)
        self.assertEqual(self.table(page), self.expected())
        self.assertEqual(set(calls(page, before)) - HEAD_CALLS, set())
        self.clean(page)

    def test_the_collector_dies_and_comes_back_without_a_hole(self):
        self.begin()
        page = self.open(LOSS + "?full=loss")
        page.expected = AWAY
        self.assertEqual(self.table(page), self.expected())
        for _ in range(2):
            self.collector.kill()
            page.wait("document.querySelector('.live').innerText.startsWith('no answer')", 60)
            self.collector.start()
            self.trainer.connect()
            self.trainer.steps(10, value, seconds=0.1)  # Before the page is back.
            page.wait("document.querySelector('.live').innerText.startsWith('live')", 120)
            self.assertEqual(self.table(page), self.expected())
        watches = calls(page)["Watch"]
        before = len(page.requests)
        harness.wait_until(lambda: self.grows(page), "the stream is back", 120, 1)
        self.assertGreaterEqual(calls(page)["Watch"], 2)
        print(f"{watches} watches, {calls(page, before)}")
        self.assertEqual(self.table(page), self.expected())
        self.clean(page)

    def grows(self, page):
        before = len(page.requests)
        self.trainer.steps(1, value)
        self.table(page)
        return not calls(page, before)

    def test_where_a_stream_is_refused_the_page_polls(self):
        self.begin("query: {max_watches: 1}\n")
        query = client.Query(self.collector.address)
        self.addCleanup(query.close)
        request = query_pb2.WatchRequest(selector=query_pb2.Selector(job="other"))
        watch = query.stub.Watch(request)
        self.assertTrue(next(watch).HasField("live"))
        page = self.open(LOSS)
        page.expected = ("503",)
        self.shows(page, shown(59))
        for _ in range(2):
            before = len(page.requests)
            self.trainer.steps(1, value)
            self.shows(page, shown(self.trainer.next - 1))
            self.assertGreater(calls(page, before)["Compare"], 0)
        self.assertGreater(calls(page)["Watch"], 0)
        watch.cancel()
        harness.wait_until(
            lambda: self.quiet(page), "the page takes the stream as soon as there is room", 180, 1
        )
        self.clean(page)

    def test_a_paused_page_stands_still_and_catches_up(self):
        self.begin()
        page = self.open(LOSS)
        self.shows(page, shown(59))
        self.followed(page)
        still = shown(self.trainer.next - 1)
        page.press("p")
        page.wait("document.querySelector('.live').innerText === 'paused'")
        before = len(page.requests)
        for _ in range(8):
            self.trainer.steps(1, value)
            time.sleep(1)
        self.shows(page, still)
        self.assertEqual(calls(page, before), {})
        page.press("p")
        self.shows(page, shown(self.trainer.next - 1))
        self.followed(page)
        self.clean(page)

    def test_a_restart_of_the_job_is_followed(self):
        """The new attempt begins again behind the old one: the collector says whose steps count."""
        self.begin()
        page = self.open(LOSS + "?full=loss")
        self.assertEqual(self.table(page), self.expected())
        harness.wait_until(lambda: self.grows(page), "the page has its stream", pause_s=1)
        end = self.trainer.next
        again = Trainer(self, "bert", attempt=1)
        again.next = 40

        def once_more(step, task):
            return value(step, task) + 1

        again.steps(10, once_more, seconds=0.01)
        for _ in range(4):  # The page asks every five seconds at the most.
            page.wait(f"{TABLE}.some(row => row[0] === '{again.next - 1}' && row[1] === '{2 + (again.next - 1) / 1000:g}')")
            found = dict((row[0], row[1]) for row in page.js(TABLE))
            self.assertEqual(found["39"], shown(39))
            # What the new attempt has not reached is still that of the old one.
            self.assertEqual(found[str(end - 1)], shown(end - 1))
            again.steps(2, once_more)
        again.steps(end - again.next + 10, once_more, seconds=0.01)
        self.trainer = again
        found = self.table(page)
        self.assertEqual(found["39"][0], shown(39))
        self.assertEqual(found[str(end - 1)][0], f"{2 + (end - 1) / 1000:g}")
        self.assertEqual(found[str(end + 5)][0], f"{2 + (end + 5) / 1000:g}")
        self.clean(page)


if __name__ == "__main__":
    harness.main()
