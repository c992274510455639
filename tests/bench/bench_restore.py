#!/usr/bin/python3
"""How long a collector takes to be ready on an empty disk, when all it has is in the bucket (cluster.ack: shared):
a million series, of which each has some rows. The collector before it is killed when the last row is acknowledged, and
its disk is gone. Then the last value of each series is asked for, and must be there.

It needs a Release build with the targets tacho-collector, tacho-bench-fleet, tacho-bench-query and
tacho-fake-object-store.
"""

import argparse
import pathlib
import shutil
import statistics
import tempfile
import time

import servers
from buckets import CollectorWithBucket, start_bucket
from peer_queries import fleet_jobs, run_query

ROOT = pathlib.Path(__file__).resolve().parents[2]


def values(server, hosts):
    """How many last values the collector has, asked job by job."""
    asked = [("latest", f'selector {{ job: "{job}" }}') for job in fleet_jobs(hosts)]
    return run_query(server, asked, None, runs=1, max_seconds=60)["samples"]


def measure(directory, endpoint, prefix, options):
    server = CollectorWithBucket(directory, options.build, endpoint, prefix, "shared", options.interval)
    try:
        server.start()
        server.load(agents=min(200, options.hosts), hosts=options.hosts, rows=1, batches=options.rows)
        sent = server.sent_bytes()
        server.kill()
        shutil.rmtree(server.data)
        server.start()
        restored, cpu = server.ready_seconds, server.cpu_seconds()
        resident = server.resident_bytes()
        begin = time.monotonic()
        found = values(server, options.hosts)
        if found != options.hosts * servers.SERIES_PER_HOST:
            raise RuntimeError(f"{found} values are there, of {options.hosts * servers.SERIES_PER_HOST} series")
        return {"series": found, "sent to the bucket, MiB": sent / 2**20, "ready on an empty disk, s": restored,
                "CPU of the collector until then, s": cpu, "resident then, MiB": resident / 2**20,
                "last values of all series after, s": time.monotonic() - begin}  # fmt: skip
    finally:
        server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench", help="a Release build")
    parser.add_argument("--hosts", type=int, default=11_364, help="of 88 series each")
    parser.add_argument("--rows", type=int, default=12, help="of each host")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--interval", default="1s", help="cluster.ack_interval")
    parser.add_argument("--fake", action="store_true", help="the program of the tests, and no Ceph")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="tacho-ceph-")
    endpoint, stop = start_bucket(options.build, folder, options.fake)
    found = {}
    try:
        for number in range(options.rounds):
            with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
                for name, value in measure(directory, endpoint, f"restore-{number}", options).items():
                    found.setdefault(name, []).append(value)
    finally:
        stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.hosts} hosts, {options.rows} rows each; lowest, median and highest of {options.rounds}")
    for name, values in found.items():
        print(f"{name:40}{min(values):12.2f}{statistics.median(values):12.2f}{max(values):12.2f}")


if __name__ == "__main__":
    main()
