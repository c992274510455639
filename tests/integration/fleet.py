"""A fleet of simulated tasks with a real agent on each of their hosts.

    python3 tests/integration/fleet.py --build build/dev --dir /tmp/fleet [--history 600] [JOB…]

runs a collector, agents and the fleet until Ctrl-C, and passes on what is typed (faults, "where") to
the fleet; tests/support/fleet/fleet_sim.cc --help says what jobs and faults are.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time

import harness

# Five jobs, 64 tasks, 16 hosts.
JOBS = ["slow:tasks=16", "hung:tasks=16", "hbm:tasks=12", "nan:tasks=12", "well:tasks=8"]


class Fleet:
    """tacho-fleet-sim, and an agent for each host that it plays."""

    def __init__(self, directory, collector, jobs=JOBS, flags=()):
        self.directory = directory
        self.log = os.path.join(directory, "fleet.log")
        self.collector = collector
        self.jobs = list(jobs)
        self.flags = list(flags)
        self.happened = []  # Documents of the simulation, in order; appended to by a thread.
        self.agents = []
        self.process = None

    def hosts(self):
        """By job, in order of their numbers."""
        found, first = {}, 0
        for job in self.jobs:
            name, _, settings = job.partition(":")
            given = dict(pair.split("=") for pair in settings.split(",") if pair)
            count = -(-int(given.get("tasks", 8)) // int(given.get("per_host", 4)))
            found[name] = [f"host-{first + i}" for i in range(count)]
            first += count
        return found

    def start(self):
        arguments = [
            "setpriv", "--pdeathsig", "KILL", "--",
            os.environ["TACHO_FLEET_SIM"], "--dir", self.directory,
            "--collector", self.collector.address, *self.flags,
        ]  # fmt: skip
        for job in self.jobs:
            arguments += ["--job", job]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        threading.Thread(target=self._read, daemon=True).start()
        for hosts in self.hosts().values():
            self.agents += [self._agent(host).start() for host in hosts]
        return self

    def _agent(self, host):
        proc = os.path.join(self.directory, "proc", host)
        rings = os.path.join(self.directory, "rings", host)
        return harness.Agent(
            self.directory, self.collector,
            f"  host: {{interval: 1s, proc: '{proc}', cgroup: '{proc}/cgroup'}}\n"
            f"  rings: {{directory: '{rings}'}}\n",
            agent_id=host, host=host,
        )  # fmt: skip

    def _read(self):
        for line in self.process.stdout:
            self.happened.append(json.loads(line))

    def tell(self, line):
        """A fault, or "where"."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def fault(self, line):
        """Does it, and returns what the simulation says of it once it has begun."""
        self.tell(line)
        return self.wait_for(lambda d: d["fault"] == line, line)

    def wait_for(self, wanted, what):
        return harness.wait_until(lambda: next(filter(wanted, list(self.happened)), None), what)

    def kill(self):
        for agent in self.agents:
            agent.kill()
        if self.process:
            self.process.kill()
            self.process.wait()


def _environment(build):
    programs = {
        "TACHO_COLLECTOR": "server/tacho-collector", "TACHO_AGENT": "agent/tacho-agent",
        "TACHO_FLEET_SIM": "tests/support/fleet/tacho-fleet-sim",
    }  # fmt: skip
    for name, path in programs.items():
        os.environ[name] = os.path.abspath(os.path.join(build, path))


def main():
    parser = argparse.ArgumentParser(description="Runs a collector and a fleet with its agents.")
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--dir", required=True, help="Directory for all files; created if missing.")
    parser.add_argument("--config", help="Configuration of the collector.")
    parser.add_argument("--history", default="0", help="Seconds of training before the start.")
    parser.add_argument("jobs", nargs="*", default=JOBS, metavar="JOB")
    flags = parser.parse_args()
    _environment(flags.build)
    os.makedirs(flags.dir, exist_ok=True)
    config = open(flags.config).read() if flags.config else ""
    collector = harness.Collector(flags.dir, config).start()
    fleet = Fleet(flags.dir, collector, flags.jobs, ["--history", flags.history]).start()
    print(f"gRPC {collector.address}, HTTP {collector.url('/metrics')}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        told = 0
        threading.Thread(target=lambda: [fleet.tell(line.strip()) for line in sys.stdin],
                         daemon=True).start()  # fmt: skip
        while fleet.process.poll() is None:
            for document in fleet.happened[told:]:
                print(json.dumps(document), flush=True)
                told += 1
            time.sleep(0.2)
    except KeyboardInterrupt:
        pass
    finally:
        fleet.kill()
        collector.stop()


if __name__ == "__main__":
    main()
