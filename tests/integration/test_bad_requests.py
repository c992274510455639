"""Ten thousand bad requests by each way in. Memory stays bounded, nobody else notices, and the collector works
afterwards."""
import gzip
import http.client
import json
import os
import random
import re
import socket
import threading
import time

import harness
import client
import http2
from client import bits, double
from snappy_literals import packed as literally_packed, varint

COUNT = 10_000 if not os.environ.get("TACHO_SANITIZER") else 500
SENDERS = 4
CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz/corpus")
MESSAGE_2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"


def corpus(folder):
    seeds = []
    for name in sorted(os.listdir(os.path.join(CORPUS, folder))):
        with open(os.path.join(CORPUS, folder, name), "rb") as file:
            seeds.append(file.read())
    return seeds


def field(number, payload):
    """A field of protobuf with bytes."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def nested(depth, number=5, payload=b""):
    for _ in range(depth):
        payload = field(number, payload)
    return payload


def zeros_packed(size):
    """Snappy's copies: each writes 64 zeros again."""
    return varint(size) + b"\x00\x00" + b"\xfe\x01\x00" * (size // 64)


BOMB_GZIP = gzip.compress(bytes(256 << 20), 6)
BOMBS_SNAPPY = (zeros_packed(64 << 20), varint(0xFFFFFFFF) + b"\x00a", varint(1 << 30) + b"\xfe\x01\x00" * 1000)


def mutated(random_, seed):
    body = bytearray(seed)
    for _ in range(random_.randrange(1, 4)):
        size = len(body)
        if size == 0:
            break
        at = random_.randrange(size)
        end = min(size, at + random_.randrange(1, 64))
        how = random_.randrange(6)
        if how == 0:
            del body[at:]
        elif how == 1:
            body[at] ^= 1 << random_.randrange(8)
        elif how == 2:
            body[at] = random_.choice([0, 0x7F, 0x80, 0xFF, random_.randrange(256)])
        elif how == 3:
            del body[at:end]
        elif how == 4:
            body[at:at] = random_.randbytes(random_.randrange(1, 16))
        else:
            body[at:at] = body[at:end] * random_.choice([1, 2, 200])
    return bytes(body)


class BadRequestsCase(harness.TestCase):
    """Subclasses say what a good request is, and how bad ones are sent."""

    config = ""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, self.config))
        self.at_work = True
        self.peak = self.at_half = 0
        self.acknowledged = {}  # Of the neighbour: {time in ns, or how many: value}.
        self.refused = []
        self.answers = {}
        self.lock = threading.Lock()
        self.errors = []

    # --- What subclasses say ------------------------------------------------------------------------

    def good(self, job, time_ns, value):
        """Writes a sample of the metric "alive" of a job; whether it was acknowledged."""
        raise NotImplementedError

    def sender(self, random_):
        """Returns a function that sends one bad request and returns what was answered."""
        raise NotImplementedError

    def check_answer(self, answer):
        """Fails if no bad request may be answered so."""

    # --- What all do --------------------------------------------------------------------------------

    def memory(self):
        with open(f"/proc/{self.collector.program.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10

    def watch_memory(self):
        while self.at_work:
            self.peak = max(self.peak, self.memory())
            time.sleep(0.01)

    def be_neighbour(self):
        while self.at_work:
            time_ns, value = time.time_ns(), random.random()
            try:
                taken = self.good("neighbour", time_ns, value)
            except Exception as error:  # It is shown at the end.
                taken = repr(error)
            if taken is True:
                self.acknowledged[time_ns] = bits(value)
            else:
                self.refused.append(taken)
            time.sleep(0.02)

    def send_some(self, number):
        random_ = random.Random(self.seed + number)
        try:
            send = self.sender(random_)
            for _ in range(COUNT // SENDERS):
                answer = send()
                self.check_answer(answer)
                with self.lock:
                    self.answers[answer] = self.answers.get(answer, 0) + 1
                    if sum(self.answers.values()) == COUNT // 2:
                        self.at_half = self.memory()
        except BaseException as error:
            self.errors.append(error)

    def stored(self, job):
        query = client.Query(self.collector.address)
        found = [(time, pattern) for _, points in query.series(job, "alive") for time, _, _, pattern in points]
        query.close()
        return found

    def check_stored(self, stored):
        """What the neighbour was told is stored is there, and nothing else."""
        self.assertEqual(dict(stored), self.acknowledged)
        self.assertEqual(len(stored), len(self.acknowledged))

    def run_it(self):
        self.assertIs(self.good("warm", time.time_ns(), 1.0), True)
        before = self.memory()
        helpers = [threading.Thread(target=self.watch_memory), threading.Thread(target=self.be_neighbour)]
        senders = [threading.Thread(target=self.send_some, args=(i,)) for i in range(SENDERS)]
        for thread in helpers + senders:
            thread.start()
        for thread in senders:
            thread.join()
        self.at_work = False
        for thread in helpers:
            thread.join()
        if self.errors:
            raise self.errors[0]
        self.assertTrue(self.collector.program.alive())
        self.assertEqual(self.refused, [], "the neighbour was told something else")
        self.assertGreater(len(self.acknowledged), 5)
        self.assertEqual(harness.http_get(self.collector.url("/readyz"))[0], 200)
        self.assertIs(self.good("after", time.time_ns(), 0.5), True)
        harness.wait_until(lambda: self.stored("after"), "a good request afterwards is stored")
        self.assertEqual([double(value) for _, value in self.stored("after")], [0.5])
        self.check_stored(self.stored("neighbour"))
        self.assertEqual(sum(self.answers.values()), COUNT)
        # What the first ones took is used again. 64 MiB in the second half would be 13 KB a request.
        after = self.memory()
        print(f"{self.answers}; MiB: +{after - before >> 20}, of which +{after - self.at_half >> 20} in the second"
              f" half; peak +{self.peak - before >> 20}")  # fmt: skip
        self.assertLess(after - self.at_half, 64 << 20)
        self.assertLess(after - before, 192 << 20)
        self.assertLess(self.peak - before, 448 << 20)  # Four bombs at a time, of 32 MiB when unpacked, and copies.


class HttpCase(BadRequestsCase):
    STATUSES = {200, 204, 400, 411, 413, 415}
    HEADS = (
        {"Content-Type": "text/html"}, {"Content-Type": ""}, {"Content-Type": "application/json"},
        {"Content-Type": "application/x-protobuf; proto=what.ever"}, {"Content-Encoding": "br"},
        {"Content-Encoding": "gzip"}, {"Content-Encoding": "gzip, gzip"}, {"Content-Encoding": "snappy"},
        {"Content-Encoding": "identity"},
    )  # fmt: skip

    def seeds(self):
        """[(method, path, headers, body)]: most of them good."""
        raise NotImplementedError

    def bombs(self):
        """The same, and each is refused."""
        return []

    def post(self, method, path, body, headers, connection=None):
        used = connection or http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        used.request(method, path, body, headers)
        answer = used.getresponse()
        text = answer.read()
        if connection is None:
            used.close()
        return answer.status, text

    def check_answer(self, answer):
        self.assertIn(answer, self.STATUSES)

    def sender(self, random_):
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        self.addCleanup(connection.close)
        seeds, bombs = self.seeds(), self.bombs()
        left = 0

        def send():
            nonlocal left
            left += 1
            if bombs and left % 50 == 0:
                method, path, headers, body = random_.choice(bombs)
                status, text = self.post(method, path, body, headers, connection)
                self.assertIn(status, (400, 413, 415), f"a bomb is refused: {text[:200]}")
                return status
            method, path, headers, body = random_.choice(seeds)
            if random_.random() < 0.1:
                headers = {**headers, **random_.choice(self.HEADS)}
            status, text = self.post(method, path, mutated(random_, body), headers, connection)
            self.assertTrue(status < 300 or text, "a refusal has words")
            return status

        return send


class OtlpHttpTest(HttpCase):
    PROTOBUF = {"Content-Type": "application/x-protobuf"}
    JSON = {"Content-Type": "application/json"}

    @staticmethod
    def message(job, time_ns, value):
        points = [{"timeUnixNano": str(time_ns), "asDouble": value, "attributes": [
            {"key": "phase", "value": {"stringValue": "train"}}]}]  # fmt: skip
        points = [{k: v for k, v in point.items() if job == "bad" or k != "attributes"} for point in points]
        return {"resourceMetrics": [{
            "resource": {"attributes": [
                {"key": "service.name", "value": {"stringValue": job}},
                {"key": "host.name", "value": {"stringValue": "h1"}},
            ]},
            "scopeMetrics": [{"metrics": [{"name": "alive", "unit": "1", "gauge": {"dataPoints": points}}]}],
        }]}  # fmt: skip

    @staticmethod
    def protobuf(message):
        from google.protobuf import json_format
        from interop import otlp_metrics_service_pb2

        kind = otlp_metrics_service_pb2.ExportMetricsServiceRequest
        return json_format.ParseDict(message, kind()).SerializeToString()

    def good(self, job, time_ns, value):
        status, text = self.post(
            "POST", "/v1/metrics", self.protobuf(self.message(job, time_ns, value)), self.PROTOBUF)  # fmt: skip
        return True if (status, text) == (200, b"") else (status, text)

    def seeds(self):
        now = time.time_ns()
        message = self.message("bad", now, 0.25)
        seeds = [("POST", "/v1/metrics", self.PROTOBUF, self.protobuf(message)),
                 ("POST", "/v1/metrics", self.JSON, json.dumps(message).encode()),
                 ("POST", "/v1/metrics", {**self.JSON, "Content-Encoding": "gzip"},
                  gzip.compress(json.dumps(message).encode()))]  # fmt: skip
        for path, folder in (("/v1/metrics", "otlp_fuzz"), ("/v1/logs", "otlp_logs_fuzz")):
            for one in corpus(folder):
                packed = {"Content-Encoding": "gzip"} if one[0] & 1 else {}
                seeds.append(("POST", path, {**self.PROTOBUF, **packed}, one[1:]))
        return seeds

    def bombs(self):
        packed = {"Content-Encoding": "gzip"}
        return [
            ("POST", path, headers, body) for path in ("/v1/metrics", "/v1/logs") for headers, body in (
                ({**self.PROTOBUF, **packed}, BOMB_GZIP), ({**self.JSON, **packed}, BOMB_GZIP),
                (self.JSON, b"[" * 100_000), (self.JSON, b'{"resourceMetrics":' * 10_000),
                (self.PROTOBUF, nested(5_000, 1)), (self.PROTOBUF, bytes(9 << 20)))]  # fmt: skip

    def test_ten_thousand_leave_the_collector_as_it_was(self):
        self.run_it()
        self.assertGreater(self.answers[400], COUNT // 20)
        self.assertGreater(self.answers[200], COUNT // 100)


class OtlpGrpcTest(BadRequestsCase):
    METHODS = (
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    )
    # UNAVAILABLE: the connection was shut down, because a message on it was far too large, or because too many
    # calls a second were refused.
    CODES = {"OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED", "UNAVAILABLE"}

    def setUp(self):
        super().setUp()
        self.channel = client.connect(self.collector.address)
        self.addCleanup(self.channel.close)

    def call(self, channel, method, body, **options):
        """(code, bytes) of a call whose request is these bytes."""
        import grpc

        try:
            return "OK", channel.unary_unary(self.METHODS[method])(body, timeout=30, **options)
        except grpc.RpcError as error:
            return error.code().name, error.details().encode()

    def good(self, job, time_ns, value):
        message = OtlpHttpTest.protobuf(OtlpHttpTest.message(job, time_ns, value))
        answer = self.call(self.channel, 0, message)
        return True if answer == ("OK", b"") else answer

    def check_answer(self, answer):
        self.assertIn(answer, self.CODES)

    def sender(self, random_):
        import grpc

        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        seeds = [(0, OtlpHttpTest.protobuf(OtlpHttpTest.message("bad", time.time_ns(), 0.25)))]
        for method, folder in ((0, "otlp_fuzz"), (1, "otlp_logs_fuzz")):
            seeds += [(method, one[1:]) for one in corpus(folder)]
        bombs = [(0, bytes(5 << 20), {}), (1, nested(5_000, 1), {}), (0, nested(5_000, 1), {}),
                 (0, bytes(64 << 20), {"compression": grpc.Compression.Gzip})]  # fmt: skip
        sent = 0

        def send():
            nonlocal sent
            sent += 1
            if sent % 250 == 0:
                method, body, options = random_.choice(bombs)
                code, text = self.call(channel, method, body, **options)
                self.assertNotEqual(code, "OK", "a bomb is refused")
            else:
                method, body = random_.choice(seeds)
                code, text = self.call(channel, method, mutated(random_, body))
            self.assertTrue(code == "OK" or text, "a refusal has words")
            if code == "UNAVAILABLE":
                time.sleep(0.2)  # As clients do, before they connect again.
            return code

        return send

    def send_bad_frames(self):
        """What no library sends: lengths and flags of gRPC that lie, another type, no end."""
        body = OtlpHttpTest.protobuf(OtlpHttpTest.message("bad", time.time_ns(), 0.25))
        frames = (
            http2.message(body, length=len(body) + 5), http2.message(body, length=0xFFFFFFFF),
            http2.message(body, length=1), http2.message(body, compressed=1), http2.message(body, compressed=7),
            http2.message(BOMB_GZIP, compressed=1), b"\x00\x00", b"", http2.message(body) * 2,
        )  # fmt: skip
        heads = ((), (("grpc-encoding", "gzip"),), (("grpc-encoding", "what"),), (("content-type", "text/html"),))
        for more in heads:
            for payload in frames:
                connection = http2.Connection(self.collector.address)
                connection.open(1, self.METHODS[0], more)
                connection.send_data(1, payload, timeout_s=1)
                connection.send(http2.frame(http2.DATA, http2.END_STREAM, 1))
                connection.close()

    def test_ten_thousand_leave_the_collector_as_it_was(self):
        frames = threading.Thread(target=self.send_bad_frames)
        frames.start()
        self.run_it()
        frames.join()
        self.assertGreater(self.answers["INVALID_ARGUMENT"], COUNT // 20)
        self.assertGreater(self.answers["OK"], COUNT // 100)
        self.assertLess(self.answers.get("UNAVAILABLE", 0), COUNT // 50)


class InfluxTest(HttpCase):
    def good(self, job, time_ns, value):
        line = f"alive,job={job},host=h1 value={value!r} {time_ns}\n".encode()
        status, text = self.post("POST", "/write", line, {})
        return True if status == 204 else (status, text)

    def seeds(self):
        fresh = b"train,job=bad,host=h1,phase=warmup loss=0.25,step=7i,ok=true,text=\"a b\" %d\n" % time.time_ns()
        seeds = [("POST", "/write", {}, fresh), ("POST", "/api/v2/write?precision=ns", {}, fresh * 20),
                 ("POST", "/write", {"Content-Encoding": "gzip"}, gzip.compress(fresh * 20))]  # fmt: skip
        for one in corpus("influx_fuzz"):
            headers = {"Content-Encoding": "gzip"} if one[0] & 1 else {}
            seeds.append(("POST", "/write?precision=" + ("s" if one[0] & 2 else "ns"), headers, one[1:]))
        return seeds

    def bombs(self):
        packed = {"Content-Encoding": "gzip"}
        tags = b"m," + b",".join(b"t%d=v" % i for i in range(100_000)) + b" v=1\n"
        return [("POST", "/write", packed, BOMB_GZIP), ("POST", "/api/v2/write", packed, BOMB_GZIP),
                ("POST", "/write", {}, tags), ("POST", "/write", packed, gzip.compress(b"\\" * (1 << 20))),
                ("POST", "/write?precision=what", {}, b"a v=1\n")]  # fmt: skip

    def test_ten_thousand_leave_the_collector_as_it_was(self):
        self.run_it()
        self.assertGreater(self.answers[400], COUNT // 20)
        self.assertGreater(self.answers[204], COUNT // 100)


class PushTest(HttpCase):
    STATUSES = {200, 202, 400, 405, 411, 413, 415}

    def good(self, job, time_ns, value):
        status, text = self.post("PUT", f"/metrics/job/{job}", f"alive {value!r}\n".encode(), {})
        return True if status == 200 else (status, text)

    def seeds(self):
        text = b'# TYPE loss gauge\n# HELP loss Of a step.\nloss{set="a\\"b"} 0.25\nspeed 1e3\n'
        path = "/metrics/job/bad/shard/3"
        seeds = [("POST", path, {}, text), ("PUT", path, {}, text), ("DELETE", path, {}, b"x"),
                 ("POST", path, {"Content-Encoding": "gzip"}, gzip.compress(text))]  # fmt: skip
        for one in corpus("push_fuzz"):
            open_metrics = {"Content-Type": "application/openmetrics-text; version=1.0.0"} if one[0] & 1 else {}
            seeds.append(("POST", path, open_metrics, one.split(b"\n", 1)[1]))
        return seeds

    def sender(self, random_):
        send = super().sender(random_)
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        self.addCleanup(connection.close)

        def send_or_misname():
            if random_.random() < 0.9:
                return send()
            name = "".join(random_.choice("/@=%-_aZ0.") for _ in range(random_.randrange(40)))
            path = random_.choice(["/metrics/job/bad/", "/metrics/job@base64/", "/metrics/job/bad/l@base64/"])
            return self.post("POST", path + name, b"loss 1\n", {}, connection)[0]

        return send_or_misname

    def bombs(self):
        packed = {"Content-Encoding": "gzip"}
        labels = b"loss{" + b",".join(b'l%d="v"' % i for i in range(100_000)) + b"} 1\n"
        return [("PUT", "/metrics/job/bad", packed, BOMB_GZIP), ("POST", "/metrics/job/bad", {}, labels),
                ("POST", "/metrics/job/bad" + "/a/b" * 1_000, {}, b"loss 1\n")]  # fmt: skip

    def check_stored(self, stored):
        """The collector gives the times."""
        self.assertEqual([value for _, value in sorted(stored)], list(self.acknowledged.values()))

    def test_ten_thousand_leave_the_collector_as_it_was(self):
        self.run_it()
        self.assertGreater(self.answers[400], COUNT // 20)
        self.assertGreater(self.answers[200], COUNT // 100)


class RemoteWriteTest(HttpCase):
    HEADERS = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}

    @staticmethod
    def message(job, time_ms, value):
        from interop import prometheus_remote_pb2

        request = prometheus_remote_pb2.WriteRequest()
        series = request.timeseries.add()
        for name, text in (("__name__", "alive"), ("instance", "h1"), ("job", job)):
            series.labels.add(name=name, value=text)
        series.samples.add(timestamp=time_ms, value=value)
        return request.SerializeToString()

    def good(self, job, time_ns, value):
        status, text = self.post("POST", "/api/v1/write", literally_packed(
            self.message(job, time_ns // 1_000_000, value)), self.HEADERS)  # fmt: skip
        return True if status == 204 else (status, text)

    def seeds(self):
        fresh = self.message("bad", int(time.time() * 1000), 0.25)
        seeds = 2 * [("POST", "/api/v1/write", self.HEADERS, literally_packed(fresh * 20))]
        for one in corpus("remote_write_fuzz"):
            body = one[1:] if one[0] & 2 else literally_packed(one[1:])
            message_2 = {"Content-Type": MESSAGE_2} if one[0] & 1 else {}
            seeds.append(("POST", "/api/v1/write", {**self.HEADERS, **message_2}, body))
        return seeds

    def bombs(self):
        return [("POST", "/api/v1/write", {**self.HEADERS, **kind}, body)
                for kind in ({}, {"Content-Type": MESSAGE_2})
                for body in (*BOMBS_SNAPPY, literally_packed(b"\x0a" + varint(1 << 31)))]  # fmt: skip

    def check_stored(self, stored):
        """Times are ms, and the neighbour pauses for longer."""
        self.assertEqual({time // 1_000_000: value for time, value in stored},
                         {time // 1_000_000: value for time, value in self.acknowledged.items()})  # fmt: skip

    def test_ten_thousand_leave_the_collector_as_it_was(self):
        self.run_it()
        self.assertGreater(self.answers[400], COUNT // 20)
        self.assertGreater(self.answers[204], COUNT // 100)


class StatsdTest(BadRequestsCase):
    """Nobody is answered, so the neighbour compares what it has counted."""

    config = "interop: {statsd: {listen: '127.0.0.1:0', interval: 1s}}\n"

    def setUp(self):
        super().setUp()
        with open(self.collector.log) as file:
            self.port = int(re.findall(r"statsd listens.*?port\W+(\d+)", file.read())[-1])
        self.lines = {}
        self.counted = 0

    def good(self, job, time_ns, value):
        """By TCP, so that nothing is lost on the way."""
        if job not in self.lines:
            self.lines[job] = socket.create_connection(("127.0.0.1", self.port), timeout=30)
            self.addCleanup(self.lines[job].close)
        if job == "neighbour":
            self.counted += 1
        self.lines[job].sendall(f"alive:{value if job == 'after' else 1}|c|#job:{job},host:h1\n".encode())
        return True

    def sender(self, random_):
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.connect(("127.0.0.1", self.port))
        self.addCleanup(datagrams.close)
        seeds = corpus("statsd_fuzz")
        bombs = (b"a" * 60_000, b"a:1|c|#" + b"t:v," * 10_000, b"a" + b":1" * 20_000 + b"|h", b"\n" * 60_000, b"")

        def send():
            how = random_.random()
            body = random_.choice(bombs) if how < 0.02 else mutated(random_, random_.choice(seeds))[:60_000]
            if how < 0.9:
                datagrams.send(body)
                return "datagram"
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as lines:
                try:
                    lines.sendall(body * random_.choice([1, 100]))
                except ConnectionError:
                    return "hung up"
            return "lines"

        return send

    def stored(self, job):
        return super().stored(job)[-1:] if job == "after" else super().stored(job)

    def check_stored(self, stored):
        harness.wait_until(lambda: double(super(StatsdTest, self).stored("neighbour")[-1][1]) == self.counted,
                           "all of the neighbour's counts are stored")  # fmt: skip

    def test_ten_thousand_leave_the_collector_as_it_was(self):
        self.run_it()
        page = harness.http_get(self.collector.url("/metrics"))[2].decode()
        dropped = re.findall(r"^tacho_interop_statsd_dropped_total\S* (\S+)$", page, re.MULTILINE)
        self.assertGreater(sum(map(float, dropped)), COUNT // 100)


if __name__ == "__main__":
    harness.main()
