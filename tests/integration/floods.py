"""Attacks on a collector, each by its name:

    floods.py ADDRESS ATTACK [SECONDS] [HTTP_ADDRESS]

Prints one line of JSON: bytes sent, what was seen. For collectors of one's own only.
"""
import gzip
import json
import resource
import socket
import struct
import sys
import threading
import time

import http2
from http2 import frame


def _bytes(number, payload):
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def _hello(agent="flood"):
    return _bytes(1, _bytes(1, agent.encode()) + b"\x11" + struct.pack("<Q", 1) + b"\x18\x01")


class TimeIsUp(Exception):
    """No further connection was let in before the end."""


class Attack:
    def __init__(self, address, seconds, http):
        self.address, self.seconds, self.http = address, seconds, http
        self.until = time.monotonic() + seconds
        self.sent = 0
        self.seen = {}
        self._open = []
        self._sockets = []

    def connect(self, **options):
        """The next connection; one that is turned away is a pause."""
        while True:
            try:
                connection = http2.Connection(self.address, **options)
            except OSError:
                self.seen["turned_away"] = self.seen.get("turned_away", 0) + 1
                time.sleep(0.05)
                if not self.going():
                    raise TimeIsUp from None
                continue
            self._open.append(connection)
            return connection

    def finish(self):
        for one in self._sockets:
            one.close()
        for connection in self._open:
            self.sent += connection.sent
            if connection.goaway:
                self.seen["goaway"] = connection.goaway[:80]
        self.seen["hung_up"] = sum(c.closed.is_set() for c in self._open)
        self.seen["connections"] = len(self._open)
        for connection in self._open:
            connection.close()

    def going(self):
        return time.monotonic() < self.until

    def statuses(self):
        """How often each grpc-status was among what the server answered."""
        found = {}
        for connection in self._open:
            data = connection.received
            at = data.find(b"grpc-status")
            while at >= 0:
                size = data[at + 11]
                if data[at + 11 : at + 12] == b"-":  # grpc-status-details-bin
                    at = data.find(b"grpc-status", at + 1)
                    continue
                status = data[at + 12 : at + 12 + size].decode(errors="replace")
                found[status] = found.get(status, 0) + 1
                at = data.find(b"grpc-status", at + 1)
        return found

    def repeat(self, make, batch=100):
        """Sends what make(n) gives, as fast as it goes; on a new connection when hung up on."""
        connection, n = self.connect(), 0
        while self.going():
            data = b"".join(make(n + i) for i in range(batch))
            if not connection.send(data):
                connection, n = self.connect(), 0
                continue
            n += batch
        self.seen["frames_a_connection"] = n
        return connection

    # Lengths and compression.

    def declared_length(self):
        """Messages that say they have 4 GiB."""
        while self.going():
            c = self.connect()
            for stream in range(1, 200, 2):
                c.open(stream)
                c.send(frame(http2.DATA, 0, stream, http2.message(b"x" * 100, 0xFFFFFFFF)))
            c.closed.wait(0.5)
        self.seen["statuses"] = self.statuses()

    def oversized(self):
        """Messages of 2 GiB, as much of them as flow control lets through."""
        piece = http2.message(bytes(1 << 20), 2 << 30)
        while self.going():
            c = self.connect()
            c.open(1)
            while self.going() and c.send_data(1, piece, timeout_s=1) == len(piece):
                piece = bytes(1 << 20)

    def gzip_bomb(self):
        """3 MiB that unpack to 3 GiB."""
        packed = gzip.compress(bytes(1 << 20), 9)
        bomb = http2.message(packed * (3 * 1024), compressed=1)
        for path in (http2.INGEST, "/tacho.v1.Query/ListJobs", "/grpc.health.v1.Health/Check"):
            for encoding in ("gzip", "deflate", "identity", "snappy"):
                c = self.connect()
                c.open(1, path, [("grpc-encoding", encoding)])
                c.send_data(1, bomb, timeout_s=0.5)
                c.closed.wait(0.2)
        self.seen["statuses"] = self.statuses()

    # Frames.

    def rapid_reset(self):
        headers = http2.request_headers()
        self.repeat(
            lambda n: frame(http2.HEADERS, http2.END_HEADERS, 2 * n + 1, headers)
            + frame(http2.RST_STREAM, 0, 2 * n + 1, struct.pack(">I", 8))
        )

    def rapid_reset_unknown_method(self):
        headers = http2.request_headers("/nothing")
        self.repeat(
            lambda n: frame(http2.HEADERS, http2.END_HEADERS, 2 * n + 1, headers)
            + frame(http2.RST_STREAM, 0, 2 * n + 1, struct.pack(">I", 8))
        )

    def continuation(self):
        """A header block that never ends."""
        while self.going():
            c = self.connect()
            c.send(frame(http2.HEADERS, 0, 1, http2.request_headers()))
            field = http2.literal("x-flood", "x" * 16000)
            while self.going() and c.send(frame(http2.CONTINUATION, 0, 1, field)):
                pass

    def empty_continuation(self):
        while self.going():
            c = self.connect()
            c.send(frame(http2.HEADERS, 0, 1, http2.request_headers()))
            empty = frame(http2.CONTINUATION, 0, 1) * 1000
            while self.going() and c.send(empty):
                pass

    def large_headers(self):
        """One call with 1 MiB of headers, again and again."""
        more = [("x-%d" % i, "x" * 1000) for i in range(1000)]
        block = http2.request_headers(more=more)
        while self.going():
            c = self.connect()
            for stream in range(1, 100, 2):
                if not self.going():
                    break
                pieces = [block[i : i + 16384] for i in range(0, len(block), 16384)]
                c.send(frame(http2.HEADERS, 0, stream, pieces[0]))
                for piece in pieces[1:-1]:
                    c.send(frame(http2.CONTINUATION, 0, stream, piece))
                if not c.send(frame(http2.CONTINUATION, http2.END_HEADERS, stream, pieces[-1])):
                    break

    def hpack_bomb(self):
        """A field of 4 KiB put into the table once and named 16,000 times."""
        entry = b"\x40" + http2.literal("x-bomb", "x" * 3900)[1:]
        while self.going():
            c = self.connect()
            for stream in range(1, 100, 2):
                block = http2.request_headers() + (entry if stream == 1 else b"") + b"\xbe" * 16000
                if not c.send(frame(http2.HEADERS, http2.END_HEADERS, stream, block[:16384])):
                    break

    def tiny_data(self):
        """A message in DATA frames of one byte."""
        while self.going():
            c = self.connect()
            c.open(1)
            c.send(frame(http2.DATA, 0, 1, http2.message(b"", 4 << 20)))
            piece = frame(http2.DATA, 0, 1, b"x") * 1000
            while self.going() and c.send(piece):
                pass

    def empty_data(self):
        while self.going():
            c = self.connect()
            c.open(1)
            piece = frame(http2.DATA, 0, 1) * 1000
            while self.going() and c.send(piece):
                pass

    def pings(self):
        self.repeat(lambda n: frame(http2.PING, 0, 0, struct.pack(">Q", n)))

    def pings_of_a_call(self):
        """On a connection with a call, which may send more."""
        while self.going():
            c, n = self.connect(), 0
            c.open(1)
            while self.going() and c.send(
                b"".join(frame(http2.PING, 0, 0, struct.pack(">Q", n + i)) for i in range(100))
            ):
                n += 100

    def settings(self):
        self.repeat(lambda n: frame(http2.SETTINGS, 0, 0, struct.pack(">HI", 3, n % 100 + 1)))

    def priorities(self):
        self.repeat(lambda n: frame(http2.PRIORITY, 0, 1, struct.pack(">IB", 3, 1)))

    def window_updates(self):
        """In steps of nothing: 1, as far as the window goes."""
        self.repeat(lambda n: frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)))

    def streams(self):
        """More streams at once than one connection may have."""
        while self.going():
            c = self.connect()
            for stream in range(1, 4000, 2):
                if not c.open(stream):
                    break
            c.closed.wait(1)
        self.seen["statuses"] = self.statuses()

    # Connections.

    def silent_connections(self):
        """Connections that say nothing, or only that they speak HTTP/2."""
        held = [self.connect(preface=n % 2 == 0) for n in range(40)]
        while self.going() and not all(c.closed.is_set() for c in held):
            time.sleep(0.1)
        self.seen["first_to_last_s"] = round(self.seconds - (self.until - time.monotonic()), 1)

    def many_connections(self):
        """As many as there can be."""
        held = []
        try:
            while self.going() and len(held) < 3000:
                held.append(self.connect())
        finally:  # Also when no more are let in.
            time.sleep(1)
            self.seen["held"] = sum(not c.closed.is_set() for c in held)

    def half_messages(self):
        """40 connections with a message of 4 MiB of which the last bytes never come."""
        half = http2.message(bytes((4 << 20) - 100), 4 << 20)
        held = []
        while len(held) < 40 and time.monotonic() < self.until - self.seconds / 2:
            c = self.connect()
            c.open(1)
            held.append(c)
            c.send_data(1, half, timeout_s=0.1)
        while self.going() and not all(c.closed.is_set() for c in held):
            for c in held:
                c.send_data(1, b"x", timeout_s=0)
            time.sleep(1)
        self.seen["first_to_last_s"] = round(self.seconds - (self.until - time.monotonic()), 1)

    # Messages.

    def _messages(self, payload, agents=8):
        """The message after a Hello, from several agents, as often as there is time."""
        held = []
        while self.going():
            c = self.connect()
            c.open(1)
            hello = http2.message(_hello("flood-%d" % (len(held) % agents)))
            c.send_data(1, hello + http2.message(payload), timeout_s=1)
            held.append(c)
            c.closed.wait(0.2)
        self.seen["statuses"] = self.statuses()

    def nested_groups(self):
        self._messages(b"\x0b" * 30_000)

    def nested_messages(self):
        """Unknown fields within each other, each the rest of the message."""
        payload = b""
        while len(payload) < 60_000:
            payload = _bytes(99, payload)
        self._messages(payload)

    def unknown_fields(self):
        self._messages(b"\xf8\x06\x01" * 1_300_000)

    def empty_series(self):
        """A layout of empty series: two bytes here, an object there."""
        self._messages(_bytes(3, b"\x22\x00" * 1_900_000))

    def long_strings(self):
        series = _bytes(4, _bytes(1, _bytes(1, b"m" * 3_900_000)))
        self._messages(_bytes(3, _bytes(2, _bytes(1, b"j")) + series))

    # The HTTP port.

    def http_bodies(self):
        host, port = self.http.rsplit(":", 1)
        heads = [
            "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n",
            "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n",
            "POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 9999999\r\n\r\n",
        ]  # fmt: skip
        answers = {}
        while self.going():
            for head in heads:
                with socket.create_connection((host, int(port)), timeout=10) as s:
                    try:
                        s.sendall(head.encode())
                        for _ in range(64):
                            s.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                            self.sent += 65536
                    except OSError:
                        pass
                    try:
                        answer = s.recv(100).split(b"\r\n")[0].decode()
                    except OSError:
                        answer = "closed"
                    answer = head.split(" ")[0] + " " + answer
                    answers[answer] = answers.get(answer, 0) + 1
        self.seen["answers"] = answers

    def http_slow(self):
        """100 requests of a byte a second."""
        host, port = self.http.rsplit(":", 1)
        held = [socket.create_connection((host, int(port)), timeout=10) for _ in range(100)]
        for s in held:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
        while self.going():
            for s in held:
                try:
                    s.sendall(b"a")
                    self.sent += 1
                except OSError:
                    pass
            time.sleep(1)
        for s in held:
            s.close()

    def http_idle(self):
        """3,000 connections of 250 addresses, each with an answer, none with another request."""
        host, port = self.http.rsplit(":", 1)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        held, refused = [], 0
        for n in range(3000):
            source = ("127.0.1.%d" % (n % 250 + 1), 0)
            s = socket.create_connection((host, int(port)), timeout=10, source_address=source)
            s.sendall(request)
            self.sent += len(request)
            refused += not s.recv(1000).startswith(b"HTTP/1.1 200 ")
            held.append(s)
        while self.going():
            time.sleep(0.1)
        self.seen["refused"] = refused
        for s in held:
            s.close()


    # The API of the page.

    def _http(self, n=0):
        """A connection from one of 250 addresses."""
        host, port = self.http.rsplit(":", 1)
        source = ("127.0.1.%d" % (n % 250 + 1), 0)
        s = socket.create_connection((host, int(port)), timeout=10, source_address=source)
        self._sockets.append(s)
        return s

    def _post(self, s, method, body, kind="application/json", length=None, extra=""):
        length = len(body) if length is None else length
        head = (
            f"POST /tacho.v1.{method} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {length}\r\n{extra}\r\n"
        )
        s.sendall(head.encode() + body)
        self.sent += len(head) + len(body)

    def _answer(self, s):
        """(status, first bytes of the body); the status is 0 if the server hung up."""
        try:
            data = s.recv(4096)
            while data and b"\r\n\r\n" not in data:
                more = s.recv(4096)
                if not more:
                    break
                data += more
        except OSError:
            return 0, b""
        if not data.startswith(b"HTTP/1.1 "):
            return 0, b""
        head, _, body = data.partition(b"\r\n\r\n")
        if not body:
            try:
                body = s.recv(4096)
            except OSError:
                pass
        return int(data[9:12]), body

    def _count(self, status, body):
        key = str(status) if status else "hung_up"
        answers = self.seen.setdefault("answers", {})
        answers[key] = answers.get(key, 0) + 1
        if status >= 400 and len(body.split()) < 4:
            self.seen.setdefault("without_words", []).append((status, body[:80].decode(errors="replace")))

    def _raise_file_limit(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def api_watches(self):
        """3,000 watches of a job over HTTP, from 250 addresses; nobody reads on."""
        self._raise_file_limit()
        watch = b'{"selector": {"job": "honest"}}'
        asked = []
        for n in range(3000):
            s = self._http(n)
            try:
                self._post(s, "Query/Watch", watch)
            except OSError:
                pass
            asked.append(s)
        lines = {}
        for s in asked:
            s.settimeout(2)
            status, body = self._answer(s)
            self._count(status, body)
            if status == 200:
                kind = "refused" if b'"error"' in body else "watching"
                lines[kind] = lines.get(kind, 0) + 1
        self.seen["streams"] = lines
        while self.going():
            time.sleep(0.1)

    def api_posts(self):
        """80 threads of as many addresses post queries as fast as they are answered."""
        body = b'{"selector": {"job": "honest", "metrics": ["loss"]}, "maxPoints": 10}'

        def post(n):
            s = None
            while self.going():
                try:
                    s = s or self._http(n)
                    self._post(s, "Query/Range", body)
                    data = s.recv(1 << 16)
                    while data and not data.endswith(b"0\r\n\r\n") and b"Content-Length" not in data:
                        data += s.recv(1 << 16)
                    status = int(data[9:12]) if data else 0
                    with lock:
                        self._count(status, data.partition(b"\r\n\r\n")[2])
                    if not data or b"Connection: close" in data:
                        s.close()
                        s = None
                except OSError:
                    s = None

        lock = threading.Lock()
        threads = [threading.Thread(target=post, args=(n,)) for n in range(80)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def api_slow_bodies(self):
        """400 bodies of which a byte a second comes."""
        held = []
        for n in range(400):
            s = self._http(n)
            self._post(s, "Query/ListJobs", b"{", length=200_000)
            held.append(s)
        while self.going():
            for s in held:
                try:
                    s.sendall(b" ")
                    self.sent += 1
                except OSError:
                    pass
            time.sleep(1)
        for s in held:
            s.settimeout(2)
            self._count(*self._answer(s))

    def api_wrong_bodies(self):
        """Bodies that are too long, packed, cut, nested, or of no known kind."""
        stream = "application/connect+proto"
        most = 256 << 10
        deep = b'{"matchers": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        cases = {
            "huge": ("Query/ListJobs", b"x" * 65536, "application/json", 1 << 40, ""),
            "too_long": ("Query/ListJobs", b" " * (most + 1), "application/json", None, ""),
            "no_length": ("Query/ListJobs", b"5\r\nhello\r\n0\r\n\r\n", "application/json", "-", ""),
            "packed": ("Query/ListJobs", gzip.compress(bytes(1 << 20)), "application/json", None,
                       "Content-Encoding: gzip\r\n"),
            "packed_stream": ("Query/Range", b"\1\0\0\0\0", stream, None,
                              "Connect-Content-Encoding: gzip\r\n"),
            "unknown_kind": ("Query/ListJobs", b"a=1", "application/x-www-form-urlencoded", None, ""),
            "deep": ("Query/ListJobs", deep, "application/json", None, ""),
            "no_utf8": ("Query/GetJob", b'{"job": "\xff\xfe"}', "application/json", None, ""),
            "wrong_proto": ("Query/GetJob", b"\x0b" * most, "application/proto", None, ""),
            "many": ("Query/ListJobs", b'{"tags": [' + b'"",' * 80_000 + b'""]}', "application/json",
                     None, ""),
            "cut_envelope": ("Query/Range", b"\0\xff\xff\xff\xff", stream, None, ""),
            "written": ("Ingest/Stream", b"{}", "application/json", None, ""),
        }  # fmt: skip
        found = {}
        while self.going():
            for name, (method, body, kind, length, extra) in cases.items():
                s = self._http()
                try:
                    if length == "-":
                        extra, length = "Transfer-Encoding: chunked\r\n", 0
                        head = (f"POST /tacho.v1.{method} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                f"Content-Type: {kind}\r\n{extra}\r\n")  # fmt: skip
                        s.sendall(head.encode() + body)
                    else:
                        self._post(s, method, body, kind, length, extra)
                except OSError:
                    pass
                status, said = self._answer(s)
                self._count(status, said)
                found.setdefault(name, {}).setdefault(str(status), 0)
                found[name][str(status)] += 1
                self._sockets.remove(s)
                s.close()
        self.seen["cases"] = found


def main():
    address, name = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 5
    http = sys.argv[4] if len(sys.argv) > 4 else ""
    attack = Attack(address, seconds, http)
    try:
        getattr(attack, name)()
    except TimeIsUp:
        pass
    attack.finish()
    print(json.dumps({"attack": name, "sent": attack.sent, **attack.seen}))


if __name__ == "__main__":
    main()
