"""Puts libtacho.so.1 into wheels; everything else is in pyproject.toml.

The library is TACHO_LIBRARY, else what the checkout around this directory has built (target
tacho_shared). Without either the wheel has none: it can ask a collector, and records where
TACHO_LIBRARY or the system provides the library. So does what is installed from an sdist, which holds
Python alone: compiling C++ while installing would ask for a compiler of C++20 on machines that have
none.
"""
import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # Before setuptools 70.1.
    from wheel.bdist_wheel import bdist_wheel

SONAME = "libtacho.so.1"


def find_library():
    named = os.environ.get("TACHO_LIBRARY")
    if named:
        return pathlib.Path(named)
    root = pathlib.Path(__file__).resolve().parents[2]
    for preset in ("release", "dev"):
        path = root / "build" / preset / "client/c" / SONAME
        if path.exists():
            return path
    return None


class BuildPy(build_py):
    def run(self):
        super().run()
        library = find_library()
        if library is None:
            print("no libtacho.so.1: set TACHO_LIBRARY to have it in the wheel", file=sys.stderr)
            return
        target = pathlib.Path(self.build_lib, "tacho", SONAME)
        shutil.copyfile(library, target)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", str(target)], check=True)


class Wheel(bdist_wheel):
    """Any Python 3, but this platform: the library is loaded, not linked."""

    def get_tag(self):
        tag = super().get_tag()
        return tag if self.root_is_pure else ("py3", "none", tag[2])


class Platform(Distribution):
    def has_ext_modules(self):
        return find_library() is not None


setup(distclass=Platform, cmdclass={"build_py": BuildPy, "bdist_wheel": Wheel})
