"""What the tests of a cluster share: its collectors, and jobs that are written to their owners."""
import os
import time

import client
import harness  # First: it makes the stubs importable.
import grpc
from security_case import SecurityCase
from tacho.v1 import ingest_pb2, query_pb2_grpc, view_pb2_grpc

SECOND = 1_000_000_000
METRICS = [("loss", "1"), ("step_time_seconds", "s")]


class ClusterCase(SecurityCase):
    """A cluster of `MEMBERS` collectors, and one collector that has all jobs."""

    MEMBERS = 3

    def start_cluster(self, config="", member_config="", cluster_config=""):
        """Sets `members` and, without a cluster, `alone`. `cluster_config`: more keys of `cluster`."""
        if self.tokens:
            self.write_tokens()
            config += f"auth: {{tokens_file: {self.tokens_file}}}\n"
        ports = [harness.free_port() for _ in range(self.MEMBERS)]
        addresses = ", ".join(f"'127.0.0.1:{port}'" for port in ports)
        self.members = []
        for shard, port in enumerate(ports):
            directory = os.path.join(self.directory, f"member-{shard}")
            os.mkdir(directory)
            own = f"cluster: {{members: [{addresses}], member: '127.0.0.1:{port}'{cluster_config}}}\n"
            member = harness.Collector(directory, config + member_config + own)
            member.log = os.path.join(self.directory, f"member-{shard}.log")
            member.grpc = port
            self.members.append(self.started(member))
        directory = os.path.join(self.directory, "alone")
        os.mkdir(directory)
        self.alone = self.started(harness.Collector(directory, config))
        return self.members

    def owner_of(self, job):
        return self.members[harness.shard_of(job, self.MEMBERS)]

    def others_of(self, job):
        owner = self.owner_of(job)
        return [member for member in self.members if member is not owner]

    def job_of(self, shard, prefix="job"):
        """A name whose owner is that member."""
        return next(
            name for name in (f"{prefix}-{i}" for i in range(1000))
            if harness.shard_of(name, self.MEMBERS) == shard
        )  # fmt: skip

    def write(self, job, rows=60, age_s=7 * 3600, tasks=1, attributes=None, end="ended", token=None):
        """Writes a job with a step a second to its owner, and the same to the collector that is
        alone. Its last row is `age_s` old: after hours nothing changes by itself."""
        last = time.time_ns() - age_s * SECOND
        for collector in (self.owner_of(job), self.alone):
            in_cluster = collector is not self.alone
            stream = client.Stream(
                collector.address, f"agent-{job}", 7, 1, token=token,
                shard=harness.shard_of(job, self.MEMBERS) if in_cluster else 0,
                shards=self.MEMBERS if in_cluster else 0,
            )  # fmt: skip
            sequence = 0
            for task in range(tasks):
                stream.send(client.layout(task + 1, job, f"host-{task}", METRICS, task, has_steps=True))
                for begin in range(0, rows, 10_000):
                    sequence += 1
                    part = range(begin, min(begin + 10_000, rows))
                    times = [last - (rows - 1 - i) * SECOND for i in part]
                    values = [cell for i in part for cell in (2.0 - 0.001 * i + task, 0.5)]
                    stream.send(client.batch(sequence, task + 1, times, values, steps=list(part)))
            sequence += 1
            kept = ingest_pb2.Attributes(
                sequence=sequence, job=job, values={"user": "ana", **(attributes or {})}
            )
            stream.send(ingest_pb2.ClientMessage(attributes=kept))
            if end:
                sequence += 1
                source = client.layout(1, job, "host-0", METRICS, task=0).layout.source
                event = ingest_pb2.Event(
                    sequence=sequence, source=source, time_unix_ns=last, kind=end
                )
                stream.send(ingest_pb2.ClientMessage(event=event))
            self.assertTrue(stream.wait_durable(sequence), stream.error)
            stream.close()

    def stub(self, collector, service="Query"):
        channel = client.connect(collector.address)
        self.addCleanup(channel.close)
        stubs = {"Query": query_pb2_grpc.QueryStub, "View": view_pb2_grpc.ViewStub}
        return stubs[service](channel)

    def ask(self, collector, service, method, request, token=None, timeout=harness.PATIENCE_S):
        """(code, text, details, [messages]) of a call, the messages as bytes."""
        call = getattr(self.stub(collector, service), method.name)
        messages = []
        try:
            answer = call(request, timeout=timeout, metadata=client.bearer(token))
            messages.extend(answer if method.server_streaming else [answer])
        except grpc.RpcError as error:
            details = dict(error.trailing_metadata()).get("grpc-status-details-bin", b"")
            return error.code(), error.details(), details, messages
        return grpc.StatusCode.OK, "", b"", messages

    def metric(self, collector, name):
        """The sum of its lines on the collector's page of metrics."""
        _, _, page = harness.http_get(collector.url("/metrics"))
        lines = [line for line in page.decode().splitlines() if line.startswith(name)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)
