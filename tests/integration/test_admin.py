"""tacho.v1.Admin through tachoctl: backups of a working collector, drain, what is refused."""
import json
import os
import stat
import subprocess
import threading
import time
import unittest

import client
import harness
import ring_files
from feeder import Feeder, expect_acknowledged, stored

CONFIG = "storage: {seal_rows: 64, seal_age: 1s}\n"


class AdminCase(harness.TestCase):
    def start(self, snapshots=None, path=None):
        self.snapshots = snapshots or os.path.join(self.directory, "snapshots")
        config = CONFIG + f"admin: {{snapshot_directory: {self.snapshots}}}\n"
        self.collector = self.started(harness.Collector(self.directory, config, path))

    def admin(self, *arguments, collector=None):
        path = (collector or self.collector).path
        where = {"TACHO_ADMIN_ADDRESS": f"unix:{path}/admin.sock"}
        return harness.tachoctl("127.0.0.1:1", "admin", *arguments, env=where)

    def admin_json(self, *arguments, collector=None):
        done = self.admin(*arguments, "-o", "json", collector=collector)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def restored(self, name):
        """A collector on a copy of the snapshot, as docs/operations.md says."""
        directory = os.path.join(self.directory, "restored-" + name)
        os.mkdir(directory)
        path = os.path.join(directory, "data")
        subprocess.run(["cp", "-a", os.path.join(self.snapshots, name), path], check=True)
        return self.started(harness.Collector(directory, CONFIG, path))

    def check_store(self, path):
        return subprocess.run(
            [os.environ["TACHO_COLLECTOR"], "--check-store", path],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=harness.PATIENCE_S,
        )  # fmt: skip

    def expect_whole(self, path):
        checked = self.check_store(path)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("whole; jobs=1 ", checked.stdout)

    def small_disk(self, size):
        disk = os.path.join(self.directory, "disk")
        os.mkdir(disk)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            raise unittest.SkipTest("may not mount a small file system")
        self.addCleanup(subprocess.run, ["umount", "--lazy", disk], check=True)
        return disk


class SnapshotTest(AdminCase):
    def test_snapshots_under_load_hold_every_sample_acknowledged_before(self):
        self.start()
        feeder = Feeder(self.random, self.collector.address)
        progress = threading.Condition()
        snapshots_made = threading.Event()

        def acknowledged(_durable):
            with progress:
                progress.notify_all()

        def feed():
            # As long as it takes: a fixed number of batches is too few on a fast machine.
            whole = True
            while whole and not snapshots_made.is_set():
                feeder.make(1000)
                whole = feeder.session(acknowledged)

        session = threading.Thread(target=feed)
        session.start()
        self.addCleanup(session.join)
        self.addCleanup(snapshots_made.set)
        before = {}
        for number in range(4):
            with progress:
                wanted = feeder.durable + 150
                self.assertTrue(
                    progress.wait_for(lambda: feeder.durable >= wanted, harness.PATIENCE_S)
                )
            before[f"copy-{number}"] = feeder.durable
            made = self.admin_json("snapshot", f"copy-{number}")
            self.assertEqual(made["path"], os.path.join(self.snapshots, f"copy-{number}"))
        self.assertTrue(session.is_alive(), "the agent sends until the last snapshot is made")
        snapshots_made.set()
        session.join()
        self.assertIsNone(feeder.error, "a snapshot disturbs no stream")
        sent = feeder.expected(len(feeder.batches))
        self.assertEqual(stored(self.collector.address, feeder.JOB), sent)

        for name, durable in before.items():
            self.expect_whole(os.path.join(self.snapshots, name))
            copy = self.restored(name)
            got = stored(copy.address, feeder.JOB)
            for key, samples in feeder.expected(durable).items():
                self.assertFalse(samples - got[key], f"lost of {key} in {name}")
            for key, samples in got.items():
                self.assertFalse(samples - sent[key], f"too much in {key} of {name}")
            # The copy knows what it holds: what it has is dropped when it is sent again.
            again = Feeder(self.random, copy.address)
            again.batches, again.generation = feeder.batches, feeder.generation
            self.assertTrue(again.session(), again.error)
            self.assertEqual(stored(copy.address, feeder.JOB), sent)
            self.assertEqual(copy.stop(), 0)

    def test_killed_in_the_middle_of_snapshots_nothing_is_lost_and_none_is_half(self):
        # Another file system, so that tables are copied and the middle is wide.
        self.start(snapshots=os.path.join(self.small_disk("256m"), "snapshots"))
        feeder = Feeder(self.random, self.collector.address, batch_rows=100)
        caught = 0
        for kill in range(8):
            feeder.address = self.collector.address
            feeder.make(200)
            self.assertTrue(feeder.session(), feeder.error)
            call = threading.Thread(target=self.admin, args=("snapshot", f"copy-{kill}"))
            call.start()
            deadline = time.monotonic() + harness.PATIENCE_S
            while call.is_alive() and time.monotonic() < deadline:
                names = os.listdir(self.snapshots) if os.path.isdir(self.snapshots) else []
                if any(name.startswith(".partial-") for name in names):
                    time.sleep(self.random.choice([0, 0.003 * self.random.random()]))
                    break
            self.collector.kill()
            call.join()
            names = os.listdir(self.snapshots) if os.path.isdir(self.snapshots) else []
            caught += any(name.startswith(".partial-") for name in names)
            if f"copy-{kill}" in names:
                copy = self.restored(f"copy-{kill}")
                expect_acknowledged(self, feeder, copy.address)
                copy.kill()
            self.collector.start()
            expect_acknowledged(self, feeder, self.collector.address)
        print(f"{caught} of 8 kills left a partial copy")
        self.assertGreater(caught, 0)
        self.admin_json("snapshot", "last")
        self.assertFalse([n for n in os.listdir(self.snapshots) if n.startswith(".")])
        copy = self.restored("last")
        expected = feeder.expected(len(feeder.batches))
        self.assertEqual(stored(copy.address, feeder.JOB), expected)

    def test_no_room_for_a_snapshot_disturbs_nothing_and_leaves_nothing(self):
        disk = self.small_disk("1m")
        self.start(snapshots=os.path.join(disk, "snapshots"))
        feeder = Feeder(self.random, self.collector.address, batch_rows=100)
        feeder.make(1500)
        self.assertTrue(feeder.session(), feeder.error)
        refused = self.admin("snapshot", "copy")
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("No space left", refused.stderr)
        self.assertEqual(os.listdir(self.snapshots), [])
        self.assertEqual(self.admin_json("stats")["state"], "ready")
        feeder.make(100)
        self.assertTrue(feeder.session(), feeder.error)
        expected = feeder.expected(len(feeder.batches))
        self.assertEqual(stored(self.collector.address, feeder.JOB), expected)

    def test_snapshot_on_the_full_disk_of_the_store_itself(self):
        disk = self.small_disk("24m")
        self.start(os.path.join(disk, "snapshots"), os.path.join(disk, "data"))
        feeder = Feeder(self.random, self.collector.address, batch_rows=100)
        feeder.make(500)
        self.assertTrue(feeder.session(), feeder.error)
        ballast = os.path.join(disk, "ballast")
        with self.assertRaises(OSError), open(ballast, "wb", buffering=0) as file:
            while True:
                file.write(bytes(64 << 10))
        refused = self.admin("snapshot", "copy")
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertEqual(os.listdir(self.snapshots), [])
        os.remove(ballast)
        ready = lambda: self.admin_json("stats")["state"] == "ready"
        harness.wait_until(ready, "the collector is ready")
        feeder.make(100)
        self.assertTrue(feeder.session(), feeder.error)
        self.admin_json("snapshot", "copy")
        copy = self.restored("copy")
        expected = feeder.expected(len(feeder.batches))
        self.assertEqual(stored(copy.address, feeder.JOB), expected)
        self.assertEqual(stored(self.collector.address, feeder.JOB), expected)


class RefusalTest(AdminCase):
    def test_names_that_lead_elsewhere_are_refused(self):
        self.start()
        self.admin_json("snapshot", "good")
        for name in ("..", "../x", "a/b", "/tmp/x", ".hidden", "a b", "x" * 101, "a\nb", "ü"):
            refused = self.admin("snapshot", "--", name)
            self.assertEqual(refused.returncode, 1, name)
            self.assertIn("name: expected 1 to 100", refused.stderr)
        taken = self.admin("snapshot", "good")
        self.assertEqual(taken.returncode, 1)
        self.assertIn("already", taken.stderr)
        self.assertEqual(os.listdir(self.snapshots), ["good"])

    def test_socket_is_private_and_wrong_uses_are_explained(self):
        self.start()
        socket = os.path.join(self.collector.path, "admin.sock")
        self.assertEqual(stat.S_IMODE(os.stat(socket).st_mode), 0o600)
        wrong = (
            (("admin",), 2, "expected ACTION"),
            (("admin", "drian"), 2, "drain"),
            (("admin", "stats", "x"), 2, "one operand too many"),
            (("admin", "log-level"), 2, "debug"),
            (("admin", "log-level", "loud"), 1, "debug, info"),
            (("admin", "log-level", "debug", "--for", "soon"), 2, "--for"),
            (("admin", "stats", "--address", "unix:/nonexistent/x"), 3, "admin.listen"),
            (("admin", "stats", "--address", self.collector.address), 1, "admin.listen"),
        )
        where = {"TACHO_ADMIN_ADDRESS": f"unix:{socket}"}
        for arguments, code, word in wrong:
            done = harness.tachoctl("127.0.0.1:1", *arguments, env=where)
            self.assertEqual(done.returncode, code, (arguments, done.stderr))
            self.assertIn(word, done.stderr, arguments)
        self.assertEqual(self.collector.stop(), 0)
        self.assertFalse(os.path.exists(socket))

    def test_log_level_reload_and_stats_are_told(self):
        self.start()
        told = self.admin_json("log-level", "debug", "--for", "10m")
        self.assertEqual(told["log"]["level"], "debug")
        self.assertIsNotNone(told["log"]["falls_back"])
        self.assertIsNone(self.admin_json("log-level", "default")["log"]["falls_back"])
        self.assertEqual(self.admin_json("reload"), {"reload": "done"})
        with open(self.collector.config, "a") as file:
            file.write("query: {max_sereis: 1}\nmetrics: {stalenes: 1s}\n")
        refused = self.admin("reload")
        self.assertEqual(refused.returncode, 1)
        for word in ("nothing was changed", f"{self.collector.config}:3", "max_series",
                     f"{self.collector.config}:4"):  # fmt: skip
            self.assertIn(word, refused.stderr)
        stats = self.admin_json("stats")
        self.assertEqual(stats["reload"]["done"], 1)
        self.assertEqual(stats["reload"]["refused"], 1)
        self.assertEqual(stats["pid"], self.collector.program.process.pid)
        table = self.admin("stats")
        self.assertIn("store.series", table.stdout)


class DrainTest(AdminCase):
    """Trainers write, an agent streams, the collector is drained: nothing is lost or doubled."""

    JOB = "spirals"
    STEPS = 2500

    def setUp(self):
        super().setUp()
        self.start()
        self.rings = os.path.join(self.directory, "rings")
        os.mkdir(self.rings)
        sources = (
            "  host: {enabled: false}\n"
            f"  rings: {{directory: {self.rings}, poll_interval: 20ms}}\n"
        )
        self.agent = harness.Agent(self.directory, self.collector, sources)

    def start_agent(self, *further):
        """With the collectors of `further` after the first in its list."""
        addresses = [c.address for c in (self.collector, *further)]
        with open(self.agent.config) as file:
            config = file.read()
        one = f"address: '{self.collector.address}'"
        self.assertIn(one, config)
        with open(self.agent.config, "w") as file:
            file.write(config.replace(one, f"addresses: {json.dumps(addresses)}"))
        self.started(self.agent)

    def train(self):
        arguments = [
            os.environ["TACHO_TRAIN"], "--job", self.JOB, "--task", "0", "--tasks", "1",
            "--steps", str(self.STEPS), "--ring-dir", self.rings, "--step-delay-ms", "3",
        ]  # fmt: skip
        trainer = harness.Program(arguments, os.path.join(self.directory, "train.log"))
        self.addCleanup(trainer.kill)
        ring = os.path.join(self.rings, f"{self.JOB}.0.{trainer.process.pid}.ring")
        harness.wait_until(lambda: os.path.exists(ring), "ring made", pause_s=0.01)
        kept = os.path.join(self.directory, "kept")
        os.link(ring, kept)
        return trainer, kept

    def steps(self, collector=None):
        query = client.Query((collector or self.collector).address)
        try:
            found = query.range(self.JOB, "loss")
            return [step for samples in found.values() for _, step, _, _ in samples]
        finally:
            query.close()

    def test_agents_go_to_the_next_collector_of_their_list(self):
        other = os.path.join(self.directory, "other")
        os.mkdir(other)
        second = self.started(harness.Collector(other, CONFIG))
        self.start_agent(second)
        trainer, kept = self.train()
        harness.wait_until(lambda: len(self.steps()) > 100, "rows arrive")
        self.assertEqual(self.admin_json("drain", "--wait", "30s")["streams_left"], 0)
        at_drain = self.steps()
        self.assertTrue(trainer.alive(), "drained under load")
        self.assertEqual(trainer.wait(), 0)
        harness.wait_until(lambda: not os.listdir(self.rings), "rings delivered and deleted")
        harness.wait_until(
            lambda: len(at_drain) + len(self.steps(second)) >= self.STEPS, "all delivered"
        )
        self.assertEqual(self.steps(), at_drain, "nothing more is taken")
        self.assertEqual(sorted(at_drain + self.steps(second)), list(range(self.STEPS)))

    def test_agents_wait_and_go_on_after_the_restart(self):
        self.start_agent()
        trainer, kept = self.train()
        harness.wait_until(lambda: len(self.steps()) > 100, "rows arrive")
        drained = self.admin_json("drain", "--wait", "30s")
        self.assertEqual(drained, {"streams": 1, "streams_left": 0})
        self.assertEqual(harness.http_get(self.collector.url("/readyz"))[0], 503)
        self.assertEqual(self.admin_json("stats")["state"], "draining")
        at_drain = self.steps()
        self.assertTrue(trainer.alive(), "drained under load")
        self.admin_json("snapshot", "drained")
        self.assertEqual(len(self.steps()), len(at_drain), "nothing more is taken")
        self.assertEqual(self.collector.stop(), 0)
        self.collector.start()
        self.assertEqual(trainer.wait(), 0)
        harness.wait_until(lambda: not os.listdir(self.rings), "rings delivered and deleted")
        _, rows = ring_files.read(kept)
        expected = [row.step for row in rows]
        self.assertEqual(expected, list(range(self.STEPS)))
        harness.wait_until(lambda: len(self.steps()) >= self.STEPS, "all delivered")
        self.assertEqual(sorted(self.steps()), expected)
        self.assertEqual(self.steps(self.restored("drained")), at_drain)


if __name__ == "__main__":
    harness.main()
