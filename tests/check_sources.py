#!/usr/bin/python3
"""Checks what a compiler does not: where sources stand, what they include, what they define twice.

- Every *_test.cc and *_fuzz.cc is named in a CMakeLists.txt: a test in no target is never run.
- A folder includes only what tests/rooms.txt allows it; storage knows neither gRPC nor protobuf, and
  what a trainer links includes nothing but the C++ library.
- A folder has at most 25 units (a header and its source are one), a file 600 lines, a function 70.
- Nothing waits for a time of day: timed waits are those of proto/base/timed_wait.h.
- No type is defined in two files under one name: linked into one program, they would be taken for each
  other, and neither compiler nor linker says so.

Usage: check_sources.py [ROOT]    ROOT is the repository; default: the one of this file.
"""

import collections
import pathlib
import re
import sys

import cpp_outline

MAX_UNITS = 25
MAX_LINES = 600
MAX_FUNCTION_LINES = 70
PARTS = ("proto", "storage", "client", "agent", "server")
GENERATED = re.compile(r"\.pb\.h$")

# What a room must not include, beside the arrows of rooms.txt: (rooms, includes, why).
FORBIDDEN = (
    (r"storage(/.*)?$|proto/base$", r"grpc|google/protobuf|\.pb\.h$", "it knows neither gRPC nor protobuf"),
    (r"client(/ring)?$|client/c$", r"^(absl|grpc|google|rocksdb|prometheus)\b|\.pb\.h$",
     "a trainer links the C++ runtime alone"),
)
# Parts of client/ and client/ring/ that agents and tachoctl link, not trainers.
NOT_IN_TRAINERS = re.compile(r"client/(histogram_layout|ring/(ring_batch_builder|ring_reader|ring_records))\.")


# Waits that end after a time, and the only unit that may make them: in Abseil they go by the wall clock, and
# a clock that is set back holds them up.
TIMED_WAIT = re.compile(
    r"\b(\w+With(?:Timeout|Deadline)|wait_for|wait_until|try_lock_until|try_acquire_until|sleep_until"
    r"|pthread_\w+_timed\w+|sem_timedwait|gpr_cv_wait)\s*\("
)
WAITING_UNIT = "proto/base/timed_wait"


def read(file):
    return file.read_text(encoding="utf-8")


def cpp_files(root, *parts):
    for part in parts:
        for file in sorted((root / part).rglob("*")):
            if file.suffix in (".h", ".cc"):
                yield file


# --- Tests that nobody builds -------------------------------------------------------------------------


def words_of(file):
    # A commented name builds nothing.
    text = re.sub(r"#.*", "", read(file)) if file.exists() else ""
    return set(re.split(r"[\s()\"]+", text))


def is_listed(source, root):
    """Whether a CMakeLists.txt of its folder, or of one above it below `root`, names the source."""
    names = {source.name}
    if source.name.endswith("_fuzz.cc"):
        names.add(source.stem)  # tacho_fuzz(<name>) adds the ending.
    directory = source.parent
    while True:
        relative = source.parent.relative_to(directory)
        words = words_of(directory / "CMakeLists.txt")
        if any(str(relative / name) in words for name in names):
            return True
        if directory == root:
            return False
        directory = directory.parent


def unlisted_tests(root):
    tests = root / "tests"
    sources = sorted(tests.rglob("*_test.cc")) + sorted((tests / "fuzz").glob("*_fuzz.cc"))
    if not sources:
        yield f"no tests below {tests}: wrong directory?"
    for source in sources:
        if not is_listed(source, tests):
            yield f"{source.relative_to(root)}: named in no CMakeLists.txt, so nothing runs it"


# --- Rooms --------------------------------------------------------------------------------------------


def rooms_of(root):
    """{room: rooms that it may include}; a room may only name rooms above its own line."""
    rooms = {}
    for line in read(root / "tests/rooms.txt").splitlines():
        if not line or line.startswith("#"):
            continue
        room, _, allowed = line.partition(":")
        rooms[room] = set(allowed.split())
    return rooms


def circles(rooms):
    state = {}

    def visit(room, path):
        if state.get(room) == "done":
            return
        if room in path:
            yield "tests/rooms.txt: " + " -> ".join([*path[path.index(room):], room])
            return
        for other in sorted(rooms.get(room, ())):
            yield from visit(other, [*path, room])
        state[room] = "done"

    for room in rooms:
        yield from visit(room, [])


def wrong_includes(root, rooms):
    for file in cpp_files(root, *PARTS):
        name = file.relative_to(root)
        room = str(name.parent)
        if room not in rooms:
            yield f"{name}: its folder is not in tests/rooms.txt"
            continue
        forbidden = [(what, why) for where, what, why in FORBIDDEN if re.match(where, room)]
        if NOT_IN_TRAINERS.match(str(name)):
            forbidden = []
        for include in re.findall(r'^#include [<"]([^">]+)', read(file), re.MULTILINE):
            for what, why in forbidden:
                if re.search(what, include):
                    yield f"{name}: includes {include}; {room}: {why}"
            other = str(pathlib.PurePath(include).parent)
            if GENERATED.search(include) or not (root / include).exists() or other in (room, "proto/base"):
                continue
            if other not in rooms[room]:
                yield f"{name}: includes {include}; tests/rooms.txt does not let {room} see {other}"


def crowded_rooms(root):
    units = collections.defaultdict(set)
    for file in cpp_files(root, *PARTS):
        units[str(file.parent.relative_to(root))].add(file.stem)
    for room, names in units.items():
        if len(names) > MAX_UNITS:
            yield f"{room}: {len(names)} units; a room has at most {MAX_UNITS}"


# --- Waiting -------------------------------------------------------------------------------------------


def waits_elsewhere(root):
    for file in cpp_files(root, *PARTS):
        name = file.relative_to(root)
        if str(name.with_suffix("")) == WAITING_UNIT:
            continue
        for number, line in enumerate(read(file).splitlines(), 1):
            for wait in TIMED_WAIT.findall(line.partition("//")[0]):
                yield f"{name}:{number}: {wait}() may wait for the wall clock; use {WAITING_UNIT}.h"


# --- Sizes and names ----------------------------------------------------------------------------------


def long_ones(root):
    for file in cpp_files(root, *PARTS, "tests"):
        text = read(file)
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield f"{file.relative_to(root)}: {lines} lines; a file has at most {MAX_LINES}"
        if "tests" in file.relative_to(root).parts[:1]:
            continue
        for line, length, name in cpp_outline.functions(text):
            if length > MAX_FUNCTION_LINES:
                yield (f"{file.relative_to(root)}:{line}: {name} has {length} lines; a function has at "
                       f"most {MAX_FUNCTION_LINES}")


def types_defined_twice(root):
    files = collections.defaultdict(list)
    for file in cpp_files(root, *PARTS, "tests"):
        for name in cpp_outline.types(read(file)):
            files[name].append(str(file.relative_to(root)))
    for name, where in sorted(files.items()):
        if len(where) > 1:
            yield f"{name} is defined in {' and in '.join(where)}: rename one, or put it into a namespace"


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here
    rooms = rooms_of(root)
    found = [*unlisted_tests(root), *circles(rooms), *wrong_includes(root, rooms),
             *crowded_rooms(root), *waits_elsewhere(root), *long_ones(root), *types_defined_twice(root)]
    print("\n".join(found) if found else f"{len(rooms)} rooms in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
