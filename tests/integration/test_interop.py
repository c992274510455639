"""Other tools write to the collector: a real Prometheus, a real vmagent, and requests of our own."""
import base64
import gzip
import hashlib
import http.client
import http.server
import json
import os
import random
import re
import socket
import struct
import subprocess
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


class OpenTelemetryTest(harness.TestCase):
    """The same points over gRPC and over HTTP, with and without a token."""

    CONFIG = "auth: {tokens_file: %s, allow_plaintext: true}\n"

    def setUp(self):
        super().setUp()
        tokens = os.path.join(self.directory, "tokens.yaml")
        with open(tokens, "w") as file:
            for name, jobs in (("writer", "vision.*"), ("reader", ".*")):
                digest = hashlib.sha256(f"token-of-{name}-0123456789".encode()).hexdigest()
                roles = "write" if name == "writer" else "read"
                file.write("tokens:\n" if name == "writer" else "")
                file.write(f"  - {{name: {name}, sha256: {digest}, roles: [{roles}], jobs: '{jobs}'}}\n")
        os.chmod(tokens, 0o600)
        self.collector = self.started(harness.Collector(self.directory, self.CONFIG % tokens))

    @staticmethod
    def request(job, values):
        now = time.time_ns()
        text = {
            "resourceMetrics": [{
                "resource": {"attributes": [
                    {"key": "service.name", "value": {"stringValue": job}},
                    {"key": "host.name", "value": {"stringValue": "h1"}},
                    {"key": "tacho.task", "value": {"intValue": "2"}},
                ]},
                "scopeMetrics": [{"metrics": [{"name": "train.loss", "unit": "1", "gauge": {"dataPoints": [
                    {"timeUnixNano": str(now + i), "asDouble": value} for i, value in enumerate(values)
                ]}}]}],
            }]
        }  # fmt: skip
        return text

    def export(self, request, token):
        from interop import otlp_metrics_service_pb2, otlp_metrics_service_pb2_grpc
        from google.protobuf import json_format
        import grpc

        message = json_format.ParseDict(
            request, otlp_metrics_service_pb2.ExportMetricsServiceRequest()
        )
        with client.connect(self.collector.address) as channel:
            stub = otlp_metrics_service_pb2_grpc.MetricsServiceStub(channel)
            try:
                stub.Export(message, metadata=client.bearer(token), timeout=30)
                return "OK"
            except grpc.RpcError as error:
                return error.code().name

    def export_logs(self, request, token):
        from interop import otlp_logs_service_pb2, otlp_logs_service_pb2_grpc
        from google.protobuf import json_format
        import grpc

        message = json_format.ParseDict(request, otlp_logs_service_pb2.ExportLogsServiceRequest())
        with client.connect(self.collector.address) as channel:
            stub = otlp_logs_service_pb2_grpc.LogsServiceStub(channel)
            try:
                stub.Export(message, metadata=client.bearer(token), timeout=30)
                return "OK"
            except grpc.RpcError as error:
                return error.code().name

    def post(self, request, token, path="/v1/metrics"):
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        connection.request(
            "POST", path, gzip.compress(json.dumps(request).encode()), headers
        )
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    def test_both_ways_store_the_same_for_those_who_may_write(self):
        writer, reader = "token-of-writer-0123456789", "token-of-reader-0123456789"
        self.assertEqual(self.export(self.request("vision-grpc", [0.5, 0.25]), writer), "OK")
        self.assertEqual(self.post(self.request("vision-http", [0.5, 0.25]), writer), 200)
        for token, code, status in ((None, "UNAUTHENTICATED", 401), (reader, "PERMISSION_DENIED", 403)):
            self.assertEqual(self.export(self.request("vision", [1.0]), token), code)
            self.assertEqual(self.post(self.request("vision", [1.0]), token), status)
        self.assertEqual(self.export(self.request("speech", [1.0]), writer), "PERMISSION_DENIED")
        self.assertEqual(self.post(self.request("speech", [1.0]), writer), 403)
        token_file = os.path.join(self.directory, "reader.token")
        with open(token_file, "w") as file:
            file.write(reader)
        os.chmod(token_file, 0o600)
        shown = {}
        for job in ("vision-grpc", "vision-http", "vision", "speech"):
            answer = harness.tachoctl(
                self.collector.address, "query", job, "train.loss", "-o", "csv",
                env={"TACHO_TOKEN_FILE": token_file})  # fmt: skip
            shown[job] = answer.stdout
        self.assertIn("0.25", shown["vision-grpc"])
        self.assertIn("0.25", shown["vision-http"])
        for job in ("vision", "speech"):
            self.assertLessEqual(len(shown[job].splitlines()), 1, "the head of the table, no sample")


    def test_events_need_the_same_rights(self):
        def logs(job):
            return {"resourceLogs": [{
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": job}}]},
                "scopeLogs": [{"logRecords": [{"eventName": "text", "timeUnixNano": str(time.time_ns())}]}],
            }]}  # fmt: skip

        writer, reader = "token-of-writer-0123456789", "token-of-reader-0123456789"
        for job, token, code, status in (
            ("vision", writer, "OK", 200),
            ("speech", writer, "PERMISSION_DENIED", 403),
            ("vision", reader, "PERMISSION_DENIED", 403),
            ("vision", None, "UNAUTHENTICATED", 401),
        ):
            self.assertEqual(self.export_logs(logs(job), token), code)
            self.assertEqual(self.post(logs(job), token, "/v1/logs"), status)


class OpenTelemetryLogsTest(harness.TestCase):
    """Events arrive over gRPC and over HTTP, once each, and outlive a kill; other logs do not."""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))

    @staticmethod
    def record(name, body, time_ns, **attributes):
        return {
            "timeUnixNano": str(time_ns),
            "severityNumber": 9,
            "eventName": name,
            "body": {"stringValue": body},
            "attributes": [
                {"key": key, "value": {"intValue" if isinstance(value, int) else "stringValue": str(value)}}
                for key, value in attributes.items()
            ],
        }

    @staticmethod
    def request(job, *records):
        attributes = {"service.name": job, "host.name": "h1", "tacho.task": "2"}
        return {
            "resourceLogs": [{
                "resource": {"attributes": [
                    {"key": key, "value": {"stringValue": value}} for key, value in attributes.items()
                ]},
                "scopeLogs": [{"logRecords": list(records)}],
            }]
        }  # fmt: skip

    def export(self, request):
        """(rejected records, message) over gRPC."""
        from interop import otlp_logs_service_pb2, otlp_logs_service_pb2_grpc
        from google.protobuf import json_format

        message = json_format.ParseDict(
            request, otlp_logs_service_pb2.ExportLogsServiceRequest(), ignore_unknown_fields=True
        )
        with client.connect(self.collector.address) as channel:
            partial = (
                otlp_logs_service_pb2_grpc.LogsServiceStub(channel)
                .Export(message, timeout=30)
                .partial_success
            )
        return partial.rejected_log_records, partial.error_message

    def post(self, request):
        """The same over HTTP, in JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        connection.request("POST", "/v1/logs", gzip.compress(json.dumps(request).encode()), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        self.assertEqual(answer.status, 200, text)
        partial = json.loads(text).get("partialSuccess", {})
        return int(partial.get("rejectedLogRecords", 0)), partial.get("errorMessage", "")

    def events(self, job):
        query = client.Query(self.collector.address)
        found = query.events(job)
        query.close()
        return found

    def test_events_are_read_back_over_both_ways_and_stored_once(self):
        now = time.time_ns()
        for job, send in (("by-grpc", self.export), ("by-http", self.post)):
            request = self.request(
                job,
                self.record("checkpoint_saved", "saved", now, step=100, path="/ckpt/100"),
                self.record("tacho.sweep_began", "", now + 1),
            )
            for _ in range(3):  # As if the answer had been lost.
                self.assertEqual(send(request), (0, ""))
            saved, began = sorted(self.events(job), key=lambda event: event.time_unix_ns)
            self.assertEqual((saved.kind, saved.message, saved.step), ("checkpoint_saved", "saved", 100))
            self.assertEqual(dict(saved.fields), {"path": "/ckpt/100"})
            self.assertEqual((saved.source.host, saved.source.task), ("h1", 2))
            self.assertEqual(saved.time_unix_ns, now)
            self.assertEqual((began.kind, began.HasField("step")), ("sweep_began", False))

    def test_other_logs_are_refused_politely(self):
        now = time.time_ns()
        for job, send in (("by-grpc", self.export), ("by-http", self.post)):
            rejected, message = send(self.request(
                job, self.record("", "GET / 200", now), self.record("text", "kept", now),
                self.record("browser.page_view", "", now)))  # fmt: skip
            self.assertEqual(rejected, 2)
            self.assertIn("only events", message)
            self.assertIn("checkpoint_saved", message)
            self.assertEqual([event.message for event in self.events(job)], ["kept"])

    def test_an_answered_event_outlives_a_kill_and_its_repeat_is_known(self):
        for i in range(5):
            request = self.request("vision", self.record("text", str(i), time.time_ns()))
            self.assertEqual(self.export(request), (0, ""))
            self.collector.kill()
            self.collector.start()
            self.assertEqual(self.post(request), (0, ""))
            self.assertEqual(
                sorted(event.message for event in self.events("vision")), [str(n) for n in range(i + 1)]
            )


class InfluxTest(harness.TestCase):
    """InfluxDB's line protocol, as clients of its versions 1 and 2 send it."""

    TOKEN = "token-of-writer-0123456789"

    def start(self, config=""):
        self.collector = self.started(harness.Collector(self.directory, config))

    def request(self, method, target, body=None, headers=None):
        """The status, the headers and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        connection.request(method, target, body, headers or {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, answer.headers, text

    def write(self, target, text, headers=None):
        """The status, and the members of the error."""
        status, _, body = self.request("POST", target, text, headers)
        return status, json.loads(body) if body else {}

    def write_as_telegraf(self, text):
        """As its output influxdb_v2 does: packed, in chunks, over a connection that stays open."""
        body = gzip.compress(text)
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        headers = {"Content-Encoding": "gzip", "Content-Type": "text/plain; charset=utf-8"}
        statuses = []
        for size in (len(body), 100):
            pieces = (body[i : i + size] for i in range(0, len(body), size))
            connection.request(
                "POST", "/api/v2/write?bucket=b&org=o", pieces, {**headers, "Transfer-Encoding": "chunked"},
                encode_chunked=True)
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        connection.close()
        return statuses

    def stored(self, job):
        """{(metric, host, labels): {time in ns: bits}}; fails if a sample is there twice."""
        query = client.Query(self.collector.address)
        found = {}
        for series, points in query.series(job):
            labels = tuple(sorted((label.name, label.value) for label in series.labels))
            samples = {time_ns: value for time_ns, _, _, value in points}
            self.assertEqual(len(samples), len(points), "stored once")
            found[(series.metric.name, series.host, labels)] = samples
        query.close()
        return found

    def test_what_is_acknowledged_is_stored_bit_for_bit_and_once(self):
        self.start()
        now_s = int(time.time()) - 100
        values = [0.1, -0.0, 5e-324, 1.7976931348623157e308] + [
            client.double(self.random.getrandbits(63) & ~(1 << 62)) for _ in range(200)]
        lines = [
            f"cpu\\ load,host=h1,job=vision,core={i % 7} usage={value!r},idle={i}i,text=\"a\nb\" {now_s}{i:09}"
            for i, value in enumerate(values)
        ]  # fmt: skip
        body = "\n".join(lines).encode()
        packed = {"Content-Encoding": "gzip"}
        expected = {}
        for i, value in enumerate(values):
            labels = (("core", str(i % 7)),)
            for name, one in (("cpu load_usage", value), ("cpu load_idle", float(i))):
                samples = expected.setdefault((name, "h1", labels), {})
                samples[now_s * 10**9 + i] = bits(one)
        for target, text, headers in (
            ("/api/v2/write?org=a&bucket=b&precision=ns", body, None),
            ("/write?db=telegraf", body, None),
            ("/api/v2/write?org=a&bucket=b", gzip.compress(body), packed),
        ):
            self.assertEqual(self.write(target, text, headers), (204, {}))
            self.assertEqual(self.stored("vision"), expected)
        self.assertEqual(self.write_as_telegraf(body), [204, 204])
        self.assertEqual(self.stored("vision"), expected)
        self.assertEqual(self.write(
            "/write?precision=s", gzip.compress(f"loss,host=h1,job=vision value=0.25 {now_s}".encode()), packed,
        ), (204, {}))  # fmt: skip
        expected[("loss", "h1", ())] = {now_s * 10**9: bits(0.25)}
        self.collector.kill()
        self.collector.start()
        self.assertEqual(self.stored("vision"), expected)

    def test_a_bad_line_is_named_and_the_others_are_stored(self):
        self.start()
        body = "a,job=vision v=1\nb,job=vision v=NaN\nc,job=vision v=3\n"
        status, error = self.write("/api/v2/write", body)
        self.assertEqual((status, error["code"]), (400, "invalid"))
        self.assertRegex(error["message"], "^partial write: unable to parse line 2, .*'NaN'.*dropped=1 ")
        self.assertEqual({name for name, _, _ in self.stored("vision")}, {"a_v", "c_v"})
        status, error = self.write("/write", "d,job=vision v=1 5\n")
        self.assertEqual((status, list(error)), (400, ["error"]))
        self.assertRegex(error["error"], "storage.retention")
        self.assertEqual(self.write("/write?precision=d", body)[0], 400)
        self.assertEqual(self.write("/write", b"no gzip", {"Content-Encoding": "gzip"})[0], 400)

    def test_a_client_finds_the_door_and_may_write_its_jobs_only(self):
        tokens = os.path.join(self.directory, "tokens.yaml")
        digest = hashlib.sha256(self.TOKEN.encode()).hexdigest()
        with open(tokens, "w") as file:
            file.write(f"tokens: [{{name: w, sha256: {digest}, roles: [write], jobs: 'vision.*'}}]\n")
        os.chmod(tokens, 0o600)
        self.start(f"auth: {{tokens_file: {tokens}, allow_plaintext: true}}\n")
        for method in ("GET", "HEAD"):
            status, headers, _ = self.request(method, "/ping")
            self.assertEqual(status, 204)
            self.assertTrue(headers["X-Influxdb-Version"])
        of_two = {"Authorization": f"Token {self.TOKEN}"}
        basic = base64.b64encode(f"anybody:{self.TOKEN}".encode()).decode()
        of_one = {"Authorization": f"Basic {basic}"}
        for target, headers in (("/api/v2/write", of_two), ("/write", of_one)):
            self.assertEqual(self.write(target, "loss,job=vision value=1", headers)[0], 204)
            self.assertEqual(self.write(target, "loss,job=speech value=1", headers)[0], 403)
            status, error = self.write(target, "loss,job=vision value=1")
            self.assertEqual(status, 401)
            self.assertIn("no token was sent", error.get("error") or error["message"])


class PushTest(harness.TestCase):
    """Short jobs push and go, as to a Pushgateway."""

    GROUP = "/metrics/job/eval/shard/3"

    def setUp(self):
        super().setUp()
        self.start("")

    def start(self, config):
        self.collector = self.started(harness.Collector(self.directory, config=config))

    def send(self, method, path, body=b"", headers=None):
        """The status and the text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def stored(self):
        """{(metric, labels): [values in the order of their times]} of the job, as queries see it."""
        query = client.Query(self.collector.address)
        found = {}
        for series, points in query.series("eval"):
            labels = tuple(sorted((label.name, label.value) for label in series.labels))
            if series.metric.name != "push_time_seconds":
                found[(series.metric.name, labels)] = [
                    struct.unpack("<d", struct.pack("<Q", v))[0] for _, _, _, v in sorted(points)
                ]
        query.close()
        return found

    def shown(self):
        """The largest value of each metric of the job on /metrics, without the times of pushes."""
        page = harness.http_get(self.collector.url("/metrics"))[2].decode()
        return {
            line.split("{")[0]: float(line.split()[-1])
            for line in page.splitlines()
            if 'job="eval"' in line and 'stat="max"' in line and "push_time" not in line
        }

    def test_post_put_and_delete(self):
        shard = ("shard", "3")
        first = b"# TYPE accuracy gauge\naccuracy{set=\"a\"} 0.5\nspeed 10\n"
        self.assertEqual(self.send("POST", self.GROUP, first), (200, ""))
        self.assertEqual(self.shown(), {"tacho_job_accuracy": 0.5, "tacho_job_speed": 10})
        self.assertEqual(self.send("POST", self.GROUP, b'accuracy{set="b"} 0.25\n'), (200, ""))
        self.assertEqual(self.shown(), {"tacho_job_accuracy": 0.25, "tacho_job_speed": 10})
        packed = gzip.compress(b'accuracy{set="b"} 0.75\n')
        self.assertEqual(self.send("PUT", self.GROUP, packed, {"Content-Encoding": "gzip"}), (200, ""))
        self.assertEqual(self.shown(), {"tacho_job_accuracy": 0.75})
        self.assertEqual(self.send("DELETE", self.GROUP), (202, ""))
        self.assertEqual(self.shown(), {})
        expected = {
            ("accuracy", (("set", "a"), shard)): [0.5],
            ("accuracy", (("set", "b"), shard)): [0.25, 0.75],
            ("speed", (shard,)): [10.0],
        }
        self.assertEqual(self.stored(), expected, "what is stored stays")
        self.collector.kill()
        self.collector.start()
        self.assertEqual(self.stored(), expected, "it was synced when it was answered")

    def test_bad_requests_are_answered_and_lose_nothing(self):
        self.assertEqual(self.send("POST", self.GROUP, b"accuracy 0.5\n"), (200, ""))
        for path, body in (
            (self.GROUP, b"accuracy\n"),
            (self.GROUP, b"accuracy one\n"),
            (self.GROUP, b"accuracy 1 1700000000000\n"),
            (self.GROUP, b'accuracy{set="a} 1\n'),
            (self.GROUP, b"good 1\naccuracy 1\naccuracy 2\n"),
            (self.GROUP, b'accuracy{set="\xff"} 1\n'),
            (self.GROUP, b"push_time_seconds 1\n"),
            ("/metrics/job/", b"accuracy 1\n"),
            ("/metrics/job/eval/shard", b"accuracy 1\n"),
            ("/metrics/job/eval/2nd/3", b"accuracy 1\n"),
        ):
            status, text = self.send("PUT", path, body)
            self.assertEqual(status, 400, (path, body))
            self.assertTrue(text.strip(), "a refusal has words")
        protobuf = {"Content-Type": "application/vnd.google.protobuf"}
        self.assertEqual(self.send("POST", self.GROUP, b"x", protobuf)[0], 415)
        self.assertEqual(self.send("GET", self.GROUP)[0], 405)
        self.assertEqual(self.shown(), {"tacho_job_accuracy": 0.5})
        self.assertEqual(self.stored(), {("accuracy", (("shard", "3"),)): [0.5]})

    def test_a_group_that_nobody_pushes_leaves_the_page(self):
        self.collector.kill()
        self.start("interop: {push_expiry: 2s}\n")
        self.assertEqual(self.send("POST", self.GROUP, b"accuracy 0.5\n"), (200, ""))
        self.assertEqual(self.shown(), {"tacho_job_accuracy": 0.5})
        harness.wait_until(lambda: not self.shown(), "the group expired", timeout_s=30)
        self.assertEqual(self.stored(), {("accuracy", (("shard", "3"),)): [0.5]})

    def test_a_script_pushes_with_tachoctl(self):
        def push(*words):
            return harness.tachoctl(self.collector.address, "push", *words)

        words = ("--label", "set=test", "--host", "h")
        answer = push("job=eval", "accuracy=0.5", "loss=-1e3", "step=1200", *words)
        self.assertEqual((answer.returncode, answer.stdout), (0, "stored 2 samples of eval\n"), answer.stderr)
        answer = push("job=eval", "accuracy=0.75", *words, "-o", "json")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(
            json.loads(answer.stdout), {"job": "eval", "stored_samples": 1, "refused_samples": 0}
        )
        label = (("set", "test"),)
        self.assertEqual(
            self.stored(), {("accuracy", label): [0.5, 0.75], ("loss", label): [-1000.0]}
        )
        query = client.Query(self.collector.address)
        (_, points), = query.series("eval", "loss")
        query.close()
        self.assertEqual([step for _, step, _, _ in points], [1200])
        for words in (
            ("job=eval", "accuracy"),
            ("job=eval", "accuracy=one"),
            ("job=eval", "step=1"),
            ("accuracy=1", "loss=2"),
            ("job=eval", "a=1", "a=2"),
            ("job=eval", "a=1", "step=x"),
            ("job=eval", "a=1", "--label", "b"),
            ("job=eval", "a\n=1"),
        ):
            self.assertEqual(push(*words).returncode, 2, words)
        answer = harness.tachoctl("127.0.0.1:1", "push", "job=eval", "a=1", "--timeout", "1s")
        self.assertEqual(answer.returncode, 3, answer.stderr)


class StatsdTest(harness.TestCase):
    """Datagrams and lines of StatsD, as trainers send them."""

    CONFIG = "interop: {statsd: {listen: '127.0.0.1:0', interval: 1s}}\n"

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, self.CONFIG))
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.datagrams.close)
        self.connect()

    def connect(self):
        """The port is free, so only the log has it."""
        with open(self.collector.log) as file:
            ports = re.findall(r"statsd listens.*?port\W+(\d+)", file.read())
        self.port = int(ports[-1])
        self.datagrams.connect(("127.0.0.1", self.port))

    def last(self):
        """{(metric, host, labels): the last value} of the job."""
        query = client.Query(self.collector.address)
        found = {}
        for series, points in query.series("bert"):
            labels = tuple(sorted((label.name, label.value) for label in series.labels))
            found[(series.metric.name, series.host, labels)] = client.double(points[-1][3])
        query.close()
        return found

    def counted(self, name):
        _, _, page = harness.http_get(self.collector.url("/metrics"))
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in page.decode().splitlines() if line.startswith(name + "{") or line.startswith(name + " "))

    def test_both_ways_arrive_and_a_stop_stores_the_last_interval(self):
        tags = "#job:bert,host:h1"
        for i in range(100):
            self.datagrams.send(f"steps:2|c|{tags}\nstep_time:1:2:3|ms|{tags}\nusers:{i % 3}|s|{tags}".encode())
        with socket.create_connection(("127.0.0.1", self.port)) as lines:
            lines.sendall(f"loss:0.25|g|{tags},phase:warmup\nsteps:5|c|@0.5|{tags}\n".encode())
        expected = {
            ("steps", "h1", ()): 210.0,
            ("step_time_count", "h1", ()): 300.0,
            ("step_time_sum", "h1", ()): 600.0,
            ("loss", "h1", (("phase", "warmup"),)): 0.25,
        }
        harness.wait_until(lambda: expected.items() <= self.last().items(), "stored", timeout_s=30)
        found = self.last()
        self.assertIn(("users", "h1", ()), found)
        self.assertEqual(found[("step_time_max", "h1", ())], 3)
        self.assertEqual(found[("step_time", "h1", (("quantile", "0.5"),))], 2)
        self.datagrams.send(f"steps:1|c|{tags}\nlast:1|g|{tags}".encode())
        harness.wait_until(lambda: self.counted("tacho_interop_statsd_values_total") == 504, "read")
        self.assertEqual(self.collector.stop(), 0)
        self.collector.start()
        found = self.last()
        self.assertEqual((found[("steps", "h1", ())], found[("last", "h1", ())]), (211, 1))

    def test_ten_thousand_bad_datagrams_leave_the_collector_as_it_was(self):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz/corpus/statsd_fuzz")
        seeds = []
        for name in sorted(os.listdir(root)):
            with open(os.path.join(root, name), "rb") as file:
                seeds.append(file.read())

        def memory():
            with open(f"/proc/{self.collector.program.process.pid}/status") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10

        before = memory()
        for _ in range(10_000 if not os.environ.get("TACHO_SANITIZER") else 500):
            body = bytearray(self.random.choice(seeds))
            for _ in range(self.random.randrange(1, 6)):
                body[self.random.randrange(len(body))] = self.random.randrange(256)
            self.datagrams.send(body)
        self.datagrams.send(b"steps:7|c|#job:bert,host:h1")
        harness.wait_until(lambda: self.last().get(("steps", "h1", ())) == 7, "the good one is stored", timeout_s=60)
        self.assertLess(memory() - before, 128 << 20)
        self.assertEqual(harness.http_get(self.collector.url("/readyz"))[0], 200)
        self.assertGreater(self.counted("tacho_interop_statsd_dropped_total"), 100)

    def test_the_set_up_of_the_documentation_works(self):
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/interop.md")
        with open(page) as file:
            config, script = re.findall(
                r"<!-- not run: [^>]*StatsdTest[^>]*-->\n```\w+\n(.*?)```", file.read(), re.DOTALL)
        self.collector.kill()
        self.assertIn("127.0.0.1:8125", config)
        self.collector = self.started(harness.Collector(
            self.directory, config.replace(":8125", ":0").replace("interval: 10s", "interval: 1s")))
        self.connect()
        sent = subprocess.run(
            ["bash", "-ec", script.replace("/8125", f"/{self.port}")], capture_output=True, text=True, timeout=60)
        self.assertEqual(sent.returncode, 0, sent.stderr)
        expected = {("train.steps", "h1", ()): 1, ("train.loss", "h1", ()): 0.25}
        harness.wait_until(lambda: expected.items() <= self.last().items(), "stored", timeout_s=30)

    def test_other_machines_are_let_in_on_purpose_only(self):
        self.collector.kill()
        with self.assertRaisesRegex(AssertionError, "interop.statsd.listen: other machines can reach"):
            self.started(harness.Collector(self.directory, "interop: {statsd: {listen: '0.0.0.0:0'}}\n"))


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

    def test_ten_thousand_bad_requests_leave_the_collector_as_it_was(self):
        seeds = []
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz/corpus/remote_write_fuzz")
        for name in ("packed_1", "packed_2"):
            with open(os.path.join(root, name), "rb") as file:
                seeds.append(file.read()[1:])
        self.assertEqual(self.post(seeds[0])[0], 400, "its times are of 2023, before the retention")
        before = self.memory()
        statuses = {}
        connection = self.connect()
        self.addCleanup(connection.close)
        for i in range(10_000 if not os.environ.get("TACHO_SANITIZER") else 500):
            body = bytearray(self.random.choice(seeds))
            for _ in range(self.random.randrange(1, 6)):
                body[self.random.randrange(len(body))] = self.random.randrange(256)
            if self.random.random() < 0.3:
                del body[self.random.randrange(len(body)):]
            headers = {"Content-Type": MESSAGE_2} if self.random.random() < 0.5 else {}
            status, text = self.post(bytes(body), headers, connection)
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
        self.assertLess(peak[0] - before, 256 << 20)
        self.assertEqual(harness.http_get(self.collector.url("/readyz"))[0], 200)


def _varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


if __name__ == "__main__":
    harness.main()
