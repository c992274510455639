"""Columns of real data: one list of doubles for each series, by corpus."""

import collections
import csv
import json
import math
import pathlib
import re
import struct


def read_corpora(data):
    """{name: [column, ...]} of those that lie under `data`; columns shorter than 8 left out."""
    readers = {"tfevents": tfevents, "megatron": megatron, "mlperf_power": mlperf_power,
               "jumpstarter": jumpstarter, "nezha": nezha, "nanogpt": nanogpt}
    corpora = {}
    for name, reader in readers.items():
        columns = [column for column in reader(pathlib.Path(data)) if len(column) >= 8]
        if columns:
            corpora[name] = columns
    return corpora


def write_columns(columns, path):
    """As tests/bench/codec_bench.cc reads them."""
    with open(path, "wb") as file:
        for column in columns:
            file.write(struct.pack(f"<Q{len(column)}d", len(column), *column))


def number(text):
    try:
        return float(text)
    except ValueError:
        return math.nan


def mlperf_power(data):
    pattern = re.compile(r'"key": "power_reading", "value": ([0-9.]+)')
    for file in sorted(data.glob("mlperf-power/*/node_*.txt")):
        yield [float(value) for value in pattern.findall(file.read_text())]


def jumpstarter(data):
    for file in sorted(data.glob("jumpstarter/*.csv")):
        with open(file, encoding="utf-8") as lines:
            yield from ([number(cell) for cell in column] for column in zip(*csv.reader(lines)))


def nezha(data):
    for file in sorted(data.glob("nezha/*/*_metric.csv")):
        with open(file, encoding="utf-8") as lines:
            table = list(csv.reader(lines))
        for name, *column in zip(*table):
            if name not in ("Time", "TimeStamp", "PodName"):
                yield [number(cell) for cell in column]


def megatron(data):
    for file in sorted(data.glob("megatron/*/*.json")):
        for metric in json.loads(file.read_text()).values():
            values = metric["values"] if isinstance(metric, dict) else metric
            values = values.values() if isinstance(values, dict) else values
            yield [float(value) for value in values]


def nanogpt(data):
    pattern = re.compile(r"^s:\d+ trl:(\S+) lr:(\S+) norm:(\S+)", re.MULTILINE)
    for file in sorted(data.glob("modded-nanogpt/*.log")):
        rows = pattern.findall(file.read_text())
        yield from ([float(cell) for cell in column] for column in zip(*rows))


def tfevents(data):
    for file in sorted(data.glob("tfevents/**/*tfevents*")):
        columns = collections.defaultdict(list)
        for tag, value in scalars(file.read_bytes()):
            columns[tag].append(value)
        yield from columns.values()


def scalars(log):
    """(tag, value) of every scalar. Framing as agent/sources/tfevents_record.h draws it."""
    at = 0
    while at + 12 <= len(log):
        (length,) = struct.unpack_from("<Q", log, at)
        event = log[at + 12:at + 12 + length]
        at += length + 16
        for summary in bytes_fields(event, 5):  # Event.summary
            for value in bytes_fields(summary, 1):  # Summary.value
                tag = next(bytes_fields(value, 1), b"").decode(errors="replace")
                for number_, wire, content in fields(value):
                    if number_ == 2 and wire == 5:  # simple_value
                        yield tag, struct.unpack("<f", content)[0]
                    if number_ == 8 and wire == 2:  # tensor
                        yield from ((tag, v) for v in tensor_scalar(content))


def tensor_scalar(tensor):
    """The value of a float tensor of one element, if it is one."""
    kind = next((value for number_, wire, value in fields(tensor) if (number_, wire) == (1, 0)), 0)
    content = next(bytes_fields(tensor, 4), b"") or next(bytes_fields(tensor, 5), b"")
    if kind == 1 and len(content) == 4:  # DT_FLOAT
        yield struct.unpack("<f", content)[0]


def bytes_fields(message, wanted):
    return (content for number_, wire, content in fields(message)
            if number_ == wanted and wire == 2)


def fields(message):
    """(number, wire type, value) of each field of an encoded protobuf message."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(message, at)
        else:
            size, at = varint(message, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
            value, at = message[at:at + size], at + size
        yield key >> 3, wire, value


def varint(message, at):
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
