"""Acknowledgements that wait for the bucket (docs/bucket.md): what was acknowledged is there, bit for bit and
once, after the collector and its disk are gone; an owner that was away acknowledges nothing any more."""
import os
import shutil
import signal
import subprocess
import threading
import time

import client
import harness
import test_bucket
import test_kill
from feeder import METRICS, Feeder, expect_acknowledged, stored

LOSSES = int(os.environ.get("TACHO_LOSSES", "5"))  # A campaign takes hundreds.


def configuration(endpoint, url, more=""):
    """Small and quick seals, so that losses fall into sealing too."""
    return (
        "storage: {seal_rows: 64, seal_age: 1s}\n"
        f"bucket: {{url: '{url}', endpoint: '{endpoint}', path_style: true}}\n"
        f"cluster: {{ack: shared, ack_interval: 100ms{more}}}\n"
        "log: {level: info}\n"
    )


class SharedAcksCase(harness.TestCase):
    def begin(self, endpoint, url, keys):
        self.endpoint, self.bucket, self.keys = endpoint, url, keys
        self.collector = self.machine("first")
        self.started(self.collector)

    def machine(self, name, more=""):
        """A collector with a disk of its own, and the same bucket."""
        directory = os.path.join(self.directory, name)
        os.makedirs(directory, exist_ok=True)
        collector = harness.Collector(
            directory,
            configuration(self.endpoint, self.bucket, more),
            env={**os.environ, **self.keys},
        )
        # Its log is shown when a test fails.
        collector.log = os.path.join(self.directory, f"{name}.log")
        return collector

    def lose(self, collector):
        """The machine is gone, with its disk."""
        collector.kill()
        shutil.rmtree(collector.path)

    def metric(self, collector, name):
        _, _, page = harness.http_get(collector.url("/metrics"))
        for line in page.decode().splitlines():
            if line.startswith(name + "{") or line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no {name} in /metrics")

    def check_store(self, path):
        """The store of a collector that does not run."""
        done = subprocess.run(
            [os.environ["TACHO_COLLECTOR"], "--check-store", path],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def feed_until_killed(self, feeder, end):
        """Feeds until a random share of what is pending has been acknowledged; then calls `end`."""
        feeder.make(self.random.randrange(100, 300))
        pending = len(feeder.batches) - feeder.durable
        target = feeder.durable + self.random.randrange(1, pending)
        reached = threading.Event()
        thread = threading.Thread(
            target=lambda: feeder.session(lambda durable: durable >= target and reached.set())
        )
        thread.start()
        self.assertTrue(reached.wait(harness.PATIENCE_S))
        time.sleep(self.random.choice([0, 0.2 * self.random.random()]))
        end()
        thread.join()

    def expect_nothing_lost_with_machines(self, losses):
        feeder = Feeder(self.random, self.collector.address)
        for loss in range(losses):
            self.feed_until_killed(feeder, lambda: self.lose(self.collector))
            print(f"loss {loss}: {feeder.durable} of {len(feeder.batches)} batches acknowledged")
            self.collector.start()
            self.assertGreater(self.metric(self.collector, "tacho_shard_restore_seconds"), 0)
            expect_acknowledged(self, feeder, self.collector.address)
        self.assertTrue(feeder.session())
        expected = feeder.expected(len(feeder.batches))
        self.assertEqual(stored(self.collector.address, feeder.JOB), expected)
        self.assertEqual(self.metric(self.collector, "tacho_shard_epoch"), losses + 1)
        self.assertEqual(self.metric(self.collector, "tacho_shard_unshipped_bytes"), 0)

        # A clean end leaves all of it in the bucket, too; and the disk is a sound store.
        self.assertEqual(self.collector.stop(), 0)
        self.check_store(self.collector.path)
        other = self.started(self.machine("other"))
        self.assertEqual(stored(other.address, feeder.JOB), expected)
        self.assertEqual(other.stop(), 0)
        self.check_store(other.path)


class SharedAcksTest(SharedAcksCase):
    def setUp(self):
        super().setUp()
        print(f"seed {self.seed}")
        self.store = self.started(test_bucket.ObjectStore())
        keys = {"AWS_ACCESS_KEY_ID": test_bucket.KEY_ID, "AWS_SECRET_ACCESS_KEY": test_bucket.SECRET}
        self.begin(self.store.endpoint, "s3://tests/one", keys)

    def test_nothing_acknowledged_is_lost_with_the_machine(self):
        self.expect_nothing_lost_with_machines(LOSSES)

    def test_a_kill_alone_needs_no_restore(self):
        feeder = Feeder(self.random, self.collector.address)
        for _ in range(2):
            self.feed_until_killed(feeder, self.collector.kill)
            self.collector.start()
            expect_acknowledged(self, feeder, self.collector.address)
            self.assertEqual(self.metric(self.collector, "tacho_shard_restore_seconds"), 0)
        self.assertTrue(feeder.session())
        self.assertEqual(
            stored(self.collector.address, feeder.JOB), feeder.expected(len(feeder.batches))
        )

    def test_an_owner_that_was_away_acknowledges_nothing(self):
        feeder = Feeder(self.random, self.collector.address)
        feeder.make(50)
        self.assertTrue(feeder.session())
        before = feeder.durable

        # The owner stands still, as a machine that is suspended; another one becomes the owner.
        sleeper = client.Stream(self.collector.address, "sleeper", 7, 1)
        self.assertTrue(sleeper.welcomed())
        sleeper.send(client.layout(1, "asleep", "host-1", METRICS, task=0))
        self.collector.program.process.send_signal(signal.SIGSTOP)
        now = time.time_ns()
        for sequence in range(1, 21):
            sleeper.send(client.batch(sequence, 1, [now + sequence], [1.0, 2.0, 3.0]))
        other = self.started(self.machine("other"))
        self.assertEqual(stored(other.address, feeder.JOB), feeder.expected(before))
        self.assertEqual(self.metric(other, "tacho_shard_epoch"), 2)

        self.collector.program.process.send_signal(signal.SIGCONT)
        self.assertFalse(sleeper.wait(lambda: sleeper.durable > 0, "end of the stream"))
        self.assertEqual(sleeper.error.code().name, "UNAVAILABLE")
        sleeper.close()
        harness.wait_until(
            lambda: self.metric(self.collector, "tacho_shard_fenced") == 1, "it knows that it is fenced"
        )
        status, _, body = harness.http_get(self.collector.url("/readyz"))
        self.assertEqual(status, 503)
        self.assertIn(b"another collector", body)
        self.assertIn("another collector has become the owner", self.collector.program.tail())
        turned_away = client.Stream(self.collector.address, "sleeper", 7, 1)
        self.assertFalse(turned_away.wait(lambda: False, "end of the stream"))
        self.assertEqual(turned_away.error.code().name, "UNAVAILABLE")
        turned_away.close()
        # It still shows what it has.
        self.assertEqual(stored(self.collector.address, feeder.JOB), feeder.expected(before))

        # The agent goes to the other one, which takes everything, once.
        feeder.address = other.address
        feeder.make(50)
        self.assertTrue(feeder.session())
        self.assertEqual(stored(other.address, feeder.JOB), feeder.expected(len(feeder.batches)))
        self.assertEqual(self.metric(other, "tacho_shard_fenced"), 0)

        # Started again, it becomes the owner with the other's data; what it had is set aside.
        self.assertEqual(other.stop(), 0)
        self.collector.stop()
        self.collector.start()
        self.assertEqual(
            stored(self.collector.address, feeder.JOB), feeder.expected(len(feeder.batches))
        )
        self.assertEqual(len([n for n in os.listdir(self.collector.path) if n.startswith(".fenced-")]), 1)

    def test_rows_are_seen_while_the_bucket_is_away_and_acknowledged_afterwards(self):
        feeder = Feeder(self.random, self.collector.address)
        feeder.make(20)
        self.assertTrue(feeder.session())
        self.store.process.send_signal(signal.SIGSTOP)
        feeder.make(200)
        done = threading.Thread(target=feeder.session)
        done.start()
        expected = feeder.expected(len(feeder.batches))
        harness.wait_until(
            lambda: stored(self.collector.address, feeder.JOB) == expected, "rows seen, not acknowledged"
        )
        harness.wait_until(
            lambda: self.metric(self.collector, "tacho_shard_unshipped_seconds") > 3, "the oldest waits"
        )
        self.assertEqual(feeder.durable, 20)
        self.assertGreater(self.metric(self.collector, "tacho_shard_unshipped_bytes"), 0)
        self.assertEqual(harness.http_get(self.collector.url("/readyz"))[0], 200)
        self.store.process.send_signal(signal.SIGCONT)
        done.join()
        self.assertEqual(feeder.durable, len(feeder.batches))
        self.assertEqual(stored(self.collector.address, feeder.JOB), expected)
        self.lose(self.collector)
        self.collector.start()
        self.assertEqual(stored(self.collector.address, feeder.JOB), expected)

    def test_rows_that_pack_well_are_seen_as_long_while_the_bucket_is_away(self):
        """What waits for the bucket is smaller than what came, and is no load on the disk's queue."""
        self.collector.stop()
        self.collector = self.machine("first", "}\nquotas: {pending_bytes: 256KiB")
        self.collector.start()
        stream = client.Stream(self.collector.address, "packs-well", 7, 1)
        self.addCleanup(stream.close)
        self.assertTrue(stream.welcomed(), stream.error)
        metrics = [(f"m{i}", "1") for i in range(50)]
        stream.send(client.layout(1, "packed", "host-1", metrics, task=0))
        stream.send(client.batch(1, 1, [time.time_ns()], [1.5] * len(metrics)))
        self.assertTrue(stream.wait_durable(1), stream.error)
        self.store.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.store.process.send_signal, signal.SIGCONT)
        last = 100  # Of 20 kB as they come, 2 MB in all, and a thirtieth of that as they are stored.
        for sequence in range(2, last + 1):
            times = [time.time_ns() + i for i in range(50)]
            stream.send(client.batch(sequence, 1, times, [1.5] * len(metrics) * len(times)))

        def seen():
            query = client.Query(self.collector.address)
            try:
                return len(query.range("packed", "m0").get(("m0", 0, "host-1"), []))
            finally:
                query.close()

        harness.wait_until(lambda: seen() == 1 + (last - 1) * 50, "all rows seen", timeout_s=30)
        self.assertFalse(stream.is_durable(2))
        self.store.process.send_signal(signal.SIGCONT)
        self.assertTrue(stream.wait_durable(last), stream.error)

    def test_what_cannot_be_is_refused_at_the_start_with_a_reason(self):
        """A bucket that does not answer, one of another store, and no bucket at all."""
        self.collector.stop()
        cases = (
            ("cluster: {ack: shared}\n", "set bucket.url", 2),
            ("cluster: {ack: both}\n", "cluster.ack", 2),
            ("cluster: {ack: shared, ack_interval: 0s}\n", "cluster.ack_interval", 2),
            ("bucket: {url: 'http://x'}\n", "bucket", 2),
        )
        path = os.path.join(self.directory, "wrong.yaml")
        for text, named, code in cases:
            with open(path, "w") as file:
                file.write(text)
            checked = subprocess.run(
                [os.environ["TACHO_COLLECTOR"], "--config", path, "--check-config"],
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            self.assertEqual(checked.returncode, code, text)
            self.assertIn(named, checked.stderr)
        stranger = self.machine("stranger")
        with open(stranger.config, "w") as file:
            file.write("log: {level: info}\n")
        self.started(stranger)
        feeder = Feeder(self.random, stranger.address)
        feeder.make(5)
        self.assertTrue(feeder.session())
        stranger.stop()
        with open(stranger.config, "w") as file:
            file.write(configuration(self.endpoint, self.bucket))
        refused = subprocess.run(
            stranger.arguments(os.path.join(self.directory, "none")),
            env={**os.environ, **self.keys}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("another", refused.stderr)


class AgentOverLostMachinesTest(test_kill.AgentKillTest):
    """Trainers, their rings and the real agent, as in the test of kills; but each kill of the collector takes its
    disk along."""

    def setUp(self):
        harness.TestCase.setUp(self)
        print(f"seed {self.seed}")
        self.store = self.started(test_bucket.ObjectStore())
        env = {
            **os.environ,
            "AWS_ACCESS_KEY_ID": test_bucket.KEY_ID,
            "AWS_SECRET_ACCESS_KEY": test_bucket.SECRET,
        }
        config = configuration(self.store.endpoint, "s3://tests/agents")
        self.begin(harness.Collector(self.directory, config, env=env))
        self.collector.kill = self.lose

    def lose(self):
        self.collector.program.kill()
        shutil.rmtree(self.collector.path, ignore_errors=True)


class CephTest(SharedAcksCase):
    """At a real Ceph."""

    @classmethod
    def setUpClass(cls):
        test_bucket.start_ceph(cls)

    def begin_in(self, bucket):
        keys = {key: value for key, value in self.ceph.items() if key.startswith("AWS_")}
        self.begin(self.ceph["TACHO_TEST_CEPH"], f"s3://{bucket}/shared", keys)

    def test_nothing_acknowledged_is_lost_with_the_machine(self):
        self.begin_in("plain")
        self.expect_nothing_lost_with_machines(3)

    def test_a_bucket_with_versions_is_refused(self):
        self.endpoint, self.bucket = self.ceph["TACHO_TEST_CEPH"], "s3://versioned/shared"
        self.keys = {key: value for key, value in self.ceph.items() if key.startswith("AWS_")}
        collector = self.machine("refused")
        refused = subprocess.run(
            collector.arguments(os.path.join(self.directory, "none")),
            env={**os.environ, **self.keys}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("Ceph bucket with versions", refused.stderr)


if __name__ == "__main__":
    harness.main()
