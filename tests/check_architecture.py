#!/usr/bin/python3
"""Fails if a page of PAGES names what is not there: each file in it exists, and each identifier
stands in a source, a proto, a script or a configuration key.

The test looks at text in `backticks`. It ignores placeholders in <angle brackets> or with an ellipsis.

Usage: check_architecture.py [ROOT]    ROOT is the repository; default: the one of this file.
"""

import pathlib
import re
import subprocess
import sys

PAGES = ("docs/architecture.md", "docs/glossary.md", "docs/reliability.md")
SOURCES = (".h", ".cc", ".proto", ".py", ".txt", ".cmake", ".yaml", ".service", ".sh")
FILE = re.compile(r"[\w./-]+\.(?:h|cc|proto|py|md|txt|yaml)$")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def tracked(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                            capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (root / name).is_file()]


def words_of(root, names):
    words = set()
    for name in names:
        if name.endswith(SOURCES) or "/" not in name or name.startswith(("tests/", "deploy/")):
            try:
                words.update(NAME.findall((root / name).read_text(encoding="utf-8")))
            except UnicodeDecodeError:
                continue
            words.update(pathlib.PurePath(name).parts)
    return words


def spans_of(text):
    """(line, span) for each `span`; fenced blocks are left out."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        if not fenced:
            for span in re.findall(r"`([^`]+)`", line):
                yield number, span


def missing(root):
    """(page, line, what) of each name that is not there."""
    names = tracked(root)
    folders = {str(parent) for name in names for parent in pathlib.PurePath(name).parents}
    words = words_of(root, names)
    for page in PAGES:
        for line, span in spans_of((root / page).read_text(encoding="utf-8")):
            for what in wrong_in(span, names, folders, words):
                yield page, line, what


def wrong_in(span, names, folders, words):
    """What is wrong with the span, as texts."""
    if "<" in span or "…" in span:
        return
    if FILE.match(span):
        if not any(name == span or name.endswith("/" + span) for name in names):
            yield f"there is no file {span}"
    elif span.endswith("/"):
        folder = span.rstrip("/")
        if not any(one == folder or one.endswith("/" + folder) for one in folders):
            yield f"there is no folder {span}"
    else:
        for word in NAME.findall(span):
            if len(word) > 2 and word not in words:
                yield f"{word} (in `{span}`) is in no source"


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here
    found = list(missing(root))
    for page, line, what in found:
        print(f"{page}:{line}: {what}")
    if not found:
        print(f"{', '.join(PAGES)}: every name is there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
