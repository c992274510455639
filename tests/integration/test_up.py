"""A first set-up without a configuration: tacho-collector alone, and tachoctl up."""
import os
import re
import shutil
import signal
import socket
import subprocess

import harness


class FirstSetUpTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.home = os.path.join(self.directory, "home")
        os.mkdir(self.home)
        # TACHO_RING_DIR and the like of the caller would lead elsewhere.
        self.environment = {"HOME": self.home, "XDG_STATE_HOME": "", "TACHO_ADDRESS": "", "TACHO_RING_DIR": ""}
        self.state = os.path.join(self.home, ".local/state/tachograph")

    def run_program(self, name, *arguments, **environment):
        """A program whose output is read from its log."""
        log = os.path.join(self.directory, f"program-{len(os.listdir(self.directory))}.log")
        words = [os.environ[name], *arguments]
        return self.started(harness.Program(words, log, {**self.environment, **environment}))

    def run_up(self, *arguments, **environment):
        ports = ("--address", "127.0.0.1:0", "--http", "127.0.0.1:0")
        return self.run_program("TACHO_CTL", "up", *ports, *arguments, **environment)

    def await_text(self, program, text):
        harness.wait_until(lambda: text in program.tail() or not program.alive(), text)
        self.assertIn(text, program.tail())

    def up(self, *arguments):
        """One that is ready, and its gRPC address."""
        program = self.run_up(*arguments)
        self.await_text(program, "Ctrl-C stops")
        return program, re.search(r"queries, agents +(\S+)", program.tail())[1]

    def children(self, program):
        with open(f"/proc/{program.process.pid}/task/{program.process.pid}/children") as file:
            return [int(pid) for pid in file.read().split()]

    def test_the_collector_alone_keeps_its_data_below_home_and_says_where_everything_is(self):
        collector = self.run_program("TACHO_COLLECTOR", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
        self.await_text(collector, "tachoctl up")
        said = collector.tail()
        self.assertTrue(os.path.exists(f"{self.state}/collector/CURRENT"), said)
        self.assertIn(f"data                {self.state}/collector", said)
        url = re.search(r"Prometheus +(http://\S+)", said)[1]
        self.assertEqual(harness.http_get(url)[0], 200)
        address = re.search(r"tachoctl --address (\S+) jobs", said)[1]
        self.assertIn("no jobs yet", harness.tachoctl(address, "jobs").stderr)
        self.assertEqual(collector.stop(), 0)

    def test_the_collector_follows_the_variable_for_state(self):
        elsewhere = os.path.join(self.directory, "elsewhere")
        collector = self.run_program(
            "TACHO_COLLECTOR", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", XDG_STATE_HOME=elsewhere)  # fmt: skip
        self.await_text(collector, f"{elsewhere}/tachograph/collector")
        self.assertFalse(os.path.exists(self.state))

    def test_the_collector_without_a_home_says_what_to_do(self):
        collector = self.run_program("TACHO_COLLECTOR", "--grpc", "127.0.0.1:0", HOME="")
        self.assertEqual(collector.wait(), 1)
        self.assertIn("name one with --data DIRECTORY", collector.tail())

    def test_up_records_a_training_and_ctrl_c_stops_both_in_order(self):
        program, address = self.up()
        rings = re.search(r"export TACHO_RING_DIR=(\S+)", program.tail())[1]
        trainer = [os.environ["TACHO_TRAIN"], "--job", "first", "--steps", "600", "--ring-dir", rings]
        subprocess.run(trainer, check=True, capture_output=True)
        harness.wait_until(
            lambda: "ended" in harness.tachoctl(address, "jobs", "first").stdout, "the job has arrived")  # fmt: skip
        parts = self.children(program)
        self.assertEqual(len(parts), 2)
        program.process.send_signal(signal.SIGINT)
        self.assertEqual(program.wait(), 0, program.tail())
        self.assertFalse([pid for pid in parts if os.path.exists(f"/proc/{pid}")])
        with open(f"{self.state}/collector.log") as log:
            self.assertIn("closed cleanly", log.read())

    def test_parts_end_with_up_however_it_ends(self):
        program, _ = self.up()
        parts = self.children(program)
        program.kill()
        harness.wait_until(lambda: not [pid for pid in parts if is_alive(pid)], "collector and agent have ended")

    def test_a_second_up_says_where_the_first_one_is(self):
        _, address = self.up()
        second = self.run_up()
        self.assertEqual(second.wait(), 0, second.tail())
        self.assertIn("It is up already", second.tail())
        self.assertIn(address, second.tail())
        page = re.search(r"page +(http://\S+/ui/)\n", second.tail())[1]
        self.assertEqual(harness.http_get(page)[0], 200)

    def test_up_names_no_page_of_a_collector_without_one(self):
        collector = self.started(harness.Collector(self.directory, "ui: {enabled: false}\n"))
        program = self.run_program("TACHO_CTL", "up", "--address", collector.address)
        self.await_text(program, "Ctrl-C stops")
        self.assertNotIn("page", program.tail())

    def test_up_uses_what_runs_already(self):
        collector = self.started(harness.Collector(self.directory))
        at = ["--address", collector.address]
        program = self.run_program("TACHO_CTL", "up", *at)
        self.await_text(program, "Ctrl-C stops")
        self.assertIn("A collector runs already", program.tail())
        self.assertRegex(program.tail(), f"page +http://127.0.0.1:{collector.http}/ui/\n")
        self.assertEqual(len(self.children(program)), 1, "the agent")
        other = self.run_program("TACHO_CTL", "up", *at, "--state", f"{self.directory}/other")
        self.assertEqual(other.wait(), 0, other.tail())
        self.assertIn("It still runs; this uses it", other.tail())
        self.assertEqual(program.stop(), 0)
        self.assertTrue(collector.program.alive())

    def test_an_agent_that_ended_just_now_is_not_taken_for_one_that_works(self):
        program, _ = self.up()
        self.assertEqual(program.stop(), 0, program.tail())
        again, _ = self.up()
        self.assertEqual(len(self.children(again)), 2, again.tail())

    def test_up_ends_when_a_part_does(self):
        program, _ = self.up()
        os.kill(self.children(program)[0], signal.SIGKILL)
        self.assertEqual(program.wait(), 1)
        self.assertIn("ended by itself", program.tail())

    def test_a_port_in_use_is_explained(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            http = f"127.0.0.1:{taken.getsockname()[1]}"
            program = self.run_program("TACHO_CTL", "up", "--address", "127.0.0.1:0", "--http", http)
            self.assertEqual(program.wait(), 1)
        self.assertIn("Another program uses the port", program.tail())
        self.assertIn("--http 127.0.0.1:PORT", program.tail())

    def test_a_directory_that_cannot_be_made_is_explained(self):
        file = os.path.join(self.directory, "file")
        open(file, "w").close()
        program = self.run_up("--state", f"{file}/below")
        self.assertEqual(program.wait(), 1)
        self.assertIn("choose another directory with --state DIR", program.tail())

    def test_missing_programs_are_explained(self):
        alone = os.path.join(self.directory, "alone")
        os.mkdir(alone)
        shutil.copy2(os.environ["TACHO_CTL"], f"{alone}/tachoctl")
        done = subprocess.run(
            [f"{alone}/tachoctl", "up", "--address", "127.0.0.1:0"], capture_output=True, text=True, check=False,
            env={**os.environ, **self.environment, "PATH": alone}, timeout=harness.PATIENCE_S)  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no tacho-collector beside tachoctl or on PATH", done.stderr)

    def test_only_this_machine(self):
        program = self.run_program("TACHO_CTL", "up", "--address", "0.0.0.0:7411")
        self.assertEqual(program.wait(), 2)


def is_alive(pid):
    """A zombie that waits for init is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    harness.main()
