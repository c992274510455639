"""Short jobs push their results and go: as to a Pushgateway, and with tachoctl."""
import gzip
import json
import pathlib
import struct

import harness
import client
import doors


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
        status, _, text = doors.send(self.collector, method, path, body, headers)
        return status, text.decode()

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
        page = harness.http_get(self.collector.owner_of("eval").url("/metrics"))[2].decode()
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

    def test_what_go_pushes(self):
        """The bytes that the package push of client_golang 1.14 sends, in protobuf."""
        body = (pathlib.Path(__file__).parents[1] / "server/interop/formats/push_of_go.bin").read_bytes()
        delimited = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
        for packed, headers in ((body, {}), (gzip.compress(body), {"Content-Encoding": "gzip"})):
            self.assertEqual(self.send("PUT", self.GROUP, packed, {"Content-Type": delimited, **headers}), (200, ""))
        shard = ("shard", "3")
        stored = self.stored()
        self.assertEqual(stored[("accuracy", (("set", "train"), shard))], [0.95, 0.95])
        self.assertEqual(stored[("batch_seconds_bucket", (("le", "+Inf"), shard))], [4.0, 4.0])
        self.assertEqual(stored[("wait_seconds", (("quantile", "0.99"), shard))], [3.0, 3.0])
        self.assertEqual(stored[("steps_total", (shard,))], [1200.0, 1200.0])
        self.assertEqual(len(stored), 14)

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
        protobuf = {"Content-Type": "application/vnd.google.protobuf; encoding=text"}
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


if __name__ == "__main__":
    harness.main()
