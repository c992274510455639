"""Who is let in by tokens, and what they may do: the collector itself, and its pages."""
import base64
import os
import subprocess
import time

import client
import harness  # First: it makes the stubs importable.
import grpc
from security_case import JOBS, METRICS, SecurityCase, make_token
from tacho.v1 import conditions_pb2, ingest_pb2, query_pb2, query_pb2_grpc, types_pb2

# docs/security.md: a removed token ends what it opened at once, an expired one within this.
ROUND_S = 5.0


class TokenTest(SecurityCase):
    def setUp(self):
        super().setUp()
        self.token("vision-writer", "write", "vision-.*")
        self.token("bound-writer", "write", "speech", agent_id="agent-7")
        self.token("vision-reader", "read", "vision-.*")
        self.token("reader", "read")
        self.token("admin", "admin")
        self.token("gone", "write, read, admin", expires="2020-01-01")
        self.start("conditions: {interval: 500ms, settle: 1s}\n")

    def feed(self):
        for agent, token, job in [
            ("agent-1", "vision-writer", "vision-1"), ("agent-7", "bound-writer", "speech"),
        ]:  # fmt: skip
            stream = self.stream(self.secret(token), agent)
            self.assertEqual(self.deliver(stream, job), grpc.StatusCode.OK, stream.error)
            stream.close()

    def test_each_role_writes_what_it_may_and_nothing_else(self):
        OK = grpc.StatusCode.OK
        DENIED, UNKNOWN = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED
        rows = [
            (None, "agent-1", "vision-1", UNKNOWN, "no token was sent"),
            ("garbage", "agent-1", "vision-1", UNKNOWN, "not in auth.tokens_file"),
            (self.secret("gone"), "agent-1", "vision-1", UNKNOWN, "expired"),
            (self.secret("vision-reader"), "agent-1", "vision-1", DENIED, "lacks the role write"),
            (self.secret("admin"), "agent-1", "vision-1", DENIED, "lacks the role write"),
            (self.secret("vision-writer"), "agent-1", "vision-1", OK, ""),
            (self.secret("vision-writer"), "agent-2", "speech", DENIED, 'layout.source.job: "vision'),
            (self.secret("vision-writer"), "agent-2", "xvision-1", DENIED, '"xvision-1"'),
            (self.secret("bound-writer"), "agent-7", "speech", OK, ""),
            (self.secret("bound-writer"), "agent-8", "speech", DENIED, "hello.agent_id"),
        ]
        for token, agent, job, code, text in rows:
            with self.subTest(agent=agent, job=job, code=code, text=text):
                stream = self.stream(token, agent)
                self.assertEqual(self.deliver(stream, job), code, stream.error)
                if stream.error is not None:
                    self.assertIn(text, stream.error.details())
                stream.close()
        code, answer = self.query("ListJobs", JOBS, self.secret("reader"))
        self.assertEqual({job.name for job in answer.jobs}, {"vision-1", "speech"})

    def test_events_and_attributes_of_others_are_refused_with_their_field(self):
        source = types_pb2.Source(job="speech", host="h")
        event = ingest_pb2.Event(sequence=1, source=source, time_unix_ns=time.time_ns(), kind="k")
        facts = ingest_pb2.Attributes(sequence=1, job="speech", values={"a": "b"})
        for field, message in [
            ("event.source.job", ingest_pb2.ClientMessage(event=event)),
            ("attributes.job", ingest_pb2.ClientMessage(attributes=facts)),
        ]:
            stream = self.stream(self.secret("vision-writer"))
            stream.send(message)
            self.assertFalse(stream.wait(lambda: False, "its end"))
            self.assertEqual(stream.error.code(), grpc.StatusCode.PERMISSION_DENIED)
            self.assertIn(field, stream.error.details())
            stream.close()

    def test_queries_need_read_and_see_only_their_jobs(self):
        self.feed()
        OK = grpc.StatusCode.OK
        DENIED, UNKNOWN = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED

        def requests(job):
            selector = query_pb2.Selector(job=job)
            return [
                ("GetJob", query_pb2.GetJobRequest(job=job)),
                ("ListSeries", query_pb2.ListSeriesRequest(selector=selector)),
                ("Range", query_pb2.RangeRequest(selector=selector)),
                ("Latest", query_pb2.LatestRequest(selector=selector)),
                ("ListEvents", query_pb2.ListEventsRequest(job=job)),
            ]

        for name, own, other in [
            ("reader", OK, OK), ("vision-reader", OK, DENIED), ("vision-writer", DENIED, DENIED),
            ("admin", DENIED, DENIED), ("gone", UNKNOWN, UNKNOWN), (None, UNKNOWN, UNKNOWN),
        ]:  # fmt: skip
            token = name and self.secret(name)
            for job, expected in [("vision-1", own), ("speech", other)]:
                for method, request in requests(job):
                    with self.subTest(token=name, job=job, method=method):
                        code, text = self.query(method, request, token)
                        self.assertEqual(code, expected, text)
        # The answer does not tell whether there is such a job.
        existing = self.query(*requests("speech")[0], self.secret("vision-reader"))
        missing = self.query(*requests("speecx")[0], self.secret("vision-reader"))
        self.assertEqual(existing[1].replace("speech", "speecx"), missing[1])
        # Nor does a suggestion name what may not be seen.
        code, text = self.query(*requests("vision-1x")[0], self.secret("vision-reader"))
        self.assertEqual((code, text), (grpc.StatusCode.NOT_FOUND, 'no job "vision-1x"'))
        for name, jobs in [("reader", {"vision-1", "speech"}), ("vision-reader", {"vision-1"})]:
            _, answer = self.query("ListJobs", JOBS, self.secret(name))
            self.assertEqual({job.name for job in answer.jobs}, jobs)
        self.assertEqual(self.query("ListJobs", JOBS)[0], UNKNOWN)

    def conditions(self, token, **request):
        return self.query("Conditions", conditions_pb2.ConditionsRequest(**request), token)

    def watched(self, token, **request):
        """(code, jobs) of a WatchConditions until it is live."""
        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        call = query_pb2_grpc.QueryStub(channel).WatchConditions(
            conditions_pb2.WatchConditionsRequest(**request), metadata=client.bearer(token),
            timeout=harness.PATIENCE_S,
        )  # fmt: skip
        jobs = set()
        try:
            for message in call:
                jobs |= {condition.job for condition in message.conditions}
                if message.live:
                    call.cancel()
                    return grpc.StatusCode.OK, jobs
        except grpc.RpcError as error:
            return error.code(), jobs
        raise AssertionError("it ended without being live")

    def train(self):
        """A step of a task of each job, so that they are judged."""
        for agent, token, job in [
            ("agent-1", "vision-writer", "vision-1"), ("agent-7", "bound-writer", "speech"),
        ]:  # fmt: skip
            stream = self.stream(self.secret(token), agent)
            stream.send(client.layout(1, job, "host-1", METRICS, 0, 0, True))
            stream.send(client.batch(1, 1, [time.time_ns()], [1.5], [1]))
            self.assertTrue(stream.wait_durable(1), stream.error)

    def test_conditions_need_read_and_tell_only_of_their_jobs(self):
        self.train()
        OK = grpc.StatusCode.OK
        DENIED, UNKNOWN = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED
        both = {"vision-1", "speech"}

        def told(name, **request):
            code, answer = self.conditions(self.secret(name), **request)
            self.assertEqual(code, OK, answer)
            return {condition.job for condition in answer.conditions}

        harness.wait_until(lambda: told("reader") == both, "both jobs are judged")
        self.assertEqual(told("vision-reader"), {"vision-1"})
        self.assertEqual(told("vision-reader", job_pattern=".*"), {"vision-1"})
        self.assertEqual(self.watched(self.secret("reader")), (OK, both))
        self.assertEqual(self.watched(self.secret("vision-reader")), (OK, {"vision-1"}))
        for name, own, other in [
            ("reader", OK, OK), ("vision-reader", OK, DENIED), ("vision-writer", DENIED, DENIED),
            ("admin", DENIED, DENIED), ("gone", UNKNOWN, UNKNOWN), (None, UNKNOWN, UNKNOWN),
        ]:  # fmt: skip
            token = name and self.secret(name)
            for job, expected in [("vision-1", own), ("speech", other)]:
                with self.subTest(token=name, job=job):
                    code, answer = self.conditions(token, job=job)
                    self.assertEqual(code, expected, answer)
                    jobs = {job} if expected == OK else set()
                    self.assertEqual(self.watched(token, job=job), (expected, jobs))
            self.assertEqual(self.conditions(token)[0], own)
            self.assertEqual(self.watched(token)[0], own)

    def test_a_removed_token_ends_its_watch_of_conditions(self):
        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        call = query_pb2_grpc.QueryStub(channel).WatchConditions(
            conditions_pb2.WatchConditionsRequest(),
            metadata=client.bearer(self.secret("vision-reader")), timeout=harness.PATIENCE_S,
        )  # fmt: skip
        self.assertTrue(next(call).live)
        del self.tokens["vision-reader"]
        self.write_tokens()
        self.reload()
        with self.assertRaises(grpc.RpcError) as ended:
            list(call)
        self.assertEqual(ended.exception.code(), grpc.StatusCode.UNAUTHENTICATED)

    def test_pages_need_read_and_show_only_their_jobs(self):
        self.feed()

        def get(page, token=None, scheme="Bearer"):
            value = token
            if scheme == "Basic" and token:
                value = base64.b64encode(f"prometheus:{token}".encode()).decode()
            headers = {"Authorization": f"{scheme} {value}"} if token else {}
            return harness.http_get(self.collector.url(page), headers)

        for page in ["/", "/healthz", "/readyz"]:
            self.assertEqual(get(page)[0], 200, page)
        for token, code in [
            (None, 401), ("garbage", 401), (self.secret("gone"), 401),
            (self.secret("vision-writer"), 403), (self.secret("admin"), 403),
            (self.secret("reader"), 200), (self.secret("vision-reader"), 200),
        ]:  # fmt: skip
            for scheme in ["Bearer", "Basic"]:
                with self.subTest(code=code, scheme=scheme):
                    status, headers, body = get("/metrics", token, scheme)
                    self.assertEqual(status, code, body)
                    shown = headers.get_all("WWW-Authenticate") or []
                    self.assertEqual(len(shown), 2 if code == 401 else 0)
        everything = get("/metrics", self.secret("reader"))[2].decode()
        vision = get("/metrics", self.secret("vision-reader"))[2].decode()
        self.assertIn('tacho_job_loss{job="speech"', everything)
        self.assertIn('tacho_job_loss{job="vision-1"', vision)
        self.assertNotIn("speech", vision)
        self.assertIn('tacho_auth_refused_total{code="UNAUTHENTICATED"}', vision)
        log = self.collector.program.tail(1 << 20)
        self.assertRegex(log, 'msg="not let in" peer=\\S+ code=UNAUTHENTICATED reason=')
        for name, (secret, _) in self.tokens.items():
            self.assertNotIn(secret, log, name)

    def test_health_and_reflection_are_open(self):
        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(check(b"", timeout=harness.PATIENCE_S), b"\x08\x01")
        reflect = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        )
        names = b"".join(reflect(iter([b"\x3a\x01*"]), timeout=harness.PATIENCE_S))
        self.assertIn(b"tacho.v1.Ingest", names)

    def test_a_removed_token_ends_its_live_stream_and_no_other(self):
        removed = self.stream(self.secret("vision-writer"))
        kept = self.stream(self.secret("bound-writer"), "agent-7")
        self.assertEqual(self.deliver(removed, "vision-1"), grpc.StatusCode.OK)
        self.assertEqual(self.deliver(kept, "speech"), grpc.StatusCode.OK)
        del self.tokens["vision-writer"]
        self.write_tokens()
        self.reload()
        began = time.monotonic()
        self.assertFalse(removed.wait(lambda: False, "its end"))
        self.assertLess(time.monotonic() - began, 10 * ROUND_S)  # Generous: a busy machine.
        self.assertEqual(removed.error.code(), grpc.StatusCode.UNAUTHENTICATED)
        self.assertEqual(self.deliver(kept, "speech", 2), grpc.StatusCode.OK, kept.error)

    def test_an_agent_id_stays_with_the_token_that_used_it_first(self):
        OK, DENIED = grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED
        secret, entry = self.tokens["vision-writer"]
        self.token("late", "write")
        self.write_tokens()
        self.reload()
        first = self.stream(secret)
        self.assertEqual(self.deliver(first, "vision-1"), OK, first.error)
        first.close()
        self.assertEqual(self.collector.stop(), 0)
        self.collector.start()

        def late():
            """Knows the generation, and wants to close the first one's sequences."""
            stream = self.stream(self.secret("late"))
            lost = ingest_pb2.Gap(sequence=101, lost=types_pb2.SequenceRange(first=2, last=100))
            stream.send(ingest_pb2.ClientMessage(gap=lost))
            stream.wait(lambda: stream.durable >= 101, "the gap durable")
            return stream

        thief = late()
        self.assertEqual(thief.error.code(), DENIED)
        for text in ('"agent-1"', 'the token "vision-writer"', "the key agents", "reload"):
            self.assertIn(text, thief.error.details())
        self.assertNotIn(secret, thief.error.details())
        again = self.stream(secret)
        self.assertTrue(again.welcomed(), again.error)
        self.assertEqual(again.welcome.durable_sequence, 1)
        again.close()

        # A new secret of the same name is the same owner.
        old_hash = entry.split("sha256: ")[1][:64]
        new, new_hash = make_token()
        new_entry = entry.replace(old_hash, new_hash)
        self.tokens["vision-writer"] = (new, new_entry)
        self.write_tokens()
        self.reload()
        renewed = self.stream(new)
        self.assertEqual(self.deliver(renewed, "vision-1", 2), OK, renewed.error)
        renewed.close()

        # What the refusal says is what helps.
        late_secret, late_entry = self.tokens["late"]
        self.tokens["late"] = (late_secret, late_entry.replace("}", ", agents: 'agent-[0-9]'}"))
        self.write_tokens()
        self.reload()
        heir = late()
        self.assertIsNone(heir.error)
        self.assertEqual(heir.durable, 101)
        lost_it = self.stream(new)
        self.assertEqual(self.deliver(lost_it, "vision-1", 102), DENIED)

        # An agent that stays connected loses the id as well, even with another spool.
        self.tokens["vision-writer"] = (new, new_entry.replace("}", ", agents: 'agent-[0-9]'}"))
        self.write_tokens()
        self.reload()
        back = client.Stream(self.collector.address, "agent-1", 8, 1, token=new)
        self.addCleanup(back.close)
        self.assertTrue(back.welcomed(), back.error)
        self.assertFalse(heir.wait(lambda: False, "its end"))
        self.assertEqual(heir.error.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn("took over", heir.error.details())

    def test_other_rights_make_a_stream_connect_again(self):
        stream = self.stream(self.secret("vision-writer"))
        self.assertEqual(self.deliver(stream, "vision-1"), grpc.StatusCode.OK)
        secret, entry = self.tokens["vision-writer"]
        self.tokens["vision-writer"] = (secret, entry.replace("vision-.*", "speech"))
        self.write_tokens()
        self.reload()
        self.assertFalse(stream.wait(lambda: False, "its end"))
        self.assertEqual(stream.error.code(), grpc.StatusCode.UNAVAILABLE)
        again = self.stream(secret)
        self.assertEqual(self.deliver(again, "vision-1", 2), grpc.StatusCode.PERMISSION_DENIED)

    def test_a_token_that_expires_ends_its_live_stream(self):
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 8))
        self.token("soon", "write", expires=soon)
        self.write_tokens()
        self.reload()
        stream = self.stream(self.secret("soon"))
        self.assertEqual(self.deliver(stream, "vision-1"), grpc.StatusCode.OK, stream.error)
        self.assertFalse(stream.wait(lambda: False, "its end"))
        self.assertEqual(stream.error.code(), grpc.StatusCode.UNAUTHENTICATED)
        self.assertIn("expired", stream.error.details())

    def test_a_broken_tokens_file_changes_nothing(self):
        stream = self.stream(self.secret("vision-writer"))
        self.assertEqual(self.deliver(stream, "vision-1"), grpc.StatusCode.OK)
        self.write_tokens("  - {name: new, sha256: abc, roles: [read], jobs: a}\n")
        log = self.reload()
        self.assertIn('reason="auth.tokens_file', log)
        self.assertIn("tokens[6].sha256", log)
        self.assertEqual(self.deliver(stream, "vision-1", 2), grpc.StatusCode.OK, stream.error)


class StartTest(SecurityCase):
    def check(self, text, *arguments):
        path = self.file("collector.yaml", text)
        return subprocess.run(
            [os.environ["TACHO_COLLECTOR"], "--config", path, *arguments], text=True,
            capture_output=True, timeout=harness.PATIENCE_S, cwd=self.directory,
        )  # fmt: skip

    def test_other_machines_are_not_listened_to_without_authentication(self):
        open_port = "listen: {grpc: '0.0.0.0:0', http: '127.0.0.1:0'}\n"
        for arguments, code in [(["--check-config"], 2), ([], 1)]:
            done = self.check(open_port, *arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            for word in ["listen.grpc", "auth.tokens_file", "auth.allow_anonymous: true"]:
                self.assertIn(word, done.stderr)
        done = self.check(open_port + "auth: {allow_anonymous: true}\n", "--check-config")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_wrong_with_a_file_is_said_before_the_start(self):
        self.token("x", "read")
        self.write_tokens()
        done = self.check("auth: {tokens_file: nowhere.yaml}\n", "--check-config")
        self.assertEqual(done.returncode, 2)
        self.assertIn("auth.tokens_file: cannot read nowhere.yaml", done.stderr)
        done = self.check("listen: {tls: {certificate: a.crt}}\n", "--check-config")
        self.assertEqual(done.returncode, 2)
        self.assertIn("listen.tls.key: is missing", done.stderr)
        done = self.check(f"auth: {{tokens_file: {self.tokens_file}}}\n", "--check-config")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    harness.main()
