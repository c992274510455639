"""Recorders and the real collector: over gRPC without an agent, and a trainer that is killed."""
import json
import os
import time

import harness
import ring_files


class RecorderTestCase(harness.TestCase):
    def setUp(self):
        super().setUp()
        config = "storage: {seal_rows: 64, seal_age: 1s}\nlog: {level: warn}\n"
        self.collector = self.started(harness.Collector(self.directory, config))

    def samples(self, job, metric):
        """{labels as text: [(step, value)]} as tachoctl tells it."""
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
