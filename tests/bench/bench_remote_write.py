#!/usr/bin/python3
"""What remote write costs: into a collector and into VictoriaMetrics, in turns, on the same requests.

    tests/bench/bench_remote_write.py [--build build/bench] [--rounds 3] [--batches 300] [--connections 2]

Some connections send 2,024 samples a request, each request after the answer to the one before: one sample
of 2,024 series, as Prometheus sends them, or 23 samples of 88 series, as after a pause. The collector answers once the samples are synced; VictoriaMetrics does not wait for that.
Processor time is that of the server, until all is answered and until all has its final form on the disk.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import servers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = {"1 sample of 2,024 series": (23, 1), "23 samples of 88 series": (1, 23)}  # Hosts, rows.


class RemoteWrittenCollector(servers.Collector):
    loader = "tacho-bench-remote-write"

    def load_address(self):
        return {"port": self.http_port}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=300, help="requests of each connection")
    parser.add_argument("--connections", type=int, default=2)
    options = parser.parse_args()
    binary = ROOT / "build/tools/usr/bin" / servers.TOOLS["victoriametrics"]
    for title, (hosts, rows) in SHAPES.items():
        measure(title, hosts, rows, binary, options)


def measure(title, hosts, rows, binary, options):
    found = {}
    for number in range(options.rounds):
        for kind in ("collector", "victoriametrics"):
            with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
                server = (RemoteWrittenCollector(directory, options.build) if kind == "collector"
                          else servers.VictoriaMetrics(directory, options.build, binary))
                try:
                    server.start()
                    idle = server.cpu_seconds()
                    report = server.load(agents=options.connections, hosts=options.connections * hosts, together=1, rows=rows,
                                         batches=options.batches)
                    load = server.cpu_seconds() - idle
                    peak = server.peak_resident_bytes()
                    millions = report["samples"] / 1e6
                    figures = {"CPU s/Msample until answered": load / millions,
                               "samples/s": report["samples"] / report["seconds"],
                               "answer p99 ms": report["ack_p99_ms"], "peak MiB": peak / 2**20}
                    if kind == "collector":
                        settled = server.settle()[0]
                    else:
                        server.merge()
                        settled = server.cpu_seconds()
                    figures["CPU s/Msample until settled"] = (settled - idle) / millions
                finally:
                    server.kill()
            for name, value in figures.items():
                found.setdefault(name, {}).setdefault(kind, []).append(value)
            print(f"round {number + 1}, {kind}: {report['samples']:,} samples", file=sys.stderr)
    print(f"{title:32}{'collector':>12}{'VM':>12}{'ratio':>8}   medians of {options.rounds}")
    for name, values in found.items():
        ours, theirs = (statistics.median(values[kind]) for kind in ("collector", "victoriametrics"))
        print(f"{name:32}{ours:12.3f}{theirs:12.3f}{ours / theirs:8.2f}")


if __name__ == "__main__":
    main()
