#!/usr/bin/python3
"""Runs clang-tidy over the sources of the programs and libraries, in parallel, and fails on a finding.

Tests are left out: their time is mostly that of GoogleTest's macros. A source is skipped if it, all
it includes, its compile command and .clang-tidy are as they were when it was last found clean; what
it includes is known from the log that ninja keeps, so the build must be complete.

Usage: tidy.py BUILD_DIRECTORY    a build by clang, so that clang-tidy knows every flag
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ("agent", "client", "proto", "server", "storage")
# Its counts of warnings in system headers say nothing.
NOISE = re.compile(r"^\d+ warnings?( and \d+ errors?)? (generated|treated)|^Suppressed|^Use -header")


def commands_of(build):
    """(source, compile command) of every source that is ours and written by hand."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if source.is_relative_to(ROOT) and source.relative_to(ROOT).parts[0] in PARTS:
            yield source, entry["command"]


def includes_of(build):
    """Each source's files below ROOT, itself among them; empty where ninja knows nothing."""
    log = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True,
                         check=True).stdout
    includes = {}
    for paragraph in log.split("\n\n"):
        files = [(build / line.strip()).resolve() for line in paragraph.splitlines()[1:]]
        if files:
            includes[files[0]] = sorted({f for f in files if f.is_relative_to(ROOT)})
    return includes


class Digests:
    """Of files and their contents; each file is read once."""

    def __init__(self):
        self.known = {}

    def of(self, file):
        if file not in self.known:
            content = file.read_bytes() if file.exists() else b"gone"
            self.known[file] = hashlib.sha256(content).digest()
        return self.known[file]


def check(source, build):
    """The findings in a source, as text: empty if it is clean."""
    result = subprocess.run(["clang-tidy", "-quiet", "-p", build, source], capture_output=True,
                            text=True)
    said = [l for l in (result.stdout + result.stderr).splitlines() if not NOISE.match(l)]
    if result.returncode == 0:
        return ""
    return "\n".join(said) or f"{source}: clang-tidy ended with {result.returncode}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    clean = build / "tidy-clean"
    clean.mkdir(exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    rules = hashlib.sha256(version + (ROOT / ".clang-tidy").read_bytes()).digest()
    digests, includes = Digests(), includes_of(build)

    pending = {}
    commands = sorted(commands_of(build))
    for source, command in commands:
        known = b"".join(digests.of(file) for file in includes.get(source, []))
        stamp = clean / hashlib.sha256(rules + command.encode() + known).hexdigest()
        if not known or not stamp.exists():
            pending[source] = stamp

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(check, source, build): source for source in pending}
        for job in concurrent.futures.as_completed(jobs):
            if job.result():
                failed += 1
                print(job.result(), flush=True)
            else:
                pending[jobs[job]].touch()
    print(f"{len(commands)} sources, {len(pending)} looked at, {failed} with findings")
    return 1 if failed or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
