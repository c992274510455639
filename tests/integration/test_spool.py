"""The agent's spool while the collector is away: agents that are killed, and a full disk."""
import json
import os
import re
import subprocess
import time
import unittest

import harness


class SpoolTestCase(harness.TestCase):
    """An agent that reads lines, of which the file keeps all, and a collector that is away."""

    JOB = "lines"
    METRICS = 16

    def setUp(self):
        super().setUp()
        print(f"seed {self.seed}")
        self.collector = self.started(harness.Collector(self.directory, "log: {level: warn}\n"))
        self.collector.kill()  # Its address stays.
        self.file = os.path.join(self.directory, "lines.jsonl")
        self.written = 0
        self.began_s = int(time.time()) - 3600

    def agent(self, **keys):
        sources = (
            "  host: {enabled: false}\n"
            "  json_lines: {poll_interval: 10ms, "
            f"files: [{{path: {self.file}, job: {self.JOB}}}]}}\n"
        )
        return self.started(harness.Agent(self.directory, self.collector, sources, hasty=True, **keys))

    def write(self, lines):
        with open(self.file, "a") as file:
            for step in range(self.written, self.written + lines):
                values = {f"m{i}": step + i / 4 for i in range(self.METRICS)}
                line = {"step": step, "time": self.began_s + step / 100, **values}
                file.write(json.dumps(line) + "\n")
        self.written += lines

    def counted(self, counter):
        _, _, page = harness.http_get(self.collector.url("/metrics"))
        return int(float(re.search(rf"^{counter} (\S+)$", page.decode(), re.M)[1]))

    def lost(self):
        """Rows that agents reported as lost."""
        return self.counted("tacho_ingest_lost_rows_total")

    def steps(self):
        """Of the last metric, as they are stored, each with its value checked."""
        told = harness.tachoctl(
            self.collector.address, "query", self.JOB, f"m{self.METRICS - 1}", "-o", "json"
        )
        if told.returncode != 0:
            return []
        (series,) = json.loads(told.stdout)["series"]
        for sample in series["samples"]:
            self.assertEqual(float(sample["value"]), sample["step"] + (self.METRICS - 1) / 4)
        return [sample["step"] for sample in series["samples"]]

    def wait_until_idle(self, agent):
        """Everything is read."""
        written = [0]

        def idle():
            with open(f"/proc/{agent.program.process.pid}/io") as file:
                written.append(int(re.search(r"wchar: (\d+)", file.read())[1]))
            return written[-1] > 1 << 20 and written[-1] - written[-2] < 1 << 13

        harness.wait_until(idle, "the agent has read everything", pause_s=1.5)

    def wait_until_all_is_told(self):
        harness.wait_until(
            lambda: self.counted("tacho_ingest_rows_total") + self.lost() >= self.written,
            "every row is stored or told as lost",
            timeout_s=2 * harness.PATIENCE_S,
            pause_s=0.5,
        )


class KillTest(SpoolTestCase):
    """kill -9 at any moment, with a spool that is much too small."""

    def test_each_row_is_stored_once_or_told_as_lost_once(self):
        agent = self.agent(more=", max_bytes: 1MiB")
        for _ in range(12):
            self.write(self.random.randrange(2000, 8000))
            time.sleep(self.random.uniform(0.02, 0.4))
            agent.kill()
            agent.start()
        # What is on its way when the spool drops it may be both.
        self.wait_until_idle(agent)
        self.collector.start()
        self.wait_until_all_is_told()
        steps = self.steps()
        print(f"{self.written} rows, {len(steps)} stored, {self.lost()} lost")
        self.assertGreater(self.lost(), 1000)
        self.assertEqual(steps, list(range(self.written - len(steps), self.written)))
        self.assertEqual(len(steps) + self.lost(), self.written)


class FullDiskTest(SpoolTestCase):
    """The spool's disk is full, by others or by the spool itself."""

    def setUp(self):
        super().setUp()
        self.disk = os.path.join(self.directory, "disk")
        os.mkdir(self.disk)
        mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", self.disk]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            raise unittest.SkipTest("may not mount a small file system")
        self.addCleanup(subprocess.run, ["umount", "--lazy", self.disk], check=True)
        self.spool = os.path.join(self.disk, "spool")

    def size(self):
        return sum(
            os.path.getsize(os.path.join(self.spool, name)) for name in os.listdir(self.spool)
        )

    def wait_until_the_spool_grows_no_more(self):
        sizes = [0]

        def settled():
            sizes.append(self.size())
            return sizes[-1] > 1 << 20 and sizes[-1] == sizes[-2]

        harness.wait_until(settled, "the disk is full", pause_s=1)

    def expect_all_rows_once(self):
        self.wait_until_all_is_told()
        self.assertEqual(self.steps(), list(range(self.written)))
        self.assertEqual(self.lost(), 0)

    def test_disk_that_the_spool_itself_has_filled_is_emptied_when_the_collector_is_back(self):
        agent = self.agent(spool=self.spool)
        self.write(200_000)
        self.wait_until_the_spool_grows_no_more()
        self.assertTrue(agent.program.alive(), agent.program.tail())
        self.assertGreater(self.size(), 12 << 20)
        agent.kill()
        agent.start()
        time.sleep(0.5)
        self.assertTrue(agent.program.alive(), agent.program.tail())
        self.collector.start()
        self.expect_all_rows_once()
        self.assertEqual(agent.stop(), 0)

    def test_disk_that_others_have_filled_stops_nothing_for_good(self):
        agent = self.agent(spool=self.spool)
        self.write(1000)
        harness.wait_until(lambda: os.path.exists(self.spool), "spool made")
        time.sleep(0.5)
        ballast = os.path.join(self.disk, "ballast")
        with open(ballast, "wb") as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
            except OSError:
                pass
        self.write(50_000)
        time.sleep(2)
        self.assertTrue(agent.program.alive(), agent.program.tail())
        # Killed, it cannot begin; a service manager would try again.
        agent.kill()
        agent.start()
        time.sleep(1)
        os.remove(ballast)
        if not agent.program.alive():
            self.assertIn("No space left", agent.program.tail())
            agent.start()
        self.collector.start()
        self.expect_all_rows_once()
        self.assertEqual(agent.stop(), 0)


if __name__ == "__main__":
    harness.main()
