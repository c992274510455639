"""What other tools write reaches the owner of each job, whichever member of a cluster takes it (docs/cluster.md)."""
import hashlib
import json
import os
import socket
import time

import client
import doors
import grpc
import harness
from tacho.v1 import member_writes_pb2, member_writes_pb2_grpc
from test_cluster import SHARDS, ClusterCase, job_of

SENDER, READER = "token-of-sender-0123456789", "token-of-reader-0123456789"


def digest(token):
    return hashlib.sha256(token.encode()).hexdigest()


class WritesTest(ClusterCase):
    """Without tokens."""

    more = "interop: {statsd: {listen: '127.0.0.1:0', interval: 1s}}\n"

    def setUp(self):
        super().setUp()
        self.cluster()
        self.own, self.foreign = job_of(0), job_of(1)

    def post(self, path, body, headers=None):
        """(status, text) of the first member."""
        status, _, text = doors.send(self.collectors[0], "POST", path, body, headers)
        return status, text.decode(errors="replace")

    def otlp(self, *jobs):
        now = str(time.time_ns())
        points = {"gauge": {"dataPoints": [{"asDouble": 1.5, "timeUnixNano": now}]}}
        resources = [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": job}}]},
                "scopeMetrics": [{"metrics": [{"name": "loss", "unit": "nats", **points}]}],
            }
            for job in jobs
        ]
        body = json.dumps({"resourceMetrics": resources}).encode()
        return self.post("/v1/metrics", body, {"Content-Type": "application/json"})

    def stored(self, shard, job):
        """{metric: [values]} of the job, as the member of this shard has them."""
        query = client.Query(self.members[shard])
        try:
            return {
                series.metric.name: [client.double(bits) for _, _, _, bits in points]
                for series, points in query.series(job)
            }
        finally:
            query.close()

    def test_what_other_tools_write_reaches_its_owner(self):
        jobs = [job_of(shard) for shard in range(SHARDS)]
        status, text = self.otlp(*jobs)
        self.assertEqual((status, text), (200, "{}"))
        for job in jobs:
            self.assertEqual(self.stored(0, job), {"loss": [1.5]})
        for number, path in enumerate(("/write?precision=ns", "/api/v2/write")):
            lines = "".join(f"train,job={job},host=h1 speed={number}\n" for job in jobs)
            self.assertEqual(self.post(path, lines.encode())[0], 204)
        self.assertEqual(self.stored(0, self.foreign)["train_speed"], [0, 1])
        # What is refused at the owner is told as if it were here.
        old = f"train,job={self.foreign},host=h1 late=1 1000000000\ntrain,job={self.own},host=h1 on_time=1\n"
        status, text = self.post("/api/v2/write", old.encode())
        self.assertEqual(status, 400, text)
        self.assertIn("dropped=1", text)
        self.assertIn("too_old: older than storage.retention", text)
        self.assertEqual(self.stored(0, self.own)["train_on_time"], [1])
        logs = {"resourceLogs": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": job}}]},
            "scopeLogs": [{"logRecords": [{"eventName": "text", "timeUnixNano": str(time.time_ns())}]}],
        } for job in jobs]}  # fmt: skip
        for _ in range(2):  # A repeat stores nothing.
            status, text = self.post(
                "/v1/logs", json.dumps(logs).encode(), {"Content-Type": "application/json"}
            )
            self.assertEqual((status, text), (200, "{}"))
        query = client.Query(self.members[0])
        self.addCleanup(query.close)
        for job in jobs:
            self.assertEqual([event.kind for event in query.events(job)], ["text"])
        self.assertEqual([self.jobs_of(shard) for shard in range(SHARDS)], [1, 1, 1])
        forwarded = "tacho_writes_forwarded_total"
        self.assertGreaterEqual(self.metric(self.collectors[0], forwarded, 'result="ok"'), 10)
        self.assertEqual(self.metric(self.collectors[1], forwarded, 'result="ok"'), 0)

    def test_a_group_of_pushes_is_one_whoever_takes_them(self):
        group = f"/metrics/job/{self.foreign}/instance/a"
        pushes = ((0, b"loss 1\nspeed 2\n"), (2, b"loss 3\n"), (1, b"loss 4\n"))
        for shard, body in pushes:
            status, _, text = doors.send(self.collectors[shard], "PUT", group, body)
            self.assertEqual(status, 200, text)
        _, _, page = harness.http_get(self.collectors[1].url("/metrics"))
        shown = [line for line in page.decode().splitlines() if f'job="{self.foreign}"' in line]
        # The second push has ended the series that it lacks, though another member took the first.
        self.assertTrue(any(line.startswith("tacho_job_loss") and line.endswith(" 4") for line in shown))
        self.assertFalse(any(line.startswith("tacho_job_speed") for line in shown), shown)
        self.assertEqual(self.stored(2, self.foreign)["loss"], [1, 3, 4])
        status, _, text = doors.send(self.collectors[0], "POST", group, b"loss\n")
        self.assertEqual(status, 400, text)
        status, _, text = doors.send(self.collectors[0], "POST", group, b"x" * (2 << 20))
        self.assertEqual(status, 413, text)
        self.assertIn(f"send it to {self.members[1]}", text.decode())

    def test_a_member_that_is_away_is_told_to_the_sender_who_tries_again(self):
        self.assertEqual(self.otlp(self.own, self.foreign)[0], 200)
        self.collectors[1].kill()
        lines = "".join(
            f"train,job={job},host=h1 speed=7 {time.time_ns()}\n" for job in (self.own, self.foreign)
        ).encode()
        status, text = self.post("/write", lines)
        self.assertEqual(status, 503, text)
        self.assertIn(f"member {self.members[1]} (shard 1 of 3) cannot be reached", text)
        push = doors.send(self.collectors[0], "POST", f"/metrics/job/{self.foreign}", b"loss 1\n")
        self.assertEqual(push[0], 503, push[2])
        self.assertIsNotNone(push[1]["Retry-After"])
        self.assertEqual(self.otlp(self.own)[0], 200)
        self.collectors[1].start()
        harness.wait_until(lambda: self.post("/write", lines)[0] == 204, "it is stored")
        for job in (self.own, self.foreign):
            self.assertEqual(self.stored(0, job)["train_speed"], [7])
        unreachable = self.metric(
            self.collectors[0], "tacho_writes_forwarded_total", 'result="unreachable"'
        )
        self.assertGreaterEqual(unreachable, 2)

    def test_a_large_request_is_passed_on_whole(self):
        jobs = [job_of(shard) for shard in range(SHARDS)]
        count, begin = 40_000, time.time_ns() - 60 * 10**9
        lines = "".join(
            f"train,job={job},host=h1,stage=the-name-of-a-stage-{i % 100} speed={i} {begin + i * 1000}\n"
            for i in range(count) for job in jobs
        ).encode()  # fmt: skip
        self.assertEqual(self.post("/write", lines), (204, ""))
        query = client.Query(self.members[0])
        self.addCleanup(query.close)
        for job in jobs:
            values = [client.double(v) for _, points in query.series(job) for _, _, _, v in points]
            self.assertEqual(sorted(values), list(range(count)), job)
        for collector in self.collectors:
            closed = "tacho_connections_closed_total"
            self.assertEqual(self.metric(collector, closed, 'reason="flood"'), 0)

    def test_datagrams_reach_the_owner(self):
        log = self.collectors[0].program
        line = harness.wait_until(
            lambda: next((n for n in log.tail().splitlines() if "statsd listens" in n), None), "its port"
        )
        port = int("".join(c for c in line.split("port", 1)[1] if c.isdigit()))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(f"loss:1.5|g|#job:{self.foreign}".encode(), ("127.0.0.1", port))
        harness.wait_until(lambda: self.stored(1, self.foreign).get("loss"), "it is stored")
        self.assertEqual(self.stored(1, self.foreign)["loss"][0], 1.5)


class TokensOfAClusterTest(ClusterCase):
    """The rights of a sender are those of its token, wherever its jobs are."""

    def setUp(self):
        super().setUp()
        self.own, self.foreign, self.forbidden = job_of(0), job_of(1), job_of(1, 1)
        tokens = os.path.join(self.directory, "tokens.yaml")
        with open(tokens, "w") as file:
            file.write(
                "tokens:\n"
                f"  - {{name: sender, sha256: {digest(SENDER)}, roles: [write], jobs: '{self.own}|{self.foreign}'}}\n"
                f"  - {{name: reader, sha256: {digest(READER)}, roles: [read], jobs: '.*'}}\n"
            )
        self.more = f"auth: {{tokens_file: {tokens}, allow_plaintext: true}}\n"
        self.cluster()

    def write(self, token, *jobs):
        lines = "".join(f"train,job={job},host=h1 speed=1 {time.time_ns()}\n" for job in jobs)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        status, _, text = doors.send(self.collectors[0], "POST", "/write", lines.encode(), headers)
        return status, text.decode()

    def test_tokens_are_passed_on(self):
        self.assertEqual(self.write(SENDER, self.own, self.foreign), (204, ""))
        for token, job, refused in (
            (SENDER, self.forbidden, 403), (READER, self.foreign, 403), (None, self.foreign, 401)
        ):  # fmt: skip
            status, text = self.write(token, job)
            self.assertEqual(status, refused, text)
        path = f"/metrics/job/{self.foreign}"
        bearer = {"Authorization": f"Bearer {SENDER}"}
        self.assertEqual(doors.send(self.collectors[0], "POST", path, b"loss 1\n", bearer)[0], 200)
        path = f"/metrics/job/{self.forbidden}"
        self.assertEqual(doors.send(self.collectors[0], "POST", path, b"loss 1\n", bearer)[0], 403)
        stub = member_writes_pb2_grpc.MemberWritesStub
        with client.connect(self.members[1]) as channel:
            request = member_writes_pb2.StoreSeriesRequest()
            with self.assertRaises(grpc.RpcError) as refused:
                stub(channel).StoreSeries(iter([request]))
            self.assertEqual(refused.exception.code().name, "UNAUTHENTICATED")
            request.series.add(labels=b"no labels", times_unix_ns=[1], values=[])
            with self.assertRaises(grpc.RpcError) as refused:
                stub(channel).StoreSeries(iter([request]), metadata=client.bearer(SENDER))
            self.assertEqual(refused.exception.code().name, "INVALID_ARGUMENT")


if __name__ == "__main__":
    harness.main()
