"""Talks to the collector through its public gRPC API, as any program may."""
import queue
import struct
import threading

import harness  # First: it makes the stubs importable.
import grpc
from tacho.v1 import ingest_pb2, ingest_pb2_grpc, query_pb2, query_pb2_grpc, types_pb2

STALE_BITS = 0x7FF0000000000002
_END = object()
# Messages of an answer are about 1 MiB; the default limit of 4 MiB is nearer than it need be.
_OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.use_local_subchannel_pool", 1)]


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def double(pattern):
    return struct.unpack("<d", struct.pack("<Q", pattern))[0]


def connect(address, credentials=None):
    """A channel of its own; with `credentials` over TLS."""
    if credentials is None:
        return grpc.insecure_channel(address, options=_OPTIONS)
    return grpc.secure_channel(address, credentials, options=_OPTIONS)


def bearer(token):
    """Metadata of a call; none for None."""
    return None if token is None else (("authorization", "Bearer " + token),)


def Stream(address, agent_id, generation, first_sequence, credentials=None, token=None, shards=0,
           shard=0, job=None):  # fmt: skip
    """A stream to a collector. With TACHO_CLUSTER it goes to the owner of `job`, or, without a job, to
    the owner of each message's job."""
    members = harness.clusters.get(address)
    if members is None or shards:
        return SingleStream(address, agent_id, generation, first_sequence, credentials, token, shards, shard)
    if job is None:
        import cluster_stream  # It needs this module.

        return cluster_stream.ClusterStream(members, agent_id, generation, credentials, token)
    shard = harness.shard_of(job, len(members))
    return SingleStream(
        members[shard], agent_id, generation, first_sequence, credentials, token, len(members), shard
    )


class SingleStream:
    """One ingest stream. Sends in the caller's thread, reads in its own."""

    def __init__(
        self, address, agent_id, generation, first_sequence, credentials=None, token=None,
        shards=0, shard=0,
    ):  # fmt: skip
        self._out = queue.Queue()
        self._channel = connect(address, credentials)
        self._changed = threading.Condition()
        self.welcome = None
        self.durable = 0
        self._ahead = []
        self.rejects = []
        self.error = None
        self.ended = False
        hello = ingest_pb2.Hello(
            agent_id=agent_id, spool_generation=generation, first_sequence=first_sequence,
            shards=shards, shard=shard,
        )  # fmt: skip
        self.send(ingest_pb2.ClientMessage(hello=hello))
        self._call = ingest_pb2_grpc.IngestStub(self._channel).Stream(
            iter(self._next, _END), metadata=bearer(token)
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _next(self):
        return self._out.get()

    def _read(self):
        try:
            for message in self._call:
                with self._changed:
                    self._take(message)
                    self._changed.notify_all()
        except grpc.RpcError as error:
            self.error = error
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def _take(self, message):
        progress = None
        if message.HasField("welcome"):
            progress = self.welcome = message.welcome
        elif message.HasField("ack"):
            progress = message.ack
            self.rejects.extend(message.ack.rejects)
        if progress is not None:
            self.durable = max(self.durable, progress.durable_sequence)
            self._ahead = [(r.first, r.last) for r in progress.durable_ahead]

    def send(self, message):
        self._out.put(message)

    def wait(self, condition, what, timeout_s=harness.PATIENCE_S):
        """False if the stream ended before the condition came true."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition() or self.ended, timeout_s):
                raise AssertionError(f"after {timeout_s:.0f} s still not: {what}")
            return bool(condition())

    def welcomed(self):
        return self.wait(lambda: self.welcome is not None, "Welcome")

    def wait_durable(self, sequence):
        return self.wait(lambda: self.durable >= sequence, f"{sequence} durable")

    def is_durable(self, sequence):
        with self._changed:
            return sequence <= self.durable or any(a <= sequence <= b for a, b in self._ahead)

    def close(self):
        self._out.put(_END)
        self._call.cancel()
        self._reader.join()
        self._channel.close()


def layout(layout_id, job, host, metrics, task=None, attempt=0, has_steps=False):
    """`metrics`: (name, unit), and of what is no gauge without labels (…, type, labels)."""
    source = types_pb2.Source(job=job, host=host, attempt=attempt, task=task)
    gauge = types_pb2.METRIC_TYPE_GAUGE
    series = [
        ingest_pb2.Layout.Series(
            metric=types_pb2.Metric(name=name, type=kind, unit=unit),
            labels=[types_pb2.Label(name=key, value=value) for key, value in labels.items()],
        )
        for name, unit, kind, labels in (m if len(m) == 4 else (*m, gauge, {}) for m in metrics)
    ]
    message = ingest_pb2.Layout(id=layout_id, source=source, has_steps=has_steps, series=series)
    return ingest_pb2.ClientMessage(layout=message)


def batch(sequence, layout_id, times, values, steps=()):
    message = ingest_pb2.Batch(
        sequence=sequence, layout=layout_id, times_unix_ns=times, values=values, steps=steps
    )
    return ingest_pb2.ClientMessage(batch=message)


class Query:
    """The query service. Answers are plain dicts and tuples."""

    def __init__(self, address):
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self.stub = query_pb2_grpc.QueryStub(self._channel)

    def close(self):
        self._channel.close()

    def jobs(self):
        answer = self.stub.ListJobs(query_pb2.ListJobsRequest(page_size=10_000))
        return {job.name: job for job in answer.jobs}

    def series(self, job, *metrics):
        """[(what it is, [(time, step, attempt, bits)])], raw; empty if the job is unknown."""
        request = query_pb2.RangeRequest(selector=query_pb2.Selector(job=job, metrics=metrics))
        found = []
        try:
            for piece in self.stub.Range(request, timeout=harness.PATIENCE_S):
                if piece.HasField("series"):
                    found.append((piece.series, []))
                found[-1][1].extend(points_of(piece.points))
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
        return found

    def range(self, job, *metrics):
        """{(metric, task, host): as series() has it}, for series without labels."""
        found = {}
        for info, samples in self.series(job, *metrics):
            task = info.task if info.HasField("task") else None
            key = (info.metric.name, task, info.host)
            if key in found:
                raise AssertionError(f"series {key} came twice")
            found[key] = samples
        return found

    def latest(self, job, *metrics):
        request = query_pb2.LatestRequest(selector=query_pb2.Selector(job=job, metrics=metrics))
        return [s for answer in self.stub.Latest(request) for s in answer.samples]

    def events(self, job):
        request = query_pb2.ListEventsRequest(job=job)
        return [e for answer in self.stub.ListEvents(request) for e in answer.events]


def points_of(points):
    count = len(points.times_unix_ns)
    steps = points.steps or [None] * count
    attempts = points.attempts or [0] * count
    # Packed once: a loop over struct.unpack would dominate the test.
    patterns = struct.unpack(f"<{count}Q", struct.pack(f"<{count}d", *points.values))
    return list(zip(points.times_unix_ns, steps, attempts, patterns, strict=True))
