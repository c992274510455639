"""What the programs offer is in the documentation."""
import os
import re

import harness
from feeder import Feeder

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")


class MetricsTest(harness.TestCase):
    def documented(self):
        """Names in docs/metrics.md, and endings: `a_b`, `_c` stands for a_b and a_c."""
        with open(os.path.join(DOCS, "metrics.md")) as file:
            tokens = re.findall(r"`([a-z0-9_]+)[`{]", file.read())
        return {t for t in tokens if t[0] != "_"}, tuple(t for t in tokens if t[0] == "_")

    def test_every_metric_of_the_collector_is_explained(self):
        collector = self.started(harness.Collector(self.directory))
        feeder = Feeder(self.random, collector.address)
        feeder.make(2)
        self.assertTrue(feeder.session(), feeder.error)
        _, _, page = harness.http_get(collector.url("/metrics"))
        families = re.findall(r"^# TYPE (\S+) ", page.decode(), re.MULTILINE)
        self.assertGreater(len(families), 50)
        names, endings = self.documented()
        # Those of the feeder's own metrics are named after them.
        own = {"tacho_job_a", "tacho_job_b", "tacho_job_c"}
        missing = [f for f in families if f not in names | own and not f.endswith(endings)]
        self.assertEqual(missing, [], "not in docs/metrics.md")


if __name__ == "__main__":
    harness.main()
