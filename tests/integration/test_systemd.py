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
MOST_EXPOSURE = {"tacho-collector.service": 1.1, "tacho-agent.service": 1.4}


def analyze(*arguments):
    if shutil.which("systemd-analyze") is None:
        raise unittest.SkipTest("no systemd-analyze: package systemd")
    return subprocess.run(
        ["systemd-analyze", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=harness.PATIENCE_S,
    )  # fmt: skip


class UnitTest(harness.TestCase):
    def test_units_are_valid(self):
        """In a root that has the programs they name, and nothing else of ours."""
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
        checked = analyze("verify", f"--root={self.directory}", *SERVICES)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_services_can_do_little(self):
        for service in SERVICES:
            path = os.path.join(UNITS, service)
            told = analyze("security", "--offline=true", "--no-pager", path)
            exposure = re.search(r"Overall exposure level for \S+: (\S+)", told.stdout)
            self.assertIsNotNone(exposure, told.stderr)
            print(exposure[0])
            self.assertLessEqual(float(exposure[1]), MOST_EXPOSURE[service], told.stdout)

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
