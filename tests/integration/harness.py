"""Starts the real programs for a test and stops them again.

Where things are comes from the environment, set by CMakeLists.txt: TACHO_COLLECTOR, TACHO_AGENT,
TACHO_CTL, TACHO_TRAIN (programs), TACHO_STUBS (generated Python), TACHO_SHARED_DATA (real data).

With TACHO_CLUSTER=3 a Collector is a cluster of so many members, which are started and killed
together; its address is that of one of them. Agents and streams go to the owners of their jobs.
"""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
sys.path.insert(0, os.environ.get("TACHO_STUBS", "."))

SKIPPED = 77  # SKIP_RETURN_CODE in CMakeLists.txt.
# Generous: two busy cores and a debug build. Every wait ends as soon as its condition holds.
PATIENCE_S = 60.0
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def shared_data(folder):
    """The folder's path; skips the test where the data is not there."""
    root = os.environ.get("TACHO_SHARED_DATA") or os.path.join(_REPOSITORY, "..", "shared", "data")
    path = os.path.join(root, folder)
    if not os.path.isdir(path):
        raise unittest.SkipTest(f"no {folder} in TACHO_SHARED_DATA or ../shared/data")
    return path


def needs_one_collector(why):
    """Skips a test that cannot be of a cluster."""
    if os.environ.get("TACHO_CLUSTER"):
        raise unittest.SkipTest("not of a cluster: " + why)


def tool(*names):
    """The path of the first of these programs that there is; skips the test without any."""
    path = os.environ["PATH"] + os.pathsep + os.environ.get("TACHO_TOOLS", "")
    found = next((one for name in names if (one := shutil.which(name, path=path))), None)
    if found is None:
        raise unittest.SkipTest(f"no {names[0]}: deploy/packages.sh test provides it")
    return found


def wait_until(condition, what, timeout_s=PATIENCE_S, pause_s=0.05):
    """Returns the first true value of condition(); fails after timeout_s."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"after {timeout_s:.0f} s still not: {what}")
        time.sleep(pause_s)


def free_port():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def http_get(url, headers=None, timeout_s=10):
    """(status, headers, body); a refusal is an answer too."""
    request = urllib.request.Request(url, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.headers, refusal.read()


class Program:
    """One process. Dies with the test, whatever happens to it."""

    def __init__(self, arguments, log, env=None, stdout=None):
        self.arguments = arguments
        self.log = log
        with open(log, "ab") as sink:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--"] + arguments,
                stdin=subprocess.DEVNULL,
                stdout=stdout or sink,
                stderr=sink,
                env={**os.environ, **(env or {})},
            )

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, timeout_s=PATIENCE_S):
        """SIGTERM, then the exit code."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def wait(self, timeout_s=PATIENCE_S):
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.arguments[0]} did not end in {timeout_s} s\n{self.tail()}")

    def tail(self, size=4000):
        with open(self.log, "rb") as log:
            return log.read()[-size:].decode(errors="replace")


def shard_of(job, shards):
    """As proto/base/job_shard.h has it."""
    return int.from_bytes(hashlib.sha256(job.encode()).digest()[:8], "big") % shards


# The members of each cluster that was started here, by the address of its first one.
clusters = {}


def Collector(directory, config="", path=None, env=None):
    """A collector, or, with TACHO_CLUSTER and without a cluster in `config`, a cluster of some."""
    members = int(os.environ.get("TACHO_CLUSTER") or 0)
    if members > 1 and "cluster:" not in config:
        return ClusterOfCollectors(directory, config, path, env, members)
    return SingleCollector(directory, config, path, env)


class SingleCollector:
    """tacho-collector on loopback. Ports stay the same over restarts."""

    def __init__(self, directory, config="", path=None, env=None):
        self.directory = directory
        self.env = env
        self.path = path or os.path.join(directory, "data")
        self.log = os.path.join(directory, "collector.log")
        self.config = os.path.join(directory, "collector.yaml")
        self.grpc = self.http = 0
        self.program = None
        with open(self.config, "w") as file:
            file.write(config)

    def arguments(self, port_file):
        return [
            os.environ["TACHO_COLLECTOR"], "--config", self.config, "--data", self.path,
            "--grpc", f"127.0.0.1:{self.grpc}", "--http", f"127.0.0.1:{self.http}",
            "--port-file", port_file,
        ]  # fmt: skip

    def start(self):
        port_file = os.path.join(self.directory, "ports.json")
        if os.path.exists(port_file):
            os.remove(port_file)
        self.program = Program(self.arguments(port_file), self.log, self.env)
        wait_until(lambda: os.path.exists(port_file) or not self.program.alive(), "ports known")
        if not self.program.alive():
            raise AssertionError("the collector did not start:\n" + self.program.tail())
        with open(port_file) as file:
            ports = json.load(file)
        self.grpc, self.http = ports["grpc"], ports["http"]
        return self

    @property
    def address(self):
        return f"127.0.0.1:{self.grpc}"

    def owner_of(self, job):
        """The collector that keeps the job, for its disk, its log and its own figures."""
        return self

    def url(self, path):
        return f"http://127.0.0.1:{self.http}{path}"

    def kill(self):
        self.program.kill()

    def stop(self):
        return self.program.stop()


class ClusterOfCollectors:
    """Some collectors that share the jobs. For a test it is one collector: the first of them, at which
    no job of the tests need be."""

    def __init__(self, directory, config, path, env, size):
        ports = [free_port() for _ in range(size)]
        self.addresses = [f"127.0.0.1:{port}" for port in ports]
        clusters[self.address] = self.addresses
        self.members = []
        for i, port in enumerate(ports):
            own = os.path.join(directory, f"member-{i}") if i else directory
            os.makedirs(own, exist_ok=True)
            cluster = f"cluster: {{members: {self.addresses}, member: '{self.addresses[i]}'}}\n"
            member = SingleCollector(own, config + cluster, path + f"-{i}" if path and i else path, env)
            member.log = os.path.join(directory, f"collector-{i}.log")
            member.grpc = port
            self.members.append(member)

    def __getattr__(self, name):
        return getattr(self.members[0], name)

    @property
    def address(self):
        return self.addresses[0]

    def owner_of(self, job):
        return self.members[shard_of(job, len(self.members))]

    def start(self):
        for member in self.members:
            member.start()
        return self

    def kill(self):
        for member in self.members:
            member.kill()

    def stop(self):
        return max(member.stop() for member in self.members)


class Agent:
    """tacho-agent; its spool outlives it."""

    def __init__(
        self, directory, collector, sources, agent_id="agent-1", host="host-1", spool=None,
        more="", hasty=False, env=None,
    ):  # fmt: skip
        """`spool` is another place of it, `more` further keys of it; a hasty one catches up as fast
        as it can."""
        catch_up = ", backlog_rows_per_second: 0" if hasty else ""
        spool = spool or os.path.join(directory, agent_id + ".spool")
        self.log = os.path.join(directory, agent_id + ".log")
        self.config = os.path.join(directory, agent_id + ".yaml")
        self.program = None
        self.env = env
        members = clusters.get(collector.address)
        where = f"members: {members}" if members else f"address: '{collector.address}'"
        with open(self.config, "w") as file:
            file.write(
                f"collector: {{{where}, backoff_min: 50ms,"
                f" backoff_max: 500ms{catch_up}}}\n"
                f"identity: {{agent_id: {agent_id}, host: {host}}}\n"
                f"spool: {{path: {spool}{more}}}\n"
                f"sources:\n{sources}"
            )

    def start(self):
        arguments = [os.environ["TACHO_AGENT"], "--config", self.config]
        self.program = Program(arguments, self.log, self.env)
        return self

    def kill(self):
        self.program.kill()

    def stop(self):
        return self.program.stop()


def tachoctl(collector_address, *arguments, env=None):
    """The finished process, with text output."""
    return subprocess.run(
        [os.environ["TACHO_CTL"], *arguments],
        env={**os.environ, "TACHO_ADDRESS": collector_address, "TZ": "UTC", **(env or {})},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip


class TestCase(unittest.TestCase):
    """A directory, a seed and programs for one test."""

    maxDiff = 2000

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="tacho-test-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.programs = []  # Those that were started.
        self.seed = int(os.environ.get("TACHO_SEED") or random.SystemRandom().randrange(1 << 32))
        self.random = random.Random(self.seed)

    def small_disk(self, size):
        """A file system of so many bytes ("64m"), for the length of the test; skips it if there is none."""
        disk = os.path.join(self.directory, "disk")
        os.mkdir(disk)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            raise unittest.SkipTest("may not mount a small file system")
        self.addCleanup(subprocess.run, ["umount", "--lazy", disk], check=True)
        return disk

    def started(self, program):
        """Starts a Collector, an Agent or takes a running Program; it is killed after the test."""
        if hasattr(program, "start"):
            program.start()
        self.addCleanup(self._end, program)
        if program not in self.programs:
            self.programs.append(program)
        return program

    def _end(self, program):
        """A program that has crashed fails the test, whatever the test looked at."""
        running = getattr(program, "program", program)
        ended = running.process.poll() if isinstance(running, Program) else None
        running.kill()
        if ended is not None and -ended in CRASHES:
            raise AssertionError(f"{running.arguments[0]} ended by {signal.Signals(-ended).name}\n{running.tail()}")


class ShowingResult(unittest.TextTestResult):
    """Prints the tail of every program's log with a failure, while the files are still there."""

    def _show(self, test):
        directory = getattr(test, "directory", None)
        if not directory or not os.path.isdir(directory):
            return
        print(f"\nTACHO_SEED={test.seed} repeats the random choices", file=sys.stderr)
        for program in test.programs:
            running = getattr(program, "program", program)
            if isinstance(running, Program) and (code := running.process.poll()) is not None:
                print(f"{running.arguments[0]} ({running.log}) has ended with {code}", file=sys.stderr)
        for name in sorted(os.listdir(directory)):
            if name.endswith(".log"):
                with open(os.path.join(directory, name), "rb") as log:
                    text = log.read()[-3000:].decode(errors="replace")
                print(f"--- {name}\n{text}", file=sys.stderr)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._show(test)

    def addError(self, test, err):
        super().addError(test, err)
        self._show(test)


def main():
    runner = unittest.TextTestRunner(verbosity=2, resultclass=ShowingResult)
    result = unittest.main(testRunner=runner, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.testsRun and len(result.skipped) == result.testsRun else 0)
