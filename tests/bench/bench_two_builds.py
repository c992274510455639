#!/usr/bin/python3
"""What a change costs a collector: the collectors of two builds take the same fleet in, in turns.

200 agents on as many connections send 88 series each, as fast as they are acknowledged. Each turn begins with an empty
store. The build needs the targets tacho-collector and tacho-bench-fleet; of the other one only its collector is used.
Printed are medians, and the median of the ratios of each round.
"""

import argparse
import pathlib
import statistics
import tempfile

import servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIGURES = {"CPU s/Msample until acknowledged": 4, "... until settled": 4, "acknowledged after, p50, ms": 1,
           "acknowledged after, p99, ms": 1, "resident, MiB": 1, "threads": 0}


class Collector(servers.Collector):
    def __init__(self, directory, build, binary, config):
        super().__init__(directory, build)
        self.binary = binary
        self.config = config

    def command(self):
        return [self.binary, *super().command()[1:], *(["--config", self.config] if self.config else [])]

    def threads(self):
        return len(list(pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()))


def turn(binary, build, rows, options):
    with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
        server = Collector(directory, build, binary, options.config)
        try:
            server.start()
            before = server.cpu_seconds()
            report = server.load(agents=200, rows=rows, batches=options.rows // rows)
            cpu = server.cpu_seconds() - before
            resident = server.resident_bytes() / 2**20
            threads = server.threads()
            settled, _ = server.settle()
        finally:
            server.kill()
    millions = report["samples"] / 1e6
    return [cpu / millions, (settled - before) / millions, report["ack_p50_ms"], report["ack_p99_ms"], resident, threads]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=pathlib.Path, help="the tacho-collector of the other build")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench", help="a Release build")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=360, help="that each agent sends")
    parser.add_argument("--config", type=pathlib.Path, help="of both collectors")
    options = parser.parse_args()
    ours = options.build / "server/tacho-collector"
    for rows in (1, 10):
        turns = {ours: [], options.other: []}
        for number in range(options.rounds):
            # Each is first in every second round, because a turn leaves warm caches behind.
            for binary in sorted(turns, reverse=number % 2 == 1):
                turns[binary].append(turn(binary.resolve(), options.build, rows, options))
        print(f"{rows} row{'s' if rows > 1 else ''} a message, {options.rounds} rounds")
        print(f"{'':36}{'this':>10}{'other':>10}{'ratio':>8}   of the rounds")
        for index, (name, digits) in enumerate(FIGURES.items()):
            this, other = ([one[index] for one in turns[binary]] for binary in (ours, options.other))
            ratios = [a / b for a, b in zip(this, other)]
            print(f"{name:36}{statistics.median(this):10.{digits}f}{statistics.median(other):10.{digits}f}"
                  f"{statistics.median(ratios):8.3f}   {min(ratios):.3f} to {max(ratios):.3f}", flush=True)


if __name__ == "__main__":
    main()
