"""tachoctl profile: real trainers and agents, and a gRPC server of the profiler's protocol in a trainer's place."""
import concurrent.futures
import json
import os
import sys
import time

import client
import grpc
import harness
from interop import profiler_service_pb2, profiler_service_pb2_grpc

TRAINER = """
import sys, time, tacho
run = tacho.init(job="job", task=int(sys.argv[1]), attempt=0)
if sys.argv[2] != "0":
    run.config["profiler_port"] = sys.argv[2]
run.log({"loss": 1.0}, step=0)
time.sleep(600)
"""
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "client", "python")


class Profiler(profiler_service_pb2_grpc.ProfilerServiceServicer):
    """Answers as the servers of JAX and TensorFlow do: after the time, one trace at a time."""

    def __init__(self, xspace):
        self.xspace = xspace
        self.asked = []
        self.server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(4),
            options=[("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)],
        )
        profiler_service_pb2_grpc.add_ProfilerServiceServicer_to_server(self, self.server)
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def Profile(self, request, context):
        self.asked.append(request)
        if not request.emit_xspace:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the trace would stay here")
        time.sleep(request.opts.duration_ms / 1000)
        if isinstance(self.xspace, str):
            context.abort(grpc.StatusCode.INTERNAL, self.xspace)
        return profiler_service_pb2.ProfileResponse(xspace=self.xspace, empty_trace=not self.xspace)


class ProfileCase(harness.TestCase):
    CONFIG = "log: {level: warn}\n"
    TRAINER = TRAINER

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, self.CONFIG))
        self.rings = os.path.join(self.directory, "rings")
        os.mkdir(self.rings)
        self.profiles = os.path.join(self.directory, "profiles")

    def agent(self, profiles):
        sources = (
            f"  rings: {{directory: {self.rings}, poll_interval: 50ms}}\n  host: {{interval: 1s}}\n"
            f"requests: {{profiles: {{{profiles}}}}}\n"
        )
        self.started(harness.Agent(self.directory, self.collector, sources))

    def profiler(self, xspace):
        profiler = Profiler(xspace)
        self.addCleanup(lambda: profiler.server.stop(0).wait())
        return profiler

    def train(self, *ports):
        for task, port in enumerate(ports):
            env = {**os.environ, "TACHO_RING_DIR": self.rings, "PYTHONPATH": CLIENT}
            words = [sys.executable, "-c", self.TRAINER, str(task), str(port)]
            self.started(harness.Program(words, os.path.join(self.directory, f"{task}.log"), env))

        def known():
            found = harness.tachoctl(self.collector.address, "status", "job", "-o", "json")
            return found.returncode == 0 and len(json.loads(found.stdout)["tasks_seen"]) == len(ports)

        harness.wait_until(known, "all tasks")

    def profile(self, *arguments):
        found = harness.tachoctl(self.collector.address, "profile", "job", "-o", "json", *arguments)
        self.assertIn(found.returncode, (0, 1), found.stderr)
        return json.loads(found.stdout)

    def runs(self):
        directory = os.path.join(self.profiles, "plugins/profile")
        return sorted(os.listdir(directory)) if os.path.isdir(directory) else []

    def events(self):
        found = harness.tachoctl(
            self.collector.address, "events", "job", "--kind", "profile_taken", "-o", "json"
        )
        return json.loads(found.stdout)["events"]


class ProfileTest(ProfileCase):
    def test_traces_lie_where_tensorboard_finds_them(self):
        first, second = self.profiler(b"trace of 0"), self.profiler(b"trace of 1" * 1_000_000)
        busy, empty = self.profiler("Failed to create profiler session"), self.profiler(b"")
        self.agent(f"directory: {self.profiles}")
        self.train(first.port, second.port, busy.port, empty.port, 0, harness.free_port())
        began = time.monotonic()
        answer = self.profile("--for", "500ms")
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual([0, 1], [one["task"] for one in answer["profiles"]])
        (run,) = self.runs()
        self.assertRegex(run, r"^tacho_job_0_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d$")
        for task, content in enumerate((b"trace of 0", b"trace of 1" * 1_000_000)):
            path = os.path.join(self.profiles, "plugins/profile", run, f"host-1_task{task}.xplane.pb")
            self.assertEqual(path, answer["profiles"][task]["path"])
            self.assertEqual(len(content), answer["profiles"][task]["bytes"])
            with open(path, "rb") as file:
                self.assertEqual(content, file.read())
        self.assertEqual(2, len(os.listdir(os.path.dirname(path))))
        self.assertEqual((500, 500), (first.asked[0].duration_ms, first.asked[0].opts.duration_ms))
        reasons = {one["task"]: one["reason"] for one in answer["absent"]}
        self.assertIn("Failed to create profiler session", reasons[2])
        self.assertIn("empty trace", reasons[3])
        self.assertIn("profiler_port", reasons[4])
        self.assertIn("profiler server", reasons[5])
        # As events.
        self.assertEqual(
            {one["path"] for one in answer["profiles"]},
            {event["fields"]["path"] for event in self.events()},
        )
        self.assertEqual([0], [one["task"] for one in self.profile("--task", "0")["profiles"]])

    def test_old_profiles_make_room_and_those_of_others_stay(self):
        profiler = self.profiler(b"x" * 600_000)
        self.agent(f"directory: {self.profiles}, max_count: 2, max_bytes: 1MiB, port: {profiler.port}")
        self.train(0)
        others = os.path.join(self.profiles, "plugins/profile/2020_01_01_00_00_00")
        os.makedirs(others)
        for _ in range(3):
            self.assertEqual(1, len(self.profile("--for", "1ms")["profiles"]))
            time.sleep(1.1)  # A run is named by its second.
        # Two of them have more than 1 MiB.
        self.assertEqual(2, len(self.runs()))
        self.assertIn("2020_01_01_00_00_00", self.runs())
        profiler.xspace = b"x" * 1_100_000
        self.assertEqual([], self.profile("--for", "1ms")["profiles"])

    def test_an_agent_without_a_directory_takes_none(self):
        self.agent("port: 1")
        self.train(0)
        (absent,) = self.profile("--for", "1ms")["absent"]
        self.assertIn("does not answer such requests (profile)", absent["reason"])


class ScheduleTest(ProfileCase):
    """The collector has profiles taken by itself."""

    CONFIG = """
log: {level: warn}
conditions:
  interval: 200ms
  settle: 0s
  profiler: {every_steps: 100, min_interval: 1s, duration: 10ms, tasks: 1}
"""
    TRAINER = """
import sys, time, tacho
run = tacho.init(job="job", task=int(sys.argv[1]), attempt=0)
run.config["profiler_port"] = sys.argv[2]
for step in range(1_000_000):
    run.log({"loss": 1.0}, step=step)
    time.sleep(0.01)
"""

    def test_every_n_steps_a_trace_of_the_lowest_task(self):
        first, second = self.profiler(b"trace of 0"), self.profiler(b"trace of 1")
        self.agent(f"directory: {self.profiles}")
        self.train(first.port, second.port)
        harness.wait_until(lambda: len(self.events()) >= 2, "two profiles")
        for event in self.events():
            self.assertEqual("every 100 steps", event["fields"]["cause"])
            with open(event["fields"]["path"], "rb") as file:
                self.assertEqual(b"trace of 0", file.read())
        self.assertEqual([], second.asked)
        self.assertEqual(10, first.asked[0].duration_ms)


class ConditionTest(ProfileCase):
    CONFIG = """
log: {level: warn}
conditions:
  interval: 200ms
  settle: 0s
  profiler: {on: [Diverged], duration: 10ms, tasks: 0}
"""
    TRAINER = """
import sys, time, tacho
run = tacho.init(job="job", task=int(sys.argv[1]), attempt=0)
run.config["profiler_port"] = sys.argv[2]
for step in range(1_000_000):
    run.log({"loss": 1.0 if step < 200 else float("nan")}, step=step)
    time.sleep(0.01)
"""

    def test_a_raised_condition_has_a_trace_of_all_tasks_taken_once(self):
        first, second = self.profiler(b"trace of 0"), self.profiler(b"trace of 1")
        self.agent(f"directory: {self.profiles}")
        self.train(first.port, second.port)
        harness.wait_until(lambda: len(self.events()) >= 2, "profiles of both tasks")
        events = self.events()
        self.assertEqual({"Diverged"}, {event["fields"]["cause"] for event in events})
        for event in events:
            self.assertTrue(os.path.exists(event["fields"]["path"]), event)
        self.assertEqual((1, 1), (len(first.asked), len(second.asked)))


if __name__ == "__main__":
    harness.main()
