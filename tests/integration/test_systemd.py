"""The units of deploy/systemd, and what the programs tell the service manager."""
import os
import re
import shutil
import socket
import subprocess
import unittest

import harness

UNITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/systemd")
SERVICES = ("tacho-collector.service", "tacho-agent.service")
# As of `systemd-analyze security`: 10 is everything, 0 nothing. Most units of Debian have 9.6.
MOST_EXPOSURE = {"tacho-collector.service": 1.1, "tacho-agent.service": 1.8}
MOST_EXPOSURE_WITH_CHIPS = 2.6


def analyze(*arguments):
    if shutil.which("systemd-analyze") is None:
        raise unittest.SkipTest("no systemd-analyze: package systemd")
    return subprocess.run(
        ["systemd-analyze", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=harness.PATIENCE_S,
    )  # fmt: skip


def system_calls(unit):
    """Names that the unit's SystemCallFilter lets through."""
    known, group = {}, None
    for line in analyze("syscall-filter").stdout.splitlines():
        line = re.sub(r"\x1b\[[0-9;]*m", "", line)
        if line.startswith("@"):
            group = known.setdefault(line.strip(), [])
        elif line.startswith(" ") and not line.strip().startswith("#"):
            group.append(line.strip())

    def expand(name):
        return set().union(*map(expand, known[name])) if name.startswith("@") else {name}

    allowed = expand("@default")
    with open(os.path.join(UNITS, unit)) as file:
        filters = re.findall(r"^SystemCallFilter=(~?)(.*)$", file.read(), re.MULTILINE)
    for denies, names in filters:
        meant = set().union(*map(expand, names.split()))
        allowed = allowed - meant if denies else allowed | meant
    return allowed


class UnitTest(harness.TestCase):
    def root(self):
        """A root that has the programs which the units name, and nothing else of ours."""
        units = os.path.join(self.directory, "usr/lib/systemd/system")
        programs = os.path.join(self.directory, "usr/bin")
        os.makedirs(units)
        os.makedirs(programs)
        os.symlink("usr/bin", os.path.join(self.directory, "bin"))
        for program in ("tacho-collector", "tacho-agent", "tachoctl", "kill"):
            with open(os.path.join(programs, program), "w") as file:
                file.write("#!/bin/sh\n")
            os.chmod(file.name, 0o755)
        targets = ("sysinit", "basic", "multi-user", "network-online", "shutdown", "network")
        for name in targets:
            shutil.copy(f"/usr/lib/systemd/system/{name}.target", units)
        for service in SERVICES:
            shutil.copy(os.path.join(UNITS, service), units)
        return self.directory

    def add_chips(self, root):
        changes = os.path.join(root, "etc/systemd/system/tacho-agent.service.d")
        os.makedirs(changes)
        shutil.copy(os.path.join(UNITS, "tacho-agent-chips.conf"), f"{changes}/chips.conf")

    def test_units_are_valid(self):
        root = self.root()
        for chips in (False, True):
            if chips:
                self.add_chips(root)
            checked = analyze("verify", f"--root={root}", *SERVICES)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def exposure(self, root, service):
        told = analyze("security", "--offline=true", "--no-pager", f"--root={root}", service)
        exposure = re.search(r"Overall exposure level for \S+: (\S+)", told.stdout)
        self.assertIsNotNone(exposure, told.stderr)
        print(exposure[0])
        return float(exposure[1])

    def test_services_can_do_little(self):
        root = self.root()
        for service in SERVICES:
            self.assertLessEqual(self.exposure(root, service), MOST_EXPOSURE[service])
        self.add_chips(root)
        with_chips = self.exposure(root, "tacho-agent.service")
        self.assertLessEqual(with_chips, MOST_EXPOSURE_WITH_CHIPS)
        self.assertGreater(with_chips, MOST_EXPOSURE["tacho-agent.service"], "not in force")

    def test_what_an_agent_calls_is_allowed(self):
        """What its sources ask the kernel, the clock's state among it."""
        if shutil.which("strace") is None:
            raise unittest.SkipTest("no strace: deploy/packages.sh test provides it")
        allowed = system_calls("tacho-agent.service")
        config = os.path.join(self.directory, "agent.yaml")
        os.mkdir(os.path.join(self.directory, "rings"))
        with open(config, "w") as file:
            file.write(
                f"spool: {{path: {self.directory}/spool}}\n"
                "collector: {address: '127.0.0.1:1'}\n"
                "sources:\n  host: {interval: 200ms, slow_interval: 200ms}\n"
                f"  rings: {{directory: {self.directory}/rings}}\n"
            )
        calls = os.path.join(self.directory, "calls")
        traced = subprocess.run(
            ["strace", "-f", "-qq", "-o", calls, "timeout", "-s", "TERM", "3",
             os.environ["TACHO_AGENT"], "--config", config],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE_S,
        )  # fmt: skip
        if not os.path.exists(calls) or "ptrace" in traced.stderr:
            raise unittest.SkipTest("processes may not be traced here: " + traced.stderr)
        with open(calls) as file:
            called = set(re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)[( ]", file.read(), re.MULTILINE))
        self.assertIn("clock_adjtime", called, "the agent was not at work")
        self.assertEqual(called - allowed, set())

    def test_configurations_are_right_and_fit_the_units(self):
        for program, file in (("TACHO_COLLECTOR", "collector.yaml"), ("TACHO_AGENT", "agent.yaml")):
            checked = subprocess.run(
                [os.environ[program], "--config", os.path.join(UNITS, file), "--check-config"],
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=harness.PATIENCE_S,
            )  # fmt: skip
            self.assertEqual(checked.returncode, 0, checked.stderr)
        with open(os.path.join(UNITS, "collector.yaml")) as file:
            listen = re.search(r"listen: (unix:\S+)", file.read())[1]
        with open(os.path.join(UNITS, "tacho-collector.service")) as file:
            self.assertIn(f"--address {listen}\n", file.read())


class NotifyTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.settimeout(harness.PATIENCE_S)
        path = os.path.join(self.directory, "notify")
        self.manager.bind(path)
        os.environ["NOTIFY_SOCKET"] = path
        self.addCleanup(os.environ.pop, "NOTIFY_SOCKET")

    def told(self):
        return self.manager.recv(4096).decode()

    def test_collector_and_agent_say_when_they_are_ready_and_when_they_stop(self):
        collector = self.started(harness.Collector(self.directory))
        self.assertTrue(self.told().startswith("READY=1\nSTATUS=listening grpc="))
        status, _, _ = harness.http_get(collector.url("/readyz"))
        self.assertEqual(status, 200)
        agent = self.started(
            harness.Agent(self.directory, collector, "  rings: {directory: ''}\n")
        )
        self.assertTrue(self.told().startswith("READY=1\n"))
        self.assertEqual(agent.stop(), 0)
        self.assertTrue(self.told().startswith("STOPPING=1\n"))
        self.assertEqual(collector.stop(), 0)
        self.assertTrue(self.told().startswith("STOPPING=1\n"))


if __name__ == "__main__":
    harness.main()
