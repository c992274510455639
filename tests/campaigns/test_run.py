"""What tests/campaigns/run makes of the ends of its programs, and of its flags.

Scripts stand for fuzz targets, since those need clang: each prints what libFuzzer prints, and ends as
it does.
"""

import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).with_name("run")

COVERS = "echo '#7 NEW    cov: 12 ft: 34 corp: 1/1b' >&2\n"
COUNTS = "echo 'stat::number_of_executed_units: 56' >&2\n"
# Goes on until it is interrupted, for ten seconds at most, and ends then as `end` says.
AWAITS_SIGNAL = """
trap 'echo "== libFuzzer: run interrupted; exiting" >&2; end' INT
for i in {1..200}; do echo '#8 pulse  cov: 12 ft: 34' >&2; sleep 0.05; done
"""


def until_signal(end):
    return COVERS + "end() {\n" + end + "\n}\n" + AWAITS_SIGNAL


def load():
    loader = importlib.machinery.SourceFileLoader("campaigns_run", str(PROGRAM))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("campaigns_run", loader))
    loader.exec_module(module)
    return module


class FuzzOne(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def fuzz(self, script, quiet=60):
        """The figures of the target, and what is printed about it."""
        program = self.dir / "some_fuzz"
        program.write_text("#!/bin/bash\n" + script)
        program.chmod(0o755)
        flags = argparse.Namespace(seconds=60, quiet=quiet)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            report = load().fuzz_one(flags, program, self.dir / "no-seeds", self.dir / "found/some_fuzz")
        return report, said.getvalue()

    def test_a_target_that_ends_by_itself_has_figures(self):
        report, _ = self.fuzz(COVERS + COUNTS)
        self.assertEqual((report["edges"], report["features"], report["executions"]), (12, 34, 56))

    def test_a_target_that_finds_nothing_new_is_interrupted(self):
        report, _ = self.fuzz(until_signal(COUNTS + "exit 72"), quiet=0.3)
        self.assertEqual(report["executions"], 56)

    def test_a_crash_after_the_interrupt_fails(self):
        report, said = self.fuzz(until_signal(COUNTS + "exit 77"), quiet=0.3)
        self.assertIsNone(report)
        self.assertIn("some_fuzz: FAILED, exit status 77", said)

    def test_a_crash_without_a_word_fails(self):
        self.assertIsNone(self.fuzz(COVERS + COUNTS + "exit 77")[0])

    def test_a_target_that_runs_nothing_fails(self):
        self.assertIsNone(self.fuzz("exit 0")[0])

    def test_a_long_report_of_a_crash_is_printed_whole(self):
        report, said = self.fuzz("echo 'ERROR: AddressSanitizer' >&2\nseq 150 >&2\nexit 77")
        self.assertIsNone(report)
        self.assertIn("ERROR: AddressSanitizer", said)


class Parts(unittest.TestCase):
    def test_thread_sanitizer_builds_no_stepped_clock(self):
        module = load()
        built = {}

        def build(flags, targets):
            built[flags.name] = targets
            raise KeyboardInterrupt

        module.build = build
        for name in ("chaos", "tsan"):
            with contextlib.suppress(KeyboardInterrupt):
                module.run_programs(argparse.Namespace(name=name, of=None))
        clock = "tests/support/clock/libtacho_stepped_clock.so"
        self.assertEqual(set(built["chaos"]) - set(built["tsan"]), {clock})
        self.assertIn("server/tacho-collector", built["tsan"])


class Flags(unittest.TestCase):
    def test_a_total_of_what_is_not_counted_is_refused(self):
        for name in ("damage", "fuzz", "figures"):
            with self.subTest(name):
                done = subprocess.run([PROGRAM, name, "--total", "5", "--build", "/none"], text=True, timeout=20,
                                      check=False, capture_output=True)
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"nothing of {name} is counted", done.stderr)


if __name__ == "__main__":
    unittest.main()
