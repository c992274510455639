"""HTTP/2 by hand: what no client library would send."""
import socket
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK = 0x1, 0x4, 0x1
INGEST = "/tacho.v1.Ingest/Stream"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header field, never indexed, without Huffman."""
    def text(data):
        data = data.encode() if isinstance(data, str) else data
        length = len(data)
        if length < 127:
            return bytes([length]) + data
        rest, out = length - 127, bytearray([127])
        while rest >= 128:
            out.append(rest % 128 + 128)
            rest //= 128
        out.append(rest)
        return bytes(out) + data

    return b"\x00" + text(name) + text(value)


def request_headers(path=INGEST, more=()):
    fields = [
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
        ("te", "trailers"), ("content-type", "application/grpc"), *more,
    ]  # fmt: skip
    return b"".join(literal(name, value) for name, value in fields)


def message(payload, length=None, compressed=0):
    """gRPC's framing; `length` is what is declared."""
    return struct.pack(">BI", compressed, len(payload) if length is None else length) + payload


def data_frames(stream, payload, size=16384):
    return b"".join(
        frame(DATA, 0, stream, payload[i : i + size]) for i in range(0, len(payload), size)
    )


class Connection:
    """One connection. What the server sends is read and counted by a thread of its own."""

    def __init__(self, address, settings=b"", preface=True):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent = 0
        self.frames = {}
        self.goaway = None
        self.received = b""
        self.closed = threading.Event()
        self._changed = threading.Condition()
        self._initial = 65535
        self._grown, self._used = {}, {}
        if preface:
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings))
            # Otherwise the server's answers stop after 64 KiB of them.
            self.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
        # It answers the server's settings, which nothing may do before the preface.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, data):
        """False once the server has hung up, or has not read for long."""
        if self.closed.is_set():
            return False
        try:
            self.socket.sendall(data)
            self.sent += len(data)
            return True
        except OSError:
            self.closed.set()
            return False

    def open(self, stream, path=INGEST, more=(), flags=END_HEADERS):
        return self.send(frame(HEADERS, flags, stream, request_headers(path, more)))

    def window(self, stream):
        whole = 65535 + self._grown.get(0, 0) - self._used.get(0, 0)
        own = self._initial + self._grown.get(stream, 0) - self._used.get(stream, 0)
        return min(whole, own)

    def send_data(self, stream, payload, timeout_s=3):
        """DATA as flow control allows it. The bytes that were sent before it ran out of time."""
        at = 0
        while at < len(payload):
            with self._changed:
                if not self._changed.wait_for(lambda: self.window(stream) > 0, timeout_s):
                    break
                size = min(self.window(stream), 16384, len(payload) - at)
            if not self.send(frame(DATA, 0, stream, payload[at : at + size])):
                break
            for used in (0, stream):
                self._used[used] = self._used.get(used, 0) + size
            at += size
        return at

    def _read(self):
        buffer = b""
        try:
            while True:
                data = self.socket.recv(65536)
                if not data:
                    break
                buffer += data
                while len(buffer) >= 9:
                    size = int.from_bytes(buffer[:3], "big")
                    if len(buffer) < 9 + size:
                        break
                    stream = int.from_bytes(buffer[5:9], "big")
                    self._take(buffer[3], buffer[4], stream, buffer[9 : 9 + size])
                    buffer = buffer[9 + size :]
        except OSError:
            pass
        self.closed.set()

    def _take(self, kind, flags, stream, payload):
        self.frames[kind] = self.frames.get(kind, 0) + 1
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at : at + 6])
                if name == 4:
                    self._initial = value
            self.send(frame(SETTINGS, ACK, 0))
        if kind == WINDOW_UPDATE:
            grown = struct.unpack(">I", payload)[0]
            with self._changed:
                self._grown[stream] = self._grown.get(stream, 0) + grown
                self._changed.notify_all()
        if kind == GOAWAY:
            self.goaway = payload[8:].decode(errors="replace")
        if kind in (HEADERS, CONTINUATION) and len(self.received) < 1 << 16:
            self.received += payload

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
