"""SIGKILL at random moments: what was acknowledged is there afterwards, exactly once, or told as missing."""
import glob
import json
import os
import re
import threading
import time

import client
import harness
import ring_files
from feeder import Feeder, expect_acknowledged, stored

KILLS = 6


class CollectorKillTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        print(f"seed {self.seed}")
        # Small and quick seals, so that kills fall into sealing too.
        config = "storage: {seal_rows: 64, seal_age: 1s}\nlog: {level: warn}\n"
        self.collector = self.started(harness.Collector(self.directory, config))

    def test_stream_resumes_and_nothing_acknowledged_is_lost_or_doubled(self):
        feeder = Feeder(self.random, self.collector.address)
        for kill in range(KILLS):
            feeder.make(self.random.randrange(200, 500))
            # After a random share of what is pending has been acknowledged.
            pending = len(feeder.batches) - feeder.durable
            target = feeder.durable + self.random.randrange(1, pending // 2)
            reached = threading.Event()
            done = []
            thread = threading.Thread(
                target=lambda: done.append(
                    feeder.session(lambda durable: durable >= target and reached.set())
                )
            )
            thread.start()
            self.assertTrue(reached.wait(harness.PATIENCE_S))
            time.sleep(self.random.choice([0, 0.02 * self.random.random()]))
            self.collector.kill()
            thread.join()
            print(f"kill {kill}: {feeder.durable} of {len(feeder.batches)} batches acknowledged")
            self.collector.start()
            expect_acknowledged(self, feeder, self.collector.address)
        self.assertTrue(feeder.session())
        print(f"{feeder.resent - len(feeder.batches)} batches sent again")
        for _ in range(2):
            got = stored(self.collector.address, feeder.JOB)
            self.assertEqual(got, feeder.expected(len(feeder.batches)))
            self.assertEqual(self.collector.stop(), 0)
            self.collector.start()


class AgentKillTest(harness.TestCase):
    """A trainer's rings, two tasks, the real agent; collector and agent are killed in between."""

    JOB = "spirals"
    STEPS = 1500

    def setUp(self):
        super().setUp()
        print(f"seed {self.seed}")
        config = "storage: {seal_rows: 64, seal_age: 1s}\nlog: {level: warn}\n"
        self.begin(harness.Collector(self.directory, config))

    def begin(self, collector):
        self.collector = self.started(collector)
        self.rings = os.path.join(self.directory, "rings")
        os.mkdir(self.rings)
        sources = (
            "  host: {enabled: false}\n"
            f"  rings: {{directory: {self.rings}, poll_interval: 20ms}}\n"
        )
        self.agent = self.started(harness.Agent(self.directory, self.collector, sources))

    def train(self, task):
        """A running trainer, and a link to its ring that stays when the agent deletes the ring."""
        arguments = [
            os.environ["TACHO_TRAIN"], "--job", self.JOB, "--task", str(task), "--tasks", "2",
            "--steps", str(self.STEPS), "--ring-dir", self.rings, "--step-delay-ms", "3",
        ]  # fmt: skip
        log = os.path.join(self.directory, f"train-{task}.log")
        trainer = harness.Program(arguments, log)
        self.addCleanup(trainer.kill)
        ring = os.path.join(self.rings, f"{self.JOB}.{task}.{trainer.process.pid}.ring")
        harness.wait_until(lambda: os.path.exists(ring), "ring made", pause_s=0.01)
        kept = os.path.join(self.directory, f"kept.{task}")
        os.link(ring, kept)
        return trainer, kept

    def kill_while(self, running):
        """Kills the one or the other, at random, as long as a trainer runs."""
        kills = []
        while running():
            time.sleep(self.random.uniform(0.1, 0.8))
            victim = self.collector if len(kills) % 2 == 0 else self.agent
            victim.kill()
            time.sleep(self.random.uniform(0, 0.5))
            victim.start()
            kills.append(type(victim).__name__)
        return kills

    def stored(self, metric):
        """{task: [(time, step, bits)]} as tachoctl prints it."""
        told = harness.tachoctl(self.collector.address, "query", self.JOB, metric, "-o", "json")
        if told.returncode != 0:
            return {}
        return {
            series["task"]: [
                (int(s["time_unix_ns"]), s["step"], client.bits(float(s["value"])))
                for s in series["samples"]
            ]
            for series in json.loads(told.stdout)["series"]
        }

    def test_every_row_that_the_trainers_recorded_is_stored_once(self):
        trainers = [self.train(task) for task in (0, 1)]
        kills = self.kill_while(lambda: any(t.alive() for t, _ in trainers))
        by_agent = kills.count("Agent")
        print(f"{len(kills) - by_agent} kills of the collector, {by_agent} of the agent")
        self.assertEqual([t.wait() for t, _ in trainers], [0, 0])
        rings = [ring_files.read(kept) for _, kept in trainers]
        for metrics, rows in rings:
            self.assertEqual([row.step for row in rows], list(range(self.STEPS)))
        # The agent deletes a ring once all of it is delivered.
        harness.wait_until(lambda: not os.listdir(self.rings), "rings delivered and deleted")
        self.expect_stored(rings)
        self.expect_events()

    def expect_stored(self, rings):
        for column, metric in enumerate(rings[0][0]):
            expected = {
                task: sorted(
                    (row.time_ns, row.step, row.patterns[column])
                    for row in rows
                    if column < len(row.patterns) and row.patterns[column] is not None
                )
                for task, (_, rows) in enumerate(rings)
            }
            wanted = {task: len(samples) for task, samples in expected.items()}
            harness.wait_until(
                lambda: {t: len(s) for t, s in self.stored(metric).items()} == wanted,
                f"{wanted} samples of {metric} by task",
            )
            self.assertEqual(self.stored(metric), expected, metric)

    def expect_events(self):
        query = client.Query(self.collector.address)
        events = [(e.kind, e.source.task) for e in query.events(self.JOB)]
        query.close()
        expected = [("attempt_started", 0), ("attempt_started", 1), ("ended", 0), ("ended", 1)]
        self.assertEqual(sorted(events), expected)


class CutLogTest(harness.TestCase):
    """The end of the collector's log is cut: both sides say what is missing, and only then."""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, "log: {level: warn}\n"))
        self.owner = self.collector.owner_of("lines")
        self.lines = os.path.join(self.directory, "lines.jsonl")
        sources = (
            "  host: {enabled: false}\n"
            "  json_lines: {poll_interval: 10ms, "
            f"files: [{{path: {self.lines}, job: lines}}]}}\n"
        )
        self.agent = self.started(harness.Agent(self.directory, self.collector, sources))
        self.written = 0

    def value(self, metric):
        _, _, page = harness.http_get(self.owner.url("/metrics"))
        return float(re.search(rf"^{re.escape(metric)} (\S+)$", page.decode(), re.M)[1])

    def deliver(self, lines):
        """In messages of their own: waits until each is stored."""
        before = self.value("tacho_storage_rows_appended_total")
        for stored in range(1, lines + 1):
            with open(self.lines, "a") as file:
                line = {"step": self.written, "time": time.time(), "loss": 1.5}
                file.write(json.dumps(line) + "\n")
            self.written += 1
            harness.wait_until(
                lambda: self.value("tacho_storage_rows_appended_total") >= before + stored,
                "the row is stored",
                pause_s=0.01,
            )

    def missing(self, fate):
        name = "tacho_ingest_acknowledged_missing_messages_total"
        return self.value(f'{name}{{fate="{fate}"}}')

    def test_both_sides_tell_what_is_missing(self):
        self.deliver(20)
        self.collector.kill()
        self.collector.start()
        self.deliver(10)
        self.assertEqual(self.value("tacho_storage_missing_commits"), 0, "a kill loses nothing")
        self.assertEqual(self.missing("gone") + self.missing("again"), 0)

        self.collector.kill()
        newest = max(glob.glob(os.path.join(self.owner.path, "*.log")))
        os.truncate(newest, os.path.getsize(newest) // 2)
        self.collector.start()
        self.assertGreater(self.value("tacho_storage_missing_commits"), 0)
        self.assertGreater(self.value("tacho_storage_missing_rows"), 0)
        harness.wait_until(lambda: self.missing("gone") > 0, "the agent's Hello says it")
        told = self.missing("gone") + self.missing("again")
        self.assertLessEqual(told, self.value("tacho_storage_missing_messages"))
        for log, text in [
            (self.owner.log, "the store has lost the end of its log"),
            (self.owner.log, "messages that were acknowledged are missing"),
            (self.agent.log, "the collector no longer has what it had acknowledged"),
        ]:
            with open(log) as file:
                self.assertIn(text, file.read())

        self.deliver(5)
        self.collector.kill()
        self.collector.start()
        self.deliver(1)
        self.assertEqual(self.value("tacho_storage_missing_commits"), 0, "it is told once")
        self.assertEqual(self.missing("gone"), 0)


if __name__ == "__main__":
    harness.main()
