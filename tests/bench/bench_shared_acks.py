#!/usr/bin/python3
"""What acknowledgements that wait for the bucket cost: the same agents at one row a second against a collector with
cluster.ack: local and one with shared, in turns. The bucket is a real Ceph on this machine if its packages are there
(its own time is not counted), else a program of the tests.

It needs a Release build with the targets tacho-collector, tacho-bench-fleet and tacho-fake-object-store.
"""

import argparse
import pathlib
import shutil
import tempfile

import servers
from buckets import CollectorWithBucket, start_bucket

ROOT = pathlib.Path(__file__).resolve().parents[2]
BYTES_OF_A_VALUE = 8


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
    endpoint, stop = start_bucket(options.build, folder, options.fake)
    figures = {"local": [], "shared": []}
    try:
        for turn in range(options.turns):
            makers = [
                lambda directory, a=ack, t=turn: CollectorWithBucket(
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
