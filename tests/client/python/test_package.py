"""The wheel carries the library, and records where it is installed."""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import unittest
import zipfile

import case

LIBRARY = os.environ["TACHO_LIBRARY"]
MAX_LIBRARY_BYTES = 200_000


class PackageTest(case.Case):
    def build(self, what, **environment):
        sources = os.path.join(self.directory, "sources")
        if not os.path.isdir(sources):
            ignored = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
            shutil.copytree(case.PACKAGE, sources, ignore=ignored)
        code = f"import setuptools.build_meta as b; print(b.{what}({self.directory!r}))"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=sources, capture_output=True, text=True,
            env={**os.environ, **environment},
        )  # fmt: skip
        if "No module named" in done.stderr:
            self.skipTest("no python3-setuptools or python3-wheel: deploy/packages.sh test")
        self.assertEqual(done.returncode, 0, done.stderr)
        return os.path.join(self.directory, done.stdout.strip().splitlines()[-1])

    def test_a_wheel_records_by_its_own_library(self):
        wheel = self.build("build_wheel")
        self.assertRegex(os.path.basename(wheel), r"^tacho-[\d.]+-py3-none-linux_\w+\.whl$")
        site = os.path.join(self.directory, "site")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
            self.assertLess(archive.getinfo("tacho/libtacho.so.1").file_size, MAX_LIBRARY_BYTES)
            self.assertIn("tacho/integrations/torch.py", archive.namelist())
        program = (
            "import tacho; from tacho import _library; print(tacho.__file__, _library._candidates()[0]);"
            "run = tacho.init(job='wheel', directory=r'%s', strict=True); run.log({'a': 1}, step=5)"
        ) % os.path.join(self.directory, "rings")
        environment = {k: v for k, v in os.environ.items() if k != "TACHO_LIBRARY"}
        done = subprocess.run(
            [sys.executable, "-B", "-c", program], env={**environment, "PYTHONPATH": site},
            capture_output=True, text=True, cwd=self.directory,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split(), [f"{site}/tacho/__init__.py", f"{site}/tacho/libtacho.so.1"])
        ring = case.ring.read_only_one(os.path.join(self.directory, "rings"))
        self.assertEqual(ring.column("a"), [(5, 1)])

    def test_a_source_distribution_holds_python_alone(self):
        with tarfile.open(self.build("build_sdist")) as archive:
            names = {name.split("/", 1)[-1] for name in archive.getnames()}
        self.assertLessEqual({"setup.py", "tacho/_run.py", "tacho/integrations/keras.py"}, names)
        self.assertFalse([name for name in names if ".so" in name or name.endswith(".cc")])

    def test_without_a_library_the_wheel_is_for_every_platform(self):
        environment = {"TACHO_LIBRARY": ""}
        wheel = self.build("build_wheel", **environment)
        self.assertTrue(wheel.endswith("-py3-none-any.whl"), wheel)


class OldPythonTest(unittest.TestCase):
    def test_sources_are_of_python_3_9(self):
        import ast

        for path in pathlib.Path(case.PACKAGE).rglob("*.py"):
            ast.parse(path.read_text(), str(path), feature_version=(3, 9))


if __name__ == "__main__":
    case.main()
