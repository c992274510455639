"""How the real programs start, end and refuse: drain, full disk, configuration, taken ports."""
import http.client
import os
import subprocess
import threading
import time
import unittest

import harness  # First: it makes the stubs importable.
import grpc
from feeder import Feeder, expect_acknowledged, stored

CONFIG = "storage: {seal_rows: 64, seal_age: 1s}\n"


class DrainTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, CONFIG))

    def ready(self):
        try:
            return harness.http_get(self.collector.url("/readyz"), timeout_s=2)[0]
        except (OSError, http.client.HTTPException):
            return None  # No longer listening.

    def test_sigterm_under_load_loses_nothing_that_was_acknowledged(self):
        self.assertEqual(self.ready(), 200)
        feeder = Feeder(self.random, self.collector.address)
        feeder.make(3000)
        begun = threading.Event()
        thread = threading.Thread(
            target=feeder.session, args=(lambda durable: durable >= 100 and begun.set(),)
        )
        thread.start()
        self.assertTrue(begun.wait(harness.PATIENCE_S))
        answers = []
        stopper = threading.Thread(target=lambda: answers.append(self.collector.stop()))
        stopper.start()
        seen = set()
        while stopper.is_alive():
            seen.add(self.ready())
        stopper.join()
        thread.join()
        print(f"{feeder.durable} of 3000 batches acknowledged; readyz said {seen} in between")
        self.assertEqual(answers, [0], self.collector.program.tail())
        self.assertLessEqual(seen, {200, 503, None})
        self.assertIn("closed cleanly", self.collector.program.tail())
        if feeder.error is not None:
            self.assertEqual(feeder.error.code(), grpc.StatusCode.UNAVAILABLE, feeder.error)

        self.collector.start()
        self.assertEqual(self.ready(), 200)
        expect_acknowledged(self, feeder, self.collector.address)
        self.assertTrue(feeder.session(), feeder.error)
        got = stored(self.collector.address, feeder.JOB)
        self.assertEqual(got, feeder.expected(len(feeder.batches)))

    def test_idle_collector_ends_at_once(self):
        begin = time.monotonic()
        self.assertEqual(self.collector.stop(), 0)
        self.assertLess(time.monotonic() - begin, 10)

    def test_agent_ends_cleanly_with_and_without_a_collector(self):
        sources = "  host: {interval: 100ms}\n  rings: {directory: ''}\n"
        agent = self.started(harness.Agent(self.directory, self.collector, sources))
        query = ["query", "hosts", "host_load1", "-o", "json"]
        harness.wait_until(
            lambda: harness.tachoctl(self.collector.address, *query).returncode == 0, "host metrics"
        )
        self.collector.stop()
        self.assertEqual(agent.stop(), 0, agent.program.tail())
        agent.start()
        # Of the whole log: how much an agent says as it starts depends on the host.
        started_twice = lambda: agent.program.tail(1 << 20).count("tacho-agent starts") == 2
        harness.wait_until(started_twice, "agent started again")
        self.assertEqual(agent.stop(), 0, agent.program.tail())


class FullDiskTest(harness.TestCase):
    DISK = "12m"
    BALLAST = 8 << 20

    def setUp(self):
        super().setUp()
        self.disk = self.small_disk(self.DISK)
        self.ballast = os.path.join(self.disk, "ballast")
        with open(self.ballast, "wb") as file:
            file.write(bytes(self.BALLAST))
        path = os.path.join(self.disk, "data")
        self.collector = self.started(harness.Collector(self.directory, CONFIG, path))

    def test_full_disk_is_refused_and_nothing_acknowledged_is_lost(self):
        feeder = Feeder(self.random, self.collector.address, batch_rows=100)
        refusals = 0
        deadline = time.monotonic() + 2 * harness.PATIENCE_S
        while refusals < 3:
            if refusals == 0:
                feeder.make(200)
            durable = feeder.durable
            if not feeder.session():
                self.assertIsNotNone(feeder.error)
                self.assertEqual(feeder.error.code(), grpc.StatusCode.UNAVAILABLE, feeder.error)
                if refusals > 0:
                    self.assertEqual(feeder.durable, durable, "acknowledged on a full disk")
                refusals += 1
            self.assertTrue(self.collector.program.alive(), self.collector.program.tail())
            self.assertLess(time.monotonic(), deadline, "the disk does not get full")
        print(f"{feeder.durable} of {len(feeder.batches)} acknowledged; {feeder.error.details()}")
        self.assertGreater(feeder.durable, 0)
        self.assertEqual(harness.http_get(self.collector.url("/readyz"))[0], 503)
        # What is there can still be asked for.
        expect_acknowledged(self, feeder, self.collector.address)

        os.remove(self.ballast)
        # It goes on by itself: no restart.
        ready = lambda: harness.http_get(self.collector.url("/readyz"))[0] == 200
        harness.wait_until(ready, "the collector is ready again")
        self.assertTrue(feeder.session(), feeder.error)
        self.assertTrue(self.collector.program.alive(), self.collector.program.tail())
        self.assertIn("the disk takes writes again", self.collector.program.tail())
        got = stored(self.collector.address, feeder.JOB)
        self.assertEqual(got, feeder.expected(len(feeder.batches)))
        self.assertEqual(self.collector.stop(), 0)
        self.collector.start()
        got = stored(self.collector.address, feeder.JOB)
        self.assertEqual(got, feeder.expected(len(feeder.batches)))


class FileModesTest(harness.TestCase):
    def test_what_is_stored_and_spooled_is_for_its_owner_whatever_the_umask(self):
        self.addCleanup(os.umask, os.umask(0o022))
        collector = self.started(harness.Collector(self.directory, CONFIG))
        sources = "  host: {interval: 100ms}\n  rings: {directory: ''}\n"
        agent = self.started(harness.Agent(self.directory, collector, sources))
        query = ["query", "hosts", "host_load1", "-o", "json"]
        harness.wait_until(
            lambda: harness.tachoctl(collector.address, *query).returncode == 0, "host metrics"
        )
        self.assertEqual(agent.stop(), 0)
        self.assertEqual(collector.stop(), 0)
        spool = os.path.join(self.directory, "agent-1.spool")
        for path in (collector.path, spool):
            for folder, _, names in os.walk(path):
                self.assertEqual(os.stat(folder).st_mode & 0o777, 0o700, folder)
                for name in names:
                    file = os.path.join(folder, name)
                    self.assertEqual(os.stat(file).st_mode & 0o777, 0o600, file)
        ports = os.path.join(self.directory, "ports.json")
        self.assertEqual(os.stat(ports).st_mode & 0o777, 0o644, "others read it")


class RefusedStartTest(harness.TestCase):
    def run_program(self, variable, *arguments):
        return subprocess.run([os.environ[variable], *arguments], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=harness.PATIENCE_S)  # fmt: skip

    def test_wrong_configuration_is_exit_code_2_with_the_line(self):
        wrong = (
            ("TACHO_COLLECTOR", "storage:\n  path: x\n  retentoin: 3d\n", 3, "retention"),
            ("TACHO_COLLECTOR", "listen:\n\n  grpc: [1]\n", 3, "grpc"),
            ("TACHO_COLLECTOR", "storage:\n  seal_rows: 1\n", 2, "16"),
            ("TACHO_COLLECTOR", "storage:\n  retention: long\n", 2, "90s"),
            ("TACHO_COLLECTOR", "a: b: c\n", 1, ""),
            ("TACHO_AGENT", "sources:\n  host:\n    intervall: 1s\n", 3, "interval"),
            ("TACHO_AGENT", "\n\nspool: {max_bytes: 1}\n", 3, "1MiB"),
        )
        path = os.path.join(self.directory, "wrong.yaml")
        for variable, text, line, word in wrong:
            with open(path, "w") as file:
                file.write(text)
            for flags in ([], ["--check-config"]):
                done = self.run_program(variable, "--config", path, *flags)
                self.assertEqual(done.returncode, 2, (text, done.stderr))
                self.assertIn(f"{path}:{line}", done.stderr, text)
                self.assertIn(word, done.stderr, text)

    def test_printed_configuration_is_a_right_one(self):
        path = os.path.join(self.directory, "printed.yaml")
        for variable in ("TACHO_COLLECTOR", "TACHO_AGENT"):
            printed = self.run_program(variable, "--print-config")
            with open(path, "w") as file:
                file.write(printed.stdout)
            checked = self.run_program(variable, "--config", path, "--check-config")
            self.assertEqual(checked.returncode, 0, checked.stderr)
            again = self.run_program(variable, "--config", path, "--print-config")
            self.assertEqual(again.stdout, printed.stdout)

    @unittest.skipIf(os.environ.get("TACHO_SANITIZER"), "a sanitizer reserves terabytes of address space")
    def test_too_little_address_space_is_a_sentence_and_exit_code_1(self):
        spool = ["--spool", os.path.join(self.directory, "spool"), "--collector", "127.0.0.1:1"]
        data = ["--data", self.directory, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        for variable, flags, mebibytes in (
            ("TACHO_COLLECTOR", data, 400),
            ("TACHO_AGENT", spool, 120),
        ):
            limits = ["prlimit", f"--as={mebibytes << 20}", "--"]
            done = subprocess.run([*limits, os.environ[variable], *flags], capture_output=True,
                                  text=True, timeout=harness.PATIENCE_S)  # fmt: skip
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"limited to {mebibytes} MiB", done.stderr)
            self.assertNotIn("terminate", done.stderr)

    def test_taken_port_and_taken_directory_are_exit_code_1(self):
        first = self.started(harness.Collector(self.directory))
        other = os.path.join(self.directory, "other")
        free = "127.0.0.1:0"
        taken = (
            (first.address, free, other, first.address),
            (free, f"127.0.0.1:{first.http}", other, f"127.0.0.1:{first.http}"),
            (free, free, first.path, first.path),
        )
        for grpc_address, http_address, data, word in taken:
            flags = ["--grpc", grpc_address, "--http", http_address, "--data", data]
            done = self.run_program("TACHO_COLLECTOR", *flags)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(word, done.stderr)
        self.assertEqual(first.stop(), 0)


if __name__ == "__main__":
    harness.main()
