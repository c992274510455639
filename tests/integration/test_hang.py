"""tachoctl hang: real trainers, one of them elsewhere than the others, agents and a collector. Whoever cannot be
seen is named with the reason, and nothing that is asked ends a trainer."""
import json
import os
import signal
import sys
import time

import client
import harness
from security_case import SecurityCase

CONFIG = """
log: {level: warn}
conditions:
  interval: 200ms
  settle: 0s
  stacks: on_stall
  progress:
    stalled: {floor: 2s, startup: 4s, for: 0s}
"""
# Trains for some steps; then waits where its role says. A second thread is there to be left aside.
TRAINER = """
import os, signal, sys, threading, time, tacho
stacks = {"on": True, "off": False, "usr1": signal.SIGUSR1}[sys.argv[4]]
run = tacho.init(job=sys.argv[1], task=int(sys.argv[2]), attempt=0, stacks=stacks)
threading.Thread(target=time.sleep, args=(600,), daemon=True, name="idle").start()
lock = threading.Lock()
lock.acquire()
def all_reduce():
    lock.acquire()
def load_batch():
    run.event("checkpoint_started")
    while True:
        time.sleep(0.05)
def spin():
    while True:
        pass
for step in range(5):
    run.log({"loss": 1.0}, step=step)
    time.sleep(0.05)
{"collective": all_reduce, "input": load_batch, "spin": spin}[sys.argv[3]]()
"""
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "client", "python")


class HangTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.trainers = {}

    def collector_of(self, config=CONFIG):
        self.collector = self.started(harness.Collector(self.directory, config))

    def agent(self, host, requests=""):
        rings = os.path.join(self.directory, host)
        os.makedirs(rings, exist_ok=True)
        sources = f"  rings: {{directory: {rings}, poll_interval: 50ms}}\n  host: {{interval: 1s}}\n{requests}"
        return self.started(harness.Agent(self.directory, self.collector, sources, agent_id=host, host=host))

    def train(self, host, task, role, stacks="on", job="job"):
        rings = os.path.join(self.directory, host)
        words = [sys.executable, "-c", TRAINER, job, str(task), role, stacks]
        env = {**os.environ, "TACHO_RING_DIR": rings, "PYTHONPATH": CLIENT}
        self.trainers[task] = self.started(
            harness.Program(words, os.path.join(self.directory, f"{job}-{task}.log"), env)
        )

    def await_steps(self, tasks, job="job"):
        """Until so many tasks have recorded their last step and hang."""

        def all_there():
            found = harness.tachoctl(self.collector.address, "status", job, "-o", "json")
            return found.returncode == 0 and sum(
                task["last_step"] == 4 for task in json.loads(found.stdout)["tasks_seen"]
            ) == tasks

        harness.wait_until(all_there, f"{tasks} tasks at step 4")
        time.sleep(0.3)

    def hang(self, *arguments, job="job"):
        found = harness.tachoctl(self.collector.address, "hang", job, "-o", "json", *arguments)
        self.assertIn(found.returncode, (0, 1), found.stderr)
        return json.loads(found.stdout)

    def test_the_odd_one_is_named(self):
        self.collector_of()
        for host in ("host-1", "host-2"):
            self.agent(host)
        for task in range(6):
            self.train(f"host-{task // 3 + 1}", task, "input" if task == 4 else "collective")
        self.await_steps(6)
        answer = self.hang()
        self.assertEqual([], answer["absent"])
        self.assertEqual(["0-3,5", "4"], [group["tasks"] for group in answer["groups"]])
        most, odd = answer["groups"]
        self.assertEqual("python", most["origin"])
        self.assertEqual(["<string>:all_reduce", "<string>:<module>"], most["frames"])
        self.assertEqual(["<string>:load_batch", "<string>:<module>"], odd["frames"])
        member = odd["members"][0]
        self.assertEqual(
            (4, "host-2", self.trainers[4].process.pid, 4, "checkpointing", None),
            tuple(member[key] for key in ("task", "host", "pid", "step", "phase", "trouble")),
        )
        # As a person sees it.
        text = harness.tachoctl(self.collector.address, "hang", "job").stdout
        self.assertIn("5 tasks: 0-3,5 (python; step 4)", text)
        self.assertIn("1 task unlike most: 4 (python; step 4; 1 checkpointing)", text)
        self.assertIn("task 4 on host-2", text)
        # A single task.
        self.assertEqual(["4"], [group["tasks"] for group in self.hang("--task", "4")["groups"]])
        for task, trainer in self.trainers.items():
            self.assertTrue(trainer.alive(), f"task {task} has died: {trainer.tail()}")
        # Each dump was cut off behind the first line.
        files = [
            os.path.join(self.directory, host, name)
            for host in ("host-1", "host-2")
            for name in os.listdir(os.path.join(self.directory, host))
            if name.endswith(".stacks")
        ]
        self.assertEqual(6, len(files))
        for file in files:
            self.assertLess(os.path.getsize(file), 32)
        # Kept as an event.
        kept = json.loads(harness.tachoctl(self.collector.address, "hang", "job", "--last", "-o", "json").stdout)
        self.assertIn("asked by", kept["cause"])
        self.assertEqual("4", kept["groups"][-1]["tasks"])

    def test_taken_by_itself_when_the_job_stalls(self):
        self.collector_of()
        self.agent("host-1")
        for task in range(3):
            self.train("host-1", task, "spin" if task == 1 else "collective")

        def kept():
            found = harness.tachoctl(self.collector.address, "hang", "job", "--last", "-o", "json")
            return json.loads(found.stdout) if found.returncode == 0 else None

        harness.wait_until(kept, "stacks of the stalled job", timeout_s=60)
        self.assertEqual("Stalled", kept()["cause"])
        self.assertEqual(["0,2", "1"], [group["tasks"] for group in kept()["groups"]])
        self.assertEqual("<string>:spin", kept()["groups"][1]["frames"][0])

    def test_whoever_cannot_be_seen_is_named_with_the_reason(self):
        self.collector_of("log: {level: warn}\n")
        self.agent("host-1")
        away = self.agent("host-2")
        self.agent("host-3", "requests: {stacks: never}\n")
        self.train("host-1", 0, "collective")
        self.train("host-1", 1, "collective", stacks="off")
        self.train("host-1", 2, "collective")
        self.train("host-2", 3, "collective")
        self.train("host-3", 4, "collective")
        self.train("host-1", 5, "collective")
        self.await_steps(6)
        away.kill()
        self.trainers[2].process.send_signal(signal.SIGSTOP)  # It takes no signals.
        self.trainers[5].kill()
        harness.wait_until(
            lambda: {3, 4, 5} == {task["task"] for task in self.hang()["absent"]}, "three absent tasks"
        )
        answer = self.hang()
        reasons = {task["task"]: task["reason"] for task in answer["absent"]}
        self.assertIn("no agent of this host is connected", reasons[3])
        self.assertIn("does not answer such requests", reasons[4])
        self.assertIn("gone", reasons[5])
        members = {member["task"]: member for group in answer["groups"] for member in group["members"]}
        self.assertEqual({0, 1, 2}, set(members))
        self.assertIsNone(members[0]["trouble"])
        self.assertIn("tacho.init(stacks=True)", members[1]["trouble"])
        self.assertIn("has taken the signal", members[2]["trouble"])
        self.assertEqual("T", members[2]["state"])
        origins = {group["origin"] for group in answer["groups"]}
        self.assertEqual({"python", "kernel"}, origins)
        self.trainers[2].process.send_signal(signal.SIGCONT)
        self.assertTrue(self.trainers[1].alive())

    def test_a_trainer_that_replaced_its_program_is_not_killed(self):
        """The handler is gone after exec(), the file and the process number are not."""
        self.collector_of("log: {level: warn}\n")
        self.agent("host-1")
        code = (
            "import os, sys, time, tacho\n"
            "run = tacho.init(job='job', task=0, attempt=0, stacks=True)\n"
            "run.log({'loss': 1.0}, step=4)\n"
            "time.sleep(1)\n"
            "fd = os.open(run.path, os.O_RDWR)\n"
            "import fcntl\n"
            "os.execvp('sleep', ['sleep', '600'])\n"
        )
        env = {**os.environ, "TACHO_RING_DIR": os.path.join(self.directory, "host-1"), "PYTHONPATH": CLIENT}
        trainer = self.started(
            harness.Program([sys.executable, "-c", code], os.path.join(self.directory, "job.log"), env)
        )
        self.await_steps(1)
        time.sleep(1.5)
        self.hang()
        time.sleep(0.2)
        self.assertTrue(trainer.alive(), trainer.tail())

    def test_an_operators_program_is_run_where_there_is_no_handler(self):
        self.collector_of("log: {level: warn}\n")
        script = os.path.join(self.directory, "dump")
        with open(script, "w") as file:
            file.write(
                "#!/bin/sh\necho \"Process $2: python train.py\"\n"
                'echo \'Thread 0x7F01 (active): "MainThread"\'\necho "    step (/opt/train/loop.py:12)"\n'
                'echo "    <module> (train.py:3)"\necho \'Thread 0x7F02 (idle): "loader"\'\n'
                'echo "    fetch (loader.py:7)"\n'
            )
        os.chmod(script, 0o755)
        self.agent("host-1", f"requests: {{stack_command: '{script} --pid {{pid}}'}}\n")
        self.train("host-1", 0, "collective", stacks="off")
        self.await_steps(1)
        group = self.hang()["groups"][0]
        self.assertEqual(("command", ["loop.py:step", "train.py:<module>"]), (group["origin"], group["frames"]))
        self.assertEqual(12, group["members"][0]["line"])


class RightsTest(SecurityCase):
    def test_asking_needs_the_role_admin_and_the_job_and_an_older_agent_is_let_be(self):
        files = {
            "admin": self.token("admin", "admin, write", "bert.*"),
            "reader": self.token("reader", "read, write"),
        }
        self.start()
        stream = self.stream(token=self.secret("reader"))  # Its Hello names nothing that it answers.
        self.assertEqual(self.deliver(stream, "bert"), client.grpc.StatusCode.OK)
        stream.send(client.layout(2, "bert", "host-1", [("loss", "1")], task=0))
        stream.send(client.batch(2, 2, [time.time_ns()], [1.5]))
        self.assertTrue(stream.wait_durable(2), stream.error)

        def hang(who, job):
            flags = ("--token-file", files[who]) if who else ()
            return harness.tachoctl(self.collector.address, "hang", job, "-o", "json", *flags)

        self.assertIn("admin", hang("reader", "bert").stderr)
        self.assertIn("token", hang(None, "bert").stderr)
        self.assertIn("vit", hang("admin", "vit").stderr)
        answer = hang("admin", "bert")
        self.assertEqual(1, answer.returncode, answer.stderr)
        self.assertIn("older", json.loads(answer.stdout)["absent"][0]["reason"])
        self.assertIsNone(stream.error)
        self.wait_log('msg="agents were asked" what=stacks job=bert by=admin', job="bert")
        self.wait_log('msg="request to agents refused"', job="vit")


if __name__ == "__main__":
    harness.main()
