"""The wheel that deploy/package/wheel makes. TACHO_BUILD is the build directory."""
import os
import re
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/integration"))

import harness

# A library that needs more than every Linux has; arc4random came with glibc 2.36.
NEEDS_GLIBC_2_36 = "unsigned arc4random(void); unsigned tacho(void) { return arc4random(); }"
NEEDS_ZLIB = "const char* zlibVersion(void); const char* tacho(void) { return zlibVersion(); }"


class WheelTest(harness.TestCase):
    def make(self, build):
        """What the script did; its last line is the wheel."""
        command = [os.path.join(ROOT, "deploy/package/wheel"), "--build", build, "--out", self.directory]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if "No module named" in done.stdout + done.stderr:
            self.skipTest("no python3-setuptools or python3-wheel: deploy/packages.sh test")
        return done

    def build_of(self, code, *flags):
        """A build directory whose libtacho.so.1 is this."""
        library = os.path.join(self.directory, "build/client/c/libtacho.so.1")
        os.makedirs(os.path.dirname(library))
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-Wl,--no-as-needed", *flags]
        subprocess.run(command, input=code, text=True, check=True)
        return os.path.join(self.directory, "build")

    def test_the_tag_names_a_glibc_that_has_every_symbol(self):
        done = self.make(os.environ["TACHO_BUILD"])
        self.assertEqual(done.returncode, 0, done.stderr)
        wheel = done.stdout.strip()
        tagged = re.search(r"-py3-none-manylinux_2_(\d+)_\w+\.whl$", wheel)
        self.assertIsNotNone(tagged, wheel)
        with zipfile.ZipFile(wheel) as archive:
            library = archive.extract("tacho/libtacho.so.1", self.directory)
        symbols = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True)
        needed = [int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", symbols.stdout)]
        self.assertGreaterEqual(int(tagged.group(1)), max(needed))

    def test_a_newer_symbol_makes_the_tag_newer(self):
        done = self.make(self.build_of(NEEDS_GLIBC_2_36))
        self.assertRegex(done.stdout.strip(), r"-manylinux_2_36_\w+\.whl$", done.stderr)

    def test_a_library_that_needs_another_one_is_refused(self):
        done = self.make(self.build_of(NEEDS_ZLIB, "-lz"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs libz.so.1, which other systems may lack", done.stderr)

    def test_without_a_library_it_says_what_to_build(self):
        done = self.make(self.directory)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--target tacho_shared", done.stderr)


if __name__ == "__main__":
    harness.main()
