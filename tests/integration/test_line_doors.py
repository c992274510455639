"""Lines that trainers send: InfluxDB's line protocol and StatsD."""
import base64
import gzip
import hashlib
import http.client
import json
import os
import re
import socket
import subprocess
import time

import harness
import client
import doors
from client import bits


class InfluxTest(harness.TestCase):
    """InfluxDB's line protocol, as clients of its versions 1 and 2 send it."""

    TOKEN = "token-of-writer-0123456789"

    def start(self, config=""):
        self.collector = self.started(harness.Collector(self.directory, config))

    def request(self, method, target, body=None, headers=None):
        """The status, the headers and the body."""
        return doors.send(self.collector, method, target, body, headers)

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


if __name__ == "__main__":
    harness.main()
