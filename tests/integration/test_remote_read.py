"""Prometheus reads the collector's history: its PromQL over our samples, and the bytes it gets."""
import concurrent.futures
import json
import math
import os
import re
import time
import urllib.parse

import harness
import client
from client import double
from remote_read_case import COUNTER, RemoteReadCase, TokensCase, read_varint
from snappy_literals import packed

from interop import prometheus_read_pb2 as read_pb2

EXAMPLE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../deploy/prometheus/remote_read.yml"
)
EQ, NEQ, RE, NRE = range(4)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


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
        with open(self.collector.config, "a") as file:
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


if __name__ == "__main__":
    harness.main()
