#!/usr/bin/python3
"""What remote read costs: 400 series of a day out of a collector, beside an export of the same by VictoriaMetrics.

    tests/bench/bench_remote_read.py [--build build/bench] [--rounds 5]

Both get the same 2.3 million samples by remote write, one every 15 s, and their final form on the disk. Each answer is
read to its end and not decoded. Processor time is that of the server.
"""

import argparse
import http.client
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import servers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERIES, SAMPLES, SPACING_MS = 400, 5760, 15_000
SERIES_A_REQUEST, SAMPLES_A_REQUEST = 40, 720


def packed(message):
    """Snappy's block format with literals alone (google/snappy, format_description.txt)."""
    out, rest = b"", len(message)
    while rest >= 128:
        out += bytes([rest & 127 | 128])
        rest >>= 7
    out += bytes([rest])
    for at in range(0, len(message), 65536):
        chunk = message[at : at + 65536]
        out += b"\xf4" + struct.pack("<H", len(chunk) - 1) + chunk
    return out


def messages(directory):
    """Modules made from the protos."""
    subprocess.run(["protoc", f"-I{ROOT}/proto", f"--python_out={directory}",
                    "interop/prometheus_remote.proto", "interop/prometheus_read.proto"],
                   cwd=ROOT / "proto", check=True)  # fmt: skip
    sys.path.insert(0, directory)
    from interop import prometheus_read_pb2, prometheus_remote_pb2

    return prometheus_remote_pb2, prometheus_read_pb2


def labels_of(number):
    return {"__name__": f"bench_metric_{number % 20}", "instance": f"host-{number // 20}:9100", "job": "bench"}


def write_requests(remote_pb2, begin_ms):
    """In the order of time. Values walk, as gauges do, with two decimals."""
    random_ = random.Random(1)
    values = [random_.randrange(100_000) / 100 for _ in range(SERIES)]
    for first in range(0, SAMPLES, SAMPLES_A_REQUEST):
        for group in range(0, SERIES, SERIES_A_REQUEST):
            request = remote_pb2.WriteRequest()
            for number in range(group, group + SERIES_A_REQUEST):
                series = request.timeseries.add()
                for name, value in sorted(labels_of(number).items()):
                    series.labels.add(name=name, value=value)
                for i in range(first, first + SAMPLES_A_REQUEST):
                    values[number] = round(values[number] + random_.randrange(-100, 101) / 100, 2)
                    series.samples.add(timestamp=begin_ms + i * SPACING_MS, value=values[number])
            yield packed(request.SerializeToString())


def send(port, bodies):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for body in bodies:
        connection.request("POST", "/api/v1/write", body,
                           {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"})  # fmt: skip
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 204):
            raise RuntimeError(f"a write was answered with {answer.status}: {text[:300]}")
    connection.close()


def fetch(port, method, path, body=None, headers=None):
    """(seconds, bytes) of an answer."""
    begin = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    size = 0
    while chunk := answer.read(1 << 20):
        size += len(chunk)
    if answer.status != 200:
        raise RuntimeError(f"{path} was answered with {answer.status}")
    connection.close()
    return time.monotonic() - begin, size


def read_request(read_pb2, begin_ms, chunks):
    request = read_pb2.ReadRequest()
    query = request.queries.add(start_timestamp_ms=begin_ms, end_timestamp_ms=begin_ms + SAMPLES * SPACING_MS)
    query.matchers.add(type=2, name=b"__name__", value=b"bench_metric_.*")
    if chunks:
        request.accepted_response_types.append(1)
    return packed(request.SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
        measure(options, directory)


def measure(options, directory):
    remote_pb2, read_pb2 = messages(directory)
    begin_ms = (int(time.time()) - 86_400 - 3600) * 1000
    binary = ROOT / "build/tools/usr/bin" / servers.TOOLS["victoriametrics"]
    collector = servers.Collector(f"{directory}/collector", options.build)
    peer = servers.VictoriaMetrics(f"{directory}/victoriametrics", options.build, binary)
    found = {}
    try:
        for server in (collector, peer):
            server.start()
            send(server.http_port, write_requests(remote_pb2, begin_ms))
        collector.stop()  # A clean end seals all rows.
        collector.start()
        peer.merge()
        window = f"start={begin_ms // 1000}&end={(begin_ms + SAMPLES * SPACING_MS) // 1000}"
        match = "match[]=%7B__name__%3D~%22bench_metric_.%2A%22%7D"
        headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf",
                   "X-Prometheus-Remote-Read-Version": "0.1.0"}  # fmt: skip
        asks = [
            ("remote read, chunks", collector, ("POST", "/api/v1/read", read_request(read_pb2, begin_ms, True), headers)),
            ("remote read, samples", collector, ("POST", "/api/v1/read", read_request(read_pb2, begin_ms, False), headers)),
            ("VictoriaMetrics, export", peer, ("GET", f"/api/v1/export?{match}&{window}")),
            ("VictoriaMetrics, native export", peer, ("GET", f"/api/v1/export/native?{match}&{window}")),
        ]
        for _ in range(options.rounds):
            for title, server, ask in asks:
                before = server.cpu_seconds()
                seconds, size = fetch(server.http_port, *ask)
                found.setdefault(title, []).append((seconds, server.cpu_seconds() - before, size))
    finally:
        collector.kill()
        peer.kill()
    print(f"{SERIES} series, {SERIES * SAMPLES:,} samples; medians of {options.rounds}")
    print(f"{'':32}{'seconds':>10}{'CPU s':>10}{'MB':>8}")
    for title, values in found.items():
        seconds, cpu, size = (statistics.median(v[i] for v in values) for i in range(3))
        print(f"{title:32}{seconds:10.3f}{cpu:10.3f}{size / 1e6:8.1f}")


if __name__ == "__main__":
    main()
