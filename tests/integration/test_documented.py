"""What the programs offer is in the documentation."""
import os
import re

import client
import harness
from feeder import Feeder

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")


class MetricsTest(harness.TestCase):
    def documented(self):
        """{family: whether it is on every page} of the tables of docs/metrics.md."""
        with open(os.path.join(DOCS, "metrics.md")) as file:
            tables = re.findall(r"<!-- metrics: .*? -->\n(.*?)<!-- end -->", file.read(), re.DOTALL)
        rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", "".join(tables), re.MULTILINE)
        self.assertEqual(len(rows), len(dict(rows)), "a family twice")
        when = re.compile(r"\. (Only|While|If|Once|Of jobs) [^.]*$")
        return {name: when.search(help) is None for name, help in rows}

    def test_every_metric_of_the_collector_is_explained(self):
        collector = self.started(harness.Collector(self.directory))
        feeder = Feeder(self.random, collector.address)
        feeder.make(2)
        self.assertTrue(feeder.session(), feeder.error)
        query = client.Query(collector.address)
        self.addCleanup(query.close)
        query.jobs()
        _, _, page = harness.http_get(collector.url("/metrics"))
        families = re.findall(r"^# TYPE (\S+) ", page.decode(), re.MULTILINE)
        self.assertGreater(len(families), 50)
        documented = self.documented()
        # Those of the feeder's own metrics are named after them.
        own = {"tacho_job_a", "tacho_job_b", "tacho_job_c"}
        missing = [f for f in families if f not in own and f not in documented]
        self.assertEqual(missing, [], "not in docs/metrics.md")
        absent = [f for f, always in documented.items() if always and f not in families]
        self.assertEqual(absent, [], "in docs/metrics.md, and not on the page")


if __name__ == "__main__":
    harness.main()
