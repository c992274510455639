#!/usr/bin/python3
"""How long a collector takes to be ready on an empty disk, when all it has is in the bucket (cluster.ack: shared):
a million series, of which each has some rows. The collector before it is killed, and its disk is gone. Beside it, how
long a start on the disk of the killed collector takes.

It needs a Release build with the targets tacho-collector, tacho-bench-fleet and tacho-fake-object-store.
"""

import argparse
import pathlib
import shutil
import statistics
import tempfile

import servers
from buckets import CollectorWithBucket, start_bucket

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERIES = "tacho_storage_series"


def measure(directory, endpoint, prefix, options):
    server = CollectorWithBucket(directory, options.build, endpoint, prefix, "shared", options.interval)
    try:
        server.start()
        server.load(agents=min(200, options.hosts), hosts=options.hosts, rows=1, batches=options.rows)
        wanted = server.metrics()[SERIES]
        server.kill()
        server.start()
        on_disk = server.ready_seconds
        server.kill()
        shutil.rmtree(server.data)
        server.start()
        restored, cpu = server.ready_seconds, server.cpu_seconds()
        found = server.metrics()[SERIES]
        if found != wanted:
            raise RuntimeError(f"{found:.0f} of {wanted:.0f} series are there")
        return {"series": wanted, "ready on its own disk, s": on_disk, "ready on an empty disk, s": restored,
                "CPU of the collector until then, s": cpu, "resident then, MiB": server.resident_bytes() / 2**20}  # fmt: skip
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
