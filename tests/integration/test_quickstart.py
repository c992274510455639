"""deploy/quickstart, with installed programs and with programs that it has to build."""
import os
import shutil
import subprocess

import harness

PROGRAMS = {
    "TACHO_COLLECTOR": "server/tacho-collector", "TACHO_AGENT": "agent/tacho-agent",
    "TACHO_CTL": "client/ctl/tachoctl", "TACHO_TRAIN": "client/examples/tacho-example-train",
}  # fmt: skip
PRESETS = """{"version": 4, "configurePresets": [{"name": "release", "generator": "Ninja",
  "binaryDir": "${sourceDir}/build/release"}]}"""


class QuickstartTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        here = os.path.dirname(os.path.abspath(__file__))
        os.mkdir(f"{self.directory}/deploy")
        shutil.copy2(f"{here}/../../deploy/quickstart", f"{self.directory}/deploy/quickstart")

    def run_quickstart(self, *arguments, path=""):
        ports = ("--grpc-port", str(harness.free_port()), "--http-port", str(harness.free_port()))
        return subprocess.run(
            [f"{self.directory}/deploy/quickstart", "--once", *ports, *arguments], text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=3 * harness.PATIENCE_S,
            env={**os.environ, "PATH": f"{path}:/usr/bin:/bin"})  # fmt: skip

    def write_project(self, commands):
        """A project whose targets have the names of ours; {target: its command}."""
        with open(f"{self.directory}/deploy/packages.sh", "w") as script:
            script.write("#!/bin/sh\n# The packages of this project: none.\n")
        os.chmod(f"{self.directory}/deploy/packages.sh", 0o755)
        with open(f"{self.directory}/CMakePresets.json", "w") as file:
            file.write(PRESETS)
        lines = ["cmake_minimum_required(VERSION 3.25)", "project(small LANGUAGES NONE)"]
        lines += [f"add_custom_target({target} ALL COMMAND {command})" for target, command in commands.items()]
        # No program, but `cmake --install` needs it.
        lines.append("add_custom_target(another ALL COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/another)")
        with open(f"{self.directory}/CMakeLists.txt", "w") as file:
            file.write("\n".join(lines) + "\n")

    def copy_commands(self):
        commands = {}
        for variable, place in PROGRAMS.items():
            target = os.path.basename(place)
            folder = f"${{CMAKE_BINARY_DIR}}/{os.path.dirname(place)}"
            commands[target] = (
                f"${{CMAKE_COMMAND}} -E make_directory {folder} COMMAND ${{CMAKE_COMMAND}} -E create_symlink"
                f" {os.environ[variable]} {folder}/{target}")  # fmt: skip
        return commands

    def test_installed_programs_are_used_as_they_are(self):
        installed = f"{self.directory}/usr/bin"
        os.makedirs(installed)
        for variable, place in PROGRAMS.items():
            os.symlink(os.environ[variable], f"{installed}/{os.path.basename(place)}")
        done = self.run_quickstart(path=installed)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"Programs of {installed}", done.stdout)
        self.assertNotIn("== Build", done.stdout)
        self.assertIn("tachoctl plot spirals loss --by step", done.stdout)
        self.assertRegex(done.stdout, r"Prometheus +http://127.0.0.1:\d+/metrics")

    def test_from_source_it_builds_everything_and_counts_the_steps(self):
        self.write_project(self.copy_commands())
        done = self.run_quickstart()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("5 of 5 steps after", done.stdout)
        self.assertTrue(os.path.exists(f"{self.directory}/build/release/another"))

    def test_a_build_that_fails_says_which_command_did(self):
        self.write_project({**self.copy_commands(), "tacho-agent": "${CMAKE_COMMAND} -E false"})
        done = self.run_quickstart()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("FAILED: CMakeFiles/tacho-agent", done.stdout)
        self.assertIn("quickstart: the build failed; see", done.stdout)


if __name__ == "__main__":
    harness.main()
