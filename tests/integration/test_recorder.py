"""Recorders and the real collector: over gRPC without an agent, and a trainer that is killed."""
import json
import os
import time

import harness  # First: it makes the stubs importable.
import grpc
import ring_files
import security_case


class RecorderTestCase(harness.TestCase):
    def setUp(self):
        super().setUp()
        config = "storage: {seal_rows: 64, seal_age: 1s}\nlog: {level: warn}\n"
        self.collector = self.started(harness.Collector(self.directory, config))

    def samples(self, job, metric):
        """{labels as text: [(step, value)]} as tachoctl prints it."""
        told = harness.tachoctl(self.collector.address, "query", job, metric, "-o", "json")
        if told.returncode != 0:
            return {}
        return {
            json.dumps(series["labels"], sort_keys=True): [
                (sample["step"], float(sample["value"])) for sample in series["samples"]
            ]
            for series in json.loads(told.stdout)["series"]
        }


class DirectTest(RecorderTestCase):
    ROWS = 3000

    def test_every_row_is_stored_once_though_the_collector_is_killed(self):
        arguments = [os.environ["TACHO_DIRECT_TRAIN"], self.collector.address, str(self.ROWS), "1000"]
        trainer = self.started(
            harness.Program(arguments, os.path.join(self.directory, "train.log"))
        )
        for _ in range(3):
            time.sleep(self.random.uniform(0.3, 0.9))
            self.collector.kill()
            time.sleep(self.random.uniform(0, 0.3))
            self.collector.start()
        self.assertEqual(trainer.wait(), 0, trainer.tail())
        (loss,) = self.samples("direct", "loss").values()
        self.assertEqual(loss, [(i, i / 4) for i in range(self.ROWS)])
        buckets = self.samples("direct", "norms")
        newest = {key: samples[-1][1] for key, samples in buckets.items()}
        self.assertEqual(
            sorted(newest.values()),
            [self.ROWS * share / 100 for share in (2, 5, 17, 65, 100)],
            "up to 1, 4, 16, 64 and all",
        )


class DirectSecurityTest(security_case.TlsCase):
    ROWS = 2000

    def setUp(self):
        super().setUp()
        self.reader = self.token("reader", "read")

    def train(self, token, ca=None, flush_s=60):
        ca = (ca or self.ca).certificate
        arguments = [
            os.environ["TACHO_DIRECT_TRAIN"], self.address, str(self.ROWS), "500", ca, token,
        ]  # fmt: skip
        log = os.path.join(self.directory, "train.log")
        return self.started(harness.Program(arguments, log, {"TACHO_FLUSH_S": str(flush_s)}))

    def losses(self):
        told = harness.tachoctl(
            self.address, "query", "direct", "loss", "-o", "json", "--tls-ca",
            self.ca.certificate, "--token-file", self.reader,
        )  # fmt: skip
        self.assertEqual(told.returncode, 0, told.stderr)
        (series,) = json.loads(told.stdout)["series"]
        return [(sample["step"], float(sample["value"])) for sample in series["samples"]]

    def test_over_tls_with_a_token_that_is_replaced_meanwhile(self):
        trainer_token = self.token("trainer", "write", "direct")
        self.start_tls()
        trainer = self.train(trainer_token)
        harness.wait_until(self.has_job, "the job is there")
        old = self.secret("trainer")
        self.token("trainer", "write", "direct")  # Another secret in the same file.
        self.assertNotEqual(self.secret("trainer"), old)
        self.write_tokens()
        self.reload()
        self.assertEqual(trainer.wait(), 0, trainer.tail())
        self.assertEqual(self.losses(), [(i, i / 4) for i in range(self.ROWS)])

    def has_job(self):
        code, answer = self.query(
            "ListJobs", security_case.JOBS, self.secret("reader"), self.credentials(), self.address
        )
        return code == grpc.StatusCode.OK and [job.name for job in answer.jobs] == ["direct"]

    def test_what_keeps_it_out_is_said_and_harms_no_trainer(self):
        self.start_tls()
        other_job = self.token("other", "write", "other-job")
        self.write_tokens()
        self.reload()
        for token, ca, reason in (
            (other_job, self.ca, "may not"),
            (self.reader, self.ca, "may not"),
            (other_job, self.other_ca, "certificate"),
        ):
            with self.subTest(token=token, ca=ca.certificate):
                trainer = self.train(token, ca, flush_s=2)
                self.assertEqual(trainer.wait(), 0, trainer.tail())
                self.assertIn(reason, trainer.tail())
                self.assertFalse(self.has_job())


class DeathTest(RecorderTestCase):
    """The agent comes only when the trainer is dead."""

    def test_what_a_killed_trainer_had_recorded_arrives(self):
        rings = os.path.join(self.directory, "rings")
        os.mkdir(rings)
        arguments = [
            os.environ["TACHO_TRAIN"], "--job", "spirals", "--steps", "100000",
            "--ring-dir", rings, "--step-delay-ms", "1",
        ]  # fmt: skip
        trainer = self.started(
            harness.Program(arguments, os.path.join(self.directory, "train.log"))
        )
        ring = os.path.join(rings, f"spirals.0.{trainer.process.pid}.ring")
        harness.wait_until(lambda: os.path.exists(ring), "ring made", pause_s=0.01)
        kept = os.path.join(self.directory, "kept.ring")
        os.link(ring, kept)
        time.sleep(self.random.uniform(0.5, 1.5))
        trainer.kill()
        names, rows = ring_files.read(kept, ended=False)
        self.assertGreater(len(rows), 50)
        sources = (
            "  host: {enabled: false}\n"
            f"  rings: {{directory: {rings}, poll_interval: 20ms}}\n"
        )
        self.started(harness.Agent(self.directory, self.collector, sources))
        harness.wait_until(lambda: not os.listdir(rings), "ring delivered and deleted")
        expected = [
            (row.step, ring_files.value(row.patterns[names.index("loss")])) for row in rows
        ]
        harness.wait_until(
            lambda: list(self.samples("spirals", "loss").values()) == [expected], "all rows stored"
        )
        self.assertTrue(self.samples("spirals", "update_seconds"), "the histogram, too")


if __name__ == "__main__":
    harness.main()
