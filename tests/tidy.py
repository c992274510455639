#!/usr/bin/python3
"""Runs clang-tidy over the sources of the programs and libraries, in parallel, and fails on a finding.

Tests are left out: their time is mostly that of GoogleTest's macros. A source is skipped if it, all
it includes, its compile command and .clang-tidy are as they were when it was last found clean, in any
checkout of this user; what it includes is known from the log that ninja keeps, so the build must be
complete. --slice does without: a source is then taken to include the header of its own name.

Usage: tidy.py [--slice] BUILD_DIRECTORY    a build by clang, so that clang-tidy knows every flag

  --slice   only what commits of the last hours before HEAD have touched (a header through one
            source that includes it), and an eighth of the rest, another one each day; at most
            15 sources, because a change of everything must not take hours
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
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
                     "tachograph/tidy-clean")
RECENT_S = 3 * 3600
SHARES = 8
MOST_OF_SLICE = 15
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


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True,
                          check=True)
    return done.stdout.split()


def sliced(sources, includes):
    """Of the sources those that --slice looks at."""
    committed, day = git("log", "-1", "--format=%ct %cs")
    touched = {ROOT / name for name in
               git("log", f"--since=@{int(committed) - RECENT_S}", "--name-only", "--format=")}
    touched |= {ROOT / name for name in git("diff", "--name-only", "HEAD")}

    def draw(source):
        return hashlib.sha256(f"{day} {source.relative_to(ROOT)}".encode()).digest()

    seen = set()
    chosen = []
    for source in sources:
        wanted = touched.intersection(includes.get(source, [source, source.with_suffix(".h")])) - seen
        if source in touched or wanted or draw(source)[0] % SHARES == 0:
            seen |= wanted
            chosen.append(source)
    return sorted(chosen, key=draw)[:MOST_OF_SLICE]


def check(source, build):
    """The findings in a source, as text: empty if it is clean."""
    result = subprocess.run(["clang-tidy", "-quiet", "-p", build, source], capture_output=True,
                            text=True)
    said = [l for l in (result.stdout + result.stderr).splitlines() if not NOISE.match(l)]
    if result.returncode == 0:
        return ""
    return "\n".join(said) or f"{source}: clang-tidy ended with {result.returncode}"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--slice"]
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    build = pathlib.Path(arguments[0]).resolve()
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    rules = hashlib.sha256(version + (ROOT / ".clang-tidy").read_bytes()).digest()
    digests, includes = Digests(), includes_of(build)

    pending = {}
    commands = sorted(commands_of(build))
    wanted = {source for source, _ in commands}
    if "--slice" in sys.argv:
        wanted = set(sliced(sorted(wanted), includes))
    for source, command in commands:
        if source not in wanted:
            continue
        known = b"".join(digests.of(file) for file in includes.get(source, []))
        anywhere = command.replace(str(ROOT), ".").encode()
        stamp = CACHE / hashlib.sha256(rules + anywhere + known).hexdigest()
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
    print(f"{len(commands)} sources, {len(wanted)} wanted, {len(wanted) - len(pending)} known to be "
          f"clean, {len(pending)} looked at, {failed} with findings")
    return 1 if failed or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
