"""Reads a finished ring as docs/ring_format.md says. Shares nothing with the agent's reader."""
import collections
import struct

RECORDS_AT = 266_240
BLOCK = 65_536
STALE_BITS = 0x7FF0000000000002

# patterns: bits of the values, one a metric that was known; None where there is none.
Row = collections.namedtuple("Row", "time_ns step patterns")


def _metrics(data, size):
    names, at = [], 0
    while at < size:
        _, length, kind, _, name_bytes = struct.unpack_from("<5I", data, 4096 + at)
        if kind == 1:
            begin = 4096 + at + 32
            names.append(data[begin : begin + name_bytes].decode())
        at += length
    return names


def value(pattern):
    return struct.unpack("<d", struct.pack("<Q", pattern))[0]


def read(path, ended=True):
    """(metric names, rows). Raises if records were overwritten or refused, or it goes on; what a
    trainer that was killed was about to write is passed over."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"TACHORNG":
        raise ValueError("no ring")
    (record_bytes,) = struct.unpack_from("<Q", data, 24)
    reserved, committed, definitions, refused, closed = struct.unpack_from("<5Q", data, 512)
    whole = (reserved, closed) == (committed, 1) or not ended
    if not whole or refused != 0 or committed > record_bytes:
        raise ValueError("not a whole record of a trainer that ended")
    rows, at = [], 0
    while at < committed:
        left = BLOCK - at % BLOCK
        if left < 48:
            at += left
            continue
        begin = RECORDS_AT + at
        header = struct.unpack_from("<IIHHIQQqq", data, begin)
        _, size, kind, flags, count, _, row, time_ns, step = header
        if kind == 1:
            if row != len(rows):
                raise ValueError(f"row {row} at the place of row {len(rows)}")
            values = struct.unpack_from(f"<{count}Q", data, begin + 48)
            patterns = [None if v == STALE_BITS else v for v in values]
            rows.append(Row(time_ns, step if flags & 1 else None, patterns))
        at += size
    return _metrics(data, definitions), rows
