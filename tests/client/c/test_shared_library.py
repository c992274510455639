"""What libtacho.so.1 is made of, and a C program that is built with it.

TACHO_LIBRARY is the library, CC and CXX are the compilers.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
LIBRARY = pathlib.Path(os.environ["TACHO_LIBRARY"])
HEADER = ROOT / "client/c/tacho.h"
EXAMPLE = ROOT / "client/examples/train_in_c.c"
# A process that loads it needs only the C and C++ runtimes.
RUNTIMES = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6"}
MAX_STRIPPED_BYTES = 200_000  # A wheel carries it, and every trainer's process.
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


def output(*command, **options):
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, **options
    ).stdout


def declared():
    """The functions that the header declares."""
    code = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    return sorted(set(re.findall(r"^[a-z].*?\b(tacho_\w+)\(", code, re.MULTILINE)))


class SharedLibraryTest(unittest.TestCase):
    def test_needs_the_runtimes_alone(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", LIBRARY))
        self.assertIn("libc.so.6", needed)
        self.assertLessEqual(set(needed), RUNTIMES)
        self.assertIn("[libtacho.so.1]", output("readelf", "-d", LIBRARY))
        self.assertNotIn("not found", output("ldd", LIBRARY))

    def test_exports_what_the_header_declares_and_nothing_else(self):
        symbols = output("nm", "-D", "--defined-only", "--with-symbol-versions", LIBRARY)
        exported = re.findall(r"^\S+ [^A] (\S+)$", symbols, re.MULTILINE)
        self.assertGreater(len(declared()), 10)
        versions = {name.partition("@@")[2] for name in exported}
        self.assertTrue(all(version.startswith("TACHO_1.") for version in versions), exported)
        self.assertEqual(sorted(name.partition("@@")[0] for name in exported), declared())

    def test_is_small(self):
        with tempfile.TemporaryDirectory() as directory:
            stripped = pathlib.Path(directory, "libtacho.so")
            output("strip", "--strip-unneeded", "-o", stripped, LIBRARY)
            self.assertLess(stripped.stat().st_size, MAX_STRIPPED_BYTES)

    def test_the_header_is_c99_and_cpp(self):
        for compiler, language in (
            (os.environ["CC"], ["-x", "c", "-std=c99"]),
            (os.environ["CXX"], ["-x", "c++", "-std=c++98", "-Wno-long-long"]),
            (os.environ["CXX"], ["-x", "c++", "-std=c++20"]),
        ):
            output(compiler, *language, *WARNINGS, "-fsyntax-only", HEADER)

    def test_the_example_is_c99_and_records(self):
        with tempfile.TemporaryDirectory() as directory:
            program = pathlib.Path(directory, "train_in_c")
            output(
                os.environ["CC"], "-std=c99", *WARNINGS, f"-I{HEADER.parent}", EXAMPLE, "-o", program,
                f"-L{LIBRARY.parent}", "-ltacho", "-lm", f"-Wl,-rpath,{LIBRARY.parent}",
            )  # fmt: skip
            rings = pathlib.Path(directory, "rings")
            environment = {**os.environ, "TACHO_JOB": "line", "TACHO_RING_DIR": str(rings)}
            ring = pathlib.Path(output(program, env=environment).strip())
            self.assertEqual(ring.parent, rings)
            self.assertEqual(ring.read_bytes()[:8], b"TACHORNG")
            # Without a job it trains all the same, and says so.
            del environment["TACHO_JOB"]
            ended = subprocess.run([program], env=environment, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("TACHO_JOB", ended.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
