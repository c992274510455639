"""Other tools write to the collector: a real Prometheus, a real vmagent, and requests of our own."""
import http.server
import json
import os
import random
import struct
import threading
import time
import unittest

import harness
import client
from client import bits

MESSAGE_2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"


class Exporter:
    """A page of metrics whose values change with each scrape, special ones among them."""

    def __init__(self, series=200):
        self.series = series
        self.scrapes = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = outer.page().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def page(self):
        self.scrapes += 1
        lines = ["# TYPE steps_total counter", f"steps_total {self.scrapes}"]
        specials = ["NaN", "+Inf", "-Inf", "0", "-0", "1e-320", "1.7976931348623157e+308"]
        lines.append(f"special {specials[self.scrapes % len(specials)]}")
        for i in range(self.series):
            lines.append(f'load{{core="{i}",text="a\\"b"}} {random.random() * self.scrapes!r}')
        if self.scrapes % 3:
            lines.append(f"sometimes {self.scrapes}")
        return "\n".join(lines) + "\n"

    @property
    def address(self):
        return f"127.0.0.1:{self.server.server_port}"


def prometheus_samples(url, query):
    """{(name, sorted labels): {time in ms: bits}} of all raw samples, as Prometheus answers them."""
    import urllib.parse

    status, _, body = harness.http_get(f"{url}/api/v1/query?" + urllib.parse.urlencode({"query": query}))
    assert status == 200, body
    series = {}
    for one in json.loads(body)["data"]["result"]:
        labels = dict(one["metric"])
        name = labels.pop("__name__")
        key = (name, tuple(sorted(labels.items())))
        series[key] = {round(t * 1000): bits(float(v)) for t, v in one["values"]}
    return series


class WritersTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))
        self.exporter = Exporter()
        self.addCleanup(self.exporter.server.shutdown)

    def stored(self, job):
        """As prometheus_samples(), of the collector; job and host are left out of the labels."""
        query = client.Query(self.collector.address)
        self.addCleanup(query.close)
        found = {}
        for series, points in query.series(job):
            labels = tuple(sorted((label.name, label.value) for label in series.labels))
            found[(series.metric.name, labels)] = {t // 1_000_000: v for t, _, _, v in points}
        return found

    def configure(self, name):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(
                "global: {scrape_interval: 250ms, scrape_timeout: 200ms}\n"
                "scrape_configs:\n"
                "  - job_name: trainer\n"
                f"    static_configs: [{{targets: ['{self.exporter.address}']}}]\n"
            )
        return path

    def kill_some_times(self, times):
        for _ in range(times):
            time.sleep(self.random.uniform(0.5, 2))
            self.collector.kill()
            time.sleep(self.random.uniform(0, 1))
            self.collector.start()

    def test_prometheus_writes_and_the_collector_is_killed_meanwhile(self):
        config = self.configure("prometheus.yml")
        with open(config, "a") as file:
            file.write(f"remote_write: [{{url: '{self.collector.url('/api/v1/write')}'}}]\n")
        port = harness.free_port()
        url = f"http://127.0.0.1:{port}"
        prometheus = self.started(harness.Program(
            [harness.tool("prometheus"), f"--config.file={config}",
             f"--storage.tsdb.path={self.directory}/prometheus", f"--web.listen-address=127.0.0.1:{port}"],
            os.path.join(self.directory, "prometheus.log")))
        harness.wait_until(lambda: self.stored("trainer"), "the first samples stored")
        self.kill_some_times(3)
        # What Prometheus had until now must all arrive, value by value.
        queries = "{job='trainer'}[10m]"
        expected = prometheus_samples(url, queries)
        self.assertGreater(sum(map(len, expected.values())), 1000)
        def missing():
            stored = self.stored("trainer")
            for (metric, labels), samples in expected.items():
                wanted = tuple(label for label in labels if label[0] != "job")
                have = stored.get((metric, wanted), {})
                if not samples.items() <= have.items():
                    return (metric, labels, sorted(samples.items() - have.items())[:3])
            return None

        harness.wait_until(lambda: missing() is None, "all samples of Prometheus stored", timeout_s=90, pause_s=1)
        # And nothing was made up: what is stored of the same time is what Prometheus has.
        newest = max(max(samples) for samples in expected.values())
        for (metric, labels), samples in self.stored("trainer").items():
            if metric != "load":
                continue
            have = expected[(metric, tuple(sorted((*labels, ("job", "trainer")))))]
            self.assertEqual({t: v for t, v in samples.items() if t <= newest}, have)
        self.assertTrue(prometheus.alive())

    def test_vmagent_writes_and_the_collector_is_killed_meanwhile(self):
        config = self.configure("vmagent.yml")
        vmagent = self.started(harness.Program(
            [harness.tool("vmagent"), f"-promscrape.config={config}", "-httpListenAddr=127.0.0.1:0",
             f"-remoteWrite.url={self.collector.url('/api/v1/write')}",
             f"-remoteWrite.tmpDataPath={self.directory}/vmagent", "-remoteWrite.flushInterval=200ms"],
            os.path.join(self.directory, "vmagent.log")))
        harness.wait_until(lambda: self.stored("trainer"), "the first samples stored")
        self.kill_some_times(3)
        scrapes = self.exporter.scrapes - 1

        def steps():
            for (metric, _), samples in self.stored("trainer").items():
                if metric == "steps_total":
                    return {client.double(v) for v in samples.values()}
            return set()

        # Each scrape counts one further, so a hole shows. The first ones may have been before the
        # agent's first request.
        harness.wait_until(lambda: scrapes in steps(), "the newest scrape stored", timeout_s=90)
        have = steps()
        self.assertEqual(set(range(int(min(have)), scrapes + 1)) - have, set())
        self.assertTrue(vmagent.alive())


class RequestsTest(harness.TestCase):
    """What no honest tool sends."""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))

    def post(self, body, headers=None):
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        all_headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", **(headers or {})}
        connection.request("POST", "/api/v1/write", body, all_headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    def memory(self):
        with open(f"/proc/{self.collector.program.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10

    def test_ten_thousand_bad_requests_leave_the_collector_as_it_was(self):
        seeds = []
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz/corpus/remote_write_fuzz")
        for name in ("packed_1", "packed_2"):
            with open(os.path.join(root, name), "rb") as file:
                seeds.append(file.read()[1:])
        self.assertEqual(self.post(seeds[0])[0], 400, "its times are of 2023, before the retention")
        before = self.memory()
        statuses = {}
        for i in range(10_000 if not os.environ.get("TACHO_SANITIZER") else 500):
            body = bytearray(self.random.choice(seeds))
            for _ in range(self.random.randrange(1, 6)):
                body[self.random.randrange(len(body))] = self.random.randrange(256)
            if self.random.random() < 0.3:
                del body[self.random.randrange(len(body)):]
            headers = {"Content-Type": MESSAGE_2} if self.random.random() < 0.5 else {}
            status, text = self.post(bytes(body), headers)
            statuses[status] = statuses.get(status, 0) + 1
            self.assertIn(status, (204, 400, 413), text)
            self.assertTrue(status == 204 or text, "a refusal has words")
        self.assertLess(self.memory() - before, 128 << 20)
        self.assertGreater(statuses[400], 100)

    def test_two_hundred_large_requests_at_once_stay_within_the_memory(self):
        # Labels that differ everywhere, so that nothing packs and all is new.
        body = os.urandom(4 << 20)
        packed = _varint(len(body)) + b"".join(
            b"\xf4" + struct.pack("<H", len(chunk) - 1) + chunk
            for chunk in (body[i : i + 65536] for i in range(0, len(body), 65536)))
        before = self.memory()
        peak = [before]
        results = []

        def send():
            try:
                results.append(self.post(packed)[0])
            except OSError:
                results.append(0)  # Turned away before its body was read.

        threads = [threading.Thread(target=send) for _ in range(200)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            peak[0] = max(peak[0], self.memory())
            time.sleep(0.02)
        self.assertEqual(len(results), 200)
        self.assertTrue(set(results) <= {0, 400, 503}, set(results))
        self.assertLess(peak[0] - before, 512 << 20)
        self.assertEqual(harness.http_get(self.collector.url("/readyz"))[0], 200)


def _varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


if __name__ == "__main__":
    harness.main()
