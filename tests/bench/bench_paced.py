#!/usr/bin/python3
"""Agents at one row a second, as in life, beside VictoriaMetrics in the same run.

Messages are spread evenly over time, so that they share no wake-up, no sync and no acknowledgement.
What a fleet costs as fast as it can be taken in, and everything else, is measured by
tests/bench/peers.
"""

import argparse
import pathlib
import sys

import servers
from figures import Figures

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANY_AGENTS = 5000  # More connections than cores, by far.


def measure(server, figures, agents, seconds):
    server.start()
    cpu, resident = server.cpu_seconds(), server.resident_bytes()
    report = server.load(agents=agents, rows=1, batches=seconds, rate=1)
    cpu, resident = server.cpu_seconds() - cpu, server.resident_bytes() - resident
    server.stop()

    def add(name, unit, value, title, bar=""):
        figures.add(f"paced.{agents}_agents.{name}", unit, server.name, value,
                    f"{agents:,} agents: {title}", bar)

    add("core", "%", 100 * cpu / report["seconds"], "core",
        "<= 100" if agents == MANY_AGENTS else "")
    add("cpu_load", "s/Msample", cpu / report["samples"] * 1e6, "CPU")
    add("resident_growth", "KiB/agent", resident / agents / 1024, "resident growth")
    add("behind", "s", max(0, report["seconds"] - seconds), "late at the end")
    add("ack_p50", "ms", report["ack_p50_ms"], "acknowledged after, p50")
    add("ack_p99", "ms", report["ack_p99_ms"], "acknowledged after, p99")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench",
                        help="a Release build with the target 'benchmarks'")
    parser.add_argument("--json", type=pathlib.Path, help="also write one JSON object per figure")
    parser.add_argument("--quick", action="store_true", help="half a minute, for a first look")
    parser.add_argument("--no-peer", action="store_true", help="leave VictoriaMetrics out")
    return parser.parse_args()


def main():
    options = parse_options()
    makers = servers.make_all(ROOT, options.build, [] if options.no_peer else ["victoriametrics"])
    seconds = 10 if options.quick else 30
    figures = Figures()
    for agents in (200,) if options.quick else (200, MANY_AGENTS):
        print(f"bench_paced: {agents} agents for {seconds} s", file=sys.stderr, flush=True)
        servers.take_turns(makers, lambda s, a=agents: measure(s, figures, a, seconds))
    print(figures.markdown())
    if options.json:
        figures.write_json(options.json)


if __name__ == "__main__":
    main()
