"""A stream to a cluster, for tests that know only one address."""
import client
import harness
from tacho.v1 import ingest_pb2


def job_of(message):
    """The job that a message names; "" if it names none."""
    kind = message.WhichOneof("message")
    if kind == "attributes":
        return message.attributes.job
    return getattr(message, kind).source.job if kind in ("layout", "event") else ""


class ClusterStream:
    """As client.SingleStream, but each message goes to the member that keeps its job, by a stream of its
    own with sequences of its own. What begins it waits for nothing: no member is known before a job is."""

    def __init__(self, members, agent_id, generation, credentials, token):
        self._members = members
        self._options = (agent_id, generation, 1, credentials, token)
        self._parts = {}  # By shard.
        self._layouts = {}  # By id: the shard.
        self._next = {}  # By shard: the sequence of its next message.
        self._sent = []  # In order: (sequence of the caller, shard, sequence there).

    def _part(self, shard):
        if shard not in self._parts:
            self._parts[shard] = client.SingleStream(
                self._members[shard], *self._options, shards=len(self._members), shard=shard
            )
            self._next[shard] = 1
        return self._parts[shard]

    def send(self, message):
        kind = message.WhichOneof("message")
        if kind == "batch":
            shard = self._layouts[message.batch.layout]
        else:
            shard = harness.shard_of(job_of(message), len(self._members))
        if kind == "layout":
            self._layouts[message.layout.id] = shard
        part = self._part(shard)
        inner = getattr(message, kind)
        if hasattr(inner, "sequence"):
            own = ingest_pb2.ClientMessage()
            own.CopyFrom(message)
            getattr(own, kind).sequence = self._next[shard]
            self._sent.append((inner.sequence, shard, self._next[shard]))
            self._next[shard] += 1
            message = own
        part.send(message)

    @property
    def durable(self):
        last = 0
        for sequence, shard, own in self._sent:
            if self._parts[shard].durable < own:
                break
            last = sequence
        return last

    @property
    def error(self):
        return next((part.error for part in self._parts.values() if part.error), None)

    @property
    def rejects(self):
        return [reject for part in self._parts.values() for reject in part.rejects]

    def welcomed(self):
        return all(part.welcomed() for part in self._parts.values())

    def wait_durable(self, sequence):
        last = {shard: own for number, shard, own in self._sent if number <= sequence}
        return all(self._parts[shard].wait_durable(own) for shard, own in last.items())

    def close(self):
        for part in self._parts.values():
            part.close()
