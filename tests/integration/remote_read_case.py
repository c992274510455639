"""A collector that is asked by remote read, and one that asks for tokens."""
import hashlib
import http.client
import os

import harness
import client
from client import bits
from snappy_literals import packed

from interop import prometheus_read_pb2 as read_pb2

COUNTER = 2  # Of tacho.v1.MetricType.


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def unpacked(body):
    size, at = read_varint(body, 0)
    out = bytearray()
    while at < len(body):
        tag = body[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                more = length - 59
                length = int.from_bytes(body[at : at + more], "little")
                at += more
            out += body[at : at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | body[at]
            at += 1
        else:
            length, bytes_ = (tag >> 2) + 1, 2 if tag & 3 == 2 else 4
            offset = int.from_bytes(body[at : at + bytes_], "little")
            at += bytes_
        for _ in range(length):
            out.append(out[-offset])
    assert len(out) == size
    return bytes(out)


class RemoteReadCase(harness.TestCase):
    config = ""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, self.config))

    def post(self, body, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=60)
        connection.request(
            "POST", "/api/v1/read", body,
            {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf",
             "X-Prometheus-Remote-Read-Version": "0.1.0", **(headers or {})})  # fmt: skip
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    def read(self, *matchers, begin_ms=0, end_ms=1 << 60, headers=None):
        """{sorted labels: [(ms, bits)]} of one query."""
        request = read_pb2.ReadRequest()
        query = request.queries.add(start_timestamp_ms=begin_ms, end_timestamp_ms=end_ms)
        for kind, name, value in matchers:
            query.matchers.add(type=kind, name=name.encode(), value=value.encode())
        status, body = self.post(packed(request.SerializeToString()), headers)
        self.assertEqual(status, 200, body)
        response = read_pb2.ReadResponse.FromString(unpacked(body))
        self.assertEqual(len(response.results), 1)
        return {
            tuple((label.name, label.value) for label in series.labels): [
                (sample.timestamp, bits(sample.value)) for sample in series.samples
            ]
            for series in response.results[0].timeseries
        }

    def feed(self, job, task, attempt, metrics, times, rows, steps, agent=None, token=None):
        stream = client.Stream(
            self.collector.address, agent or f"{job}-{task}-{attempt}", 1, 1, token=token
        )
        stream.send(client.layout(1, job, f"host-{task}", metrics, task, attempt, True))
        flat = [value for row in rows for value in row]
        stream.send(client.batch(1, 1, times, flat, steps))
        self.assertTrue(stream.wait_durable(1), stream.error)
        stream.close()


class TokensCase(RemoteReadCase):
    """With a token for all jobs, and one that reads "vision" and what begins so."""

    @property
    def config(self):
        tokens = os.path.join(self.directory, "tokens.yaml")
        with open(tokens, "w") as file:
            file.write("tokens:\n")
            for name, roles, jobs in (("all", "read, write", ".*"), ("some", "read", "vision.*"),
                                      ("writer", "write", ".*")):  # fmt: skip
                digest = hashlib.sha256(self.token(name).encode()).hexdigest()
                file.write(f"  - {{name: {name}, sha256: {digest}, roles: [{roles}], jobs: '{jobs}'}}\n")
        os.chmod(tokens, 0o600)
        return f"auth: {{tokens_file: {tokens}, allow_plaintext: true}}\n"

    @staticmethod
    def token(name):
        return f"token-of-{name}-0123456789"

    def bearer(self, name):
        return {"Authorization": f"Bearer {self.token(name)}"}
