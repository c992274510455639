"""A newcomer's way through tachoctl, against a live collector."""
import csv
import io
import json
import os
import time

import client
import harness
from tacho.v1 import ingest_pb2, types_pb2

JOB = "bert-base"
STEPS = 300
SECOND = 1_000_000_000
METRICS = [("loss", "nats"), ("learning_rate", "1")]


def loss(task, step):
    """Long decimals, to see them come back; a NaN and an infinity for one task."""
    if task == 1 and step in (10, 11):
        return float("nan") if step == 10 else float("inf")
    return (task + 1) / 3 + 1 / (step + 3)


class CliTest(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.begin_ns = time.time_ns() - (STEPS + 5) * SECOND

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))
        self.feed()

    def feed(self):
        stream = client.Stream(self.collector.address, "agent", 1, 1)
        self.addCleanup(stream.close)
        sequence = 0
        for task in (0, 1):
            stream.send(client.layout(task, JOB, f"host-{task}", METRICS, task, 0, True))
            times = [self.begin_ns + step * SECOND for step in range(STEPS)]
            values = [v for step in range(STEPS) for v in (loss(task, step), 0.001)]
            sequence += 1
            stream.send(client.batch(sequence, task, times, values, range(STEPS)))
        source = types_pb2.Source(job=JOB, task=0, host="host-0")
        saved = ingest_pb2.Event(
            sequence=sequence + 1, source=source, time_unix_ns=self.begin_ns + 99 * SECOND, step=99,
            kind="checkpoint_saved", message='To "/ckpt, 99".', fields={"bytes": "123"},
        )  # fmt: skip
        stream.send(ingest_pb2.ClientMessage(event=saved))
        values = {"planned_steps": "600"}
        facts = ingest_pb2.Attributes(sequence=sequence + 2, job=JOB, values=values)
        stream.send(ingest_pb2.ClientMessage(attributes=facts))
        stream.send(client.layout(2, "albert", "host-9", METRICS, 0, 0, True))
        old = self.begin_ns - 7200 * SECOND
        stream.send(client.batch(sequence + 3, 2, [old], [1.0, 0.1], [1]))
        self.assertTrue(stream.wait_durable(sequence + 3), stream.error)

    def run_ctl(self, *arguments, code=0, address=None):
        done = harness.tachoctl(address or self.collector.address, *arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        if code == 0:
            self.assertEqual(done.stderr, "", arguments)
        else:
            self.assertEqual(done.stdout, "", arguments)
            self.assertNotEqual(done.stderr, "", arguments)
        return done.stdout if code == 0 else done.stderr

    def test_a_job_that_was_refused_altogether_is_found_with_the_reason(self):
        stream = client.Stream(self.collector.address, "late", 1, 1)
        self.addCleanup(stream.close)
        stream.send(client.layout(1, "restored", "host-1", METRICS, 0, 0, True))
        stream.send(client.batch(1, 1, [SECOND], [1.0, 0.1], [1]))  # 1970.
        self.assertTrue(stream.wait_durable(1), stream.error)
        done = harness.tachoctl(self.collector.address, "jobs")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"restored .* refused")
        self.assertIn("tachoctl status JOB", done.stderr)
        status = self.run_ctl("status", "restored")
        for text in ("REFUSED: the collector stored no sample", "2 samples as too_old",
                     "such as loss", "older than storage.retention, 2160h; raise it"):
            self.assertIn(text, status)
        (refusal,) = self.json("status", "restored")["refusals"]
        self.assertEqual((refusal["reason"], refusal["samples"]), ("too_old", 2))
        self.assertNotIn("Refused", self.run_ctl("status", JOB))

    def json(self, *arguments):
        return json.loads(self.run_ctl(*arguments, "-o", "json"))

    def csv(self, *arguments):
        rows = list(csv.reader(io.StringIO(self.run_ctl(*arguments, "-o", "csv")), strict=True))
        self.assertTrue(all(len(row) == len(rows[0]) for row in rows), arguments)
        return [dict(zip(rows[0], row)) for row in rows[1:]]

    def test_help_needs_no_collector(self):
        nowhere = f"127.0.0.1:{harness.free_port()}"
        self.assertIn("tachoctl jobs", self.run_ctl("help", address=nowhere))
        for command in ("jobs", "status", "metrics", "series", "query", "events"):
            self.assertIn("Example", self.run_ctl(command, "--help", address=nowhere))

    def test_jobs(self):
        lines = self.run_ctl("jobs").splitlines()
        self.assertTrue(lines[1].startswith(JOB + " "), "the one that reports now comes first")
        self.assertTrue(lines[2].startswith("albert "), lines)
        jobs = {job["job"]: job for job in self.json("jobs")["jobs"]}
        self.assertEqual(set(jobs), {JOB, "albert"})
        described = {key: jobs[JOB][key] for key in ("tasks", "hosts", "series", "last_step")}
        self.assertEqual(described, {"tasks": 2, "hosts": 2, "series": 4, "last_step": STEPS - 1})
        self.assertEqual([j["job"] for j in self.csv("jobs", "bert-b.*")], [JOB])

    def test_series(self):
        self.assertIn("loss", self.run_ctl("series", JOB))
        series = self.json("series", JOB, "loss", "-m", "task=1")["series"]
        self.assertEqual([(s["metric"], s["task"], s["host"], s["unit"]) for s in series],
                         [("loss", 1, "host-1", "nats")])  # fmt: skip
        self.assertEqual(len(self.csv("series", JOB, "-m", "host=~host-.*")), 4)

    def test_query_returns_values_bit_for_bit(self):
        answer = self.json("query", JOB, "loss")
        self.assertIsNone(answer["error"])
        for series in answer["series"]:
            samples = series["samples"]
            self.assertEqual([s["step"] for s in samples], list(range(STEPS)))
            got = [client.bits(float(s["value"])) for s in samples]
            self.assertEqual(got, [client.bits(loss(series["task"], s)) for s in range(STEPS)])
        rows = self.csv("query", JOB, "loss", "-m", "task=1", "--steps", "9:12")
        values = [(int(r["step"]), client.bits(float(r["value"]))) for r in rows]
        self.assertEqual(values, [(s, client.bits(loss(1, s))) for s in range(9, 13)])
        times = [int(r["time_unix_ns"]) for r in rows]
        self.assertEqual(times, [self.begin_ns + s * SECOND for s in range(9, 13)])

    def test_query_reduces_and_folds(self):
        reduced = self.json("query", JOB, "loss", "-m", "task=0", "--points", "10")
        buckets = reduced["series"][0]["samples"]
        self.assertLessEqual(len(buckets), 10)
        self.assertEqual(sum(int(b["count"]) for b in buckets), STEPS)
        self.assertEqual(max(b["max"] for b in buckets), loss(0, 0))
        folded = self.json("query", JOB, "loss", "--across", "max", "--steps", "20:")
        samples = folded["series"][0]["samples"]
        self.assertEqual([s["value"] for s in samples], [loss(1, s) for s in range(20, STEPS)])
        table = self.run_ctl("query", JOB, "loss", "--points", "5")
        self.assertIn("Averages:", table)
        self.assertIn("240..299", table)

    def test_status(self):
        text = self.run_ctl("status", JOB)
        self.assertIn(JOB, text)
        status = self.json("status", JOB)
        self.assertEqual((status["tasks"], status["last_step"]), (2, STEPS - 1))
        page = f"/ui/#/job/{JOB}"
        self.assertRegex(text, rf"page: +http://127\.0\.0\.1:\d+{page}")
        self.assertIn(page, status["page_url"])
        self.assertEqual((status["planned_steps"], status["progress"]), (600, 0.5))
        latest = [task["latest"]["loss"]["value"] for task in status["tasks_seen"]]
        self.assertEqual(sorted(latest), [loss(0, STEPS - 1), loss(1, STEPS - 1)])
        self.assertEqual({row["job"] for row in self.csv("status", JOB)}, {JOB})

    def test_events(self):
        self.assertIn("checkpoint_saved", self.run_ctl("events", JOB))
        (event,) = self.json("events", JOB)["events"]
        self.assertEqual((event["kind"], event["step"], event["task"]), ("checkpoint_saved", 99, 0))
        self.assertEqual(event["fields"], {"bytes": "123"})
        (row,) = self.csv("events", JOB, "--kind", "checkpoint_saved")
        self.assertEqual(row["message"], 'To "/ckpt, 99".')

    def test_an_export_of_a_mistyped_metric_names_its_neighbour(self):
        file = os.path.join(self.directory, "export.csv")
        said = self.run_ctl("export", JOB, "los", "-f", file, code=1)
        self.assertIn("no metric 'los'; did you mean 'loss'?", said)

    def test_mistyped_job_is_answered_with_its_neighbour(self):
        for command in (["status"], ["series"], ["query", "loss"], ["events"]):
            arguments = [command[0], "bert-bse", *command[1:]]
            self.assertIn(JOB, self.run_ctl(*arguments, code=1), arguments)
        self.assertIn("loss", self.run_ctl("query", JOB, "los", code=1))

    def test_unreachable_collector_is_exit_code_3(self):
        nowhere = f"127.0.0.1:{harness.free_port()}"
        for arguments in (["jobs"], ["status", JOB], ["query", JOB, "loss"]):
            said = self.run_ctl(*arguments, "--timeout", "5s", code=3, address=nowhere)
            self.assertIn(nowhere, said)

    def test_wrong_command_lines_are_exit_code_2(self):
        wrong = (
            ["jbos"], ["jobs", "--nonsense"], ["query", JOB], ["status"],
            ["query", JOB, "loss", "--points", "many"], ["query", JOB, "loss", "--steps", "9:1"],
            ["series", JOB, "-m", "task"], ["jobs", "-o", "xml"],
        )  # fmt: skip
        for arguments in wrong:
            self.run_ctl(*arguments, code=2)


if __name__ == "__main__":
    harness.main()
