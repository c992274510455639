#!/usr/bin/python3
"""Reads a shard that the product has written, by docs/bucket_format.md alone.

Usage: test_bucket_format.py WRITE_BUCKET    the program that writes the objects as files
"""

import base64
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import zstandard

WRITE_BUCKET = sys.argv.pop(1) if len(sys.argv) > 1 else None
SHARD = "v1/shards/0012"
LOG_HEAD = struct.Struct("<8sIIIQQ")  # magic, format, checksum, shard, epoch, number
SEGMENT_HEAD = struct.Struct("<QQQII")  # nonce, after, last, records, bytes of the payload
SEAL_TAIL = struct.Struct("<Q")  # epoch of the owner that sealed


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def read_log_object(data):
    magic, form, checksum, shard, epoch, number = LOG_HEAD.unpack_from(data)
    assert form == 1
    assert checksum == crc32c(data[16:])
    found = {"shard": shard, "epoch": epoch, "number": number}
    if magic == b"tachosel":
        assert len(data) == 44
        return found | {"sealed_by": SEAL_TAIL.unpack_from(data, 36)[0]}
    assert magic == b"tachoseg"
    nonce, after, last, count, size = SEGMENT_HEAD.unpack_from(data, 36)
    payload = zstandard.ZstdDecompressor().decompress(data[68:]) if size else b""
    assert len(payload) == size
    records, at = [], 0
    for _ in range(count):
        length, at = read_varint(payload, at)
        records.append(payload[at:at + length])
        at += length
    assert at == size
    return found | {"nonce": nonce, "after": after, "last": last, "records": records}


class BucketFormatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        subprocess.run([WRITE_BUCKET, cls.directory.name], check=True, timeout=60)
        cls.root = pathlib.Path(cls.directory.name)
        cls.manifest = json.loads(cls.read(f"{SHARD}/manifest"))

    @classmethod
    def read(cls, key):
        return (cls.root / key).read_bytes()

    def log(self, epoch, number):
        return f"{SHARD}/log/{epoch:016}/{number:016}"

    def replay(self):
        records = []
        for log in self.manifest["logs"]:
            number = log["first"]
            while (self.root / self.log(log["epoch"], number)).exists():
                found = read_log_object(self.read(self.log(log["epoch"], number)))
                self.assertEqual((found["shard"], found["epoch"], found["number"]),
                                 (12, log["epoch"], number))
                if "sealed_by" in found:
                    break
                records += found["records"]
                number += 1
        return records

    def test_the_manifest_is_the_json_of_the_page(self):
        self.assertEqual(self.manifest, {
            "kind": "manifest", "format": 1, "shard": 12, "epoch": 3, "owner": "collector-b",
            "version": 3, "nonce": "0123456789abcdf1",
            "logs": [{"epoch": 1, "first": 2}, {"epoch": 3, "first": 1}],
            "state": [{"key": f"{SHARD}/state/0000000000000003-000007.sst", "bytes": 0, "crc32c": 0,
                       "metadata": base64.b64encode(b"import").decode()}],
            "open_days": {"20782": [self.block()]},
            "closed_days": {"20781": {
                "key": f"{SHARD}/days/20781/0000000000000003-0000000000000002.list", "bytes": 1,
                "crc32c": 0}},
            "positions": base64.b64encode(b"p").decode(), "kept_from_day": "20700",
        })

    def block(self):
        return {"key": f"{SHARD}/days/20782/0000000000000003-0000000000000001.sst", "bytes": 7,
                "crc32c": 9, "first_key": base64.b64encode(b"\0k").decode(),
                "last_key": base64.b64encode(b"\xffk").decode()}

    def test_the_number_of_shards_is_the_json_of_the_page(self):
        self.assertEqual(json.loads(self.read("v1/cluster")), {"kind": "cluster", "format": 1, "shards": 13})

    def test_a_closed_day_lists_its_blocks(self):
        listed = json.loads(self.read(self.manifest["closed_days"]["20781"]["key"]))
        self.assertEqual(listed, {"kind": "block list", "format": 1, "blocks": [self.block()]})

    def test_the_logs_are_replayed_from_their_starts_to_their_ends(self):
        self.assertEqual(self.replay(), [b"row one", b"\0\xff", b"", b"z" * 5000])

    def test_segments_say_where_they_stand(self):
        found = read_log_object(self.read(self.log(1, 2)))
        self.assertEqual((found["nonce"], found["after"], found["last"]), (0xA1, 101, 104))
        self.assertEqual(read_log_object(self.read(self.log(1, 3)))["sealed_by"], 3)


if __name__ == "__main__":
    assert crc32c(b"123456789") == 0xE3069283
    unittest.main()
