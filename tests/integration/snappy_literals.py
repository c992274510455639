"""Snappy's block format without its packing (google/snappy, format_description.txt), as requests of remote write and
remote read have it."""
import struct

_LITERAL_BYTES = 65536  # The most that a tag with a length of two bytes has.


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def packed(message):
    """`message` as literals alone."""
    chunks = (message[i : i + _LITERAL_BYTES] for i in range(0, len(message), _LITERAL_BYTES))
    return varint(len(message)) + b"".join(b"\xf4" + struct.pack("<H", len(one) - 1) + one for one in chunks)
