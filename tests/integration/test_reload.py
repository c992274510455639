"""SIGHUP: the real collector takes its configuration anew, or says why not and goes on."""
import re
import signal

import harness  # First: it makes the stubs importable.
from feeder import Feeder

CONFIG = "storage: {seal_rows: 64}\n"


class ReloadTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, CONFIG))
        self.failures = self.successes = 0

    def metric(self, name):
        status, _, body = harness.http_get(self.collector.url("/metrics"))
        self.assertEqual(status, 200)
        return float(re.search(rf"^{re.escape(name)} (\S+)$", body.decode(), re.MULTILINE)[1])

    def reload(self, text):
        with open(self.collector.config, "w") as file:
            file.write(text)
        self.collector.program.process.send_signal(signal.SIGHUP)

    def expect_done(self, text):
        self.successes += 1
        self.reload(text)
        done = lambda: self.metric('tacho_config_reloads_total{result="success"}') == self.successes
        harness.wait_until(done, "reloaded")
        self.assertEqual(self.metric("tacho_config_last_reload_successful"), 1)

    def expect_refused(self, text, *words):
        self.failures += 1
        said = len(self.collector.program.tail(1 << 20))
        self.reload(text)
        failed = lambda: (
            self.metric('tacho_config_reloads_total{result="failure"}') == self.failures
        )
        harness.wait_until(failed, "refused")
        self.assertEqual(self.metric("tacho_config_last_reload_successful"), 0)
        logged = lambda: "nothing was changed" in self.collector.program.tail(1 << 20)[said:]
        harness.wait_until(logged, "the log says it")
        lines = self.collector.program.tail(1 << 20)[said:]
        for word in words:
            self.assertIn(word, lines)

    def test_good_files_are_taken_and_bad_ones_change_nothing(self):
        feeder = Feeder(self.random, self.collector.address)
        feeder.make(1)
        self.assertTrue(feeder.session(), feeder.error)
        self.assertEqual(self.metric("tacho_config_last_reload_successful"), 1)
        self.assertEqual(self.metric("tacho_aggregate_series_left_out"), 0)
        self.expect_done(CONFIG + "metrics: {max_series: 1}\n")
        self.assertGreater(self.metric("tacho_aggregate_series_left_out"), 0)
        path = self.collector.config
        self.expect_refused(CONFIG + "metrics: {stalenes: 2m}\n", f"{path}:2", "staleness")
        self.expect_refused("storage: {seal_rows: 128}\n", "storage.seal_rows", "restart")
        self.expect_refused(CONFIG + "metrics: {max_series: 0}\n", f"{path}:2", "max_series")
        self.assertGreater(self.metric("tacho_aggregate_series_left_out"), 0)
        self.expect_done(CONFIG)
        self.assertEqual(self.metric("tacho_aggregate_series_left_out"), 0)
        self.assertEqual(self.collector.stop(), 0)


if __name__ == "__main__":
    harness.main()
