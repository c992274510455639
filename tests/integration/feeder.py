"""An agent written for tests, and the model of what the collector must hold."""
import collections
import time

import client

METRICS = [("a", "1"), ("b", "1"), ("c", "1")]


class Feeder:
    """Numbered batches of random values, sent again until they are durable.

    `batches` is the model of what must be stored: everything ever sent, since after a cut the rest
    is sent again.
    """

    JOB = "fed"

    def __init__(self, random, address, batch_rows=20):
        self.random = random
        self.address = address
        self.batch_rows = batch_rows
        self.batches = {}  # sequence: (layout, times, steps, values)
        self.durable = 0
        self.generation = random.randrange(1, 1 << 64)
        self.begin_ns = time.time_ns() - 3600 * 10**9
        self.resent = 0
        self.error = None  # The one that ended the last session; None if none did.

    def make(self, count):
        for _ in range(count):
            sequence = len(self.batches) + 1
            rows = [sequence * self.batch_rows + i for i in range(self.batch_rows)]
            times = [self.begin_ns + row * 1_000_000 for row in rows]
            self.random.shuffle(times)
            values = [client.double(self.bits()) for _ in range(self.batch_rows * len(METRICS))]
            self.batches[sequence] = (sequence % 2, times, rows, values)

    def bits(self):
        """Mostly numbers, sometimes NaN with a payload or infinity; the stale marker never."""
        if self.random.random() < 0.1:
            return self.random.choice([0x7FF0000000000000, 0xFFF8000000000123, 0x7FF8000000000000])
        return client.bits(self.random.gauss(0, 1))

    def stream(self, first):
        return client.Stream(self.address, "feeder", self.generation, first, job=self.JOB)

    def session(self, acknowledged=lambda durable: None):
        """One stream: sends what is not durable, until all is or the stream ends. True if all is.

        Calls acknowledged() with the durable sequence whenever it may have risen.
        """
        first = self.durable + 1
        stream = self.stream(first)
        try:
            if not stream.welcomed():
                return False
            if stream.durable < self.durable:
                raise AssertionError(f"{self.durable} was durable, now {stream.durable}")
            for task in (0, 1):
                stream.send(client.layout(task, self.JOB, f"host-{task}", METRICS, task, 0, True))
            pending = [s for s in self.batches if not stream.is_durable(s)]
            self.resent += len(pending)
            for sequence in pending:
                layout, times, steps, values = self.batches[sequence]
                stream.send(client.batch(sequence, layout, times, values, steps))
            return stream.wait(lambda: self._note(stream, acknowledged), "all durable")
        finally:
            self._note(stream, acknowledged)
            self.error = stream.error
            stream.close()

    def _note(self, stream, acknowledged):
        self.durable = max(self.durable, stream.durable)
        acknowledged(self.durable)
        return self.durable >= len(self.batches)

    def expected(self, last_sequence):
        """{(metric, task): Counter of (time, step, bits)}"""
        expected = collections.defaultdict(collections.Counter)
        for sequence in range(1, last_sequence + 1):
            layout, times, steps, values = self.batches[sequence]
            for row, (when, step) in enumerate(zip(times, steps)):
                for column, (metric, _) in enumerate(METRICS):
                    pattern = client.bits(values[row * len(METRICS) + column])
                    expected[metric, layout][when, step, pattern] += 1
        return expected


def stored(address, job):
    """{(metric, task): Counter of (time, step, bits)}"""
    query = client.Query(address)
    try:
        found = collections.defaultdict(collections.Counter)
        for (metric, task, _), samples in query.range(job).items():
            found[metric, task].update((t, step, bits) for t, step, _, bits in samples)
        return found
    finally:
        query.close()


def expect_acknowledged(test, feeder, address):
    """Each acknowledged sample is there once, and nothing that was never sent."""
    got = stored(address, feeder.JOB)
    sent = feeder.expected(len(feeder.batches))
    for key, samples in feeder.expected(feeder.durable).items():
        test.assertEqual(samples - got[key], collections.Counter(), f"lost of {key}")
    for key, samples in got.items():
        test.assertEqual(samples - sent[key], collections.Counter(), f"too much in {key}")
