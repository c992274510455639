"""A real Prometheus scrapes the collector and answers with the aggregates of our jobs."""
import gzip
import json
import math
import os
import subprocess
import time
import unittest
import urllib.parse

import client
import harness
from harness import tool

JOB = "resnet-50"
METRICS = [("loss", "nats"), ("tpu.hbm.used", "By")]
# One diverged task must not hide the others.
ROWS = [(0.5, 1.5e10), (0.25, 1.25e10), (float("nan"), 2.0e10), (8.0, 1.0e10), (1.0, float("inf"))]
COUNTER, HISTOGRAM = 2, 3  # Of tacho.v1.MetricType.
CHIPS = [
    ("chip_power_watts", "W", 1, {"chip": "0"}),
    ("chip_power_watts", "W", 1, {"chip": "1"}),
    ("chip_xid_errors_total", "1", COUNTER, {"chip": "0"}),
]
BUCKETS = [("lag_seconds", "s", HISTOGRAM, {"le": bound}) for bound in ("0.1", "+Inf")]
TEXT = "text/plain; version=0.0.4; charset=utf-8"
# What Prometheus 2.42 sends, and the forms that 3.x sends.
ACCEPT_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
ACCEPT_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
EXAMPLE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../deploy/prometheus/prometheus.yml"
)


def quantile(q, values):
    """As PromQL: linear between the closest ranks."""
    values = sorted(values)
    rank = q * (len(values) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (rank - low)


def aggregates(values):
    finite = [v for v in values if math.isfinite(v)]
    return {
        "sum": math.fsum(finite), "avg": math.fsum(finite) / len(finite),
        "min": min(finite), "max": max(finite), "count": len(values),
        "p50": quantile(0.5, finite), "p90": quantile(0.9, finite), "p99": quantile(0.99, finite),
        "non_finite": len(values) - len(finite),
    }  # fmt: skip


class PrometheusCase(harness.TestCase):
    config = ""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, self.config))

    def stream(self, agent, metrics, values, job=JOB, task=0, attempt=0):
        """A stream of an agent of its own that has sent one row. What is returned sends more."""
        stream = client.Stream(self.collector.address, f"agent-{agent}", 1, 1)
        self.addCleanup(stream.close)
        stream.send(client.layout(1, job, f"host-{task or 0}", metrics, task, attempt))
        sequence = [0]

        def send(row):
            sequence[0] += 1
            stream.send(client.batch(sequence[0], 1, [time.time_ns()], row))
            self.assertTrue(stream.wait_durable(sequence[0]), stream.error)

        send(values)
        return send

    def start_prometheus(self):
        """Runs the example of deploy/, with this test's address and a scrape every second."""
        with open(EXAMPLE) as file:
            example = file.read()
        config = example.replace("127.0.0.1:7412", f"127.0.0.1:{self.collector.http}")
        config = config.replace("scrape_interval: 15s", "scrape_interval: 1s")
        config = config.replace("scrape_timeout: 10s", "scrape_timeout: 1s")
        config = config.replace("rules/*.yml", os.path.dirname(EXAMPLE) + "/rules/*.yml")
        self.assertNotEqual(config, example)
        path = os.path.join(self.directory, "prometheus.yml")
        with open(path, "w") as file:
            file.write(config)
        port = harness.free_port()
        self.api = f"http://127.0.0.1:{port}/api/v1/"
        arguments = [tool("prometheus"), f"--config.file={path}",
                     f"--storage.tsdb.path={self.directory}/prometheus",
                     f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
        log = os.path.join(self.directory, "prometheus.log")
        self.started(harness.Program(arguments, log))

    def ask(self, expression):
        """[(labels, value)]; nothing while Prometheus starts."""
        try:
            url = self.api + "query?query=" + urllib.parse.quote(expression)
            status, _, body = harness.http_get(url)
        except OSError:
            return []
        if status != 200:
            return []
        return [(r["metric"], float(r["value"][1])) for r in json.loads(body)["data"]["result"]]


class PrometheusTest(PrometheusCase):
    def setUp(self):
        super().setUp()
        self.feed()

    def feed(self):
        stream = client.Stream(self.collector.address, "agent", 1, 1)
        self.addCleanup(stream.close)
        for task, values in enumerate(ROWS):
            stream.send(client.layout(task, JOB, f"host-{task // 2}", METRICS, task, 0, True))
            stream.send(client.batch(task + 1, task, [time.time_ns()], values, [100 + task]))
        self.assertTrue(stream.wait_durable(len(ROWS)), stream.error)

    def latest(self, metric):
        query = client.Query(self.collector.address)
        try:
            return [sample.value for sample in query.latest(JOB, metric)]
        finally:
            query.close()

    def test_api_returns_the_aggregates_of_jobs(self):
        self.start_prometheus()
        harness.wait_until(lambda: self.ask("tacho_job_loss"), "scraped")
        self.assertEqual([value for _, value in self.ask("up")], [1])
        families = {"loss": "tacho_job_loss", "tpu.hbm.used": "tacho_job_tpu_hbm_used"}
        for metric, family in families.items():
            values = self.latest(metric)
            self.assertEqual(len(values), len(ROWS))
            answer = self.ask(f'{family}{{job="{JOB}"}}')
            told = {labels["stat"]: value for labels, value in answer}
            self.assertEqual(len(told), len(answer))
            expected = aggregates(values)
            self.assertEqual(set(told), set(expected))
            for stat, value in expected.items():
                self.assertTrue(math.isclose(told[stat], value, rel_tol=1e-12), (stat, told, value))
        one = {"tacho_job_tasks": 5, "tacho_job_hosts": 3, 'tacho_job_last_step{stat="max"}': 104}
        for expression, value in one.items():
            self.assertEqual([v for _, v in self.ask(expression)], [value], expression)
        for expression, value in {"tacho_ready": 1, "tacho_storage_refusing": 0}.items():
            self.assertEqual([v for _, v in self.ask(expression)], [value], expression)
        self.assertGreater(self.ask("tacho_storage_available_bytes")[0][1], 0)
        accepted = self.ask("tacho_ingest_samples_accepted_total")
        self.assertEqual([value for _, value in accepted], [len(ROWS) * len(METRICS)])

    def test_promtool_finds_nothing_to_say(self):
        _, _, page = harness.http_get(self.collector.url("/metrics"))
        check = [tool("promtool"), "check", "metrics"]
        checked = subprocess.run(check, input=page, capture_output=True, timeout=60)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, b"", b""))
        check = [tool("promtool"), "check", "config", EXAMPLE]
        checked = subprocess.run(check, capture_output=True, text=True, timeout=60)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_promtool_finds_nothing_to_say_of_chips_counters_and_histograms(self):
        self.stream(2, CHIPS, [40.0, 60.0, 7.0], job="hosts", task=None)
        self.stream(3, [("tokens_total", "1", COUNTER, {})], [5.0], job=JOB, task=0)
        self.stream(4, BUCKETS, [1.0, 4.0], job=JOB, task=0)
        _, _, page = harness.http_get(self.collector.url("/metrics"))
        for line in (
            b'tacho_job_chip_power_watts{job="hosts",host="host-0",stat="max"} 60\n',
            b'tacho_job_chip_power_watts{job="resnet-50",stat="sum"} 100\n',
            b'tacho_job_tokens_total{job="resnet-50",stat="sum"} 5\n',
            b'tacho_job_lag_seconds_bucket{job="resnet-50",le="0.1"} 1\n',
            b'tacho_job_lag_seconds_count{job="resnet-50"} 4\n',
        ):
            self.assertIn(line, page)
        check = [tool("promtool"), "check", "metrics"]
        checked = subprocess.run(check, input=page, capture_output=True, timeout=60)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, b"", b""))

    def test_content_type_is_one_that_each_prometheus_takes(self):
        for accept in (ACCEPT_2_42, ACCEPT_3, "*/*", ""):
            headers = {"Accept": accept} if accept else {}
            status, answered, body = harness.http_get(self.collector.url("/metrics"), headers)
            self.assertEqual((status, answered["Content-Type"]), (200, TEXT), accept)
            self.assertIn(b'tacho_job_loss{job="resnet-50",stat="avg"} 2.4375\n', body)
        status, _, _ = harness.http_get(self.collector.url("/metrics"), {"Accept": "image/png"})
        self.assertEqual(status, 406)

    def test_page_is_packed_where_that_is_taken(self):
        for encoding, packed in (("gzip", True), ("gzip;q=0", False), ("identity", False)):
            headers = {"Accept": ACCEPT_2_42, "Accept-Encoding": encoding}
            status, answered, body = harness.http_get(self.collector.url("/metrics"), headers)
            self.assertEqual(status, 200)
            self.assertEqual(answered["Content-Encoding"], "gzip" if packed else None, encoding)
            text = gzip.decompress(body) if packed else body
            self.assertIn(b"# TYPE tacho_job_loss gauge\n", text)


class RulesTest(PrometheusCase):
    """Rules of the configuration, and a counter over restarts of its task."""

    config = """
metrics:
  rules:
    - metric: tokens
      functions: [sum, rate]
    - metric: chip_power_watts
      by: [chip]
      functions: [max, p75]
      rename: "chips_{metric}"
    - metric: "debug_.*"
      keep: false
"""

    def test_rules_say_what_prometheus_sees(self):
        self.stream(1, CHIPS, [40.0, 60.0, 7.0], job="hosts", task=None)
        self.stream(2, [("debug_x", "1"), ("loss", "1")], [1.0, 2.0])
        self.start_prometheus()
        harness.wait_until(lambda: self.ask("chips_chip_power_watts"), "scraped")
        self.assertEqual(
            sorted((l["chip"], l["stat"], v) for l, v in self.ask("chips_chip_power_watts")),
            [("0", "max", 40), ("0", "p75", 40), ("1", "max", 60), ("1", "p75", 60)],
        )
        self.assertEqual(self.ask("tacho_job_debug_x"), [])
        self.assertEqual([v for _, v in self.ask('tacho_job_loss{stat="max"}')], [2])
        self.assertEqual([v for _, v in self.ask('tacho_aggregate_groups{rule="rules[1]"}')], [2])

    def test_increase_is_right_over_a_restart_of_a_task(self):
        metrics = [("tokens", "1", COUNTER, {})]
        total = 'tacho_job_tokens_total{stat="sum"}'
        first = self.stream(1, metrics, [1000.0])
        second = self.stream(2, metrics, [500.0], task=1)
        self.start_prometheus()
        harness.wait_until(lambda: self.ask(total), "scraped")
        self.assertEqual([v for _, v in self.ask(total)], [1500])
        first([1100.0])
        harness.wait_until(lambda: [v for _, v in self.ask(total)] == [1600], "100 more")
        # The task begins again, behind where it was: nothing falls, and what it does counts.
        restarted = self.stream(3, metrics, [10.0], attempt=1)
        harness.wait_until(lambda: [v for _, v in self.ask(total)] == [1610], "10 of the new one")
        second([505.0])
        restarted([30.0])
        harness.wait_until(lambda: [v for _, v in self.ask(total)] == [1635], "both went on")
        self.assertEqual([v for _, v in self.ask(f"resets({total}[5m])")], [0])

    def test_wrong_rules_are_refused_and_the_old_ones_stay(self):
        self.stream(1, CHIPS, [40.0, 60.0, 7.0], job="hosts", task=None)
        with open(self.collector.config, "a") as file:
            file.write('    - metric: "a"\n      functions: [mean]\n')
        check = [os.environ["TACHO_COLLECTOR"], "--config", self.collector.config, "--check-config"]
        checked = subprocess.run(check, capture_output=True, text=True, timeout=60)
        self.assertEqual(checked.returncode, 2)
        self.assertIn('metrics.rules[3].functions: there is no function "mean"', checked.stderr)
        with open(self.collector.config, "w") as file:
            file.write(self.config)
        checked = subprocess.run(check, capture_output=True, text=True, timeout=60)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("-> chips_{metric}{job,chip,stat=max|p75}", checked.stdout)


if __name__ == "__main__":
    harness.main()
