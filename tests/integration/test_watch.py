"""Query.Watch of a collector that is killed: what was sent was durable, and who watches again from
the newest time that it has misses nothing."""
import collections
import threading

import client
import harness
import grpc
from feeder import METRICS, Feeder, stored
from tacho.v1 import query_pb2

KILLS = 4


class Watcher:
    """Watches a job in its own thread, again and again, each time from the newest time it has."""

    def __init__(self, address, job):
        self.address = address
        self.job = job
        self.found = collections.defaultdict(set)  # (metric, task): {(time, step, bits)}
        self.newest = {}  # (metric, task): time
        self.watches = 0
        self.repeated = []  # Rows that came twice in one watch, or before its begin.
        self.ends = collections.Counter()  # By status code.
        self._call = None
        self._stop = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def rows(self):
        with self._lock:
            return sum(len(rows) for rows in self.found.values())

    def snapshot(self):
        with self._lock:
            return {key: set(rows) for key, rows in self.found.items()}

    def stop(self):
        self._stop = True
        if self._call is not None:
            self._call.cancel()
        self._thread.join()

    def _run(self):
        while not self._stop:
            query = client.Query(self.address)
            try:
                self._watch(query)
            except grpc.RpcError as error:
                self.ends[error.code()] += 1
            finally:
                query.close()

    def _watch(self, query):
        # Rows of one series come in ascending time; those of another may be further back.
        whole = len(self.newest) == 2 * len(METRICS)
        begin = min(self.newest.values()) if whole else 0
        request = query_pb2.WatchRequest(
            selector=query_pb2.Selector(job=self.job), begin_unix_ns=begin
        )
        self._call = query.stub.Watch(request)
        self.watches += 1
        series, seen = {}, collections.defaultdict(set)
        for message in self._call:
            if message.HasField("series"):
                info = message.series.series
                series[message.series.index] = (info.metric.name, info.task)
            if not message.HasField("samples"):
                continue
            key = series[message.samples.index]
            rows = {(t, s, b) for t, s, _, b in client.points_of(message.samples.points)}
            count = len(message.samples.points.values)
            if len(rows) != count or rows & seen[key] or min(rows)[0] < begin:
                self.repeated.append((key, rows & seen[key]))
            seen[key] |= rows
            with self._lock:
                self.found[key] |= rows
                self.newest[key] = max(self.newest.get(key, 0), max(rows)[0])


class WatchKillTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        print(f"seed {self.seed}")
        config = "storage: {seal_rows: 64, seal_age: 1s}\nlog: {level: warn}\n"
        self.collector = self.started(harness.Collector(self.directory, config))

    def test_nothing_is_missed_and_nothing_sent_is_lost(self):
        feeder = Feeder(self.random, self.collector.address)
        watcher = Watcher(self.collector.address, feeder.JOB)
        self.addCleanup(watcher.stop)
        for kill in range(KILLS):
            feeder.make(self.random.randrange(100, 300))
            pending = len(feeder.batches) - feeder.durable
            target = feeder.durable + self.random.randrange(1, pending // 2)
            reached = threading.Event()
            thread = threading.Thread(
                target=lambda: feeder.session(lambda durable: durable >= target and reached.set())
            )
            thread.start()
            self.assertTrue(reached.wait(harness.PATIENCE_S))
            self.collector.kill()
            thread.join()
            self.collector.start()
            sent = watcher.snapshot()
            held = stored(self.collector.address, feeder.JOB)
            for key, rows in sent.items():
                self.assertLessEqual(rows, set(held[key]), f"sent and not stored: {key}")
            print(f"kill {kill}: {watcher.rows()} samples watched")
        self.assertTrue(feeder.session())
        expected = feeder.expected(len(feeder.batches))
        total = sum(len(rows) for rows in expected.values())
        harness.wait_until(lambda: watcher.rows() >= total, "everything watched")
        watcher.stop()
        self.assertEqual(watcher.snapshot(), {key: set(rows) for key, rows in expected.items()})
        self.assertEqual(watcher.repeated, [])
        self.assertGreater(watcher.watches, KILLS)
        print(f"{watcher.watches} watches, ended with {dict(watcher.ends)}")


if __name__ == "__main__":
    harness.main()
