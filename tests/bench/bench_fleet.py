#!/usr/bin/python3
"""What a fleet costs the collector, beside VictoriaMetrics in the same run.

200 agents on 200 connections send 88 series each, as fast as they are acknowledged: one row a
message, then ten. The same rows go to VictoriaMetrics by remote write, one POST a message, on as
many connections. The servers take turns; figures are medians over the repetitions.

CPU is user and system time of the server's process. "load" is from before the first connection to
the last acknowledgement. "all" goes on until everything is sealed and closed, and for ours includes
a second start in which RocksDB writes out its log; for the peer it ends with the first stop, its
final merge left out.
"""

import argparse
import os
import pathlib
import resource
import shutil
import sys
import tempfile

import servers
from figures import Figures
from servers import SERIES_PER_HOST

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = "victoriametrics"
MANY_AGENTS = 5000  # More connections than cores, by far.

BARS = {
    ("cpu_load", 1): "<= 0.30 and <= 0.20 x peer",
    ("cpu_all", 1): "<= 0.30 and <= 0.20 x peer",
    ("cpu_load", 10): "<= 0.075 and <= 0.125 x peer",
    ("cpu_all", 10): "<= 0.075 and <= 0.125 x peer",
    ("disk", 1): "<= 0.75 x peer",
    ("disk", 10): "<= 0.75 x peer",
}


def measure(server, figures, options, rows):
    """One load on a fresh server, until it has settled on disk."""
    server.start()
    idle_cpu, idle_bytes = server.cpu_seconds(), server.resident_bytes()
    report = server.load(agents=options.agents, rows=rows, batches=options.rows // rows,
                         window=options.window)
    load_cpu, loaded_bytes = server.cpu_seconds() - idle_cpu, server.resident_bytes()
    millions = report["samples"] / 1e6
    all_cpu = server.stop() - idle_cpu
    unsettled = servers.disk_bytes(server.directory / "data")
    settle_cpu = server.settle()
    if server.name != PEER:
        all_cpu += settle_cpu

    def add(name, unit, value):
        figures.add(f"ingest.{rows}_row.{name}", unit, server.name, value,
                    BARS.get((name, rows), ""))

    add("cpu_load", "s/Msample", load_cpu / millions)
    add("cpu_all", "s/Msample", all_cpu / millions)
    add("samples_per_second", "1/s", report["samples"] / report["seconds"])
    add("ack_p50", "ms", report["ack_p50_ms"])
    add("ack_p99", "ms", report["ack_p99_ms"])
    add("client_cpu", "s/Msample", report["client_cpu_seconds"] / millions)
    add("disk", "B/sample", servers.disk_bytes(server.directory / "data") / report["samples"])
    add("disk_unsettled", "B/sample", unsettled / report["samples"])
    add("resident", "B/series", loaded_bytes / (options.agents * SERIES_PER_HOST))
    add("resident_growth", "B/series",
        (loaded_bytes - idle_bytes) / (options.agents * SERIES_PER_HOST))


def measure_columns(server, figures, options):
    """Bytes of the stored values and times alone, in columns of the length that the server likes."""
    server.start()
    server.load(agents=options.agents, rows=64, batches=32, window=options.window)
    size, samples = server.stored()
    figures.add("storage.values_and_times", "B/sample", server.name, size / samples)
    server.stop()


def measure_paced(server, figures, agents, seconds):
    """Every agent sends a row a second, evenly spread: wake-ups cannot be shared."""
    server.start()
    cpu, resident = server.cpu_seconds(), server.resident_bytes()
    report = server.load(agents=agents, rows=1, batches=seconds, rate=1)
    cpu, resident = server.cpu_seconds() - cpu, server.resident_bytes() - resident
    server.stop()

    def add(name, unit, value, bar=""):
        figures.add(f"paced.{agents}_agents.{name}", unit, server.name, value, bar)

    add("cpu_load", "s/Msample", cpu / report["samples"] * 1e6)
    add("core", "%", 100 * cpu / report["seconds"], "<= 100" if agents == MANY_AGENTS else "")
    add("resident_growth", "KiB/agent", resident / agents / 1024)
    add("behind", "s", max(0, report["seconds"] - seconds))
    add("ack_p50", "ms", report["ack_p50_ms"])
    add("ack_p99", "ms", report["ack_p99_ms"])


def measure_million(server, figures, options):
    """A million series on 100 connections, a few rows of each."""
    agents, hosts_per_agent = 100, 114
    series = agents * hosts_per_agent * SERIES_PER_HOST
    for rows in (1, options.million_rows):
        server.start()
        server.load(agents=agents, hosts_per_agent=hosts_per_agent, rows=1, batches=rows,
                    window=options.window)
        figures.add(f"million_series.{rows}_rows.resident", "B/series", server.name,
                    server.resident_bytes() / series, "<= 300")
        server.stop()
        shutil.rmtree(server.directory / "data")


def run_all(make_servers, figures, options):
    for repetition in range(options.repetitions):
        say(f"repetition {repetition + 1} of {options.repetitions}, "
            f"load average {os.getloadavg()[0]:.1f}")
        for rows in (1, 10):
            each(make_servers, lambda s, r=rows: measure(s, figures, options, r))
    say("bytes of values and times")
    each(make_servers, lambda s: measure_columns(s, figures, options))
    for agents in (options.agents, MANY_AGENTS):
        say(f"{agents} agents, one row a second for {options.paced_seconds} s")
        each(make_servers,
             lambda s, a=agents: measure_paced(s, figures, a, options.paced_seconds))
        if options.quick:
            return
    say("a million series")
    each(make_servers, lambda s: measure_million(s, figures, options))


def each(make_servers, measurement):
    for make in make_servers:
        with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
            server = make(directory)
            try:
                measurement(server)
            finally:
                server.kill()


def say(text):
    print(f"bench_fleet: {text}", file=sys.stderr, flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench",
                        help="a Release build with the target 'benchmarks'")
    parser.add_argument("--json", type=pathlib.Path, help="write one object a figure")
    parser.add_argument("--quick", action="store_true", help="a minute, for a first look")
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--rows", type=int, help="rows of each agent (360)")
    parser.add_argument("--window", type=int, default=16,
                        help="messages of an agent on their way at once; ours only")
    parser.add_argument("--repetitions", type=int, help="3")
    parser.add_argument("--no-peer", action="store_true", help="leave VictoriaMetrics out")
    options = parser.parse_args()
    options.rows = options.rows or (120 if options.quick else 360)
    options.repetitions = options.repetitions or (1 if options.quick else 3)
    options.paced_seconds = 10 if options.quick else 30
    options.million_rows = 12
    return options


def main():
    options = parse_options()
    make_servers = [lambda d: servers.Collector(d, options.build)]
    binary = servers.find_victoriametrics(ROOT)
    if binary is None and not options.no_peer:
        say("no victoria-metrics: deploy/packages.sh bench unpacks it; going on without")
    if binary is not None and not options.no_peer:
        make_servers.append(lambda d: servers.VictoriaMetrics(d, options.build, binary))
    # Children inherit it: a server needs a descriptor for each agent.
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    figures = Figures()
    run_all(make_servers, figures, options)
    figures.print_table(PEER)
    if options.json:
        figures.write_json(options.json, PEER)


if __name__ == "__main__":
    main()
