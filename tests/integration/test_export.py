"""tachoctl export: what is written is whole or not there, says what it lost, and is taken by those
it is for."""
import os
import resource
import signal
import subprocess

import harness
import imported
from imported import START_NS


class ExportTest(imported.ImportCase):
    """What is exported is whole, or not there."""

    def export(self, *arguments, **options):
        environment = {**os.environ, "TACHO_ADDRESS": self.collector.address, "TZ": "UTC"}
        return subprocess.run(
            [os.environ["TACHO_CTL"], "export", *arguments], env=environment, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.PATIENCE_S, **options,
        )  # fmt: skip

    def test_full_disk_leaves_nothing(self):
        self.run_import("csv", self.write_csv(20_000), "--job", "full")

        def full():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

        for form in ("csv", "jsonl", "prometheus", "tfevents"):
            target = os.path.join(self.directory, "out-" + form)
            done = self.export("full", "--format", form, "-f", target, preexec_fn=full)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("cannot write", done.stderr)
            left = [n for n in os.listdir(self.directory) if "out-" + form in n]
            self.assertEqual(left, [], f"{form} left files")

    def test_values_that_are_no_float32_are_counted(self):
        self.run_import("csv", self.write_csv(70), "--job", "wide")
        logs = os.path.join(self.directory, "logs")
        done = self.export("wide", "a", "--format", "tfevents", "-f", logs)
        self.assertEqual(done.returncode, 0, done.stderr)
        # i / 7 is exact for multiples of 7 alone.
        self.assertIn("60 values were rounded to float32", done.stderr)

    def test_promtool_takes_the_export(self):
        promtool = os.path.join(os.environ["TACHO_TOOLS"], "promtool")
        if not os.path.exists(promtool):
            self.skipTest("no promtool in build/tools")
        self.run_import("csv", self.write_csv(1000), "--job", "prom")
        path = os.path.join(self.directory, "prom.om")
        done = self.export("prom", "--format", "prometheus", "-f", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        blocks = os.path.join(self.directory, "blocks")
        made = subprocess.run(
            [promtool, "tsdb", "create-blocks-from", "openmetrics", path, blocks],
            capture_output=True, text=True, timeout=harness.PATIENCE_S,
        )  # fmt: skip
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        os.mkdir(os.path.join(blocks, "wal"))  # promtool looks for it.
        dumped = subprocess.run(
            [promtool, "tsdb", "dump", blocks],
            capture_output=True, text=True, timeout=harness.PATIENCE_S,
        )  # fmt: skip
        self.assertEqual(len(dumped.stdout.splitlines()), 3000, dumped.stderr[-500:])
        self.assertIn(f'c", attempt="0", host="imported", job="prom", task="0"}} -999 '
                      f"{START_NS // 10**6 + 999}", dumped.stdout)

    def test_unknown_job_and_nothing_to_write(self):
        self.run_import("csv", self.write_csv(10), "--job", "known")
        target = os.path.join(self.directory, "out.csv")
        done = self.export("knwon", "-f", target)
        self.assertEqual(done.returncode, 1)
        self.assertIn("known", done.stderr)
        self.assertFalse(os.path.exists(target))
        done = self.export("known", "--format", "tfevents")
        self.assertEqual(done.returncode, 2)
        self.assertIn("-f DIR", done.stderr)


if __name__ == "__main__":
    harness.main()
