"""Runs the blocks of one page: a shell, a Python and background programs that share a directory."""

import fcntl
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time

import pages

PATIENCE_S = 60
# Where a build has them.
PROGRAMS = ("server", "agent", "client/ctl", "client/examples")
# Reads file names, sources each, and reports every command that failed, with its status and line. Job control gives
# background programs a process group of their own, and Ctrl-C its usual meaning.
SHELL = r"""
set -E -m
while read -r block <&3; do
  trap 'echo "failed $? $LINENO $BASH_COMMAND" >&4' ERR
  source "$block" </dev/null
  trap - ERR
  echo "pid $!" >&4
  echo done >&4
done
"""
# The same for Python: one set of names for the page.
PYTHON = r"""
import os, sys, traceback
names = {"__name__": "__main__"}
for line in os.fdopen(3):
    path = line.strip()
    try:
        with open(path + ".env") as file:  # What the page's shell has exported meanwhile.
            os.environ.update(one.split("=", 1) for one in file.read().split("\0") if one)
        with open(path) as file:
            exec(compile(file.read(), path, "exec"), names)
    except BaseException as e:
        traceback.print_exc()
        os.write(4, f"failed 1 0 {type(e).__name__}\n".encode())
    sys.stdout.flush()
    os.write(4, b"done\n")
"""


def plain(text):
    """Without colours, and with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)).strip()


def commands(text):
    """The commands of a block, each of which may go over lines that end with a backslash."""
    return [one for one in re.split(r"(?<!\\)\n", text) if one.strip() and not one.lstrip().startswith("#")]


def high_pipe():
    """Descriptors from 10 on, which collide with none of a shell's."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in low)
    for one in low:
        os.close(one)
    return high


class Interpreter:
    """A process that runs files one after the other, and says what failed."""

    def __init__(self, words, directory, environment, log):
        ask, self._ask = high_pipe()
        answers, answer = high_pipe()
        # As descriptors 3 and 4: a shell gives them these numbers.
        move = f'exec 3<&{ask} 4>&{answer} {ask}<&- {answer}>&-; exec "$@"'
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "bash", "-c", move, "move", *words], cwd=directory, env=environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(ask, answer), start_new_session=True)
        os.close(ask)
        os.close(answer)
        self._answers = answers
        self._rest = b""

    def run(self, path):
        """([(status, line, command)] of what failed, the last background process)."""
        os.write(self._ask, f"{path}\n".encode())
        failed, background = [], None
        deadline = time.monotonic() + 2 * PATIENCE_S
        while True:
            what, _, rest = self._line(path, deadline).partition(" ")
            if what == "done":
                return failed, background
            if what == "pid":
                background = int(rest) if rest else None
            elif what == "failed":
                status, number, command = rest.split(" ", 2)
                failed.append((int(status), int(number), command))

    def _line(self, path, deadline):
        while b"\n" not in self._rest:
            if not select.select([self._answers], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise pages.Mistake(f"{path} did not end in {2 * PATIENCE_S} s: {path.read_text()}")
            read = os.read(self._answers, 4096)
            if not read:
                raise pages.Mistake(f"{path} ended its shell: a block must not call exit")
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")

    def close(self):
        os.close(self._ask)
        os.close(self._answers)
        self.process.kill()
        self.process.wait()


class Session:
    """The blocks of a page are given to run(), in order; close() ends what still runs."""

    def __init__(self, clone, scratch, environment):
        self.clone = clone
        self.scratch = pathlib.Path(scratch)
        self.environment = environment
        self.log = self.scratch / "output.log"
        self._sink = open(self.log, "ab")
        self._shell = self._python = None
        self._background = []  # (where, process group)
        self._count = 0

    def _file(self, text, suffix):
        self._count += 1
        path = self.scratch / f"block-{self._count}{suffix}"
        path.write_text(text, encoding="utf-8")
        return path

    def programs_path(self):
        """Of the programs that were built, and of Prometheus."""
        found = [self.clone / "build/release" / folder for folder in PROGRAMS] + [self.clone / "build/tools/usr/bin"]
        return os.pathsep.join([*map(str, found), self.environment["PATH"]])

    def output(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    # --- Shell and Python -----------------------------------------------------------------------------

    def _run_shell(self, text):
        if self._shell is None:
            self._shell = Interpreter(["bash", "--norc", "--noprofile", "-c", SHELL], self.clone, self.environment,
                                      self._sink)
        # The status of the file is that of its last command, which has been reported.
        return self._shell.run(self._file(text + "\n:\n", ".sh"))

    def _run_python(self, block):
        if self._python is None:
            self._python = Interpreter([sys.executable, "-B", "-c", PYTHON], self.clone, self.environment, self._sink)
        file = self._file(block.first + block.text, ".py")
        self._run_shell(f"env -0 >{file}.env")
        failed, _ = self._python.run(file)
        self._expect(block, failed, 0)

    @staticmethod
    def _expect(block, failed, allowed, lines_before=0):
        for status, line, command in failed:
            if status != allowed:
                raise pages.Mistake(f"{block.page}:{block.line + max(line - lines_before, 0)}: status {status} of: "
                                    f"{command}")

    def _prepare(self, block):
        """What the page does not show."""
        if block.first:
            failed, _ = self._run_shell(block.first)
            self._expect(block, failed, 0, lines_before=1 << 20)

    def _run_commands(self, block):
        self._prepare(block)
        options = block.options
        if "terminals" in options:
            for command in commands(block.text):
                self._start(block, command)
        elif "until" in options:
            begin = len(self.output())
            self._start(block, block.text)
            self._await([options["until"]], block, 2 * PATIENCE_S, begin)
        elif "ctrl-c" in options:
            inner = self._file(block.text, ".sh")
            failed, _ = self._run_shell(f"timeout -s INT {options['ctrl-c']} bash {inner}\n")
            if [status for status, _, _ in failed] != [124]:
                raise pages.Mistake(f"{block.where}: it ended before Ctrl-C, with {failed}")
        else:
            failed, _ = self._run_shell(block.text)
            self._expect(block, failed, int(options.get("status", 0)))

    # --- Background -----------------------------------------------------------------------------------

    def _start(self, block, command):
        """In the directory and with the variables that the shell has now."""
        inner = self._file(command, ".sh")
        failed, process = self._run_shell(f"bash {inner} 3<&- 4>&- &\n")
        self._expect(block, failed, 0)
        self._background.append((block.where, process))

    def _await(self, texts, block, patience_s, begin=0):
        """Until all texts stand in the output from there on."""
        patterns = [re.compile(".*".join(re.escape(part) for part in plain(text).split("…"))) for text in texts]
        deadline = time.monotonic() + patience_s
        while True:
            output = plain(self.output()[begin:])
            missing = [text for text, pattern in zip(texts, patterns) if not pattern.search(output)]
            if not missing:
                return
            if time.monotonic() > deadline:
                raise pages.Mistake(f"{block.where}: after {patience_s:.0f} s no command has printed: {missing[0]}")
            time.sleep(0.2)

    # --- Whatever stands in a block -------------------------------------------------------------------

    def run(self, block, languages):
        """`languages` are those that need more than a session: {language: function(session, block)}."""
        if "output" in block.options:
            self._prepare(block)
            self._await([line for line in block.text.splitlines() if line.strip()], block,
                        float(block.options["output"] or 0))
        elif "file" in block.options:
            self._prepare(block)
            (self.clone / block.options["file"]).write_text(block.text, encoding="utf-8")
        elif block.language in ("", "sh", "bash"):
            self._run_commands(block)
        elif block.language == "python":
            self._run_python(block)
        elif block.language in languages:
            languages[block.language](self, block)
        else:
            raise pages.Mistake(f"{block.where}: nobody can run '{block.language}'; say 'not run: REASON' in a comment"
                                " before it (tests/docs/pages.py)")

    def close(self):
        """Ctrl-C to what runs in the background; raises Mistake if something does not end orderly."""
        trouble = []
        for where, process in reversed(self._background):
            if not self._interrupt(process):
                trouble.append(f"{where}: did not end after Ctrl-C")
        for interpreter in (self._shell, self._python):
            if interpreter is not None:
                interpreter.close()
        self._sink.close()
        if trouble:
            raise pages.Mistake("; ".join(trouble))

    @staticmethod
    def _interrupt(group):
        deadline = time.monotonic() + PATIENCE_S
        try:
            os.killpg(group, signal.SIGINT)
            while time.monotonic() < deadline:
                os.killpg(group, 0)
                time.sleep(0.1)
            os.killpg(group, signal.SIGKILL)
            return False
        except ProcessLookupError:
            return True
