#!/usr/bin/python3
"""Fails if a test or fuzz target is built by nobody: a test in no target is never run.

Every *_test.cc under tests/ must be named in a CMakeLists.txt or *.cmake beside or above it, and
every tests/fuzz/*_fuzz.cc in tests/fuzz/CMakeLists.txt.

Usage: check_sources.py [ROOT]    ROOT is the repository; default: the one of this file.
"""

import pathlib
import re
import sys


def words_of(file):
    # A commented name builds nothing.
    text = re.sub(r"#.*", "", file.read_text()) if file.exists() else ""
    return set(re.split(r"[\s()\"]+", text))


def listings(directory, root):
    """The CMake files that may name sources of `directory`, as (their directory, their words)."""
    while True:
        words = words_of(directory / "CMakeLists.txt")
        yield directory, words
        for included in sorted(directory.glob("*.cmake")):
            if any(word.endswith(included.name) for word in words):
                yield directory, words_of(included)
        if directory == root:
            return
        directory = directory.parent


def is_listed(source, root):
    names = {source.name}
    if source.name.endswith("_fuzz.cc"):
        names.add(source.stem)  # tacho_fuzz(<name>) adds the ending.
    for directory, words in listings(source.parent, root):
        relative = source.parent.relative_to(directory)
        if any(str(relative / name) in words for name in names):
            return True
    return False


def unlisted(root):
    tests = root / "tests"
    sources = sorted(tests.rglob("*_test.cc")) + sorted((tests / "fuzz").glob("*_fuzz.cc"))
    return len(sources), [s for s in sources if not is_listed(s, tests)]


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here
    count, missing = unlisted(root)
    for source in missing:
        print(f"{source.relative_to(root)}: named in no CMakeLists.txt, so nothing runs it")
    if count == 0:
        print(f"no tests below {root}/tests: wrong directory?")
        return 1
    if not missing:
        print(f"{count} test sources, all built")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
