"""The fenced blocks of the pages, and the comments before them that say how each is run.

A block is run unless a comment right before its fence says otherwise. Comments do not show in the rendered page:

  <!-- not run: REASON -->      it is not run, for this reason (at least two words)
  <!-- run by: FILE -->         another test runs it: FILE, which names the page
  <!-- first: TEXT -->          TEXT, in the block's language, is run before it
  <!-- run: OPTION... -->       how it is run:
      status=N          each command ends with 0 or N
      ctrl-c=N          it runs until Ctrl-C, after N seconds
      until="TEXT"      it runs on in the background as soon as it has printed TEXT
      terminals         each of its commands runs on in a terminal of its own
      output=N          it shows output: within N seconds the page's commands have printed each of its lines;
                        … stands for anything
      file=NAME         it is the file NAME for the blocks after it

A comment <!-- the quickstart runs --> anywhere in the page gives its blocks the collector, the agent and the job of
deploy/quickstart. A page with <!-- needs namespaces --> is left out where they are not allowed.
"""

import dataclasses
import pathlib
import re
import shlex
import subprocess

FENCE = re.compile(r"^(\s*)(`{3,})\s*(\w*)[^`]*$")
COMMENT = re.compile(r"<!--\s*(not run|run by|first|run):\s?(.*?)\s*-->", re.DOTALL)
RUNNING = "<!-- the quickstart runs -->"
NAMESPACES = "<!-- needs namespaces -->"
STANDING = (RUNNING, NAMESPACES)
OPTIONS = {"status", "ctrl-c", "until", "terminals", "output", "file"}

# Pages whose blocks another test holds, all of them.
HELD_ELSEWHERE = {
    "docs/runbooks/": "tests/integration/test_alert_rules.py",
    "docs/grafana.md": "tests/grafana/test_rules.py",
}
# Pages that show no command and no example of use, but formats and what was.
NOT_FOR_READERS_HANDS = ("CHANGELOG.md", "docs/decisions/")


class Mistake(Exception):
    """A page that cannot be run; the text says where and why."""


@dataclasses.dataclass
class Block:
    page: str
    line: int  # Of the fence, from 1.
    language: str
    text: str
    first: str = ""
    not_run: str = ""
    run_by: str = ""
    options: dict = dataclasses.field(default_factory=dict)

    @property
    def where(self):
        return f"{self.page}:{self.line}"


def pages(root):
    """The repository's pages, except those that are for no reader's hands."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=True)
    return [name for name in sorted(set(listed.stdout.splitlines()))
            if (root / name).is_file() and not name.startswith(NOT_FOR_READERS_HANDS)]


def holder(page):
    """The test that runs every block of the page; None if there is none."""
    return next((test for start, test in HELD_ELSEWHERE.items() if page.startswith(start)), None)


def _options(block, text):
    for word in shlex.split(text):
        name, _, value = word.partition("=")
        if name not in OPTIONS:
            raise Mistake(f"{block.where}: there is no option '{name}'; there are {', '.join(sorted(OPTIONS))}")
        block.options[name] = value


def _mark(block, comments):
    for comment in re.findall(r"<!--.*?-->", comments, re.DOTALL):
        if not COMMENT.match(comment) and comment not in STANDING:
            raise Mistake(f"{block.where}: the comment before it is not known: {comment}")
    for what, text in COMMENT.findall(comments):
        if what == "not run":
            if len(text.split()) < 2:
                raise Mistake(f"{block.where}: 'not run:' needs a reason of more than a word")
            block.not_run = text
        elif what == "run by":
            block.run_by = text
        elif what == "first":
            block.first += text + "\n"
        else:
            _options(block, text)


def blocks(page, text):
    """The blocks of a page, in order, with what the comments before them say."""
    lines = text.split("\n")
    found, comments, at = [], "", 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        begin = at
        if fence:
            indent, ticks, language = fence.groups()
            at += 1
            while at < len(lines) and lines[at].strip() != ticks:
                at += 1
            if at == len(lines):
                raise Mistake(f"{page}:{begin + 1}: the block never ends")
            body = "".join(line.removeprefix(indent) + "\n" for line in lines[begin + 1:at])
            block = Block(page, begin + 1, language, body)
            _mark(block, comments)
            found.append(block)
            comments = ""
        elif lines[at].lstrip().startswith("<!--"):
            while "-->" not in lines[at] and at + 1 < len(lines):
                at += 1
            comments += "\n".join(lines[begin:at + 1]) + "\n"
        else:
            comments = ""
        at += 1
    return found


def check_holder(root, where, page, test):
    """Raises Mistake unless the test exists and names the page, or its folder."""
    path = root / test
    if not path.is_file():
        raise Mistake(f"{where}: the test {test} does not exist")
    name, source = pathlib.Path(page), path.read_text(encoding="utf-8")
    if str(name) not in source and not (page.startswith("docs/runbooks/") and "docs/runbooks" in source):
        raise Mistake(f"{where}: {test} does not name {name}, so it cannot run this block")
