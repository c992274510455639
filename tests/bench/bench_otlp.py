#!/usr/bin/python3
"""What OTLP over gRPC costs a collector, beside remote write into VictoriaMetrics, in turns.

    tests/bench/bench_otlp.py [--build build/bench] [--rounds 3] [--requests 300] [--connections 2]

Some connections send requests of one point of 2,024 series: 23 hosts with 88 gauges each. Each sends the next request
after the answer to the one before. The collector answers once the points are synced; VictoriaMetrics does not wait for
that. Processor time is that of the server.
"""

import argparse
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import servers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS, METRICS = 23, 88
EXPORT = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


def messages(directory):
    """Modules made from the protos."""
    names = ("otlp_common", "otlp_resource", "otlp_metrics", "otlp_metrics_service")
    subprocess.run(["protoc", f"-I{ROOT}/proto", f"--python_out={directory}", *(f"interop/{n}.proto" for n in names)],
                   cwd=ROOT / "proto", check=True)  # fmt: skip
    sys.path.insert(0, directory)
    from interop import otlp_metrics_service_pb2

    return otlp_metrics_service_pb2.ExportMetricsServiceRequest


class Requests:
    """The requests of one connection, as bytes. A request is made once; then only times and values change, which
    have a fixed length."""

    def __init__(self, kind, number):
        request = kind()
        for host in range(HOSTS):
            resource = request.resource_metrics.add()
            for name, value in (("service.name", "bench"), ("host.name", f"host-{number}-{host}")):
                resource.resource.attributes.add(key=name).value.string_value = value
            metrics = resource.scope_metrics.add().metrics
            for i in range(METRICS):
                metric = metrics.add(name=f"bench.metric.{i % 11}", unit="1")
                point = metric.gauge.data_points.add(time_unix_nano=1, as_double=i + 1000 * host + 0.25)
                point.attributes.add(key="chip").value.string_value = str(i // 11)
        self.bytes = bytearray(request.SerializeToString())
        # NumberDataPoint: time_unix_nano is field 3, as_double field 4, both of 8 bytes.
        self.places = []
        at = -1
        while (at := self.bytes.find(b"\x19" + struct.pack("<Q", 1) + b"\x21", at + 1)) >= 0:
            self.places.append(at)
        assert len(self.places) == HOSTS * METRICS, len(self.places)
        self.random = random.Random(number)
        self.values = [self.random.randrange(100_000) / 100 for _ in self.places]

    def next(self, time_ns):
        for i, at in enumerate(self.places):
            self.values[i] = round(self.values[i] + self.random.randrange(-100, 101) / 100, 2)
            struct.pack_into("<Q", self.bytes, at + 1, time_ns + i // METRICS)
            struct.pack_into("<d", self.bytes, at + 10, self.values[i])
        return bytes(self.bytes)


def send(port, requests, failures):
    try:
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            export = channel.unary_unary(EXPORT)
            for request in requests:
                if answer := export(request, timeout=60):
                    raise RuntimeError(f"points are refused: {answer}")
    except Exception as error:
        failures.append(error)


def measure_ours(options, kind, directory):
    server = servers.Collector(directory, options.build)
    begin_ns = time.time_ns() - options.requests * 10**9
    all_requests = []
    for number in range(options.connections):
        made = Requests(kind, number)
        all_requests.append([made.next(begin_ns + i * 10**9) for i in range(options.requests)])
    try:
        server.start()
        idle, begin, failures = server.cpu_seconds(), time.monotonic(), []
        threads = [threading.Thread(target=send, args=(server.grpc_port, one, failures)) for one in all_requests]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        seconds, load = time.monotonic() - begin, server.cpu_seconds() - idle
        millions = options.connections * options.requests * HOSTS * METRICS / 1e6
        settled = server.settle()[0] - idle
        return {"CPU s/Msample until answered": load / millions, "CPU s/Msample until settled": settled / millions,
                "samples/s": millions * 1e6 / seconds}  # fmt: skip
    finally:
        server.kill()


def measure_peer(options, directory):
    binary = ROOT / "build/tools/usr/bin" / servers.TOOLS["victoriametrics"]
    server = servers.VictoriaMetrics(directory, options.build, binary)
    try:
        server.start()
        idle = server.cpu_seconds()
        report = server.load(agents=options.connections, hosts=options.connections * HOSTS, together=1, rows=1,
                             batches=options.requests)  # fmt: skip
        load, millions = server.cpu_seconds() - idle, report["samples"] / 1e6
        server.merge()
        return {"CPU s/Msample until answered": load / millions,
                "CPU s/Msample until settled": (server.cpu_seconds() - idle) / millions,
                "samples/s": report["samples"] / report["seconds"]}  # fmt: skip
    finally:
        server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=300, help="of each connection")
    parser.add_argument("--connections", type=int, default=2)
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
        kind = messages(directory)
        for number in range(options.rounds):
            for name, value in measure_ours(options, kind, f"{directory}/ours-{number}").items():
                found.setdefault(name, ([], []))[0].append(value)
            for name, value in measure_peer(options, f"{directory}/peer-{number}").items():
                found[name][1].append(value)
            print(f"round {number + 1}: {[values[-1] for values in found['CPU s/Msample until answered']]}", file=sys.stderr)
    print(f"{options.connections} connections{'':17}{'collector':>12}{'VM':>12}{'ratio':>8}   medians of {options.rounds}")
    for name, values in found.items():
        ours, theirs = (statistics.median(one) for one in values)
        print(f"{name:30}{ours:12.3f}{theirs:12.3f}{ours / theirs:8.2f}")


if __name__ == "__main__":
    main()
