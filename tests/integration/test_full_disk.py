"""A disk that is full while the collector runs, and when it starts: queries stay up, nothing that
was acknowledged is lost, and storing goes on within seconds after there is room, in the same process.
"""
import os
import re
import time

import harness  # First: it makes the stubs importable.
import grpc
from feeder import Feeder, expect_acknowledged, stored

CONFIG = "storage: {seal_rows: 64, seal_age: 1s}\nlog: {level: info}\n"
READY_WITHIN_S = 5


class FullDiskCase(harness.TestCase):
    DISK = "64m"  # Its ballast is 2 to 4 MiB.

    def setUp(self):
        super().setUp()
        self.disk = self.small_disk(self.DISK)
        self.other = os.path.join(self.disk, "other")
        path = os.path.join(self.disk, "data")
        self.ballast = os.path.join(path, "ballast")
        self.collector = self.started(harness.Collector(self.directory, CONFIG, path))
        self.feeder = Feeder(self.random, self.collector.address)

    def fill(self):
        """Another program takes what is left, to the last byte."""
        with open(self.other, "ab", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass

    def free(self):
        os.remove(self.other)

    def metric(self, name):
        page = harness.http_get(self.collector.url("/metrics"))[2].decode()
        return float(re.search(rf"^{name} (\S+)$", page, re.MULTILINE)[1])

    def readyz(self):
        status, _, body = harness.http_get(self.collector.url("/readyz"))
        return status, body.decode()

    def expect_refusing(self, reason):
        harness.wait_until(lambda: self.readyz()[0] == 503, "not ready")
        self.assertIn(reason, self.readyz()[1])
        self.assertEqual(self.metric("tacho_storage_refusing"), 1)
        before = self.feeder.durable
        self.assertFalse(self.feeder.session())
        self.assertEqual(self.feeder.error.code(), grpc.StatusCode.UNAVAILABLE, self.feeder.error)
        self.assertEqual(self.feeder.durable, before, "acknowledged on a full disk")
        expect_acknowledged(self, self.feeder, self.collector.address)
        self.assertTrue(self.collector.program.alive(), self.collector.program.tail())

    def expect_ready_soon(self):
        begin = time.monotonic()
        harness.wait_until(lambda: self.readyz()[0] == 200, "ready again", READY_WITHIN_S)
        print(f"ready {time.monotonic() - begin:.1f} s after there was room")
        harness.wait_until(lambda: os.path.exists(self.ballast), "the ballast is there again")

    def expect_complete(self):
        self.assertTrue(self.feeder.session(), self.feeder.error)
        expected = self.feeder.expected(len(self.feeder.batches))
        self.assertEqual(stored(self.collector.address, self.feeder.JOB), expected)
        self.assertEqual(self.collector.stop(), 0, self.collector.program.tail())
        self.collector.start()
        self.assertEqual(stored(self.collector.address, self.feeder.JOB), expected)


class FullWhileRunningTest(FullDiskCase):
    def test_it_gives_up_the_ballast_and_goes_on_by_itself_time_and_again(self):
        for _ in range(3):
            self.feeder.make(300)
            self.assertTrue(self.feeder.session(), self.feeder.error)
            self.assertTrue(os.path.exists(self.ballast))
            self.fill()
            self.feeder.make(50)
            self.expect_refusing("disk")
            self.assertEqual(self.metric("tacho_storage_ballast_bytes"), 0)
            self.assertFalse(os.path.exists(self.ballast))
            self.fill()  # What the ballast took, too.
            self.feeder.make(50)
            self.expect_refusing("disk")
            self.free()
            self.expect_ready_soon()
        self.expect_complete()

    def test_a_write_that_finds_no_room_is_healed(self):
        """Rows flow while the disk fills up."""
        pid = self.collector.program.process.pid
        for _ in range(3):
            self.feeder.make(400)
            filled = []

            def fill_once(durable):
                if not filled and durable > len(self.feeder.batches) - 300:
                    filled.append(True)
                    self.fill()

            while self.feeder.session(fill_once):
                self.feeder.make(100)
            self.expect_refusing("")
            self.free()
            self.expect_ready_soon()
            self.assertTrue(self.feeder.session(), self.feeder.error)
        self.assertEqual(self.collector.program.process.pid, pid)
        self.expect_complete()


class StartOnAFullDiskTest(FullDiskCase):
    def kill_and_fill(self, with_ballast):
        self.feeder.make(300)
        self.assertTrue(self.feeder.session(), self.feeder.error)
        self.collector.kill()
        if not with_ballast:
            os.remove(self.ballast)
        self.fill()
        self.feeder.make(50)
        self.collector.start()

    def test_it_answers_queries_and_becomes_writable_without_a_restart(self):
        self.kill_and_fill(with_ballast=False)
        self.expect_refusing("the disk was full at the start")
        self.assertEqual(self.metric("tacho_storage_read_only"), 1)
        self.collector.kill()  # And once more.
        self.collector.start()
        self.expect_refusing("the disk was full at the start")
        self.free()
        self.expect_ready_soon()
        self.assertEqual(self.metric("tacho_storage_read_only"), 0)
        self.expect_complete()

    def test_it_ends_cleanly_enough_to_be_started_again(self):
        self.kill_and_fill(with_ballast=False)
        self.collector.stop()  # What it read is still in the log: it says so with its status.
        self.free()
        self.collector.start()
        self.expect_complete()

    def test_it_gives_up_the_ballast_to_open(self):
        self.kill_and_fill(with_ballast=True)
        self.expect_refusing("disk")
        self.assertFalse(os.path.exists(self.ballast))
        self.free()
        self.expect_ready_soon()
        self.expect_complete()


if __name__ == "__main__":
    harness.main()
