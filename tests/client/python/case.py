"""What tests of recording in Python share. TACHO_LIBRARY is the library."""
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = str(ROOT / "client/python")
sys.path.insert(0, PACKAGE)

import ring
import tacho
from tacho import _library


class Case(unittest.TestCase):
    """A directory for rings, nothing in the environment, and what the package warned of."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="tacho-test-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        for name in list(os.environ):
            if name.startswith("TACHO_") and name != "TACHO_LIBRARY":
                del os.environ[name]
        _library._said.clear()
        self.warnings = []
        handler = logging.Handler()
        handler.emit = lambda record: self.warnings.append(record.getMessage())
        logging.getLogger("tacho").addHandler(handler)
        self.addCleanup(logging.getLogger("tacho").removeHandler, handler)
        self.addCleanup(tacho.finish)

    def init(self, **arguments):
        options = {"job": "job", "directory": self.directory, "ring_bytes": 1 << 18, **arguments}
        run = tacho.init(**options)
        self.assertTrue(run.recording, run.error)
        return run

    def read(self):
        return ring.read_only_one(self.directory)

    def python(self, program, *arguments, **environment):
        """Runs a program that finds the package; its ring goes where read() looks."""
        paths = [PACKAGE, os.path.dirname(__file__)]
        return subprocess.run(
            [sys.executable, "-B", "-c", program, *arguments],
            env={
                **os.environ, "PYTHONPATH": os.pathsep.join(paths), "TACHO_JOB": "job",
                "TACHO_RING_DIR": self.directory, **environment,
            },
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip


def main():
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
