#!/usr/bin/python3
"""A day that has been moved into the bucket, beside the same day on the disk: bytes, and one metric of 200 series over
the day, raw and reduced, asked of a process that has just started.

  disk cold     the operating system's cache is dropped before the start (needs root)
  bucket cold   the cache of the bucket is empty
  bucket warm   asked once more: what was fetched is in memory or in bucket.cache_path

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
GETS = "get"


class Collector(servers.Collector):
    def __init__(self, directory, build, endpoint):
        super().__init__(directory, build)
        self.endpoint = endpoint
        self.config = self.directory / "collector.yaml"
        self.keep("10d")

    def keep(self, local_retention):
        """How long days stay on the disk, from the next start on."""
        self.config.write_text(
            f"storage: {{local_retention: {local_retention}}}\n"
            "conditions: {enabled: false}\n"
            f"bucket: {{url: 's3://tests/history', endpoint: '{self.endpoint}', path_style: true,"
            f" cache_path: '{self.directory}/pieces'}}\n")

    def command(self):
        return [*super().command(), "--config", self.config]

    def gets(self):
        requests = (name_value for name_value in self.metrics().items()
                    if name_value[0].startswith("tacho_bucket_requests_total"))
        return sum(value for name, value in requests if f'operation="{GETS}' in name)

    def received(self):
        return self.metrics()['tacho_bucket_bytes_total{direction="received"}']


def drop_caches():
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def ask(server, asked):
    """(milliseconds, requests that read, bytes received, samples) of one query."""
    gets, received = server.gets(), server.received()
    answer = run_query(server, [asked], None, runs=1, max_seconds=300)
    return answer["p50_ms"], server.gets() - gets, server.received() - received, answer["samples"]


def row(title, figures):
    milliseconds, gets, received, samples = figures
    print(f"{title:34}{milliseconds:12.1f}{gets:10.0f}{received / 2**20:12.2f}{samples:14,.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench", help="a Release build")
    parser.add_argument("--hosts", type=int, default=25, help="of 88 series each; a metric has 8 series a host")
    parser.add_argument("--interval", type=int, default=1, help="seconds between two rows of a host")
    parser.add_argument("--patience", type=int, default=900, help="seconds until the day must be in the bucket")
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
            server = Collector(directory, options.build, endpoint)
            try:
                measure(server, options, begin_s, queries)
            finally:
                server.kill()
    finally:
        stop()
        shutil.rmtree(folder, ignore_errors=True)


def measure(server, options, begin_s, queries):
    server.start()
    rows = 60
    loaded = server.load(agents=1, hosts=options.hosts, rows=rows, batches=DAY_S // options.interval // rows,
                         interval_ms=1000 * options.interval, start_unix_s=begin_s)
    print(f"{options.hosts * servers.SERIES_PER_HOST} series, a row every {options.interval} s for a day: {loaded['samples']:,} samples")
    _, local_bytes = server.settle()
    print(f"{'':34}{'ms':>12}{'requests':>10}{'MiB':>12}{'samples':>14}")
    for name, asked in queries.items():
        drop_caches()
        server.start()
        row(f"disk cold, {name}", ask(server, asked))
        row(f"disk warm, {name}", ask(server, asked))
        server.stop()
    server.keep("1d")
    server.start()
    before = server.metrics()
    deadline = time.monotonic() + options.patience
    # The day before may have some rows, too, because the load program gives each host times of its own.
    days = before["tacho_storage_partitions"]
    while (now := server.metrics()).get("tacho_bucket_days", 0) < days or now["tacho_storage_partitions"] > 0:
        if time.monotonic() > deadline:
            kept = {name: value for name, value in now.items() if "bucket" in name or "partitions" in name}
            raise RuntimeError(f"the day is not in the bucket: {kept}\n" + server.log_tail())
        time.sleep(1)
    sent = server.metrics()['tacho_bucket_bytes_total{direction="sent"}']
    server.stop()
    left = servers.disk_bytes(server.data)
    print(f"on the disk {local_bytes / 2**20:.2f} MiB with the day, {left / 2**20:.2f} MiB without; sent to the bucket "
          f"{sent / 2**20:.2f} MiB: {sent / (local_bytes - left):.3f} of what left the disk")
    for name, asked in queries.items():
        shutil.rmtree(server.directory / "pieces", ignore_errors=True)
        drop_caches()
        server.start()
        row(f"bucket cold, {name}", ask(server, asked))
        row(f"bucket warm, {name}", ask(server, asked))
        server.stop()
        server.start()
        row(f"bucket after a restart, {name}", ask(server, asked))
        server.stop()


if __name__ == "__main__":
    main()
