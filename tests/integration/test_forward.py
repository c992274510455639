"""The collector forwards what it stores: to a real VictoriaMetrics, to another collector by OTLP, and to a
receiver of odd answers."""
import http.client
import http.server
import json
import os
import threading
import time
import urllib.parse

import harness
import client
from tacho.v1 import ingest_pb2, types_pb2

BASE_MS = (int(time.time()) - 7200) * 1000


class Receiver:
    """Answers remote write with what `answer(headers)` says: (status, headers)."""

    def __init__(self, answer):
        outer = self
        self.heads = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                outer.heads.append(dict(self.headers))
                status, headers = answer(self.headers)
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/api/v1/write"


class ForwardCase(harness.TestCase):
    def start_collector(self, url, more=""):
        self.collector = self.started(harness.Collector(self.directory, (
            "storage: {seal_age: 1s}\n"
            "forward:\n"
            f"  - {{name: receiver, url: '{url}', max_backoff: 500ms, timeout: 5s{more}}}\n")))  # fmt: skip

    def write(self, first, count, tasks=3):
        """`count` samples of each task, acknowledged when this returns."""
        lines = [f"loss,job=bert,host=h{task},task={task} value={self.value(task, i)} {BASE_MS + i * 1000}"
                 for i in range(first, first + count) for task in range(tasks)]  # fmt: skip
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        connection.request("POST", "/write?precision=ms", "\n".join(lines))
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        self.assertEqual(answer.status, 204, body)

    @staticmethod
    def value(task, i):
        return i * 0.25 - task

    def expected(self, count, tasks=3):
        return {str(task): [(BASE_MS + i * 1000, self.value(task, i)) for i in range(count)]
                for task in range(tasks)}  # fmt: skip

    def figure(self, name):
        page = harness.http_get(self.collector.url("/metrics"))[2].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name + "{"))


class VictoriaMetricsTest(ForwardCase):
    """Every sample is there with its time and value, though the collector is killed and the receiver away."""

    def setUp(self):
        super().setUp()
        self.port = harness.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.binary = harness.tool("victoria-metrics")
        self.start_victoria()
        self.start_collector(self.url + "/api/v1/write")

    def start_victoria(self):
        # What is repeated after a kill has the same times, of which it then keeps one.
        self.victoria = self.started(harness.Program(
            [self.binary, f"-storageDataPath={self.directory}/vm", f"-httpListenAddr=127.0.0.1:{self.port}",
             "-retentionPeriod=100y", "-dedup.minScrapeInterval=1ms",
             "-loggerLevel=ERROR"], os.path.join(self.directory, "vm.log")))  # fmt: skip

        def ready():
            try:
                return harness.http_get(self.url + "/health")[0] == 200
            except OSError:
                return False

        harness.wait_until(ready, "VictoriaMetrics ready")

    def exported(self):
        """{task: [(time in ms, value)]}, and the labels of one series."""
        harness.http_get(self.url + "/internal/force_flush")
        query = urllib.parse.urlencode({"match[]": '{__name__="loss"}', "reduce_mem_usage": "0"})
        body = harness.http_get(f"{self.url}/api/v1/export?{query}")[2].decode()
        found = {}
        for line in body.splitlines():
            one = json.loads(line)
            self.labels = one["metric"]
            found.setdefault(one["metric"]["task"], []).extend(zip(one["timestamps"], one["values"]))
        return {task: sorted(samples) for task, samples in found.items()}

    def expect_all(self, count):
        expected = self.expected(count)
        try:
            harness.wait_until(lambda: self.exported() == expected, "all is there")
        except AssertionError:
            found = self.exported()
            for task, samples in expected.items():
                self.assertEqual(found.get(task), samples, f"task {task}\n{self.collector.program.tail()}")
            self.assertEqual(found, expected)

    def test_every_value_arrives_under_the_labels_of_remote_read(self):
        self.write(0, 500)
        self.expect_all(500)
        self.assertEqual(self.labels, {"__name__": "loss", "job": "bert", "host": f"h{self.labels['task']}",
                                       "task": self.labels["task"], "attempt": "0"})  # fmt: skip
        harness.wait_until(lambda: self.figure("tacho_forward_lag_seconds") == 0, "nothing waits")
        self.assertEqual(self.figure("tacho_forward_samples_total"), 1500)

    def test_aggregates_arrive_alone_and_stop_with_the_receiver(self):
        self.collector.stop()
        self.start_collector(self.url + "/api/v1/write", ", series: false, aggregates: {interval: 1s}")
        self.write(0, 500)

        def found():
            query = urllib.parse.urlencode({"match[]": '{__name__=~".+"}', "reduce_mem_usage": "0"})
            harness.http_get(self.url + "/internal/force_flush")
            body = harness.http_get(f"{self.url}/api/v1/export?{query}")[2].decode()
            return [json.loads(line) for line in body.splitlines()]

        def losses():
            return [one for one in found() if one["metric"]["__name__"] == "tacho_job_loss"
                    and one["metric"]["stat"] == "max" and len(one["values"]) >= 2]  # fmt: skip

        maximum = harness.wait_until(losses, "two evaluations")[0]
        self.assertEqual(maximum["metric"], {"__name__": "tacho_job_loss", "job": "bert", "stat": "max"})
        self.assertEqual(set(maximum["values"]), {self.value(0, 499)})
        now_ms = time.time() * 1000
        self.assertTrue(all(now_ms - 120_000 < at <= now_ms for at in maximum["timestamps"]))
        self.assertTrue(all(one["metric"]["__name__"].startswith("tacho_job_") for one in found()))
        self.victoria.stop()
        missed = "tacho_forward_aggregates_missed_total"
        harness.wait_until(lambda: self.figure(missed) >= 2, "evaluations are missed")
        self.assertEqual(self.figure("tacho_forward_lag_seconds"), 0)

    def test_a_task_that_ends_leaves_at_once(self):
        """By VictoriaMetrics' own look-back its last sample would show for five minutes."""
        now_ns = time.time_ns()
        source = [types_pb2.Source(job="short", host="h1", task=task) for task in range(2)]
        stream = client.Stream(self.collector.address, "agent", 1, 1)
        self.assertTrue(stream.welcomed())
        for task in range(2):
            stream.send(client.layout(task + 1, "short", "h1", [("loss", "")], task))
            stream.send(client.batch(task + 1, task + 1, [now_ns], [0.5]))
        self.assertTrue(stream.wait_durable(2))

        def shown():
            harness.http_get(self.url + "/internal/force_flush")
            at = urllib.parse.urlencode({"query": 'loss{job="short"}', "time": now_ns // 10**9 + 60, "nocache": 1})
            body = json.loads(harness.http_get(f"{self.url}/api/v1/query?{at}")[2])
            return sorted(one["metric"]["task"] for one in body["data"]["result"])

        harness.wait_until(lambda: shown() == ["0", "1"], "both tasks")
        ended = ingest_pb2.Event(sequence=3, source=source[0], time_unix_ns=now_ns + 10**9, kind="ended")
        stream.send(ingest_pb2.ClientMessage(event=ended))
        self.assertTrue(stream.wait_durable(3))
        stream.close()
        harness.wait_until(lambda: self.figure("tacho_forward_series_ended_total") >= 1, "the end is told")
        harness.wait_until(lambda: shown() == ["1"], "the task that goes on is left")
        self.assertEqual(self.figure("tacho_forward_series_ended_total"), 1)

    def test_kills_lose_nothing(self):
        written = 0
        for number in range(4):
            for _ in range(5):
                self.write(written, 20)
                written += 20
            if number % 2 == 0:
                self.collector.kill()
                self.collector.start()
            else:
                # What VictoriaMetrics took in the last seconds it would lose: it syncs for a snapshot.
                self.expect_all(written)
                harness.http_get(self.url + "/snapshot/create")
                self.victoria.kill()
                self.start_victoria()
        self.expect_all(written)

    def test_a_receiver_that_was_away_gets_what_it_missed(self):
        self.write(0, 50)
        self.expect_all(50)
        self.victoria.stop()
        for i in range(1, 11):
            self.write(i * 50, 50)
            time.sleep(0.5)
        harness.wait_until(lambda: self.figure("tacho_forward_lag_seconds") > 3, "it is behind")
        harness.wait_until(lambda: self.journal_is_empty(), "the journal has forgotten it")
        self.collector.kill()
        self.collector.start()
        self.write(550, 50)
        self.start_victoria()
        self.expect_all(600)

    def journal_is_empty(self):
        page = harness.http_get(self.collector.url("/metrics"))[2].decode()
        return any(line == "tacho_journal_bytes 0" for line in page.splitlines())


class OtlpTest(harness.TestCase):
    """A second collector that receives OTLP stores what the first one has: identities, times and bits."""

    COUNTER = types_pb2.METRIC_TYPE_COUNTER
    # (job, host, task, attempt) and what its layout has: names that Prometheus would not take, labels whose names
    # say elsewhere where a series is from, counters.
    SOURCES = [
        (("ml/bert", "h1", 3, 2), [("loss", ""), ("tpu.hbm.used", "By", types_pb2.METRIC_TYPE_GAUGE, {"chip": "7"}),
                                   ("train steps", "1", COUNTER, {})]),
        (("ml/bert", "h2", 4, 0), [("loss", ""), ("x", "s", types_pb2.METRIC_TYPE_GAUGE,
                                                  {"service_name": "other", "host_name": "h9", "instance": "a:1"})]),
        (("other", "h2", None, 0), [("node.load", "1"), ("reads_total", "1", COUNTER, {"attempt": "own"})]),
    ]  # fmt: skip
    ODD = [0x7FF8000000000123, 0xFFF8000000000000, 0x8000000000000000, 0x7FF0000000000000, 1]

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.directory, "second"))
        self.second = self.started(harness.Collector(os.path.join(self.directory, "second")))
        self.first = self.started(harness.Collector(self.directory, self.config()))
        self.sent = 0

    def config(self, more=""):
        return (
            "storage: {seal_age: 1s}\n"
            "forward:\n"
            f"  - {{name: second, url: 'http://{self.second.address}', protocol: otlp, max_samples: 50,\n"
            f"     max_backoff: 500ms, timeout: 20s{more}}}\n"
        )

    def write(self, rows):
        """So many rows of each source, durable when this returns."""
        stream = client.Stream(self.first.address, "agent", 1, self.sent + 1)
        self.assertTrue(stream.welcomed())
        for number, ((job, host, task, attempt), metrics) in enumerate(self.SOURCES, 1):
            stream.send(client.layout(number, job, host, metrics, task, attempt))
            times = [BASE_MS * 1_000_000 + (self.sent + i) * 1_000_003 for i in range(rows)]
            values = []
            for i in range(rows):
                for column in range(len(metrics)):
                    odd = client.double(self.ODD[i % len(self.ODD)]) if i % 7 == 0 else 0.1 * i * number
                    values.append(float(self.sent + i) if metrics[column][2:3] == (self.COUNTER,) else odd)
            self.sent += 1
            stream.send(client.batch(self.sent, number, times, values))
        self.assertTrue(stream.wait_durable(self.sent))
        stream.close()
        self.sent += rows

    @staticmethod
    def stored(collector):
        """{what a series is: [(time, attempt, bits)]}"""
        query = client.Query(collector.address)
        found = {}
        for job in ("ml/bert", "other"):
            for info, samples in query.series(job):
                key = (job, info.metric.name, info.metric.type, info.metric.unit, info.host,
                       info.task if info.HasField("task") else None,
                       tuple((label.name, label.value) for label in info.labels))  # fmt: skip
                found[key] = [(time, attempt, bits) for time, _, attempt, bits in samples]
        query.close()
        return found

    def expect_equal(self):
        expected = self.stored(self.first)
        self.assertEqual(len(expected), 7)
        try:
            harness.wait_until(lambda: self.stored(self.second) == expected, "the second has it", pause_s=0.3)
        except AssertionError:
            self.maxDiff = None
            self.assertEqual(self.stored(self.second), expected)

    def test_the_second_collector_stores_the_same(self):
        self.write(200)
        self.expect_equal()
        page = harness.http_get(self.first.url("/metrics"))[2].decode()
        self.assertIn('tacho_forward_requests_total{code="OK",receiver="second"}', page)
        self.assertIn('tacho_forward_samples_left_out_total{receiver="second"} 0', page)

    def test_ends_are_told_and_change_nothing_that_is_stored(self):
        self.first.stop()
        self.first = self.started(harness.Collector(self.directory, self.config() + "metrics: {staleness: 1s}\n"))
        self.write(20)

        def told():
            page = harness.http_get(self.first.url("/metrics"))[2].decode()
            return 'tacho_forward_series_ended_total{receiver="second"} 7' in page.splitlines()

        harness.wait_until(told, "the ends of seven series")
        self.expect_equal()
        page = harness.http_get(self.first.url("/metrics"))[2].decode()
        self.assertIn('tacho_forward_samples_left_out_total{receiver="second"} 0', page)

    def test_kills_of_either_lose_nothing(self):
        for kill in (self.first, self.second, self.first):
            self.write(100)
            kill.kill()
            kill.start()
            self.write(100)
        self.expect_equal()

    def test_what_the_second_refuses_is_left_out_with_an_example(self):
        self.second.stop()
        with open(self.second.config, "w") as file:
            file.write("limits: {series_per_job: 2}\n")
        self.second.start()
        self.write(10)

        def left_out():
            page = harness.http_get(self.first.url("/metrics"))[2].decode()
            # Of five series of the job three are refused.
            return 'tacho_forward_samples_left_out_total{receiver="second"} 30' in page.splitlines()

        harness.wait_until(left_out, "left out")
        self.assertIn("job=ml/bert", self.first.program.tail())


class OddAnswersTest(ForwardCase):
    def test_a_receiver_of_the_first_version_is_remembered(self):
        second = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
        receiver = Receiver(lambda headers: (415 if headers["Content-Type"] == second else 204, {}))
        self.start_collector(receiver.url, ", connections: 1, max_samples: 10")
        self.write(0, 20)
        harness.wait_until(lambda: self.figure("tacho_forward_samples_total") == 60, "all sent")
        versions = [head["X-Prometheus-Remote-Write-Version"] for head in receiver.heads]
        self.assertEqual(versions[0], "2.0.0")
        self.assertEqual(set(versions[1:]), {"0.1.0"})
        self.assertTrue(all(head["User-Agent"].startswith("tacho-collector/") for head in receiver.heads))

    def test_a_request_that_is_too_large_comes_in_halves(self):
        receiver = Receiver(lambda headers: (413 if int(headers["Content-Length"]) > 150 else 204, {}))
        self.start_collector(receiver.url, ", protocol: '1.0', connections: 1")
        self.write(0, 20)
        harness.wait_until(lambda: self.figure("tacho_forward_samples_total") == 60, "all sent")
        self.assertEqual(self.figure("tacho_forward_samples_left_out_total"), 0)
        self.assertGreater(int(receiver.heads[0]["Content-Length"]), 150)

    def test_what_is_refused_for_good_is_left_out_with_an_example_in_the_log(self):
        receiver = Receiver(lambda _: (400, {}))
        self.start_collector(receiver.url, ", protocol: '1.0'")
        self.write(0, 5)
        harness.wait_until(lambda: self.figure("tacho_forward_samples_left_out_total") == 15, "left out")
        self.assertIn("job=bert", self.collector.program.tail())

    def test_retry_after_is_kept(self):
        began = time.monotonic()
        answers = iter([(429, {"Retry-After": "2"})])
        receiver = Receiver(lambda _: next(answers, (204, {})))
        self.start_collector(receiver.url, ", protocol: '1.0', connections: 1")
        self.write(0, 1)
        harness.wait_until(lambda: self.figure("tacho_forward_samples_total") == 3, "sent")
        self.assertGreater(time.monotonic() - began, 2)
        self.assertEqual(receiver.heads[1]["Retry-Attempt"], "1")


if __name__ == "__main__":
    harness.main()
