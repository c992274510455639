#!/usr/bin/python3
"""Writes one source that has the tests of several: most of the time that a compiler takes for one goes into
templates of headers, which it then instantiates once.

Usage: batch_tests.py BATCH BUILD

  BATCH   BATCH.txt has a source on each line; BATCH.cc is written
  BUILD   the folder in which the compiler runs: messages and debuggers name a source by its path from there

Sources of tests have helpers of the same names in their anonymous namespaces. Here each has a namespace of its
own in that, so that they do not see each other. Lines keep their numbers.
"""

import os
import pathlib
import re
import sys

BEGIN = re.compile(r"^namespace \{$", re.MULTILINE)
END = re.compile(r"^\}  // namespace$", re.MULTILINE)


def apart(source):
    """The text of a source, whose anonymous namespaces have another one inside."""
    text = source.read_text(encoding="utf-8")
    name = re.sub(r"\W", "_", source.stem)
    text, begins = BEGIN.subn(f"namespace {{ namespace {name} {{", text)
    text, ends = END.subn("}}  // namespace", text)
    if begins != ends:
        sys.exit(f"{source}: {begins} lines are 'namespace {{', and {ends} are '}}  // namespace': clang-format -i "
                 "writes both so")
    return text


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    batch, build = sys.argv[1:]
    parts = []
    for source in pathlib.Path(f"{batch}.txt").read_text(encoding="utf-8").splitlines():
        parts.append(f'#line 1 "{os.path.relpath(source, build)}"\n{apart(pathlib.Path(source))}')
    pathlib.Path(f"{batch}.cc").write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
