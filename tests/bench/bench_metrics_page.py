#!/usr/bin/python3
"""GET /metrics of a collector with 500 jobs and a million series.

The time is from before the connection to the last byte, plain and packed with gzip, as Prometheus
asks for it. What of it are the aggregates, and what those who append notice, is measured by
build/bench/tests/bench/scrape_bench.
"""

import argparse
import http.client
import pathlib
import sys
import time

import servers
from figures import Figures, OURS

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOBS = 500
HOSTS_PER_JOB = 23
AGENTS = 200
SERIES_PER_HOST = 88
PAUSE_S = 0.2


def get(port, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics", headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"/metrics answered {answer.status}")
    return body


def measure(server, figures, jobs, pages):
    hosts = jobs * HOSTS_PER_JOB
    shape = {"agents": min(AGENTS, hosts), "hosts": hosts, "hosts_per_job": HOSTS_PER_JOB, "rows": 1}
    server.start()
    server.load(batches=2, start_unix_s=int(time.time()) - 2, **shape)
    for name, headers in (("plain", {}), ("gzip", {"Accept-Encoding": "gzip"})):
        times = []
        size = 0
        for _ in range(pages):
            time.sleep(PAUSE_S)
            start = time.perf_counter()
            size = len(get(server.http_port, headers))
            times.append((time.perf_counter() - start) * 1e3)
        times.sort()
        title = f"{jobs} jobs, {hosts * SERIES_PER_HOST:,} series, {name}"
        for share in (50, 90, 99):
            figures.add(f"metrics_page.{name}.p{share}", "ms", OURS,
                        times[(len(times) - 1) * share // 100], f"{title}: p{share}",
                        "<= 100")
        figures.add(f"metrics_page.{name}.longest", "ms", OURS, times[-1], f"{title}: longest")
        figures.add(f"metrics_page.{name}.bytes", "MB", OURS, size / 1e6, f"{title}: bytes")
    server.stop()


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench",
                        help="a Release build with the target 'benchmarks'")
    parser.add_argument("--json", type=pathlib.Path, help="also write one JSON object per figure")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"of {HOSTS_PER_JOB} hosts each")
    parser.add_argument("--pages", type=int, default=60, help="of either kind")
    return parser.parse_args()


def main():
    options = parse_options()
    figures = Figures()
    print(f"bench_metrics_page: {options.pages} pages of either kind", file=sys.stderr, flush=True)
    servers.take_turns(servers.make_all(ROOT, options.build, []),
                       lambda server: measure(server, figures, options.jobs, options.pages))
    print(figures.markdown())
    if options.json:
        figures.write_json(options.json)


if __name__ == "__main__":
    main()
