"""What a bucket has of a lost collector is checked, and made a store for a collector without a bucket,
as docs/bucket.md has it."""
import os
import struct
import subprocess
import threading
import time

import client
import harness
from feeder import Feeder, expect_acknowledged
from test_bucket import KEY_ID, SECRET, ObjectStore
from test_shared_acks import SharedAcksCase

DAY = 86_400_000_000_000
SECOND = 1_000_000_000
URL = "s3://tests/lost"
MESSAGES, ROWS = 30, 10  # Of bucket_writer.cc.


class BucketCopyTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.store = self.started(ObjectStore())
        self.env = {**os.environ, "AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
        self.today = time.time_ns() // DAY * DAY
        self.hand("write", os.path.join(self.directory, "lost"))
        self.config = os.path.join(self.directory, "bucket.yaml")
        with open(self.config, "w") as file:
            file.write(f"bucket: {{url: '{URL}', endpoint: '{self.store.endpoint}', path_style: true}}\n")

    def hand(self, *words):
        done = subprocess.run(
            [os.environ["TACHO_BUCKET_WRITER"], URL, self.store.endpoint, *words],
            env=self.env, capture_output=True, text=True, timeout=harness.PATIENCE_S,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def collector(self, *words):
        """The finished process of a mode that ends by itself."""
        return subprocess.run(
            [os.environ["TACHO_COLLECTOR"], "--config", self.config, *words],
            env=self.env, capture_output=True, text=True, timeout=harness.PATIENCE_S,
        )  # fmt: skip

    def path(self, name):
        return os.path.join(self.directory, name)

    def keys(self, part):
        return [key for key in self.hand("list") if part in key]

    def expected(self, first_day=0):
        """{task: what client.points_of() has} of the days from this one on, of three."""
        rows = {}
        for message in range(1 + 10 * first_day, MESSAGES + 1):
            begin = self.today - (2 - (message - 1) // 10) * DAY + 100 * message * SECOND
            for row in range(ROWS):
                (bits,) = struct.unpack("<Q", struct.pack("<d", 1000.0 * message + row))
                point = (begin + row * SECOND, 100 * message + row, 0, bits)
                rows.setdefault(message % 3, []).append(point)
        return rows

    def stored(self, path):
        started = self.started(
            harness.Collector(self.directory, "conditions: {enabled: false}\n", path=path)
        )
        query = client.Query(started.address)
        try:
            found = query.range("copied", "loss")
        finally:
            query.close()
        self.assertEqual(started.stop(), 0)
        return {task: points for (_, task, _), points in found.items()}

    def test_a_lost_collector_is_restored_whole(self):
        before = self.hand("list")
        checked = self.collector("--check-bucket", "--deep")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertIn(f"{URL}: whole;", checked.stdout)
        self.assertIn("copy=yes", checked.stdout)

        target = self.path("new/place")
        restored = self.collector("--restore-from-bucket", target)
        self.assertEqual(restored.returncode, 0, restored.stdout + restored.stderr)
        for said in ("owner=writer", "closed_days=1", "jobs=1", "newest=20", "The log was read up to segment"):
            self.assertIn(said, restored.stdout)
        self.assertEqual(self.hand("list"), before, "nothing was written into the bucket")
        self.assertEqual(os.stat(target).st_mode & 0o077, 0)
        self.assertEqual(self.stored(target), self.expected())

        again = self.collector("--restore-from-bucket", target)
        self.assertEqual(again.returncode, 1)
        self.assertIn("is not empty", again.stderr)
        self.assertEqual(self.stored(target), self.expected())

    def test_old_days_are_left_out_on_demand(self):
        target = self.path("new")
        restored = self.collector("--restore-from-bucket", target, "--days", "0")
        self.assertEqual(restored.returncode, 0, restored.stdout + restored.stderr)
        gone = time.strftime("%Y-%m-%d", time.gmtime(self.today // SECOND - 2 * 86400))
        self.assertIn(f"Days that are not in the directory: {gone}", restored.stdout)
        self.assertEqual(self.stored(target), self.expected(first_day=1))

    def test_damage_is_named_and_a_half_made_directory_refused(self):
        block = self.keys("/days/")[0]
        self.assertTrue(block.endswith(".sst"))
        self.hand("flip", block)
        self.assertEqual(self.collector("--check-bucket").returncode, 0, "its size is right")
        checked = self.collector("--check-bucket", "--deep")
        self.assertEqual(checked.returncode, 1, checked.stdout + checked.stderr)
        self.assertIn(block, checked.stdout)
        self.assertIn("1 fault;", checked.stdout)

        target = self.path("new")
        restored = self.collector("--restore-from-bucket", target)
        self.assertEqual(restored.returncode, 1, restored.stdout + restored.stderr)
        self.assertIn(block, restored.stderr)
        self.assertIn("half made", restored.stderr)
        refused = subprocess.run(
            [os.environ["TACHO_COLLECTOR"], "--data", target, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"],
            capture_output=True, text=True, timeout=harness.PATIENCE_S,
        )  # fmt: skip
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("delete the directory", refused.stderr)

        self.hand("flip", block)
        self.hand("delete", self.keys("/state/")[0])
        self.hand("delete", block)
        checked = self.collector("--check-bucket")
        self.assertEqual(checked.returncode, 1, checked.stdout + checked.stderr)
        self.assertIn(f"{block} is not in the bucket", checked.stdout)

    def test_what_is_no_bucket_is_said(self):
        for text, status, said in (
            ("", 2, "bucket.url"),
            (f"bucket: {{url: '{URL}/other', endpoint: '{self.store.endpoint}', path_style: true}}", 1,
             "there is no v1/shards/0000/manifest"),
        ):  # fmt: skip
            with open(self.config, "w") as file:
                file.write(text)
            for words in (("--check-bucket",), ("--restore-from-bucket", self.path("new"))):
                refused = self.collector(*words)
                self.assertEqual(refused.returncode, status, refused.stderr)
                self.assertIn(said, refused.stderr)
            self.assertFalse(os.path.exists(self.path("new")))


class RunningOwnerTest(SharedAcksCase):
    """The bucket's collector works on."""

    def setUp(self):
        super().setUp()
        self.store = self.started(ObjectStore())
        keys = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
        self.begin(self.store.endpoint, "s3://tests/running", keys)

    def mode(self, *words):
        return subprocess.run(
            [os.environ["TACHO_COLLECTOR"], "--config", self.collector.config, *words],
            env={**os.environ, **self.keys}, capture_output=True, text=True, timeout=harness.PATIENCE_S,
        )  # fmt: skip

    def test_what_was_acknowledged_before_is_restored_while_more_comes(self):
        feeder = Feeder(self.random, self.collector.address)
        feeder.make(3000)
        acknowledged = threading.Event()
        thread = threading.Thread(
            target=lambda: feeder.session(lambda durable: durable >= 100 and acknowledged.set())
        )
        thread.start()
        self.assertTrue(acknowledged.wait(harness.PATIENCE_S))
        before = feeder.durable
        target = os.path.join(self.directory, "copy")
        restored = self.mode("--restore-from-bucket", target)
        checked = self.mode("--check-bucket", "--deep")
        thread.join()
        self.assertEqual(restored.returncode, 0, restored.stdout + restored.stderr)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertEqual(self.metric(self.collector, "tacho_shard_epoch"), 1, "nobody was fenced")

        copy = self.started(harness.Collector(os.path.join(self.directory), "", path=target))
        after = feeder.durable
        feeder.durable = before
        expect_acknowledged(self, feeder, copy.address)
        feeder.durable = after
        self.assertEqual(copy.stop(), 0)


if __name__ == "__main__":
    harness.main()
