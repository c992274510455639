"""Reads and writes TensorBoard event files. Shares nothing with the agent's reader.

A file is a list of TFRecords (u64 length, masked CRC-32C of it, payload, masked CRC-32C of it),
each a tensorflow.Event. What a scalar is: a simple_value, or a tensor of one number that its plugin
calls a scalar, or that nothing calls anything else and that has no dimensions.
"""
import collections
import math
import struct

# bits: of the value as a double.
Scalar = collections.namedtuple("Scalar", "tag time_ns step bits")


def _table():
    rows = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        rows.append(i)
    return rows


_CRC = _table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    table = _CRC
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """(end offset, payload) of each whole record; stops at a torn end, raises on a wrong CRC."""
    at = 0
    while at + 12 <= len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        if crc != masked_crc(data[at : at + 8]):
            raise ValueError(f"wrong CRC of the length at {at}")
        end = at + 16 + length
        if end > len(data):
            return
        payload = data[at + 12 : at + 12 + length]
        if struct.unpack_from("<I", data, end - 4)[0] != masked_crc(payload):
            raise ValueError(f"wrong CRC of the payload at {at}")
        yield end, payload
        at = end


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _fields(data):
    """(number, wire type, value) of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 1:
            value, at = data[at : at + 8], at + 8
        elif wire == 2:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        elif wire == 5:
            value, at = data[at : at + 4], at + 4
        else:
            raise ValueError(f"wire type {wire}")
        yield key >> 3, wire, value


def widen(pattern):
    """Bits of the double that equals a float32; of a NaN sign, payload and signalling bit stay."""
    sign, exponent, mantissa = pattern >> 31, (pattern >> 23) & 0xFF, pattern & 0x7FFFFF
    if exponent == 0xFF:
        return sign << 63 | 0x7FF << 52 | mantissa << 29
    number = struct.unpack("<f", struct.pack("<I", pattern))[0]
    return struct.unpack("<Q", struct.pack("<d", number))[0]


def time_ns(wall_time):
    """floor(w) s + round((w - floor(w)) * 1e9) ns, halves up; None where there is no time."""
    if not 0 < wall_time < 9223372036:
        return None
    whole = math.floor(wall_time)
    return whole * 10**9 + math.floor((wall_time - whole) * 1e9 + 0.5)


def _tensor(data):
    """(bits or None, dimensions) of a float32 TensorProto, the only kind these files hold."""
    dtype, dims, content, listed = 0, [], b"", []
    for number, wire, value in _fields(data):
        if number == 1:
            dtype = value
        elif number == 2:
            dims = [d for n, _, d in _fields(value) if n == 2]
        elif number == 4:
            content = value
        elif number == 5:
            listed.append(value)
    listed = b"".join(listed)  # Packed or not: the same bytes.
    raw = content or listed or b"\0\0\0\0"
    sizes = [next((s for n, _, s in _fields(d) if n == 1), 0) for d in dims]
    if dtype != 1 or len(raw) != 4 or any(s != 1 for s in sizes):
        return None, dims
    return widen(struct.unpack("<I", raw)[0]), dims


def _metadata(data):
    plugin, scalar = b"", False
    for number, _, value in _fields(data):
        if number == 1:
            plugin = next((v for n, _, v in _fields(value) if n == 1), b"")
        elif number == 4:
            scalar = value == 1
    return plugin, scalar


def _value(data, other_tags):
    """(tag, bits or None) of one Summary.Value."""
    tag, plain, tensor, plugin, scalar = b"", None, None, b"", False
    for number, _, value in _fields(data):
        if number == 1:
            tag = value
        elif number == 2:
            plain = widen(struct.unpack("<I", value)[0])
        elif number == 8:
            tensor = value
        elif number == 9:
            plugin, scalar = _metadata(value)
    scalar = scalar or plugin == b"scalars"
    if not scalar and plugin:
        other_tags.add(tag)
    if plain is not None or tensor is None:
        return tag, plain
    pattern, dims = _tensor(tensor)
    is_scalar = scalar or (not plugin and not dims and tag not in other_tags)
    return tag, pattern if is_scalar else None


def scalars(data, other_tags=None):
    """Every scalar of a file's bytes, in its order. Those without a time have time_ns None."""
    other_tags = set() if other_tags is None else other_tags
    found = []
    for _, payload in records(data):
        wall, step, summaries = 0.0, 0, []
        for number, _, value in _fields(payload):
            if number == 1:
                wall = struct.unpack("<d", value)[0]
            elif number == 2:
                step = value - (1 << 64) if value >> 63 else value
            elif number == 5:
                summaries.append(value)
        for summary in summaries:
            for number, _, value in _fields(summary):
                if number != 1:
                    continue
                tag, pattern = _value(value, other_tags)
                if pattern is not None:
                    found.append(Scalar(tag.decode(), time_ns(wall), step, pattern))
    return found


def _encode_varint(value):
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _block(number, data):
    return _encode_varint(number << 3 | 2) + _encode_varint(len(data)) + data


def record(payload):
    length = struct.pack("<Q", len(payload))
    crcs = struct.pack("<I", masked_crc(length)), struct.pack("<I", masked_crc(payload))
    return length + crcs[0] + payload + crcs[1]


def event(wall_time, step, tag, float32_bits):
    """A record with one simple_value."""
    value = _block(1, tag.encode()) + b"\x15" + struct.pack("<I", float32_bits)
    head = b"\x09" + struct.pack("<d", wall_time) + b"\x10" + _encode_varint(step)
    return record(head + _block(5, _block(1, value)))


def first_record(wall_time):
    return record(b"\x09" + struct.pack("<d", wall_time) + _block(3, b"brain.Event:2"))
