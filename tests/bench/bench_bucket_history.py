#!/usr/bin/python3
"""A day that has been moved into the bucket, beside the same day on the disk: bytes, and one metric of 200 series over
the day, raw and reduced, asked of a process that has just started.

  disk cold            the operating system's cache is dropped before the start (needs root)
  bucket cold          nothing of the bucket is in bucket.cache_path either
  warm                 asked once more
  pieces on the disk   what was fetched is in bucket.cache_path, and the process has just started

The bucket is a real Ceph on this machine if its packages are there, else a program of the tests. It needs a Release
build with the targets tacho-collector, tacho-bench-fleet, tacho-bench-query and tacho-fake-object-store.
"""

import argparse
import pathlib
import shutil
import tempfile
import time

import servers
from buckets import start_bucket
from peer_queries import DAY_S, METRIC, run_query, selector

ROOT = pathlib.Path(__file__).resolve().parents[2]
DAYS_AGO = 3


class Collector(servers.Collector):
    """Keeps old days in the bucket at `endpoint`; None: on its disk."""

    def __init__(self, directory, build, endpoint):
        super().__init__(directory, build)
        self.pieces = self.directory / "pieces"
        self.has_bucket = endpoint is not None
        self.config = self.directory / "collector.yaml"
        text = "conditions: {enabled: false}\n"
        if self.has_bucket:
            text += ("storage: {local_retention: 1d}\n"
                     f"bucket: {{url: 's3://tests/history', endpoint: '{endpoint}', path_style: true,"
                     f" cache_path: '{self.pieces}'}}\n")
        self.config.write_text(text)

    def command(self):
        return [*super().command(), "--config", self.config]

    def figure(self, prefix, part):
        return sum(value for name, value in self.metrics().items() if name.startswith(prefix) and part in name)

    def gets(self):
        return self.figure("tacho_bucket_requests_total", 'operation="get')

    def bytes(self, direction):
        return self.figure("tacho_bucket_bytes_total", direction)


def drop_caches():
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def ask(server, asked):
    """(milliseconds, requests that read, bytes received, samples) of one query."""
    gets, received = server.gets(), server.bytes("received")
    answer = run_query(server, [asked], None, runs=1, max_seconds=300)
    return answer["p50_ms"], server.gets() - gets, server.bytes("received") - received, answer["samples"]


def row(title, figures):
    milliseconds, gets, received, samples = figures
    print(f"{title:34}{milliseconds:12.1f}{gets:10.0f}{received / 2**20:12.2f}{samples:14,.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench", help="a Release build")
    parser.add_argument("--hosts", type=int, default=25, help="of 88 series each; a metric has 8 series a host")
    parser.add_argument("--interval", type=int, default=1, help="seconds between two rows of a host")
    parser.add_argument("--only", choices=("", "disk", "bucket"), default="")
    parser.add_argument("--patience", type=int, default=900, help="seconds until the day must be in the bucket")
    parser.add_argument("--rounds", type=int, default=1, help="each query is asked so many times of a new process")
    parser.add_argument("--fake", action="store_true", help="the program of the tests, and no Ceph")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="tacho-ceph-")
    endpoint, stop = start_bucket(options.build, folder, options.fake)
    begin_s = (int(time.time()) // DAY_S - DAYS_AGO) * DAY_S
    day = f"time {{ begin_unix_ns: {begin_s}000000000 end_unix_ns: {begin_s + DAY_S}000000000 }} packed: true"
    queries = {
        "raw": ("range", f"{selector([METRIC])} {day}"),
        "500 points": ("range", f"{selector([METRIC])} {day} max_points: 500 bucket_values: BUCKET_VALUE_MAX"),
    }
    try:
        with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
            for name, bucket in (("disk", None), ("bucket", endpoint)):
                if options.only not in ("", name):
                    continue
                server = Collector(f"{directory}/{name}", options.build, bucket)
                try:
                    measure(name, server, options, begin_s, queries)
                finally:
                    server.kill()
    finally:
        stop()
        shutil.rmtree(folder, ignore_errors=True)


def await_move(server, patience_s):
    """Until the day is in the bucket and not on the disk."""
    deadline = time.monotonic() + patience_s
    while True:
        figures = server.metrics()
        if figures["tacho_bucket_days"] >= 1 and figures["tacho_storage_disk_bytes"] < server.bytes("sent") / 2:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"the day is not in the bucket: {figures['tacho_bucket_days']} days are\n" + server.log_tail())
        time.sleep(1)


def measure(name, server, options, begin_s, queries):
    server.start()
    rows = 60
    loaded = server.load(agents=1, hosts=options.hosts, rows=rows, batches=DAY_S // options.interval // rows,
                         interval_ms=1000 * options.interval, start_unix_s=begin_s)
    # A day is closed only when there are rows of hours later: a clock alone is not believed.
    server.load(agents=1, hosts=1, rows=1, batches=2, interval_ms=1000, start_unix_s=int(time.time()) - 10,
                job_prefix="later-")
    if server.has_bucket:
        await_move(server, options.patience)
        print(f"sent to the bucket: {server.bytes('sent') / 2**20:.2f} MiB")
    _, disk = server.settle()
    print(f"{name}: {loaded['samples']:,} samples, {disk / 2**20:.2f} MiB on the disk, with a ballast of 192 MiB")
    print(f"{'':34}{'ms':>12}{'requests':>10}{'MiB':>12}{'samples':>14}")
    for title, asked in list(queries.items()) * options.rounds:
        shutil.rmtree(server.pieces, ignore_errors=True)
        drop_caches()
        server.start()
        row(f"{name} cold, {title}", ask(server, asked))
        row(f"{name} warm, {title}", ask(server, asked))
        server.stop()
        if not server.has_bucket:
            continue
        server.start()
        row(f"pieces on the disk, {title}", ask(server, asked))
        server.stop()


if __name__ == "__main__":
    main()
