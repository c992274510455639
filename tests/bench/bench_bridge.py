#!/usr/bin/python3
"""A million samples of one series over gRPC, and over HTTP through the bridge, from one collector.

The forms take turns. The clients throw away what they read, so that the time is that of the
collector and of the transport; JSON is not parsed either. Before that all samples of each form are
compared with those of gRPC.
"""

import argparse
import http.client
import os
import pathlib
import statistics
import sys
import tempfile
import time

from figures import Figures, OURS

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = 1_000_000
ROWS = 10_000
PATH = "/tacho.v1.Query/Range"
# How often a form asks in a round: the kernel counts CPU in hundredths of a second.
FORMS = {"grpc": 10, "proto": 10, "json": 1}
TITLES = {"grpc": "gRPC", "proto": "HTTP, application/connect+proto", "json": "HTTP, JSON a line"}


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def envelopes(body):
    """The messages of a stream of Connect, without its end."""
    found, at = [], 0
    while at < len(body):
        size = int.from_bytes(body[at + 1 : at + 5], "big")
        if body[at] == 0:
            found.append(body[at + 5 : at + 5 + size])
        at += 5 + size
    return found


class Reader:
    """Asks one collector in each form, over connections that stay open."""

    def __init__(self, collector, client, query_pb2):
        selector = query_pb2.Selector(job="million", metrics=["loss"])
        request = query_pb2.RangeRequest(selector=selector, packed=True)
        self._message = request.SerializeToString()
        self._channel = client.connect(collector.address)
        self._call = self._channel.unary_stream(PATH)
        self._http = http.client.HTTPConnection("127.0.0.1", collector.http)

    def reconnect(self):
        """The collector may have closed the connection while another form had its turn."""
        self._http.close()

    def grpc(self):
        return list(self._call(self._message))

    def _post(self, kind, body):
        self._http.request("POST", PATH, body, {"Content-Type": kind})
        answer = self._http.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{kind}: {answer.status} {answer.read()!r}")
        return answer.read()

    def proto(self):
        size = len(self._message).to_bytes(4, "big")
        return self._post("application/connect+proto", b"\0" + size + self._message)

    def json(self):
        body = b'{"selector": {"job": "million", "metrics": ["loss"]}, "packed": true}'
        return self._post("application/json", body)


def fill(collector, client):
    stream = client.Stream(collector.address, "filler", 1, 1)
    stream.send(client.layout(1, "million", "host-1", [("loss", "1")], 0, 0, True))
    now = time.time_ns() - SAMPLES * 10**6
    for n in range(SAMPLES // ROWS):
        rows = range(n * ROWS, (n + 1) * ROWS)
        times = [now + row * 10**6 for row in rows]
        values = [2.0 / (1 + row * 1e-5) + 1e-3 * (row * 7919 % 1000) for row in rows]
        stream.send(client.batch(n + 1, 1, times, values, list(rows)))
    if not stream.wait_durable(SAMPLES // ROWS):
        raise RuntimeError(f"the samples were not taken: {stream.error}")
    stream.close()


def samples_of(messages):
    """(step, value) of each sample, however messages divide them."""
    found = []
    for message in messages:
        for piece in (message, *message.more):
            found += zip(piece.points.steps, piece.points.values)
    return found


def compare(reader, json_format, query_pb2):
    parse = query_pb2.RangeResponse.FromString
    wanted = samples_of(map(parse, reader.grpc()))
    if len(wanted) != SAMPLES:
        raise RuntimeError(f"gRPC answers {len(wanted)} samples")
    if samples_of(map(parse, envelopes(reader.proto()))) != wanted:
        raise RuntimeError("HTTP answers something else than gRPC")
    lines = (json_format.Parse(line, query_pb2.RangeResponse()) for line in reader.json().splitlines())
    if samples_of(lines) != wanted:
        raise RuntimeError("JSON says something else than gRPC")


def measure(reader, pid, rounds, figures):
    costs = {}
    for _ in range(rounds):
        for form, times in FORMS.items():
            reader.reconnect()
            cpu, began = cpu_seconds(pid), time.perf_counter()
            for _ in range(times):
                answer = getattr(reader, form)()
            took, cpu = time.perf_counter() - began, cpu_seconds(pid) - cpu
            size = sum(map(len, answer)) if form == "grpc" else len(answer)
            costs.setdefault(form, []).append((took / times, cpu / times, size))
    for form, found in costs.items():
        title = f"a million samples, {TITLES[form]}"
        for took, cpu, size in found:
            figures.add(f"bridge.{form}.time", "s", OURS, took, title + ": time")
            figures.add(f"bridge.{form}.cpu", "s", OURS, cpu, title + ": CPU of the collector")
            figures.add(f"bridge.{form}.bytes", "MB", OURS, size / 1e6, title + ": bytes")
        fastest = min(took for took, _, _ in found)
        slowest = max(took for took, _, _ in found)
        figures.note(f"{TITLES[form]}: {fastest:.3f} to {slowest:.3f} s in {rounds} rounds")
    ratio = statistics.median(c for _, c, _ in costs["proto"]) / statistics.median(
        c for _, c, _ in costs["grpc"]
    )
    figures.note(f"CPU of HTTP with protobuf / gRPC: {ratio:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/bench", help="directory of the build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    build = (ROOT / options.build).resolve()
    os.environ.setdefault("TACHO_COLLECTOR", str(build / "server/tacho-collector"))
    os.environ.setdefault("TACHO_STUBS", str(build / "tests/integration/stubs"))
    sys.path.insert(0, str(ROOT / "tests/integration"))
    import client  # It needs the variables above, and makes the stubs importable.
    import harness
    from google.protobuf import json_format
    from tacho.v1 import query_pb2

    figures = Figures()
    with tempfile.TemporaryDirectory() as directory:
        collector = harness.Collector(directory, "storage: {retention: 0s}\n").start()
        try:
            fill(collector, client)
            reader = Reader(collector, client, query_pb2)
            compare(reader, json_format, query_pb2)
            measure(reader, collector.program.process.pid, options.rounds, figures)
        finally:
            collector.stop()
    print(figures.markdown())
    if options.json:
        figures.write_json(options.json)


if __name__ == "__main__":
    main()
