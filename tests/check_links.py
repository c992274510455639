#!/usr/bin/python3
"""Fails if a link in a Markdown page leads to a file or a heading of the repository that does not exist.

It does not check links to other sites, or text in fenced blocks.

Usage: check_links.py [ROOT]    ROOT is the repository; default: the one of this file.
"""

import pathlib
import re
import subprocess
import sys

FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=True)
    return [root / name for name in listed.stdout.splitlines() if (root / name).is_file()]


def text_of(page):
    """The page's text; fenced blocks are replaced by as many empty lines."""
    text = page.read_text(encoding="utf-8")
    return FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)


def anchor(heading):
    """The anchor that GitHub makes of a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(page):
    found = {}
    for heading in HEADING.findall(text_of(page)):
        name = anchor(heading)
        count = found.get(name, 0)
        found[name] = count + 1
        if count > 0:
            found[f"{name}-{count}"] = 1
    return set(found)


def broken(root):
    """(page, line, what) of each link that leads nowhere."""
    for page in pages(root):
        for number, line in enumerate(text_of(page).splitlines(), 1):
            for target in LINK.findall(line):
                what = wrong_with(page, target)
                if what:
                    yield page.relative_to(root), number, what


def wrong_with(page, target):
    """Why the link leads nowhere; None if it is right."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, heading = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return f"{target}: there is no such file"
    if heading and file.suffix == ".md" and heading not in anchors(file):
        return f"{target}: the page has no such heading"
    return None


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here
    found = list(broken(root))
    for page, line, what in found:
        print(f"{page}:{line}: {what}")
    if not found:
        print("every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
