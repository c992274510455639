"""Reads a ring as docs/ring_format.md says, also one whose writer lives."""
import dataclasses
import glob
import os
import struct
from typing import Dict, List, Optional

RECORDS_AT = 266_240
BLOCK = 65_536
STALE_BITS = 0x7FF0000000000002


@dataclasses.dataclass
class Row:
    step: Optional[int]
    time_ns: int
    values: Dict[str, float]  # Only metrics that have one.


@dataclasses.dataclass
class Event:
    step: Optional[int]
    kind: str
    message: str
    fields: Dict[str, str]


@dataclasses.dataclass
class Ring:
    job: str
    task: int
    attempt: int
    closed: bool
    refused: int
    units: Dict[str, str] = dataclasses.field(default_factory=dict)
    counters: List[str] = dataclasses.field(default_factory=list)
    attributes: Dict[str, str] = dataclasses.field(default_factory=dict)
    histograms: Dict[str, List[int]] = dataclasses.field(default_factory=dict)  # Newest counts.
    bounds: Dict[str, List[float]] = dataclasses.field(default_factory=dict)
    rows: List[Row] = dataclasses.field(default_factory=list)
    events: List[Event] = dataclasses.field(default_factory=list)

    def column(self, name):
        """[(step, value)] of the rows that have one."""
        return [(row.step, row.values[name]) for row in self.rows if name in row.values]


def _read_definitions(data, ring, size):
    at = 4096
    while at < 4096 + size:
        _, length, kind, of_type, *lengths, bounds = struct.unpack_from("<8I", data, at)
        texts, begin = [], at + 32
        for text_length in lengths:
            texts.append(data[begin : begin + text_length].decode())
            begin += text_length
        name, unit, text = texts
        if kind == 1:
            ring.units[name] = unit
            if of_type == 2:
                ring.counters.append(name)
        elif kind == 2:
            ring.attributes[name] = text
        else:
            ring.bounds[name] = list(struct.unpack_from(f"<{bounds}d", data, at + length - 8 * bounds))
        at += length
    ring.attributes = {key: value for key, value in ring.attributes.items() if value}


def _read_event(data, at, count, step):
    lengths = struct.unpack_from(f"<{2 + 2 * count}I", data, at)
    texts, begin = [], at + 4 * len(lengths)
    for length in lengths:
        texts.append(data[begin : begin + length].decode())
        begin += length
    return Event(step, texts[0], texts[1], dict(zip(texts[2::2], texts[3::2])))


def read(path):
    """All of it; nothing must have been overwritten."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"TACHORNG"
    (record_bytes,) = struct.unpack_from("<Q", data, 24)
    reserved, committed, definitions, refused, closed = struct.unpack_from("<5Q", data, 512)
    (job_bytes,) = struct.unpack_from("<I", data, 64)
    assert reserved == committed <= record_bytes
    ring = Ring(
        data[72 : 72 + job_bytes].decode(), *struct.unpack_from("<I", data, 36),
        *struct.unpack_from("<I", data, 56), bool(closed), refused,
    )  # fmt: skip
    _read_definitions(data, ring, definitions)
    names, at = list(ring.units), 0
    while at < committed:
        if BLOCK - at % BLOCK < 48:
            at += BLOCK - at % BLOCK
            continue
        begin = RECORDS_AT + at
        _, size, kind, flags, count, _, _, time_ns, step = struct.unpack_from(
            "<IIHHIQQqq", data, begin
        )
        at += size
        step = step if flags & 1 else None
        if kind == 1:
            bits = struct.unpack_from(f"<{count}Q", data, begin + 48)
            values = struct.unpack_from(f"<{count}d", data, begin + 48)
            kept = {n: v for n, v, b in zip(names, values, bits) if b != STALE_BITS}
            ring.rows.append(Row(step, time_ns, kept))
        elif kind == 2:
            ring.events.append(_read_event(data, begin + 48, count, step))
        elif kind == 4:
            (number,) = struct.unpack_from("<I", data, begin + 48)
            name = list(ring.bounds)[number]
            ring.histograms[name] = list(struct.unpack_from(f"<{count}Q", data, begin + 64))
    return ring


def read_only_one(directory):
    """The one ring of a directory."""
    (path,) = glob.glob(os.path.join(directory, "*.ring"))
    return read(path)
