"""Both programs that hold a database take the place of RocksDB's checksum.

The linker drops a file of a static library that nobody calls, and the function with it: RocksDB would
then use its own slow one, and nothing else would show it. storage/db/directory_check.cc has the reason.
"""
import os
import platform
import subprocess
import sys
import unittest

FUNCTION = "_ZN7rocksdb6crc32c6ExtendEjPKcm"


@unittest.skipUnless(platform.machine() == "x86_64", "storage/db/directory_check.cc has the function for x86-64 only")
class RocksDbChecksum(unittest.TestCase):
    def test_programs_export_it(self):
        for program in ("TACHO_COLLECTOR", "TACHO_AGENT"):
            with self.subTest(program):
                symbols = subprocess.run(
                    ["nm", "-D", "--defined-only", os.environ[program]],
                    check=True, capture_output=True, text=True).stdout
                self.assertIn(FUNCTION, symbols.split())


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
