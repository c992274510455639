#!/usr/bin/python3
"""How long agents of a lost machine wait for their next acknowledgement: a cluster of two members and a spare, and
many agents at a row a second. In turns a collector is killed and its disk deleted; later it starts again, empty, and
waits. The bucket is a real Ceph on this machine if its packages are there, else a program of the tests.

It needs a Release build with the targets tacho-collector, tacho-bench-takeover and tacho-fake-object-store.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

import servers
from buckets import start_bucket

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEMBERS = 2


class ClusterCollector(servers.Collector):
    """One of the cluster; it may wait for a shard."""

    def __init__(self, directory, build, endpoint, addresses, own, takeover_after):
        super().__init__(directory, build)
        self.address = addresses[own]
        self.config = self.directory / "collector.yaml"
        self.config.write_text(
            f"bucket: {{url: 's3://tests/takeover', endpoint: '{endpoint}', path_style: true}}\n"
            f"cluster: {{ack: shared, members: {addresses[:MEMBERS]}, spares: {addresses[MEMBERS:]},"
            f" member: '{self.address}', takeover_after: {takeover_after}}}\n")
        self.http_port = servers.free_port()

    def command(self):
        return [self.build / "server/tacho-collector", "--config", self.config, "--data", self.data,
                "--grpc", self.address, "--http", f"127.0.0.1:{self.http_port}"]

    def run(self):
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)

    def owns(self):
        try:
            self.get("/readyz")
            return True
        except OSError:
            return False

    def lose(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.data)


def await_owners(collectors, count):
    deadline = time.monotonic() + 120
    while sum(collector.owns() for collector in collectors) < count:
        if time.monotonic() > deadline:
            raise RuntimeError("\n".join(collector.log_tail() for collector in collectors))
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench", help="a Release build")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--losses", type=int, default=6)
    parser.add_argument("--calm", type=int, default=20, help="seconds between two losses")
    parser.add_argument("--takeover-after", default="20s")
    parser.add_argument("--fake", action="store_true", help="the program of the tests, and no Ceph")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="tacho-takeover-")
    endpoint, stop = start_bucket(options.build, folder + "/ceph", options.fake)
    addresses = [f"127.0.0.1:{servers.free_port()}" for _ in range(MEMBERS + 1)]
    collectors = [
        ClusterCollector(f"{folder}/{i}", options.build, endpoint, addresses, i, options.takeover_after)
        for i in range(MEMBERS + 1)]
    try:
        for collector in collectors:
            collector.run()
        await_owners(collectors, MEMBERS)
        agents = subprocess.Popen(
            [options.build / "tests/bench/tacho-bench-takeover", ",".join(addresses[:MEMBERS]),
             ",".join(addresses[MEMBERS:]), str(options.agents)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        agents.stdout.readline()  # It is ready: a loss before that would be measured too short.
        for loss in range(options.losses):
            time.sleep(options.calm)
            owners = {int(c.metrics()["tacho_cluster_shard"]): c for c in collectors if c.owns()}
            shard = loss % MEMBERS
            owners[shard].lose()
            agents.stdin.write(f"{shard}\n")
            agents.stdin.flush()
            print(agents.stdout.readline().strip(), flush=True)
            owners[shard].run()
        agents.stdin.write("end\n")
        agents.stdin.flush()
        print(json.loads(agents.stdout.readline()), flush=True)
        agents.wait()
    finally:
        for collector in collectors:
            if collector.process is not None:
                collector.process.kill()
        stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
