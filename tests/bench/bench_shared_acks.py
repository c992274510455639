#!/usr/bin/python3
"""What acknowledgements that wait for the bucket cost: the same agents at one row a second against a collector with
cluster.ack: local and one with shared, in turns. The bucket is a real Ceph on this machine if its packages are there
(its own time is not counted), else a program of the tests.

It needs a Release build with the targets tacho-collector, tacho-bench-fleet and tacho-fake-object-store.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/storage/bucket"))
import ceph  # noqa: E402

BYTES_OF_A_VALUE = 8


class WithBucket(servers.Collector):
    """With a bucket and `ack`; each one has a prefix of its own."""

    def __init__(self, directory, build, endpoint, prefix, ack, interval):
        super().__init__(directory, build)
        self.name = ack
        self.config = self.directory / "collector.yaml"
        self.config.write_text(
            f"bucket: {{url: 's3://plain/{prefix}', endpoint: '{endpoint}', path_style: true}}\n"
            f"cluster: {{ack: {ack}, ack_interval: {interval}}}\n")

    def command(self):
        return [*super().command(), "--config", self.config]

    def sent_bytes(self):
        return self.metrics().get('tacho_bucket_bytes_total{direction="sent"}', 0)


def measure(server, agents, seconds):
    server.start()
    cpu, sent = server.cpu_seconds(), server.sent_bytes()
    report = server.load(agents=agents, rows=1, batches=seconds, rate=1)
    cpu, sent = server.cpu_seconds() - cpu, server.sent_bytes() - sent
    resident = server.resident_bytes()
    server.stop()
    return {
        "CPU, s a million samples": cpu / report["samples"] * 1e6,
        "acknowledged after, p50, ms": report["ack_p50_ms"],
        "acknowledged after, p99, ms": report["ack_p99_ms"],
        "resident, MiB": resident / 2**20,
        "sent to the bucket, bytes a sample": sent / report["samples"],
        "of raw values": sent / report["samples"] / BYTES_OF_A_VALUE,
    }


def start_bucket(options, folder):
    """(its endpoint, how to end it)"""
    if not options.fake and not ceph.missing():
        env = ceph.start(folder)
        os.environ.update(env)
        ceph.put(env, "/plain")
        return env["TACHO_TEST_CEPH"], lambda: subprocess.run([ceph.CEPH, "stop", folder, "--purge"], check=False)
    print("bench_shared_acks: without Ceph", file=sys.stderr)
    os.environ.update(AWS_ACCESS_KEY_ID="GOOGTESTKEY", AWS_SECRET_ACCESS_KEY="secret/of+tests")
    store = subprocess.Popen([options.build / "tests/support/tacho-fake-object-store"],
                             stdout=subprocess.PIPE, text=True)
    return store.stdout.readline().strip(), store.kill


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench", help="a Release build")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--interval", default="1s", help="cluster.ack_interval")
    parser.add_argument("--fake", action="store_true", help="the program of the tests, and no Ceph")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="tacho-ceph-")
    endpoint, stop = start_bucket(options, folder)
    figures = {"local": [], "shared": []}
    try:
        for turn in range(options.turns):
            makers = [
                lambda directory, a=ack, t=turn: WithBucket(
                    directory, options.build, endpoint, f"{a}-{t}", a, options.interval)
                for ack in figures]
            servers.take_turns(
                makers,
                lambda server: figures[server.name].append(measure(server, options.agents, options.seconds)))
    finally:
        stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.agents} agents, one row of {servers.SERIES_PER_HOST} values a second, {options.seconds} s, "
          f"{options.turns} turns, ack_interval {options.interval}; median")
    print("| | local | shared | shared / local |\n|---|--:|--:|--:|")
    for name in figures["local"][0]:
        local, shared = (sorted(one[name] for one in figures[ack])[options.turns // 2] for ack in figures)
        ratio = f"{shared / local:.2f}" if local else ""
        print(f"| {name} | {local:.3g} | {shared:.3g} | {ratio} |")


if __name__ == "__main__":
    main()
