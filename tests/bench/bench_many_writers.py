#!/usr/bin/python3
"""What memory a collector takes while many senders push large requests at once, by remote write.

    tests/bench/bench_many_writers.py [--build build/bench] [--senders 200] [--requests 2] [--memory 1GiB]

Each sender has a job of 1,000 series and sends requests of 4 MiB; all begin at the same moment. What is refused with 503
is sent again after Retry-After, as Prometheus does; so is what the collector stops reading. quotas.memory_bytes is set
to --memory; the highest resident memory is to stay below it, and every request is to be taken in the end.
"""

import argparse
import collections
import http.client
import pathlib
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import servers  # noqa: E402
from bench_remote_read import packed  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERIES, BYTES = 1000, 4 << 20
HEADERS = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def request_of(begin_ms):
    """A prometheus.WriteRequest of the job job-0000, near BYTES; other jobs have names of the same length."""
    samples = []
    for i in range(BYTES // SERIES // 18 - 5):
        sample = b"\x09" + struct.pack("<d", i * 0.25) + b"\x10" + varint(begin_ms + i * 1000)
        samples.append(field(2, sample))
    body = b"".join(samples)
    series = []
    for number in range(SERIES):
        labels = (("__name__", f"bench_metric_{number}"), ("instance", "host-0:9100"), ("job", "job-0000"))
        text = b"".join(field(1, field(1, name.encode()) + field(2, value.encode())) for name, value in labels)
        series.append(field(1, text + body))
    return b"".join(series)


class Collector(servers.Collector):
    def __init__(self, directory, build, memory):
        super().__init__(directory, build)
        self.config = self.directory / "collector.yaml"
        self.config.write_text(f"quotas: {{memory_bytes: {memory}}}\n")

    def command(self):
        return [*super().command(), "--config", self.config]


def send(port, number, requests, together, found):
    try:
        bodies = [packed(one.replace(b"job-0000", b"job-%04d" % number)) for one in requests]
        together.wait()
        for body in bodies:
            while True:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
                try:
                    connection.request("POST", "/api/v1/write", body, HEADERS)
                    answer = connection.getresponse()
                    text = answer.read()
                    status, pause = answer.status, float(answer.getheader("Retry-After") or 1)
                except OSError as error:
                    status, pause = type(error).__name__, 1.0
                finally:
                    connection.close()
                found[status] += 1
                if status == 204:
                    break
                if isinstance(status, int) and status != 503:
                    raise RuntimeError(f"{status}: {text[:200]}")
                time.sleep(pause)
    except Exception as error:
        found[f"sender: {error!r}"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--senders", type=int, default=200)
    parser.add_argument("--requests", type=int, default=2, help="of each sender")
    parser.add_argument("--memory", default="1GiB", help="quotas.memory_bytes")
    options = parser.parse_args()
    begin_ms = int(time.time() * 1000) - 3600_000
    requests = [request_of(begin_ms + i * 600_000) for i in range(options.requests)]
    found = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
        server = Collector(f"{directory}/collector", options.build, options.memory)
        try:
            server.start()
            idle, begin = server.resident_bytes(), time.monotonic()
            together = threading.Barrier(options.senders)
            threads = [threading.Thread(target=send, args=(server.http_port, number, requests, together, found))
                       for number in range(options.senders)]  # fmt: skip
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            stored = server.metrics()['tacho_interop_samples_total{protocol="remote_write"}']
            print(f"{options.senders} senders, {options.requests} requests of {len(requests[0]) / 2**20:.1f} MiB each, "
                  f"memory_bytes {options.memory}")
            print(f"resident: at first {idle / 2**20:.0f} MiB, highest {server.peak_resident_bytes() / 2**20:.0f} MiB, "
                  f"of it without file pages at the end {server.resident_bytes('RssAnon') / 2**20:.0f} MiB")
            print(f"answers: {dict(found)}; {stored / 1e6:.1f} million samples stored in "
                  f"{time.monotonic() - begin:.0f} s")
        finally:
            server.kill()


if __name__ == "__main__":
    main()
