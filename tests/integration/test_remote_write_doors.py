"""Senders of remote write: a real Prometheus, a real vmagent, and requests that no honest tool sends."""
import http.client
import http.server
import json
import os
import random
import threading
import time

import harness
import client
from client import bits
from snappy_literals import packed


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
        # Not -0: Prometheus leaves a value that equals 0 out of its message.
        specials = ["NaN", "+Inf", "-Inf", "0", "1e-320", "1.7976931348623157e+308"]
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
        series[key] = {round(t * 1000): pattern(v) for t, v in one["values"]}
    return series


def pattern(text):
    """The bits of a value as Prometheus writes it; it has one NaN (model/value/value.go: NormalNaN)."""
    return 0x7FF8000000000001 if text == "NaN" else bits(float(text))


class WritersTest(harness.TestCase):
    """What a real sender was told is stored is there, though the collector is killed meanwhile. The
    truth is in a Prometheus that has the same samples."""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))
        self.exporter = Exporter()
        self.addCleanup(self.exporter.server.shutdown)

    def stored(self):
        """As prometheus_samples(), of the collector's job "trainer"; without the label job."""
        query = client.Query(self.collector.address)
        found = {}
        for series, points in query.series("trainer"):
            labels = tuple(sorted((label.name, label.value) for label in series.labels))
            found[(series.metric.name, labels)] = {t // 1_000_000: v for t, _, _, v in points}
            # Requests come twice after a kill.
            self.assertEqual(len(found[(series.metric.name, labels)]), len(points), "stored once")
        query.close()
        return found

    def start_prometheus(self, config, *flags):
        path = os.path.join(self.directory, "prometheus.yml")
        with open(path, "w") as file:
            file.write(config)
        port = harness.free_port()
        prometheus = harness.Program(
            [harness.tool("prometheus"), f"--config.file={path}", *flags,
             f"--storage.tsdb.path={self.directory}/prometheus", f"--web.listen-address=127.0.0.1:{port}"],
            os.path.join(self.directory, "prometheus.log"))  # fmt: skip
        self.started(prometheus)
        url = f"http://127.0.0.1:{port}"

        def ready():
            try:
                return harness.http_get(url + "/-/ready")[0] == 200
            except OSError:
                return False

        harness.wait_until(ready, "Prometheus ready")
        return url

    def scrapes(self):
        return (
            "global: {scrape_interval: 500ms, scrape_timeout: 500ms}\n"
            "scrape_configs:\n"
            "  - job_name: trainer\n"
            f"    static_configs: [{{targets: ['{self.exporter.address}']}}]\n"
        )

    def kill_some_times(self, times):
        harness.wait_until(self.stored, "the first samples stored")
        for _ in range(times):
            time.sleep(self.random.uniform(1, 3))
            self.collector.kill()
            time.sleep(self.random.uniform(0, 1))
            self.collector.start()
        time.sleep(1)

    def compare(self, url):
        """Everything that Prometheus has now must arrive, bit for bit, and nothing else of that time."""
        expected = {
            (name, tuple(label for label in labels if label[0] != "job")): samples
            for (name, labels), samples in prometheus_samples(url, "{job='trainer'}[10m]").items()
        }
        self.assertGreater(sum(map(len, expected.values())), 1000)

        def missing():
            stored = self.stored()
            return [
                (key, sorted(samples.items() - stored.get(key, {}).items())[:3])
                for key, samples in expected.items()
                if not samples.items() <= stored.get(key, {}).items()
            ]

        try:
            harness.wait_until(lambda: not missing(), "all samples stored", timeout_s=90, pause_s=1)
        except AssertionError as late:
            raise AssertionError(f"{late}: {missing()[:5]}") from None
        for key, samples in self.stored().items():
            have = expected.get(key, {})
            newest = max(have, default=0)
            self.assertEqual({t: v for t, v in samples.items() if t <= newest}, have, key)

    def test_prometheus(self):
        url = self.start_prometheus(
            self.scrapes() + f"remote_write: [{{url: '{self.collector.url('/api/v1/write')}'}}]\n"
        )
        self.kill_some_times(3)
        self.compare(url)

    def test_vmagent(self):
        url = self.start_prometheus("", "--web.enable-remote-write-receiver")
        config = os.path.join(self.directory, "vmagent.yml")
        with open(config, "w") as file:
            file.write(self.scrapes())
        self.started(harness.Program(
            [harness.tool("vmagent"), f"-promscrape.config={config}",
             f"-httpListenAddr=127.0.0.1:{harness.free_port()}",
             f"-remoteWrite.url={self.collector.url('/api/v1/write')}",
             f"-remoteWrite.url={url}/api/v1/write",
             f"-remoteWrite.tmpDataPath={self.directory}/vmagent", "-remoteWrite.flushInterval=200ms",
             "-remoteWrite.queues=1"],  # Prometheus takes no samples out of order.
            os.path.join(self.directory, "vmagent.log")))  # fmt: skip
        self.kill_some_times(3)
        self.compare(url)


class RequestsTest(harness.TestCase):
    """What no honest tool sends."""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))

    def post(self, body, headers=None, connection=None):
        """The status and the text, over a connection of its own or over one that stays open."""
        used = connection or self.connect()
        used.request(
            "POST", "/api/v1/write", body,
            {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", **(headers or {})},
        )  # fmt: skip
        answer = used.getresponse()
        text = answer.read()
        if connection is None:
            used.close()
        return answer.status, text

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)

    def memory(self):
        with open(f"/proc/{self.collector.program.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10

    def test_two_hundred_large_requests_at_once_stay_within_the_memory(self):
        # Labels that differ everywhere, so that nothing packs and all is new.
        body = os.urandom(4 << 20)
        request = packed(body)
        before = self.memory()
        peak = [before]
        results = []

        def send():
            try:
                results.append(self.post(request)[0])
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
        self.assertLess(peak[0] - before, 256 << 20)
        self.assertEqual(harness.http_get(self.collector.url("/readyz"))[0], 200)


if __name__ == "__main__":
    harness.main()
