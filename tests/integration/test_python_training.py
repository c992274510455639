"""A real PyTorch training records itself; an agent and a collector give it back, bit for bit."""
import os
import signal
import subprocess
import sys

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../client/python")
sys.path.insert(0, PACKAGE)

import client
import harness

import tacho

EXAMPLE = os.path.join(PACKAGE, "../examples/train_torch.py")
STEPS = 600


class TrainerCase(harness.TestCase):
    """A collector, and an agent that follows the rings of trainers."""

    CONFIG = ""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, self.CONFIG))
        self.rings = os.path.join(self.directory, "rings")
        os.mkdir(self.rings)
        sources = f"  rings: {{directory: {self.rings}, poll_interval: 20ms}}\n"
        self.agent = self.started(harness.Agent(self.directory, self.collector, sources))

    def trainer(self, *arguments, program=(EXAMPLE,), job="spirals"):
        environment = {
            "PYTHONPATH": PACKAGE, "TACHO_JOB": job, "TACHO_TASK": "2", "TACHO_RING_DIR": self.rings,
        }  # fmt: skip
        return harness.Program(
            [sys.executable, "-B", *program, *arguments],
            os.path.join(self.directory, "trainer.log"), env=environment,
        )  # fmt: skip


class TextsAndMarksTest(TrainerCase):
    PROGRAM = """
import tacho
run = tacho.init(job="lr-0.1", group="sweep", tags=["baseline"], note="the first")
run.log({"loss": 1.0, "stage": "warmup"})
run.log({"loss": 0.5, "sample": "a cat"}, step=5)
run.log({"sample": "a dog"}, step=7)
"""

    def test_strings_tags_group_and_note_arrive(self):
        trainer = self.trainer(program=("-c", self.PROGRAM), job="lr-0.1")
        self.assertEqual(trainer.wait(), 0, trainer.tail())
        address = self.collector.address

        def ended():
            found = harness.tachoctl(address, "events", "lr-0.1", "--kind", "ended")
            return found.returncode == 0

        harness.wait_until(ended, "the run's end arrives")
        events = tacho.events(address, "lr-0.1", "text")
        texts = [(event.step, event.message, event.fields["tag"]) for event in events]
        self.assertEqual(texts, [(5, "a cat", "sample"), (7, "a dog", "sample")])
        attributes = tacho.job(address, "lr-0.1").attempts[0].attributes
        self.assertEqual(attributes["stage"], "warmup")
        (job,) = tacho.jobs(address, tags="baseline", group="sweep")
        self.assertEqual((job.name, job.marks.note), ("lr-0.1", "the first"))
        shown = harness.tachoctl(address, "jobs", "--group", "sweep", "--tag", "baseline").stdout
        self.assertRegex(shown, r"lr-0\.1 .*baseline +sweep")


class InputTest(TrainerCase):
    CONFIG = """
conditions:
  interval: 500ms
  settle: 1s
  jobs:
    - pattern: ".*"
      progress: {input_bound: {for: 1s, span: 5s}}
"""
    PROGRAM = """
import time, tacho
run = tacho.init()
def decode(number):
    time.sleep(0.03)
    return number
read = tacho.input_stage("read", range(100000))
batches = map(tacho.input_stage("decode", decode), read)
for step, batch in enumerate(tacho.profile_input(batches)):
    with run.step(step):
        time.sleep(0.02)
        run.log({"loss": 1.0})
"""

    def test_the_verdict_names_the_slow_stage(self):
        self.started(self.trainer(program=("-c", self.PROGRAM), job="starved"))
        address = self.collector.address

        def conditions():
            return harness.tachoctl(address, "conditions", "starved").stdout

        limits = "the stage decode of the input limits"
        harness.wait_until(lambda: limits in conditions(), "InputBound names decode", 60)
        self.assertRegex(conditions(), r"InputBound")
        (waits,) = tacho.query(address, "starved", "input_wait_seconds", by="step")
        self.assertGreaterEqual(min(waits.values), 0.03)


class PythonTrainingTest(TrainerCase):
    def setUp(self):
        if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
            self.skipTest("no python3-torch: deploy/packages.sh test provides it")
        super().setUp()

    def points(self, name, job="spirals"):
        """[(step, bits)] of a metric."""
        try:
            found = tacho.query(self.collector.address, job, name, by="step")
        except tacho.NotFound:
            return []
        return [(step, client.bits(v)) for s in found for step, v in zip(s.steps, s.values)]

    def assert_points(self, name, expected, job="spirals"):
        # The agent deletes a ring that it has taken into its spool.
        def arrived():
            return len(self.points(name, job)) >= len(expected)

        harness.wait_until(arrived, f"{len(expected)} values of {name} arrive")
        self.assertEqual(self.points(name, job), expected, name)

    def test_every_value_comes_back_bit_for_bit(self):
        kept = os.path.join(self.directory, "values")
        trainer = self.trainer("--steps", str(STEPS), "--values", kept)
        self.assertEqual(trainer.wait(), 0, trainer.tail())
        self.assertRegex(trainer.tail(), r"accuracy (0\.9[5-9]|1\.0)")
        expected = {}
        with open(kept) as file:
            for line in file:
                step, *values = line.split()
                for name, value in (pair.split("=") for pair in values):
                    bits = client.bits(float.fromhex(value))
                    expected.setdefault(name, []).append((int(step), bits))
        self.assertEqual(len(expected["loss"]), STEPS)
        for name, points in expected.items():
            self.assert_points(name, points)
        self.assert_steps_and_facts()

    def assert_steps_and_facts(self):
        for name in ("step_time_seconds", "data_wait_seconds", "compute_seconds"):
            self.assertEqual([step for step, _ in self.points(name)], list(range(STEPS)), name)
        detail = tacho.job(self.collector.address, "spirals")
        attributes = detail.attempts[-1].attributes
        self.assertEqual(attributes["model"], "mlp-2-32-32-1")
        self.assertEqual(attributes["planned_steps"], str(STEPS))
        self.assertEqual([task.task for task in detail.tasks], [2])
        harness.wait_until(lambda: not os.listdir(self.rings), "the ring taken and deleted")
        events = tacho.events(self.collector.address, "spirals")
        self.assertEqual([event.kind for event in events], ["attempt_started", "ended"])
        self.assertEqual(events[-1].fields["status"], "succeeded")
        # The bucket without an upper bound counts them all.
        norms = tacho.latest(self.collector.address, "spirals", "gradient_norms")
        self.assertEqual(max(sample.value for sample in norms), STEPS)

    def test_a_killed_training_is_delivered_to_its_last_row(self):
        program = (
            "import os, signal, sys, tacho\n"
            "run = tacho.init()\n"
            "for step in range(500): run.log({'loss': 1.0 / (step + 1)}, step=step)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        trainer = self.trainer(program=("-c", program), job="killed")
        self.assertEqual(trainer.wait(), -signal.SIGKILL)
        expected = [(step, client.bits(1.0 / (step + 1))) for step in range(500)]
        self.assert_points("loss", expected, "killed")

    def test_several_logs_of_a_step_come_together_when_they_are_read_by_step(self):
        program = (
            "import tacho\n"
            "run = tacho.init()\n"
            "for step in range(5):\n"
            "  run.log({'loss': 1.0 + step}, step=step)\n"
            "  run.log({'accuracy': 0.5 + step}, step=step)\n"
            "run.finish()\n"
        )
        trainer = self.trainer(program=("-c", program), job="several")
        self.assertEqual(trainer.wait(), 0, trainer.tail())
        for name, first in (("loss", 1.0), ("accuracy", 0.5)):
            expected = [(step, client.bits(first + step)) for step in range(5)]
            self.assert_points(name, expected, "several")


if __name__ == "__main__":
    harness.main()
