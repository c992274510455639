"""The packages of npm that a script of a test needs."""
import fcntl
import filecmp
import os
import shutil
import subprocess
import unittest


def install(folder):
    """Installs what `folder`/package-lock.json names into its node_modules, if it is not there; skips the test
    without npm or its registry. Two tests may come here at once."""
    lock_file = os.path.join(folder, "package-lock.json")
    installed = os.path.join(folder, "node_modules", ".installed")
    with open(lock_file) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(installed) and filecmp.cmp(lock_file, installed, shallow=False):
            return
        if shutil.which("npm") is None:
            raise unittest.SkipTest("no npm: deploy/packages.sh test installs it")
        # Scripts of packages are code that nobody here has read.
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            if not _registry_answers():
                raise unittest.SkipTest("npm cannot reach its registry")
            raise AssertionError("npm ci failed although its registry answers:\n" + done.stderr[-2000:])
        shutil.copyfile(lock_file, installed)


def _registry_answers():
    try:
        return subprocess.run(["npm", "ping"], capture_output=True, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        return False
