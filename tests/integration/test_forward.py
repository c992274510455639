"""The collector forwards what it stores: to a real VictoriaMetrics, and to a receiver of odd answers."""
import http.client
import http.server
import json
import os
import threading
import time
import urllib.parse

import harness

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
