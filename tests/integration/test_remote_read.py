"""Prometheus reads the collector's history: its PromQL over our samples, and the bytes it gets."""
import concurrent.futures
import hashlib
import http.client
import json
import math
import os
import re
import subprocess
import time
import urllib.parse

import harness
import client
from client import bits, double
from snappy_literals import packed

from interop import prometheus_read_pb2 as read_pb2

COUNTER = 2  # Of tacho.v1.MetricType.
EXAMPLE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../deploy/prometheus/remote_read.yml"
)
EQ, NEQ, RE, NRE = range(4)


def unpacked(body):
    size, at = read_varint(body, 0)
    out = bytearray()
    while at < len(body):
        tag = body[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                more = length - 59
                length = int.from_bytes(body[at : at + more], "little")
                at += more
            out += body[at : at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | body[at]
            at += 1
        else:
            length, bytes_ = (tag >> 2) + 1, 2 if tag & 3 == 2 else 4
            offset = int.from_bytes(body[at : at + bytes_], "little")
            at += bytes_
        for _ in range(length):
            out.append(out[-offset])
    assert len(out) == size
    return bytes(out)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def frames(body):
    """storage/remote/chunked.go."""
    at = 0
    while at < len(body):
        size, at = read_varint(body, at)
        message = body[at + 4 : at + 4 + size]
        assert len(message) == size
        assert int.from_bytes(body[at : at + 4], "big") == crc32c(message)
        at += 4 + size
        yield read_pb2.ChunkedReadResponse.FromString(message)


def xor_samples(data):
    """tsdb/chunkenc/xor.go."""
    stream = int.from_bytes(data, "big")
    left = len(data) * 8

    def take(count):
        nonlocal left
        left -= count
        return stream >> left & ((1 << count) - 1)

    def take_varint():
        value = shift = 0
        while True:
            byte = take(8)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def take_change():
        ones = 0
        while ones < 4 and take(1):
            ones += 1
        if ones == 0:
            return 0
        size = (14, 17, 20, 64)[ones - 1]
        raw = take(size)
        return raw - (1 << size) if raw > 1 << (size - 1) else raw

    samples = []
    at = distance = pattern = leading = trailing = 0
    for i in range(take(16)):
        if i == 0:
            zigzag = take_varint()
            at, pattern = zigzag >> 1 ^ -(zigzag & 1), take(64)
        else:
            distance = take_varint() if i == 1 else distance + take_change()
            at += distance
            if take(1):
                if take(1):
                    leading, significant = take(5), take(6) or 64
                    trailing = 64 - leading - significant
                pattern ^= take(64 - leading - trailing) << trailing
        samples.append((at, pattern))
    assert left < 8
    return samples


class RemoteReadCase(harness.TestCase):
    config = ""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, self.config))

    def post(self, body, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=60)
        connection.request(
            "POST", "/api/v1/read", body,
            {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf",
             "X-Prometheus-Remote-Read-Version": "0.1.0", **(headers or {})})  # fmt: skip
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    def read(self, *matchers, begin_ms=0, end_ms=1 << 60, headers=None):
        """{sorted labels: [(ms, bits)]} of one query."""
        request = read_pb2.ReadRequest()
        query = request.queries.add(start_timestamp_ms=begin_ms, end_timestamp_ms=end_ms)
        for kind, name, value in matchers:
            query.matchers.add(type=kind, name=name.encode(), value=value.encode())
        status, body = self.post(packed(request.SerializeToString()), headers)
        self.assertEqual(status, 200, body)
        response = read_pb2.ReadResponse.FromString(unpacked(body))
        self.assertEqual(len(response.results), 1)
        return {
            tuple((label.name, label.value) for label in series.labels): [
                (sample.timestamp, bits(sample.value)) for sample in series.samples
            ]
            for series in response.results[0].timeseries
        }

    def feed(self, job, task, attempt, metrics, times, rows, steps, agent=None, token=None):
        stream = client.Stream(
            self.collector.address, agent or f"{job}-{task}-{attempt}", 1, 1, token=token
        )
        stream.send(client.layout(1, job, f"host-{task}", metrics, task, attempt, True))
        flat = [value for row in rows for value in row]
        stream.send(client.batch(1, 1, times, flat, steps))
        self.assertTrue(stream.wait_durable(1), stream.error)
        stream.close()


class PrometheusReadsTest(RemoteReadCase):
    """Two jobs of three tasks; the second one has restarted. PromQL must say what a computation over
    the query service's samples says."""

    SECONDS = 300
    METRICS = [
        ("loss", "nats"), ("examples_total", "1", COUNTER, {}), ("train.odd", "1"),
        ("chip_power", "W", 1, {"chip": "0"}), ("chip_power", "W", 1, {"chip": "1"}),
    ]  # fmt: skip

    def setUp(self):
        super().setUp()
        # Half seconds, so that no sample lies at the end of a window.
        self.end_s = int(time.time()) - 5
        self.begin_s = self.end_s - self.SECONDS
        odd = [math.nan, math.inf, -math.inf, -0.0, 5e-324, double(0x7FF8000000C0FFEE)]
        for job, attempts in (("vision-a", 1), ("vision-b", 2)):
            for task in range(3):
                examples = 0.0
                for attempt in range(attempts):
                    count = self.SECONDS // attempts
                    first = self.begin_s + attempt * count
                    times = [(first + i) * 10**9 + 500_000_000 + self.random.randrange(10**6)
                             for i in range(count)]  # fmt: skip
                    rows = []
                    for i in range(count):
                        examples += self.random.randrange(64)
                        rows.append((self.random.randrange(1 << 20) / 1024, examples,
                                     odd[i % len(odd)], 400.0 + task, 500.0 - task))  # fmt: skip
                    examples = 0.0
                    steps = [attempt * 50 + i for i in range(count)]
                    self.feed(job, task, attempt, self.METRICS, times, rows, steps)
        self.stored = self.samples_by_labels()

    def samples_by_labels(self):
        """What the query service has, as the documentation says that Prometheus names it."""
        query = client.Query(self.collector.address)
        stored = {}
        for job in ("vision-a", "vision-b"):
            for info, points in query.series(job):
                for at, _, attempt, pattern in points:
                    labels = {label.name: label.value for label in info.labels}
                    labels |= {"__name__": info.metric.name, "job": job, "task": str(info.task),
                               "host": info.host, "attempt": str(attempt)}  # fmt: skip
                    if info.metric.name == "train.odd":
                        labels |= {"__name__": "train_odd", "metric": "train.odd"}
                    series = stored.setdefault(tuple(sorted(labels.items())), {})
                    series[at // 1_000_000] = pattern
        query.close()
        return {key: sorted(samples.items()) for key, samples in stored.items()}

    def start_prometheus(self):
        with open(EXAMPLE) as file:
            example = file.read()
        config = example.replace("127.0.0.1:7412", f"127.0.0.1:{self.collector.http}")
        self.assertNotEqual(config, example)
        path = os.path.join(self.directory, "prometheus.yml")
        with open(path, "w") as file:
            file.write(config)
        port = harness.free_port()
        self.started(harness.Program(
            [harness.tool("prometheus"), f"--config.file={path}",
             f"--storage.tsdb.path={self.directory}/prometheus", f"--web.listen-address=127.0.0.1:{port}"],
            os.path.join(self.directory, "prometheus.log")))  # fmt: skip
        self.url = f"http://127.0.0.1:{port}"

        def ready():
            try:
                return harness.http_get(self.url + "/-/ready")[0] == 200
            except OSError:
                return False

        harness.wait_until(ready, "Prometheus ready")

    def ask(self, kind, **parameters):
        status, _, body = harness.http_get(
            f"{self.url}/api/v1/{kind}?" + urllib.parse.urlencode(parameters), timeout_s=60
        )
        self.assertEqual(status, 200, body)
        answer = json.loads(body)
        self.assertNotIn("warnings", answer, "a remote read that fails is a warning")
        return answer["data"]["result"]

    # --- What Prometheus computes, from the stored samples ----------------------------------------

    def chosen(self, name, wanted=lambda labels: True):
        for key, samples in self.stored.items():
            labels = dict(key)
            if labels["__name__"] == name and wanted(labels):
                yield labels, [(ms, double(pattern)) for ms, pattern in samples]

    @staticmethod
    def value_at(samples, ms):
        """The newest value, as far back as Prometheus looks."""
        found = [value for at, value in samples if ms - 300_000 < at <= ms]
        return found[-1] if found else None

    @staticmethod
    def rate(samples, end_ms, range_s):
        """promql/functions.go: extrapolatedRate() of a counter."""
        inside = [(at, v) for at, v in samples if end_ms - range_s * 1000 <= at <= end_ms]
        if len(inside) < 2:
            return None
        grown, before = 0.0, inside[0][1]
        for _, value in inside:
            grown += value - before if value >= before else value
            before = value
        first, last = inside[0][0] / 1000, inside[-1][0] / 1000
        to_start, to_end = first - (end_ms / 1000 - range_s), end_ms / 1000 - last
        sampled = last - first
        mean = sampled / (len(inside) - 1)
        if grown > 0 and inside[0][1] >= 0:
            to_start = min(to_start, sampled * inside[0][1] / grown)
        length = sampled
        for gap in (to_start, to_end):
            length += gap if gap < mean * 1.1 else mean / 2
        return grown * length / sampled / range_s

    def compare(self, answer, expected, key):
        got = {key(one["metric"]): float(one["value"][1]) for one in answer}
        self.assertEqual(got.keys(), expected.keys())
        self.assertGreater(len(got), 0)
        for name, value in expected.items():
            self.assertAlmostEqual(got[name], value, delta=abs(value) * 1e-9, msg=name)

    # --- Tests ---------------------------------------------------------------------------------

    def test_the_answer_is_what_the_query_service_has_bit_for_bit(self):
        self.assertEqual(self.read(), self.stored)
        middle = (self.begin_s + self.SECONDS // 2) * 1000
        wanted = {
            key: [one for one in samples if middle <= one[0] <= middle + 20_500]
            for key, samples in self.stored.items()
            if dict(key)["job"] == "vision-a" and dict(key).get("chip") != "1"
        }
        read = self.read((EQ, "job", "vision-a"), (NEQ, "chip", "1"), begin_ms=middle,
                         end_ms=middle + 20_500)  # fmt: skip
        self.assertEqual(read, wanted)
        self.assertEqual(len(self.read((NRE, "__name__", "loss|chip.*"))), 9 * 2)
        self.assertEqual(self.read((EQ, "job", "none")), {})

    def test_prometheus_answers_from_the_collector(self):
        self.start_prometheus()
        for second in (self.end_s, self.end_s - 100, self.begin_s + 40):
            ms = second * 1000
            sums = {}
            for labels, samples in self.chosen("loss"):
                value = self.value_at(samples, ms)
                if value is not None:
                    sums[labels["job"]] = sums.get(labels["job"], 0) + value
            self.compare(self.ask("query", query="sum by (job) (loss)", time=second), sums,
                         lambda metric: metric["job"])  # fmt: skip
            rates = {}
            for labels, samples in self.chosen("examples_total"):
                rate = self.rate(samples, ms, 60)
                if rate is not None:
                    rates[labels["job"], labels["task"], labels["attempt"]] = rate
            self.compare(self.ask("query", query="rate(examples_total[60s])", time=second), rates,
                         lambda metric: (metric["job"], metric["task"], metric["attempt"]))  # fmt: skip
        chosen = {
            labels["task"]: self.value_at(samples, self.end_s * 1000)
            for labels, samples in self.chosen(
                "chip_power",
                lambda one: one["job"] == "vision-b" and one["task"] in "02" and one["chip"] == "1",
            )
            if labels["attempt"] == "1"
        }
        self.compare(
            self.ask("query", time=self.end_s,
                     query='{__name__=~"chip_.+",task=~"0|2",job!~".*-a",chip!="0",attempt="1"}'),
            chosen, lambda metric: metric["task"])  # fmt: skip

    def test_a_range_query_has_a_value_at_each_step(self):
        self.start_prometheus()
        answer = self.ask("query_range", query='max by (task) (loss{job="vision-a"})',
                          start=self.begin_s + 10, end=self.end_s, step=7)  # fmt: skip
        self.assertEqual({one["metric"]["task"] for one in answer}, {"0", "1", "2"})
        for one in answer:
            [(_, samples)] = self.chosen(
                "loss", lambda labels: (labels["job"], labels["task"]) == ("vision-a", one["metric"]["task"])
            )  # fmt: skip
            self.assertEqual(len(one["values"]), (self.SECONDS - 10) // 7 + 1)
            for at, value in one["values"]:
                self.assertEqual(float(value), self.value_at(samples, round(at * 1000)), at)

    def test_promql_joins_on_the_step(self):
        self.start_prometheus()
        steps, losses = {}, {}
        query = client.Query(self.collector.address)
        for job in ("vision-a", "vision-b"):
            for info, points in query.series(job, "loss"):
                for at, step, attempt, pattern in points:
                    key = (job, str(info.task), info.host, str(attempt))
                    steps.setdefault(key, []).append((at // 1_000_000, step))
                    losses.setdefault(key, []).append((at // 1_000_000, double(pattern)))
        query.close()

        def key(metric):
            return metric["job"], metric["task"], metric["host"], metric["attempt"]

        raw = self.ask("query", query="tacho_step[1h]", time=self.end_s + 1)
        self.assertEqual({key(one["metric"]): [(round(at * 1000), int(step)) for at, step in one["values"]]
                          for one in raw}, steps)  # fmt: skip
        for second in (self.end_s, self.begin_s + 170):
            now = {
                key: (self.value_at(losses[key], second * 1000), self.value_at(steps[key], second * 1000))
                for key in steps
            }
            late = {key: loss for key, (loss, step) in now.items() if step is not None and step >= 150}
            self.assertLess(len(late), len(now))
            self.compare(
                self.ask("query", time=second,
                         query="loss and on (job, task, host, attempt) (tacho_step >= 150)"), late, key)  # fmt: skip
        others = self.ask("query", query='{__name__=~".+",job="vision-a",task="0"}', time=self.end_s)
        self.assertEqual({one["metric"]["__name__"] for one in others},
                         {"loss", "examples_total", "chip_power", "train_odd"})  # fmt: skip

    def test_prometheus_gets_the_form_that_it_can_read(self):
        """Prometheus 2 asks for samples alone; from 3 on it reads chunks too, which have no limit of size."""
        self.start_prometheus()
        _, _, body = harness.http_get(self.url + "/api/v1/status/buildinfo")
        major = int(json.loads(body)["data"]["version"].split(".")[0])
        self.assertEqual(self.answers(), {"samples": 0, "chunks": 0})
        self.ask("query", query="sum(loss)", time=self.end_s)
        expected = {"samples": 1, "chunks": 0} if major < 3 else {"samples": 0, "chunks": 1}
        self.assertEqual(self.answers(), expected, f"Prometheus {major}")

    def answers(self):
        """Answers of remote read by form, as the collector counts them."""
        page = harness.http_get(self.collector.url("/metrics"))[2].decode()
        return {
            form: int(float(value)) for form, value in
            re.findall(r'^tacho_query_remote_reads_total\{form="(\w+)"\} (\S+)$', page, re.MULTILINE)
        }  # fmt: skip

    def test_the_panels_of_a_dashboard_wait_for_each_other(self):
        self.start_prometheus()
        with concurrent.futures.ThreadPoolExecutor(40) as panels:
            counts = list(panels.map(
                lambda _: self.ask("query", query="count(loss)", time=self.end_s), range(40)))  # fmt: skip
        self.assertEqual({one[0]["value"][1] for one in counts}, {"9"})

    def test_a_limit_is_a_warning_beside_the_answer(self):
        self.collector.stop()
        with open(self.collector.config, "w") as file:
            file.write("query: {max_samples: 100}\n")
        self.collector.start()
        self.start_prometheus()
        status, _, body = harness.http_get(f"{self.url}/api/v1/query?query=count(loss)")
        answer = json.loads(body)
        self.assertEqual((status, answer["data"]["result"]), (200, []))
        self.assertIn("query.max_samples = 100", answer["warnings"][0])

    def test_a_reader_of_the_stream_gets_the_same(self):
        request = read_pb2.ReadRequest(accepted_response_types=[1, 0])
        request.queries.add(end_timestamp_ms=1 << 60).matchers.add(name=b"job", value=b"none")
        request.queries.add(end_timestamp_ms=1 << 60)
        status, body = self.post(packed(request.SerializeToString()))
        self.assertEqual(status, 200, body)
        series = {}
        for message in frames(body):
            self.assertEqual(message.query_index, 1)
            [one] = message.chunked_series
            key = tuple((label.name, label.value) for label in one.labels)
            for chunk in one.chunks:
                samples = xor_samples(chunk.data)
                self.assertEqual((chunk.min_time_ms, chunk.max_time_ms), (samples[0][0], samples[-1][0]))
                self.assertLessEqual(len(samples), 120)
                series.setdefault(key, []).extend(samples)
        self.assertEqual(series, self.stored)
        self.assertEqual(list(series), sorted(series), "in the order of their labels")


class TokensCase(RemoteReadCase):
    """With a token for all jobs, and one that reads "vision" and what begins so."""

    @property
    def config(self):
        tokens = os.path.join(self.directory, "tokens.yaml")
        with open(tokens, "w") as file:
            file.write("tokens:\n")
            for name, roles, jobs in (("all", "read, write", ".*"), ("some", "read", "vision.*"),
                                      ("writer", "write", ".*")):  # fmt: skip
                digest = hashlib.sha256(self.token(name).encode()).hexdigest()
                file.write(f"  - {{name: {name}, sha256: {digest}, roles: [{roles}], jobs: '{jobs}'}}\n")
        os.chmod(tokens, 0o600)
        return f"auth: {{tokens_file: {tokens}, allow_plaintext: true}}\n"

    @staticmethod
    def token(name):
        return f"token-of-{name}-0123456789"

    def bearer(self, name):
        return {"Authorization": f"Bearer {self.token(name)}"}


class ReadersTest(TokensCase):
    """Who may read what, and what no honest reader sends."""

    def test_a_reader_sees_its_jobs_alone(self):
        now = time.time_ns()
        for job in ("vision", "speech"):
            self.feed(job, 0, 0, [("loss", "nats")], [now], [(0.5,)], [1], token=self.token("all"))

        def jobs(name, *matchers):
            return {dict(key)["job"] for key in self.read(*matchers, headers=self.bearer(name))}

        self.assertEqual(jobs("all"), {"vision", "speech"})
        self.assertEqual(jobs("some"), {"vision"})
        self.assertEqual(jobs("some", (EQ, "job", "speech")), set())
        empty = packed(read_pb2.ReadRequest().SerializeToString())
        self.assertEqual(self.post(empty)[0], 401)
        self.assertEqual(self.post(empty, self.bearer("writer"))[0], 403)
        self.assertEqual(self.post(empty, self.bearer("some"))[0], 200)

    def test_bad_requests_are_refused_and_the_collector_lives(self):
        reader = self.bearer("all")
        request = read_pb2.ReadRequest()
        query = request.queries.add(end_timestamp_ms=1 << 60)
        query.matchers.add(type=RE, name=b"job", value=b"(")
        for body, status in (
            (b"", 400),
            (b"not snappy", 400),
            (packed(b"\x0a\xff\xff"), 400),
            (packed(request.SerializeToString()), 400),
            (packed(b"\x10\x07"), 400),  # A form of answer that nobody knows.
            (b"\xff\xff\xff\xff\x0f", 413),
            (packed(bytes(300 << 10)), 413),
        ):
            got, text = self.post(body, reader)
            self.assertEqual(got, status, (body[:20], text))
            self.assertTrue(text, "a refusal has words")
        self.assertEqual(self.post(packed(b""), {**reader, "Content-Encoding": "gzip"})[0], 415)
        seed = packed(request.SerializeToString())
        for _ in range(500):
            body = bytearray(seed)
            for _ in range(self.random.randrange(1, 4)):
                body[self.random.randrange(len(body))] = self.random.randrange(256)
            self.assertIn(self.post(bytes(body), reader)[0], (200, 400, 413))
        self.assertEqual(harness.http_get(self.collector.url("/readyz"))[0], 200)


class ExploreCase:
    """Calls of the HTTP API about names."""

    def call(self, path, parameters=(), form=False, headers=None):
        """(status, the answer), of a list of pairs."""
        text = urllib.parse.urlencode(list(parameters))
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=60)
        if form:
            connection.request(
                "POST", f"/api/v1/{path}", text,
                {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})})  # fmt: skip
        else:
            connection.request("GET", f"/api/v1/{path}?{text}", headers=headers or {})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        self.assertEqual(answer.getheader("Content-Type"), "application/json")
        connection.close()
        return answer.status, body

    def data(self, path, *parameters, **options):
        status, body = self.call(path, parameters, **options)
        self.assertEqual((status, body["status"]), (200, "success"), body)
        self.assertNotIn("warnings", body)
        return body["data"]


class ExploreTest(ExploreCase, RemoteReadCase):
    """Names that the API lists are those of the query service's series."""

    METRICS = [
        ("loss", "nats"), ("examples_total", "1", COUNTER, {}), ("train.odd", "1"),
        ("chip_power", "W", 1, {"chip": "0"}), ("chip_power", "W", 1, {"chip": "1", "attempt": 'a"b'}),
    ]  # fmt: skip

    def setUp(self):
        super().setUp()
        self.now_s = int(time.time())
        for job, age_s in (("vision-a", 0), ("vision-b", 86_400)):
            for task in range(3):
                at = (self.now_s - age_s) * 10**9
                self.feed(job, task, 0, self.METRICS, [at], [(0.5, 1, 2, 3, 4)], [1])
        query = client.Query(self.collector.address)
        self.stored = []
        for job in ("vision-a", "vision-b"):
            for info, _ in query.series(job):
                labels = {label.name: label.value for label in info.labels}
                if "attempt" in labels:
                    labels["exported_attempt"] = labels["attempt"]
                labels |= {"__name__": info.metric.name, "job": job, "task": str(info.task),
                           "host": info.host, "attempt": "0"}  # fmt: skip
                if info.metric.name == "train.odd":
                    labels |= {"__name__": "train_odd", "metric": "train.odd"}
                self.stored.append(labels)
        query.close()
        self.assertEqual(len(self.stored), 2 * 3 * 5)

    @staticmethod
    def ordered(series):
        return sorted(series, key=lambda labels: sorted(labels.items()))

    def test_names_are_those_of_the_query_service(self):
        names = sorted({name for labels in self.stored for name in labels})
        everything = ("match[]", '{__name__!=""}')
        for form in (False, True):
            self.assertEqual(self.data("labels", form=form), names)
            self.assertEqual(self.data("labels", everything, form=form), names)
            self.assertEqual(self.data("series", everything, form=form), self.ordered(self.stored))
            for name in names:
                values = sorted({labels[name] for labels in self.stored if name in labels})
                more = ["tacho_step"] if name == "__name__" else []  # Which no other selector gets.
                self.assertEqual(self.data(f"label/{name}/values", form=form), sorted(values + more))
                self.assertEqual(
                    self.data(f"label/{name}/values", ("match[]", '{job=~"vision.*"}')), values
                )
        wanted = [one for one in self.stored if one["__name__"] == "chip_power"
                  and one["task"] in "02" and one.get("exported_attempt") == 'a"b']  # fmt: skip
        selector = r'chip_power{task=~"0|2",exported_attempt="a\"b"}'
        self.assertEqual(self.data("series", ("match[]", selector)), self.ordered(wanted))
        self.assertEqual(self.data("labels", ("match[]", selector)), sorted(wanted[0]))

    def test_times_choose_jobs(self):
        jobs = "label/job/values"
        self.assertEqual(self.data(jobs, ("start", f"{self.now_s - 100}.5")), ["vision-a"])
        self.assertEqual(self.data(jobs, ("end", f"{self.now_s - 100}")), ["vision-b"])
        middle = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now_s - 100))
        self.assertEqual(self.data(jobs, ("start", middle)), ["vision-a"])
        self.assertEqual(self.data("labels", ("start", self.now_s + 100)), [])

    def test_what_the_store_knows_of_itself(self):
        metadata = self.data("metadata")
        self.assertEqual(metadata["loss"], [{"type": "gauge", "help": "", "unit": "nats"}])
        self.assertEqual(metadata["examples_total"][0]["type"], "counter")
        self.assertEqual(list(self.data("metadata", ("metric", "train_odd"))), ["train_odd"])
        self.assertRegex(self.data("status/buildinfo")["version"], r"^\d+\.\d+\.\d+")
        tsdb = self.data("status/tsdb")
        self.assertEqual(tsdb["headStats"]["numSeries"], len(self.stored))
        self.assertEqual(tsdb["seriesCountByMetricName"][0], {"name": "chip_power", "value": 12})
        self.assertIn({"name": "job=vision-a", "value": 15}, tsdb["seriesCountByLabelValuePair"])
        self.assertEqual(len(self.data("status/tsdb", ("limit", 1))["seriesCountByMetricName"]), 1)

    def test_promtool_lists_what_there_is(self):
        def promtool(*arguments):
            return subprocess.run(
                [harness.tool("promtool"), "query", *arguments],
                capture_output=True, text=True, timeout=60)  # fmt: skip

        server = self.collector.url("")
        labels = promtool("labels", server, "__name__")
        self.assertEqual(labels.returncode, 0, labels)
        self.assertEqual(labels.stdout.split(), ["chip_power", "examples_total", "loss", "tacho_step", "train_odd"])
        series = promtool("series", server, '--match=loss{job="vision-a"}', f"--start={self.now_s - 9}")
        self.assertEqual(series.returncode, 0, series)
        self.assertEqual(len(series.stdout.splitlines()), 3, series)
        self.assertIn('host="host-2"', series.stdout)
        refused = promtool("instant", server, "1+1")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("computes no PromQL", refused.stdout + refused.stderr)

    def test_bad_input_is_400_and_named(self):
        for path, parameters, words in (
            ("labels", [("start", "now")], 'start: "now" is no time'),
            ("labels", [("start", 2), ("end", 1)], "end: "),
            ("series", [], "match[]: "),
            ("series", [("match[]", "loss{")], "match[]: at character 6 of loss{: "),
            ("series", [("match[]", "{}")], "match[]: at character 1"),
            ("label/job/values", [("match[]", '{job=~"("}')], "no RE2 expression"),
            ("metadata", [("limit", "many")], "limit: "),
        ):
            for form in (False, True):
                status, body = self.call(path, parameters, form=form)
                self.assertEqual((status, body["status"], body["errorType"]), (400, "error", "bad_data"))
                self.assertIn(words, body["error"])
        for path in ("query", "query_range", "query_exemplars"):
            status, body = self.call(path, [("query", "1+1")], form=True)
            self.assertEqual((status, body["errorType"]), (422, "execution"))
            self.assertIn("docs/interop.md#prometheus-reads-history", body["error"])
        self.assertEqual(self.call("label/job/other")[0], 404)


class ExploreRightsTest(ExploreCase, TokensCase):
    """A token sees the names of its own jobs."""

    def test_an_explorer_sees_its_jobs_alone(self):
        for job in ("vision", "speech"):
            self.feed(job, 0, 0, [(f"{job}_loss", "nats", 1, {f"of_{job}": "1"})],
                      [time.time_ns()], [(0.5,)], [1], token=self.token("all"))  # fmt: skip
        for path, parameters in (
            ("labels", []), ("labels", [("match[]", '{job=~".*s.+"}')]),
            ("label/__name__/values", []), ("label/job/values", []),
            ("label/job/values", [("match[]", '{job=~".*s.+"}')]),
            ("series", [("match[]", '{__name__=~".+"}')]), ("metadata", []), ("status/tsdb", []),
        ):  # fmt: skip
            shown = {
                name: json.dumps(self.data(path, *parameters, headers=self.bearer(name)))
                for name in ("all", "some")
            }
            self.assertIn("vision", shown["some"], path)
            self.assertIn("speech", shown["all"], path)
            self.assertNotIn("speech", shown["some"], path)
            self.assertEqual(self.call(path, parameters)[0], 401, path)
            self.assertEqual(self.call(path, parameters, headers=self.bearer("writer"))[0], 403)
        speech = [("match[]", '{job="speech"}')]
        self.assertEqual(self.data("series", *speech, headers=self.bearer("some")), [])
        tsdb = self.data("status/tsdb", headers=self.bearer("some"))
        self.assertEqual(tsdb["headStats"]["numSeries"], 1)


if __name__ == "__main__":
    harness.main()
