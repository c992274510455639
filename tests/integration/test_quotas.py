"""Rates past which agents must slow down: nothing is lost, others do not notice."""
import signal
import time

import client
import harness
from tacho.v1 import ingest_pb2

RATE = 2000
WIDTH = 100
ROWS = 50


class Greedy(client.SingleStream):
    """An agent that sends as fast as it can, whatever the collector asks."""

    def __init__(self, address, agent_id="greedy"):
        self.throttles = []
        super().__init__(address, agent_id, 7, 1)

    def _take(self, message):
        if message.HasField("throttle"):
            self.throttles.append(message.throttle)
        super()._take(message)


class QuotaTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, self.config_of(RATE)))

    @staticmethod
    def config_of(rate):
        return (
            "storage: {retention: 0s}\n"
            f"quotas: {{agent_samples_per_second: {rate}, burst: 1s}}\n"
        )

    def open(self, agent_id):
        stream = Greedy(self.collector.address, agent_id)
        self.addCleanup(stream.close)
        self.assertTrue(stream.welcomed())
        metrics = [(f"m{i}", "1") for i in range(WIDTH)]
        stream.send(client.layout(1, "job-" + agent_id, "host-1", metrics))
        return stream

    def batch(self, sequence):
        times = [sequence * 1_000_000 + row for row in range(ROWS)]
        return client.batch(sequence, 1, times, [float(sequence)] * (ROWS * WIDTH))

    def metric(self, name):
        _, _, body = harness.http_get(self.collector.url("/metrics"))
        lines = [line for line in body.decode().splitlines() if line.startswith(name + " ")]
        self.assertEqual(len(lines), 1, name)
        return float(lines[0].split()[1])

    def test_greedy_agent_is_held_to_its_rate_until_a_reload_lifts_it(self):
        greedy, honest = self.open("greedy"), self.open("honest")
        began = time.monotonic()
        for sequence in range(1, 101):
            greedy.send(self.batch(sequence))
        latencies = []
        for sequence in range(1, 101):
            sent = time.monotonic()
            honest.send(client.batch(sequence, 1, [sequence], [0.5] * WIDTH))
            self.assertTrue(honest.wait_durable(sequence), honest.error)
            latencies.append(time.monotonic() - sent)
            time.sleep(max(0, sent + 0.06 - time.monotonic()))
        took = time.monotonic() - began
        taken = greedy.durable * ROWS * WIDTH
        latencies.sort()
        print(
            f"greedy: {taken} samples in {took:.1f} s at {RATE}/s, {len(greedy.throttles)}"
            f" throttles; honest: p50 {latencies[50] * 1e3:.0f} ms, p99 {latencies[98] * 1e3:.0f} ms"
        )
        # The burst, and the batch that is taken before it is paid for.
        self.assertLessEqual(taken, RATE * (took + 1) + 2 * ROWS * WIDTH)
        self.assertGreaterEqual(taken, RATE * (took - 3))
        self.assertGreater(len(greedy.throttles), 0)
        told = greedy.throttles[0]
        self.assertEqual(told.max_rows_per_second, RATE // WIDTH)
        self.assertGreater(told.pause_ms, 0)
        self.assertFalse(greedy.ended, greedy.error)
        self.assertGreater(self.metric('tacho_ingest_throttled_seconds_total{how="agent_rate"}'), 1)
        self.assertEqual(self.metric('tacho_quota_limit{quota="agent_samples_per_second"}'), RATE)

        with open(self.collector.config, "w") as file:
            file.write(self.config_of(0))
        self.collector.program.process.send_signal(signal.SIGHUP)
        self.assertTrue(greedy.wait_durable(100), greedy.error)
        self.assertEqual(self.metric('tacho_quota_limit{quota="agent_samples_per_second"}'), 0)
        query = client.Query(self.collector.address)
        self.addCleanup(query.close)
        stored = query.range("job-greedy", "m0")
        self.assertEqual([len(samples) for samples in stored.values()], [100 * ROWS])

    def test_throttle_is_lifted_once_it_is_not_needed(self):
        greedy = self.open("greedy")
        for sequence in range(1, 4):
            greedy.send(self.batch(sequence))
        self.assertTrue(greedy.wait_durable(3), greedy.error)
        self.assertGreater(greedy.throttles[0].max_rows_per_second, 0)
        harness.wait_until(
            lambda: greedy.throttles[-1].max_rows_per_second == 0, "the limit lifted"
        )
        self.assertIsInstance(greedy.throttles[-1], ingest_pb2.Throttle)

    def test_the_real_agent_does_as_it_is_told(self):
        with open(self.collector.config, "w") as file:
            file.write(self.config_of(20).replace("burst: 1s", "burst: 100ms"))
        self.collector.program.process.send_signal(signal.SIGHUP)
        limit = 'tacho_quota_limit{quota="agent_samples_per_second"}'
        harness.wait_until(lambda: self.metric(limit) == 20, "the quota reloaded")
        sources = "  host: {interval: 1s}\n"
        agent = self.started(harness.Agent(self.directory, self.collector, sources))
        harness.wait_until(
            lambda: "asks the agent to send less" in agent.program.tail(100_000), "the agent told to slow down"
        )
        self.assertEqual(self.metric('tacho_ingest_throttled_total{how="queue_full"}'), 0)
        self.assertEqual(agent.stop(), 0)


if __name__ == "__main__":
    harness.main()
