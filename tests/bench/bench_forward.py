#!/usr/bin/python3
"""What forwarding costs a collector: the same load with a receiver, a real VictoriaMetrics, and without, in turns.

    tests/bench/bench_forward.py [--build build/bench] [--rounds 3] [--batches 30]

Hosts of 88 series send rows over gRPC, at a rate that the receiver can follow. Processor time is that of the
collector from the first row until everything is stored and taken by the receiver; without one, over as long a time,
because conditions and other work go on meanwhile. Both runs read /metrics as often. The time of the forwarding thread
alone is shown beside the difference, which two runs of the same collector change by a third.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import servers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAG = 'tacho_forward_lag_seconds{receiver="peer"}'
SENT = 'tacho_forward_samples_total{receiver="peer"}'


class ForwardingCollector(servers.Collector):
    """With a receiver at `port`; 0 is none."""

    def __init__(self, directory, build, port):
        super().__init__(directory, build)
        self.config = self.directory / "collector.yaml"
        forward = f"forward: [{{name: peer, url: 'http://127.0.0.1:{port}/api/v1/write'}}]\n"
        self.config.write_text(forward if port else "")

    def command(self):
        return [*super().command(), "--config", self.config]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--batches", type=int, default=30, help="messages of each host, of ten rows")
    parser.add_argument("--rate", type=int, default=20, help="rows a second of each host")
    options = parser.parse_args()
    found = {}
    for number in range(options.rounds):
        seconds = looks = 0
        for forwards in (True, False):
            with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
                figures, looks = measure(directory, forwards, seconds, looks, options)
                seconds = figures["seconds"]
                for name, value in figures.items():
                    found.setdefault(name, {}).setdefault(forwards, []).append(value)
        print(f"round {number + 1}: CPU s/Msample with and without "
              f"{[found['CPU s/Msample'][one][-1] for one in (True, False)]}", file=sys.stderr)
    print(f"{'':28}{'forwarding':>12}{'without':>12}{'difference':>12}   medians of {options.rounds}")
    for name, values in found.items():
        on, off = (statistics.median(values[one]) for one in (True, False))
        print(f"{name:28}{on:12.3f}{off:12.3f}{on - off:12.3f}")


def measure(directory, forwards, at_least_s, looks, options):
    """The figures, and how often /metrics was read."""
    binary = ROOT / "build/tools/usr/bin" / servers.TOOLS["victoriametrics"]
    peer = servers.VictoriaMetrics(f"{directory}/peer", options.build, binary)
    collector = None
    try:
        if forwards:
            peer.start()
        collector = ForwardingCollector(f"{directory}/collector", options.build, peer.http_port)
        collector.start()
        begin, at_begin = time.monotonic(), collector.cpu_seconds()
        report = collector.load(agents=options.hosts, hosts=options.hosts, rows=10, batches=options.batches,
                                rate=options.rate)
        samples = report["samples"]
        looked = 0
        while forwards or looked < looks:
            figures = collector.metrics()  # Each look costs the collector a page of metrics.
            looked += 1
            if forwards and figures[SENT] >= samples and figures[LAG] == 0:
                break
            time.sleep(1)
        time.sleep(max(0.0, begin + at_least_s - time.monotonic()))
        seconds = time.monotonic() - begin
        used = collector.cpu_seconds() - at_begin
        thread = collector.thread_cpu_seconds("forward")
        result = {"CPU s/Msample": used / samples * 1e6, "of the thread": thread / samples * 1e6,
                  "seconds": seconds, "Msamples": samples / 1e6,
                  "resident MiB, highest": collector.peak_resident_bytes() / 2**20}
        if forwards:
            peer.get("/internal/force_flush")
            stored = sum(value for name, value in peer.metrics().items() if name.startswith("vm_rows_inserted_total"))
            if stored < samples:
                raise RuntimeError(f"the receiver took {stored:.0f} of {samples} samples")
        return result, looked
    finally:
        peer.kill()
        if collector is not None:
            collector.kill()


if __name__ == "__main__":
    main()
