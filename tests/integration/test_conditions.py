"""A job turns NaN: Conditions, WatchConditions, /metrics and its events say so, with the task, the
host and the step; a collector that is killed goes on where it was, and says it once."""
import math
import threading
import time

import client
import harness
import grpc
from tacho.v1 import conditions_pb2

JOB = "train"
CONFIG = """
log: {level: warn}
conditions:
  interval: 500ms
  settle: 2s
  jobs:
    - pattern: "quiet-.*"
      curves: {diverged: {enabled: false}}
    - pattern: ".*"
      curves: {diverged: {clear_after: 1s}}
"""
TRUE = conditions_pb2.CONDITION_STATUS_TRUE


class Trainer:
    """Two tasks of a job, a row each a step."""

    def __init__(self, address, job, generation):
        self.stream = client.Stream(address, f"agent-{job}", generation, 1)
        self.job = job
        self.sequence = 0
        self.step = 0
        self.stream.welcomed()
        for task in (0, 1):
            metrics = [("loss", "1"), ("grad_norm", "1")]
            self.stream.send(client.layout(task, job, f"host-{task}", metrics, task, 0, True))

    def train(self, steps, loss_of_task_1=None):
        now = time.time_ns()
        for i in range(steps):
            self.step += 1
            for task in (0, 1):
                loss = 2.0 + 1.0 / self.step
                if task == 1 and loss_of_task_1 is not None:
                    loss = loss_of_task_1
                self.sequence += 1
                when = now - (steps - i) * 1_000_000
                self.stream.send(
                    client.batch(self.sequence, task, [when], [loss, 1.0], [self.step])
                )
        if not self.stream.wait_durable(self.sequence):
            raise AssertionError(f"the stream ended: {self.stream.error}")


class Watcher:
    """WatchConditions in its own thread."""

    def __init__(self, address, **request):
        self.query = client.Query(address)
        self.seen = []
        self.live = threading.Event()
        self.error = None
        self.call = self.query.stub.WatchConditions(
            conditions_pb2.WatchConditionsRequest(**request)
        )
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            for message in self.call:
                self.seen.extend(message.conditions)
                if message.live:
                    self.live.set()
        except grpc.RpcError as error:
            self.error = error

    def close(self):
        self.call.cancel()
        self.thread.join()
        self.query.close()


class ConditionsTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, CONFIG))

    def conditions(self, **request):
        query = client.Query(self.collector.address)
        try:
            return query.stub.Conditions(conditions_pb2.ConditionsRequest(**request)).conditions
        finally:
            query.close()

    def diverged(self):
        found = self.conditions(job=JOB, conditions=["Diverged"], statuses=[TRUE])
        return found[0] if found else None

    def page(self):
        return harness.http_get(self.collector.owner_of(JOB).url("/metrics"))[2].decode()

    def raised_and_cleared(self):
        query = client.Query(self.collector.address)
        try:
            return [
                event
                for event in query.events(JOB)
                if event.kind.startswith("condition_") and event.fields["condition"] == "Diverged"
            ]
        finally:
            query.close()

    def test_a_job_turns_nan_is_seen_everywhere_and_said_once_over_a_kill(self):
        trainer = Trainer(self.collector.address, JOB, 1)
        trainer.train(50)
        harness.wait_until(
            lambda: f'tacho_job_condition{{job="{JOB}",condition="Diverged"' in self.page(),
            "Diverged judged",
        )
        self.assertIsNone(self.diverged())
        watcher = Watcher(self.collector.address, job=JOB, conditions=["Diverged"])
        self.assertTrue(watcher.live.wait(harness.PATIENCE_S))
        first_bad = trainer.step + 1
        trainer.train(20, math.nan)

        found = harness.wait_until(self.diverged, "Diverged")
        self.assertEqual(found.step, first_bad)
        self.assertEqual(found.culprits[0].task, 1)
        self.assertEqual(found.culprits[0].host, "host-1")
        self.assertEqual(found.culprits[0].metric, "loss")
        self.assertEqual(found.severity, conditions_pb2.CONDITION_SEVERITY_CRITICAL)
        harness.wait_until(lambda: [c for c in watcher.seen if c.status == TRUE], "it is watched")
        page = self.page()
        self.assertIn(
            f'tacho_job_condition{{job="{JOB}",condition="Diverged",severity="critical"}} 1', page
        )
        info = [line for line in page.splitlines() if line.startswith("tacho_job_condition_info{")]
        info = [line for line in info if 'condition="Diverged"' in line][0]
        for label in ('host="host-1"', 'task="1"', f'step="{first_bad}"', 'metric="loss"'):
            self.assertIn(label, info)
        events = harness.wait_until(self.raised_and_cleared, "an event")
        self.assertEqual([e.kind for e in events], ["condition_raised"])
        self.assertEqual(events[0].step, first_bad)
        self.assertEqual(events[0].fields["host"], "host-1")

        self.collector.kill()
        watcher.thread.join()
        self.assertEqual(watcher.error.code(), grpc.StatusCode.UNAVAILABLE)
        watcher.close()
        trainer.stream.close()
        self.collector.start()
        again = harness.wait_until(self.diverged, "Diverged after the kill")
        self.assertEqual(again.since_unix_ns, found.since_unix_ns)
        self.assertEqual(again.changed_unix_ns, found.changed_unix_ns)
        self.assertEqual(again.culprits[0].host, "host-1")

        # Judged again, at the latest when what was frozen is not any more: still one event.
        def judged_again():
            now = self.diverged()
            return now is not None and now.judged_unix_ns > again.judged_unix_ns + 3 * 10**9

        harness.wait_until(judged_again, "judged again")
        self.assertEqual([e.kind for e in self.raised_and_cleared()], ["condition_raised"])

        trainer = Trainer(self.collector.address, JOB, 2)
        trainer.step = first_bad + 30
        trainer.train(200)
        harness.wait_until(lambda: self.diverged() is None, "it is over")
        kinds = harness.wait_until(
            lambda: [e.kind for e in self.raised_and_cleared()][1:], "it is said"
        )
        self.assertEqual(kinds, ["condition_cleared"])
        trainer.stream.close()

    def test_settings_by_job_and_what_is_refused(self):
        trainer = Trainer(self.collector.address, "quiet-1", 1)
        other = Trainer(self.collector.address, "loud-1", 1)
        for each in (trainer, other):
            each.train(20)
            each.train(20, math.nan)
        request = {"conditions": ["Diverged"], "statuses": [TRUE]}
        found = harness.wait_until(lambda: self.conditions(**request), "the loud one")
        self.assertEqual({c.job for c in found}, {"loud-1"})
        self.assertFalse(self.conditions(job_pattern="quiet.*", **request))
        for bad, code in (
            ({"job": "nobody"}, grpc.StatusCode.NOT_FOUND),
            ({"job_pattern": "("}, grpc.StatusCode.INVALID_ARGUMENT),
            ({"job": "a", "job_pattern": "b"}, grpc.StatusCode.INVALID_ARGUMENT),
        ):
            with self.assertRaises(grpc.RpcError) as refusal:
                self.conditions(**bad)
            self.assertEqual(refusal.exception.code(), code, bad)
        trainer.stream.close()
        other.stream.close()


if __name__ == "__main__":
    harness.main()
