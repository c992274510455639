"""What the real programs do while somebody sets the wall clock under them.

A step must not change how long anything waits: commits, acknowledgements, seals, a source's interval,
pauses before a new connection, the end of the process. The collector sees a step of a connected agent
within seconds, and says by how much.
"""
import json
import time
import unittest

import harness  # First: it makes the stubs importable.
from feeder import Feeder, stored
from stepped_clock import SteppedClock

HOUR_S = 3600.0
# An idle program ends in far less; one that waits for its clock takes an hour.
END_S = 20.0
BATCHES_A_STEP = 150
SOURCES = "  host: {interval: 100ms}\n  rings: {directory: ''}\n"


def total(collector, name):
    """The value of a metric, by its name with its labels."""
    page = harness.http_get(collector.url("/metrics"))[2].decode()
    return sum(float(line.split()[1]) for line in page.splitlines() if line.startswith(name + " "))


class CollectorTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = SteppedClock(self.directory)
        # What the agents' clocks say now is far ahead of a clock that was set back.
        config = "storage: {seal_rows: 64, seal_age: 1s}\ningest: {max_future: 400d}\n"
        self.collector = self.started(
            harness.Collector(self.directory, config, env=self.clock.env)
        )
        self.feeder = Feeder(self.random, self.collector.address)

    def expect_quick_end(self):
        begin = time.monotonic()
        self.assertEqual(self.collector.program.stop(END_S), 0, self.collector.program.tail())
        print(f"ended {time.monotonic() - begin:.1f} s after SIGTERM")

    def test_acknowledges_and_ends_after_its_clock_went_back(self):
        steps = [-30.0, -HOUR_S, -2 * HOUR_S, -24 * HOUR_S, -10 * 24 * HOUR_S, -100 * 24 * HOUR_S]
        waiting = list(steps)
        # Many are left at the last step: one acknowledgement may be for hundreds.
        self.feeder.make(BATCHES_A_STEP * (len(steps) + 8))

        def step_under_load(durable):
            """In the middle of commits and acknowledgements, so that their threads wait by the clock."""
            if waiting and durable >= BATCHES_A_STEP * (len(steps) - len(waiting) + 1):
                self.clock.set(waiting.pop(0))

        begin = time.monotonic()
        self.assertTrue(self.feeder.session(step_under_load), self.feeder.error)
        self.assertEqual(waiting, [])
        print(f"{len(self.feeder.batches)} batches acknowledged in {time.monotonic() - begin:.1f} s")
        self.assertEqual(
            stored(self.collector.address, self.feeder.JOB),
            self.feeder.expected(len(self.feeder.batches)),
        )
        self.expect_quick_end()

    def test_ends_after_its_clock_went_back_while_it_was_idle(self):
        time.sleep(0.5)
        self.clock.set(-HOUR_S)
        self.expect_quick_end()


class AgentTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = SteppedClock(self.directory)
        self.collector = self.started(harness.Collector(self.directory))
        self.agent = self.started(
            harness.Agent(self.directory, self.collector, SOURCES, env=self.clock.env)
        )

    def expect_rows(self, what):
        before = total(self.collector, "tacho_ingest_rows_total")
        harness.wait_until(
            lambda: total(self.collector, "tacho_ingest_rows_total") >= before + 5, what
        )

    def offset(self):
        """How far the agent's clock is ahead and the bound on that, in seconds, as the agent last heard."""
        listed = harness.tachoctl(self.collector.address, "agents", "-o", "json", "--seen", "2d")
        if listed.returncode != 0:
            return None, None
        agent = json.loads(listed.stdout)["agents"][0]
        return agent["clock_offset_seconds"], agent["clock_uncertainty_seconds"]

    def expect_offset(self, seconds):
        begin = time.monotonic()

        def known():
            ahead, bound = self.offset()
            return bound is not None and bound < 1 and abs(ahead - seconds) <= bound + 0.001

        harness.wait_until(known, f"an offset of {seconds} s")
        took = time.monotonic() - begin
        print(f"an offset of {self.offset()} s was known after {took:.1f} s")
        self.assertLess(took, 10.0)

    def steps(self, direction):
        return total(self.collector, f'tacho_ingest_clock_steps_total{{direction="{direction}"}}')

    def expect_ready(self, status):
        harness.wait_until(
            lambda: harness.http_get(self.collector.url("/readyz"))[0] == status, f"status {status}"
        )

    def test_a_step_of_a_connected_agent_is_seen_within_seconds(self):
        self.expect_rows("rows before the step")
        self.expect_offset(0.0)
        streams = total(self.collector, "tacho_ingest_streams")
        self.clock.set(300.0)
        harness.wait_until(lambda: self.steps("ahead") == 1, "a step ahead", timeout_s=10)
        self.expect_offset(300.0)
        self.expect_ready(503)  # It is the only agent, so it may be the collector that is wrong.
        self.clock.set(0.0)
        harness.wait_until(lambda: self.steps("back") == 1, "a step back", timeout_s=10)
        self.expect_ready(200)
        self.assertEqual(total(self.collector, "tacho_ingest_streams"), streams)
        self.assertEqual(self.steps("ahead"), 1)

    def test_samples_and_sends_after_its_clock_went_back(self):
        self.expect_rows("rows before the step")
        self.clock.set(-HOUR_S)
        self.expect_rows("rows after the step")
        begin = time.monotonic()
        self.assertEqual(self.agent.program.stop(END_S), 0, self.agent.program.tail())
        print(f"ended {time.monotonic() - begin:.1f} s after SIGTERM")

    def test_finds_its_collector_again_after_its_clock_went_back(self):
        self.expect_rows("rows before the step")
        self.collector.stop()
        time.sleep(1.0)  # It pauses before it tries again: gRPC's timers run, and its own.
        self.clock.set(-HOUR_S)
        time.sleep(0.5)
        self.collector.start()
        self.expect_rows("rows after the collector came back")


if __name__ == "__main__":
    harness.main()
