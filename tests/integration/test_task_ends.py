"""Trainers as in the README end or are killed, one for each way of recording. A job that has ended raises no
condition; one that was killed raises the condition that says so, and no other."""
import json
import os
import signal
import sys
import time

import client
import harness
from tacho.v1 import conditions_pb2

# The durations of the defaults, 60 times as short or nearly so: ten seconds stand for ten minutes. `for`
# is 0, so that nothing is hidden by it.
CONFIG = """
log: {level: warn}
conditions:
  interval: 200ms
  settle: 1s
  progress:
    stalled: {floor: 2s, for: 0s}
    task_missing: {grace: 3s, gone_after: 2s, for: 0s}
    agent_silent: {disconnected_after: 1s, silent_after: 10s, for: 0s}
    trainer_silent: {silent_after: 3s, for: 0s}
    trainer_exited: {for: 500ms}
"""
TEN_MINUTES_S = 10.0
PAUSE_US = 20_000
PYTHON = """
import os, sys, time, tacho
run = tacho.init(job=sys.argv[1])
for step in range(int(sys.argv[2])):
    run.log({"loss": 1 / (step + 1)}, step=step)
    time.sleep(int(sys.argv[3]) / 1e6)
sys.exit(int(os.environ.get("TRAIN_RETURNS", "0")))
"""
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "client", "python")


class TaskEndsTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, CONFIG))
        self.rings = os.path.join(self.directory, "rings")
        os.mkdir(self.rings)
        # Its host is heard of by more than its rings, as in the field.
        sources = f"  rings: {{directory: {self.rings}, poll_interval: 50ms}}\n  host: {{interval: 1s}}\n"
        self.agent = self.started(harness.Agent(self.directory, self.collector, sources))

    def train(self, how, job, steps, **env):
        """A trainer with so many steps."""
        words = [job, str(steps), str(PAUSE_US)]
        arguments = {
            "cc": [os.environ["TACHO_ENDING_TRAIN"], *words],
            "c": [os.environ["TACHO_ENDING_TRAIN_IN_C"], *words],
            "python": [sys.executable, "-c", PYTHON, *words],
            "direct": [os.environ["TACHO_ENDING_TRAIN"], *words, self.collector.address],
        }[how]
        env = {**os.environ, "TACHO_RING_DIR": self.rings, "PYTHONPATH": CLIENT, **env}
        return self.started(harness.Program(arguments, os.path.join(self.directory, job + ".log"), env))

    def conditions(self):
        """{job: {condition: reason}} of those that hold."""
        query = client.Query(self.collector.address)
        try:
            request = conditions_pb2.ConditionsRequest(statuses=[conditions_pb2.CONDITION_STATUS_TRUE])
            found = {}
            for one in query.stub.Conditions(request).conditions:
                found.setdefault(one.job, {})[one.condition] = one.reason
            return found
        finally:
            query.close()

    def ends(self, job):
        """(kind, fields) of the events that end its tasks, and names of conditions that were ever raised."""
        query = client.Query(self.collector.address)
        try:
            events = list(query.events(job))
        finally:
            query.close()
        raised = {e.fields["condition"] for e in events if e.kind == "condition_raised"}
        return [(e.kind, dict(e.fields)) for e in events if e.kind in ("ended", "exited")], raised

    def state(self, job):
        told = harness.tachoctl(self.collector.address, "jobs", "-o", "json")
        return {j["job"]: j["state"] for j in json.loads(told.stdout)["jobs"]}.get(job)

    def import_rows(self, job):
        """A minute of another collector's history, up to now."""
        path = os.path.join(self.directory, job + ".csv")
        begin = time.time() - 60
        with open(path, "w") as file:
            file.write("time,step,loss\n")
            file.writelines(f"{begin + step},{step},{1 / (step + 1)}\n" for step in range(60))
        done = harness.tachoctl(self.collector.address, "import", "csv", path, "--job", job)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_end_raises_nothing_and_a_kill_what_says_so(self):
        ways = ("cc", "c", "python", "direct")
        self.import_rows("imported")
        good = {how: self.train(how, f"good-{how}", 50) for how in ways}
        killed = {how: self.train(how, f"killed-{how}", 1_000_000) for how in ways}
        failed = self.train("python", "failed", 50, TRAIN_RETURNS="3")
        first = self.train("cc", "partly", 50, TACHO_TASK="0")
        self.train("cc", "partly", 1_000_000, TACHO_TASK="1")
        hung = self.train("cc", "hung", 1_000_000)
        for how, program in good.items():
            self.assertEqual(program.wait(), 0, f"{how}: {program.tail()}")
        self.assertEqual(failed.wait(), 3, failed.tail())
        self.assertEqual(first.wait(), 0, first.tail())
        for job in [f"killed-{how}" for how in ways] + ["hung"]:
            harness.wait_until(lambda: self.state(job) == "running", f"{job} runs")
        for program in killed.values():
            program.kill()
        os.kill(hung.process.pid, signal.SIGSTOP)
        for how in ways:
            harness.wait_until(lambda: self.ends(f"good-{how}")[0], f"{how} ended")
        time.sleep(TEN_MINUTES_S)

        found = self.conditions()
        self.assertIn("Stalled", found.get("hung", {}), "the durations are short enough to see more")
        for how in ways:
            ends, raised = self.ends(f"good-{how}")
            self.assertEqual([kind for kind, _ in ends], ["ended"], how)
            self.assertEqual(raised, set(), how)
            self.assertEqual(self.state(f"good-{how}"), "ended", how)
        for how in ("cc", "c", "python"):
            ends, raised = self.ends(f"killed-{how}")
            self.assertEqual([kind for kind, _ in ends], ["exited"], how)
            self.assertEqual(ends[0][1].get("signal", "9"), "9", "known or not, it is not made up")
            self.assertEqual(raised, {"TrainerExited"}, how)
            self.assertEqual(list(found[f"killed-{how}"]), ["TrainerExited"], how)
            self.assertEqual(self.state(f"killed-{how}"), "ended", how)
        self.assertEqual(self.ends("imported"), ([], set()))
        ends, raised = self.ends("partly")
        self.assertEqual(([kind for kind, _ in ends], raised), (["ended"], set()))
        self.assertEqual(self.state("partly"), "running")
        status = harness.tachoctl(self.collector.address, "status", "partly", "-o", "json")
        self.assertEqual(json.loads(status.stdout)["state"], "reporting", "its other task goes on")
        ends, raised = self.ends("failed")
        self.assertEqual(ends, [("exited", {"status": "failed", "exit_code": "3"})])
        self.assertEqual(raised, {"TrainerExited"})
        self.assertEqual(self.ends("killed-direct"), ([], {"AgentSilent"}), "nobody saw it die")

        again = self.train("cc", "killed-cc", 1_000_000, TACHO_ATTEMPT="1")
        harness.wait_until(lambda: "killed-cc" not in self.conditions(), "the new attempt resolves it")
        again.kill()


if __name__ == "__main__":
    harness.main()
