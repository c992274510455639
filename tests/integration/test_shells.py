"""Completion of tachoctl in real shells against a live collector, and the manual pages."""
import os
import re
import subprocess
import time

import client
import harness

METRICS = [("loss", "nats"), ("learning rate", "1")]
# What bash shows for a line, word by word as readline splits it.
BASH = r"""
source <(tachoctl completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tachoctl; printf '%s\n' "${COMPREPLY[@]}"
"""
# What zsh's completion offers: an interactive zsh in a terminal of its own prints each match.
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source ${(q)1}"
zpty -r shell seen '*ready*'
zpty -n -w shell "$2"$'\t'
while zpty -r shell line; do print -r -- "$line"; done
"""
ZSH_SET_UP = r"""
PROMPT=
fpath=($FPATH_OF_TEST $fpath)
autoload -Uz compinit && compinit -u -d $FPATH_OF_TEST/dump
bindkey '^I' complete-word
zstyle ':completion:*' insert-tab false
finish() { print; print -r -- OVER; exit; }
comppostfuncs=(finish)
compadd() {
  local -a found
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)* ]]; then
    builtin compadd -A found "$@"
    print -r -l -- '' MATCH:${^found}
  fi
  builtin compadd "$@"
}
print -r -- "re""ady"
"""


class ShellsTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.directory, "bin")
        os.mkdir(self.bin)
        os.symlink(os.environ["TACHO_CTL"], os.path.join(self.bin, "tachoctl"))

    def start_collector(self):
        collector = self.started(harness.Collector(self.directory))
        stream = client.Stream(collector.address, "agent", 1, 1)
        self.addCleanup(stream.close)
        stream.send(client.layout(1, "my job", "host-1", METRICS, 0, 0, True))
        stream.send(client.batch(1, 1, [time.time_ns()], [1.0, 0.1], [1]))
        self.assertTrue(stream.wait_durable(1), stream.error)
        self.address = collector.address

    def run_shell(self, *command, **more):
        env = {
            **os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": self.directory,
            "TACHO_ADDRESS": getattr(self, "address", ""), "LC_ALL": "C.UTF-8", **more,
        }  # fmt: skip
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=harness.PATIENCE_S,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, (command, done.stdout, done.stderr))
        return done.stdout

    def script(self, name, file):
        path = os.path.join(self.directory, file)
        with open(path, "w") as out:
            out.write(harness.tachoctl("", "completion", name).stdout)
        return path

    def test_bash_completes_commands_flags_jobs_and_metrics(self):
        self.start_collector()

        def offers(*words):
            return self.run_shell("bash", "-c", BASH, "bash", *words).split("\n")[:-1]

        self.assertEqual(offers("tachoctl", "sta"), ["status"])
        self.assertEqual(offers("tachoctl", "status", "m"), [r"my\ job"])
        self.assertEqual(offers("tachoctl", "query", r"my\ job", "lo"), ["loss"])
        self.assertEqual(offers("tachoctl", "jobs", "--state", "r"), ["running"])
        self.assertEqual(offers("tachoctl", "completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(offers("tachoctl", "tag", "m"), [r"my\ job"])
        self.assertIn("--remove", offers("tachoctl", "tag", "--"))

    def test_fish_completes_commands_flags_jobs_and_metrics(self):
        fish = harness.tool("fish")
        self.start_collector()
        path = self.script("fish", "tachoctl.fish")
        self.run_shell(fish, "-n", path)

        def offers(line):
            found = self.run_shell(fish, "-c", f"source {path}; complete -C '{line}'")
            return [one.split("\t")[0] for one in found.split("\n")[:-1]]

        self.assertEqual(offers("tachoctl sta"), ["status"])
        self.assertEqual(offers("tachoctl status m"), ["my job"])
        self.assertEqual(offers(r"tachoctl query my\\ job lo"), ["loss"])
        self.assertEqual(offers("tachoctl status --metric loss m"), ["my job"])
        self.assertEqual(offers("tachoctl jobs --state r"), ["running"])
        self.assertEqual(offers("tachoctl completion "), ["bash", "fish", "zsh"])
        self.assertEqual(offers("tachoctl query --poi"), ["--points"])
        self.assertNotIn("--points", offers("tachoctl jobs --"))
        self.assertEqual(offers("tachoctl --address 127.0.0.1:1 status m"), [])

    def test_zsh_completes_commands_flags_jobs_and_metrics(self):
        zsh = harness.tool("zsh")
        self.start_collector()
        self.run_shell(zsh, "-n", self.script("zsh", "_tachoctl"))

        set_up = os.path.join(self.directory, "set_up.zsh")
        with open(set_up, "w") as file:
            file.write(ZSH_SET_UP)

        def offers(line):
            out = self.run_shell(
                zsh, "-f", "-c", ZSH, "zsh", set_up, line, FPATH_OF_TEST=self.directory
            )
            self.assertIn("OVER", out)
            return sorted(set(re.findall(r"MATCH:(.+?)\r?$", out, re.MULTILINE)))

        self.assertEqual(offers("tachoctl sta"), ["status"])
        self.assertEqual(offers("tachoctl status "), [r"my\ job"])
        self.assertEqual(offers("tachoctl query my\\ job "), [r"learning\ rate", "loss"])
        self.assertEqual(offers("tachoctl jobs --state "), ["ended", "running", "silent"])
        self.assertEqual(offers("tachoctl --address 127.0.0.1:1 status "), [])
        self.assertIn("--points", offers("tachoctl query --"))

    def test_manual_pages_have_every_command_and_flag(self):
        pages = os.environ["TACHO_MANUAL"]
        if not os.path.exists(os.path.join(pages, "tacho-agent.8")):
            self.skipTest("the target 'manual' has not been built")

        def page(name):
            with open(os.path.join(pages, name)) as file:
                return file.read().replace("\\-", "-")

        overview = harness.tachoctl("", "help").stdout
        commands = re.findall(r"^  ([a-z-]+) .*$", overview.split("A first look")[0], re.MULTILINE)
        self.assertGreater(len(commands), 20)
        text = page("tachoctl.1")
        for command in commands:
            self.assertIn(f"\n.SS {command}", text)
            for flag in re.findall(r"--[a-z-]+", harness.tachoctl("", "help", command).stdout):
                self.assertIn(flag, text)
        programs = {"tacho-collector.8": "TACHO_COLLECTOR", "tacho-agent.8": "TACHO_AGENT"}
        for name, program in programs.items():
            help_text = subprocess.run(
                [os.environ[program], "--help"], capture_output=True, text=True, check=True
            ).stdout
            for flag in re.findall(r"^  (?:-h, )?(--[a-z-]+)", help_text, re.MULTILINE):
                self.assertRegex(page(name), rf"\.TP\n\\fB(-h, )?{flag}\b")
        diagnose = ".SH DIAGNOSE\ntacho-agent diagnose checks this machine"
        self.assertIn(diagnose, page("tacho-agent.8"))
        sections = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES")
        for name in programs:
            for section in sections:
                self.assertIn(f".SH {section}\n", page(name))

    def test_manual_pages_are_well_formed(self):
        mandoc = harness.tool("mandoc")
        pages = os.environ["TACHO_MANUAL"]
        if not os.path.exists(os.path.join(pages, "tacho-agent.8")):
            self.skipTest("the target 'manual' has not been built")
        for name in ("tachoctl.1", "tacho-collector.8", "tacho-agent.8"):
            lint = subprocess.run(
                [mandoc, "-T", "lint", "-W", "warning", os.path.join(pages, name)],
                capture_output=True, text=True,
            ).stdout  # fmt: skip
            complaints = [line for line in lint.splitlines() if "missing date" not in line]
            self.assertEqual(complaints, [], name)


if __name__ == "__main__":
    harness.main()
