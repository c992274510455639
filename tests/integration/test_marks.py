"""Tags, groups and notes of jobs: through tachoctl, gRPC and Python, over restarts, with rights."""
import json
import os
import sys
import time

import client
import harness
import grpc
from security_case import SecurityCase
from tacho.v1 import ingest_pb2, marks_pb2, marks_pb2_grpc, query_pb2

METRICS = [("loss", "1")]
CONFIG = "storage: {seal_rows: 64}\n"
PYTHON = os.path.join(harness._REPOSITORY, "client/python")


class MarksCase(SecurityCase):
    def record(self, job, attempt=0, attributes=None, token=None):
        """One row of an attempt, and its attributes."""
        agent_id = f"agent-{job}-{attempt}"
        stream = self.stream(token=token, agent_id=agent_id)
        stream.send(client.layout(1, job, "host-1", METRICS, attempt=attempt, task=0))
        stream.send(client.batch(1, 1, [time.time_ns()], [1.5]))
        message = ingest_pb2.Attributes(
            sequence=2, job=job, attempt=attempt, values=attributes or {"model": "m"}
        )
        stream.send(ingest_pb2.ClientMessage(attributes=message))
        self.assertTrue(stream.wait_durable(2), stream.error)

    def ctl(self, *arguments, code=0, **more):
        done = harness.tachoctl(self.collector.address, *arguments, **more)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        return done.stdout if code == 0 else done.stderr

    def names(self, *arguments, code=0):
        done = harness.tachoctl(self.collector.address, "jobs", "-o", "json", *arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        return [job["job"] for job in json.loads(done.stdout)["jobs"]]


class MarksTest(MarksCase):
    def setUp(self):
        super().setUp()
        self.start(CONFIG)

    def test_jobs_are_tagged_grouped_noted_and_found_by_that(self):
        for job in ("bert", "vit", "gpt"):
            self.record(job)
        self.assertIn("tags:  baseline, good", self.ctl("tag", "bert", "good", "baseline"))
        self.ctl("tag", "vit", "good")
        self.assertIn("group: sweep", self.ctl("group", "vit", "sweep"))
        self.assertIn("note:  do not delete", self.ctl("note", "bert", "do not delete"))

        self.assertEqual(self.names("--tag", "good"), ["bert", "vit"])
        self.assertEqual(self.names("--tag", "good", "--tag", "baseline"), ["bert"])
        self.assertEqual(self.names("--group", "sweep"), ["vit"])
        self.assertEqual(self.names("--group", "sweep", "--tag", "baseline", code=1), [])
        self.assertEqual(self.names("--label", "group=sweep"), ["vit"])
        table = self.ctl("jobs")
        self.assertRegex(table, r"bert .*baseline,good")
        self.assertRegex(table, r"vit .*good +sweep")
        status = self.ctl("status", "bert")
        for text in ("tags:       baseline, good", "note:       do not delete"):
            self.assertIn(text, status)
        self.assertNotIn("tag.", status)
        as_json = json.loads(self.ctl("status", "bert", "-o", "json"))
        self.assertEqual((as_json["tags"], as_json["group"]), (["baseline", "good"], None))

        self.ctl("tag", "bert", "--remove", "good", "--remove", "never-there")
        self.ctl("group", "vit", "--remove")
        self.ctl("note", "bert", "--remove")
        self.assertEqual(self.names("--tag", "good"), ["vit"])
        self.assertIn("group: none", self.ctl("group", "vit"))
        self.assertNotIn("note:", self.ctl("status", "bert"))

    def test_marks_outlive_a_killed_collector_and_a_new_attempt(self):
        self.record("bert")
        self.ctl("tag", "bert", "kept")
        self.ctl("note", "bert", "first")
        self.collector.kill()  # What was answered is on the disk.
        self.collector.start()
        self.record("bert", attempt=1)
        self.ctl("note", "bert", "second")  # Lies with attempt 1, the other with attempt 0.
        self.collector.stop()
        self.collector.start()  # No job is in memory.
        self.assertEqual(self.names("--tag", "kept"), ["bert"])
        self.assertIn("note:  second", self.ctl("note", "bert"))
        self.ctl("note", "bert", "--remove")
        self.assertIn("note:  none", self.ctl("note", "bert"))

    def test_what_a_trainer_set_counts_and_can_be_removed_from_all_attempts(self):
        self.record("bert", 0, {"tag.mine": "1", "group": "old"})
        self.record("bert", 1, {"tag.mine": "yes", "group": "new"})
        self.assertEqual(self.names("--tag", "mine", "--group", "new"), ["bert"])
        self.assertEqual(self.names("--group", "old", code=1), [])
        self.ctl("tag", "bert", "--remove", "mine")
        self.ctl("group", "bert", "--remove")
        self.assertEqual(self.names("--tag", "mine", code=1), [])
        self.assertIn("group: none", self.ctl("group", "bert"))
        details = client.Query(self.collector.address)
        self.addCleanup(details.close)
        job = details.stub.GetJob(query_pb2.GetJobRequest(job="bert"))
        self.assertEqual([dict(attempt.attributes) for attempt in job.attempts], [{}, {}])

    def test_what_cannot_be_a_mark_is_refused_in_plain_words(self):
        self.record("bert")
        for tag, words in (
            ("a b", "has a space, a comma or a control character"),
            ("a,b", "has a space, a comma"),
            ("x" * 65, "has 65 bytes; at most 64 are allowed"),
        ):
            self.assertIn(words, self.ctl("tag", "bert", tag, code=1))
        self.ctl("tag", "bert", "x" * 64)
        self.assertIn("did you mean", self.ctl("tag", "brt", "good", code=1))
        self.assertIn("give one", self.ctl("tag", "bert", "a", "--remove", "a", code=2))
        self.assertIn("--remove", self.ctl("note", "bert", "", code=2))
        self.assertIn("at most 4096", self.ctl("note", "bert", "n" * 4097, code=1))
        self.ctl("tag", "bert", *[f"t{i}" for i in range(63)])
        self.assertIn("would have 65 tags; at most 64", self.ctl("tag", "bert", "more", code=1))
        self.assertIn("tags:  more", self.ctl("tag", "bert", "more", "--remove", "x" * 64))
        stub = marks_pb2_grpc.MarksStub(client.connect(self.collector.address))
        for tags in ("add_tags", "remove_tags"):
            with self.assertRaises(grpc.RpcError) as many:
                stub.ChangeMarks(marks_pb2.ChangeMarksRequest(job="bert", **{tags: ["a"] * 257}))
            self.assertIn(f"{tags}: has more than 256 tags", many.exception.details())
        with self.assertRaises(grpc.RpcError) as refused:
            stub.ChangeMarks(marks_pb2.ChangeMarksRequest(add_tags=["a"]))
        self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_python_marks_jobs_and_finds_them(self):
        for job in ("bert", "vit"):
            self.record(job)
        program = (
            "import tacho\n"
            f"address = {self.collector.address!r}\n"
            "print(tacho.mark(address, 'bert', add_tags=['a', 'b'], group='g', note='n'))\n"
            "print(tacho.mark(address, 'bert', remove_tags='a', note=''))\n"
            "print([job.name for job in tacho.jobs(address, tags='b', group='g')])\n"
            "print(tacho.job(address, 'bert').job.marks.tags, tacho.jobs(address, tags='a'))\n"
        )
        done = harness.subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": PYTHON},
            capture_output=True, text=True, timeout=harness.PATIENCE_S,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            done.stdout.splitlines(),
            [
                "Marks(tags=('a', 'b'), group='g', note='n')",
                "Marks(tags=('b',), group='g', note='')",
                "['bert']",
                "('b',) []",
            ],
        )


class MarksRightsTest(MarksCase):
    def log_of(self, job):
        with open(self.collector.owner_of(job).log) as file:
            return file.read()

    def test_a_change_needs_the_role_write_and_the_job_and_is_logged(self):
        files = {
            "writer": self.token("writer", "write, read", "bert.*"),
            "blind": self.token("blind", "write"),
            "reader": self.token("reader", "read"),
        }
        self.start(CONFIG)
        self.record("bert", token=self.secret("writer"))
        self.record("vit", token=self.secret("blind"))

        def tag(who, job, code):
            flags = ("--token-file", files[who]) if who else ()
            return self.ctl("tag", job, "good", *flags, code=code)

        self.assertIn("tags:  good", tag("writer", "bert", 0))
        self.assertIn("vit", tag("writer", "vit", 1))
        self.assertIn("write", tag("reader", "bert", 1))
        self.assertIn("token", tag(None, "bert", 1))
        self.assertEqual(tag("blind", "vit", 0), "")  # Who may not read is not told.
        self.assertNotIn("did you mean", tag("blind", "vjt", 1))
        log = self.log_of("bert")
        self.assertRegex(log, r'msg="marks changed" job=bert change=\+good by=writer .*code=OK')
        self.assertIn('msg="change of marks refused"', log + self.log_of("vit"))
        reader = ("--token-file", files["reader"])
        self.assertIn("tags:  good", self.ctl("tag", "vit", *reader))
        self.assertEqual(json.loads(self.ctl("tag", "bert", "-o", "json", *reader))["tags"], ["good"])


if __name__ == "__main__":
    harness.main()
