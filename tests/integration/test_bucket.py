"""Days that the disk has no room for are in a bucket: queries read them there, bit for bit, over kills
and while the bucket is away."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import client
import harness

# Before the distribution's module of the same name.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../storage/bucket"))
import ceph  # noqa: E402

DAY = 86_400_000_000_000
SECOND = 1_000_000_000
TASKS, ROWS = 8, 300
DAYS = range(3, 11)  # So many days ago; the disk keeps two.
KEY_ID, SECRET = "GOOGTESTKEY", "secret/of+tests"  # FakeObjectStore::kKeyId, kSecret.


class ObjectStore:
    def start(self):
        self.process = subprocess.Popen(
            [os.environ["TACHO_OBJECT_STORE"]], stdout=subprocess.PIPE, text=True
        )
        self.endpoint = self.process.stdout.readline().strip()
        return self

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class BucketCase(harness.TestCase):
    def begin(self, endpoint, url, **keys):
        self.collector = self.started(
            harness.Collector(self.directory, self.config(endpoint, url), env={**os.environ, **keys})
        )
        self.sequence = 0
        self.today = time.time_ns() // DAY * DAY

    def config(self, endpoint, url):
        bucket = f"bucket: {{url: '{url}', endpoint: '{endpoint}', path_style: true}}\n"
        return (
            "storage: {seal_rows: 64, seal_age: 1s, local_retention: 2d}\n"
            + (bucket if url else "")
            + "conditions: {enabled: false}\n"
        )

    def record(self, days_ago, first, rows):
        """Rows from second `first` of a day on, of all tasks; the values are any bits."""
        stream = client.Stream(self.collector.address, "agent", 1, self.sequence + 1)
        self.assertTrue(stream.welcomed())
        for task in range(TASKS):
            stream.send(client.layout(task + 1, "old", f"host-{task}", [("loss", ""), ("duty", "")], task=task))
            begin = self.today - days_ago * DAY + first * SECOND
            times = [begin + row * SECOND for row in range(rows)]
            values = [
                self.random.choice((0.0, -0.0, float("inf"), float("nan"), 5e-324))
                if self.random.random() < 0.1
                else self.random.uniform(-1e3, 1e3)
                for _ in range(2 * rows)
            ]
            self.sequence += 1
            stream.send(client.batch(self.sequence, task + 1, times, values))
        self.assertTrue(stream.wait_durable(self.sequence))
        self.assertEqual(list(stream.rejects), [])
        stream.close()

    def stored(self):
        query = client.Query(self.collector.address)
        try:
            return query.range("old", "loss", "duty")
        finally:
            query.close()

    def metric(self, name, labels=""):
        """The sum of the lines of a metric whose labels contain `labels`."""
        status, _, body = harness.http_get(self.collector.url("/metrics"))
        page = body.decode()
        self.assertEqual(status, 200)
        lines = re.findall(rf"^{name}(\{{.*\}})? (\S+)$", page, re.MULTILINE)
        self.assertIn(f"# TYPE {name} ", page)
        return sum(float(value) for found, value in lines if labels in found)

    def wait_metric(self, name, wanted):
        harness.wait_until(
            lambda: self.metric(name) == wanted, f"{name} {wanted}", timeout_s=200, pause_s=0.5
        )

    def expect_old_days_in_the_bucket(self):
        """Returns all that is stored in the end."""
        for days_ago in DAYS:
            self.record(days_ago, 0, ROWS)
        self.record(0, 0, 1)
        expected = self.stored()
        self.assertEqual(sum(len(p) for p in expected.values()), 2 * TASKS * (ROWS * len(DAYS) + 1))
        self.wait_metric("tacho_bucket_days", len(DAYS))
        self.wait_metric("tacho_storage_partitions", 1)
        self.assertEqual(self.metric("tacho_bucket_failing"), 0)
        probed = self.metric("tacho_bucket_requests_total", 'operation="get_range"')
        self.assertEqual(self.stored(), expected)
        fetched = self.metric("tacho_bucket_requests_total", 'operation="get_range"')
        self.assertGreater(fetched, probed)

        # Rows of a day that has left the disk.
        self.record(5, 1000, 10)
        more = self.stored()
        self.assertEqual(sum(len(p) for p in more.values()) - 2 * TASKS * 10,
                         sum(len(p) for p in expected.values()))
        for series, points in expected.items():
            self.assertLess(set(points), set(more[series]))

        self.collector.kill()
        self.collector.start()
        self.assertEqual(self.stored(), more)
        self.assertEqual(self.metric("tacho_bucket_requests_total", 'operation="get_range"'), 0)
        self.assertGreater(self.metric("tacho_bucket_cache_hits_total"), 0)
        return more


class BucketTest(BucketCase):
    def setUp(self):
        super().setUp()
        self.store = self.started(ObjectStore())
        self.begin(
            self.store.endpoint, "s3://tests/one", AWS_ACCESS_KEY_ID=KEY_ID, AWS_SECRET_ACCESS_KEY=SECRET
        )

    def test_old_days_are_read_from_the_bucket(self):
        more = self.expect_old_days_in_the_bucket()

        # The bucket goes away: what is in the cache stays, rows are taken, and it is said.
        self.store.kill()
        self.record(0, 10, 5)
        self.wait_metric("tacho_bucket_failing", 1)
        self.assertEqual(harness.http_get(self.collector.url("/readyz"))[0], 200)
        self.assertEqual(
            sum(len(p) for p in self.stored().values()),
            sum(len(p) for p in more.values()) + 2 * TASKS * 5,
        )

        # A collector that does not know where the days are must not begin without them.
        self.collector.stop()
        with open(self.collector.config, "w") as file:
            file.write(self.config("", ""))
        refused = subprocess.run(
            self.collector.arguments(os.path.join(self.directory, "none")),
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("set bucket.url", refused.stderr)

    def test_wrong_configuration_is_named(self):
        self.collector.stop()
        for wrong, named in (
            ("url: 'http://x'", "bucket"),
            ("url: 's3://tests', credentials: none", "credentials"),
            ("url: 's3://tests', cache_path: /proc/none", "bucket.cache_path"),
        ):
            with open(self.collector.config, "w") as file:
                file.write(f"bucket: {{{wrong}}}\n")
            refused = subprocess.run(
                self.collector.arguments(os.path.join(self.directory, "none")),
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            self.assertNotEqual(refused.returncode, 0, refused.stderr)
            self.assertIn(named, refused.stderr)


def start_ceph(cls, osds=1):
    """For the length of a test class, with the buckets `plain` and `versioned`; cls.ceph is its environment, and
    cls.ceph_folder its place."""
    if ceph.missing():
        raise unittest.SkipTest(f"no Ceph here: {', '.join(ceph.missing())} not found")
    folder = tempfile.mkdtemp(prefix="tacho-ceph-")
    cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
    cls.addClassCleanup(subprocess.run, [ceph.CEPH, "stop", folder, "--purge"], check=False)
    cls.ceph_folder = folder
    cls.ceph = ceph.start(folder, osds)
    ceph.put(cls.ceph, "/plain")
    ceph.put(cls.ceph, "/versioned")
    ceph.put(cls.ceph, "/versioned?versioning=", ceph.VERSIONS)


class CephTest(BucketCase):
    """At a real Ceph."""

    @classmethod
    def setUpClass(cls):
        start_ceph(cls)

    def begin_in(self, bucket):
        keys = {key: value for key, value in self.ceph.items() if key.startswith("AWS_")}
        self.begin(self.ceph["TACHO_TEST_CEPH"], f"s3://{bucket}/one", **keys)

    def test_old_days_are_read_from_the_bucket(self):
        self.begin_in("plain")
        self.expect_old_days_in_the_bucket()

    def test_a_bucket_with_versions_gets_no_days(self):
        self.begin_in("versioned")
        self.record(5, 0, ROWS)
        expected = self.stored()
        self.wait_metric("tacho_bucket_failing", 1)
        self.assertEqual(self.metric("tacho_bucket_days"), 0)
        self.assertEqual(self.stored(), expected)
        self.assertIn("Ceph bucket with versions", self.collector.program.tail())


if __name__ == "__main__":
    harness.main()
