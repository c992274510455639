"""A job that restarts from a checkpoint, asked about through the query API by a plain client."""
import time

import client
import harness
import grpc
from tacho.v1 import ingest_pb2, query_pb2, types_pb2

JOB = "resumed"
SECOND = 1_000_000_000
REACHED, CHECKPOINT, LAST = 100, 60, 120  # Attempt 0 reaches, attempt 1 resumes from, and ends at.


def layout(layout_id, attempt, task):
    source = types_pb2.Source(job=JOB, host=f"host-{task}", attempt=attempt, task=task)
    series = [
        ingest_pb2.Layout.Series(
            metric=types_pb2.Metric(name="loss", type=types_pb2.METRIC_TYPE_GAUGE)
        ),
        ingest_pb2.Layout.Series(
            metric=types_pb2.Metric(name="tokens", type=types_pb2.METRIC_TYPE_COUNTER)
        ),
        ingest_pb2.Layout.Series(
            metric=types_pb2.Metric(name="duty", type=types_pb2.METRIC_TYPE_GAUGE),
            labels=[types_pb2.Label(name="chip", value=str(task))],
        ),
    ]
    message = ingest_pb2.Layout(id=layout_id, source=source, has_steps=True, series=series)
    return ingest_pb2.ClientMessage(layout=message)


class HistoryTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        # Its rows are old, so a verdict on their silence could come between the events.
        config = (
            "storage: {seal_rows: 32, seal_age: 1s}\nlog: {level: warn}\n"
            "conditions: {enabled: false}\n"
        )
        self.collector = self.started(harness.Collector(self.directory, config))
        # Attempt 0 began twenty minutes ago; attempt 1 follows five minutes after its end.
        self.begin = time.time_ns() - 1200 * SECOND
        self.resumed = self.begin + (REACHED + 300) * SECOND
        self.record()
        self.query = client.Query(self.collector.address)
        self.addCleanup(self.query.close)
        self.stub = self.query.stub

    def record(self):
        stream = client.Stream(self.collector.address, "agent", 1, 1)
        self.assertTrue(stream.welcomed())
        sequence = 0
        for attempt, first, last, begin in (
            (0, 0, REACHED, self.begin),
            (1, CHECKPOINT, LAST, self.resumed),
        ):
            for task in (0, 1):
                layout_id = attempt * 2 + task + 1
                stream.send(layout(layout_id, attempt, task))
                steps = list(range(first, last + 1))
                values = []
                for step in steps:
                    values += [100.0 * attempt + step + task, 10.0 * (step - first + 1), 0.5]
                sequence += 1
                times = [begin + (step - first) * SECOND for step in steps]
                stream.send(client.batch(sequence, layout_id, times, values, steps))
        sequence += 1
        stream.send(self.event(sequence, 0, self.begin + REACHED * SECOND, "preempted"))
        sequence += 1
        self.end = self.resumed + (LAST - CHECKPOINT) * SECOND
        stream.send(self.event(sequence, 1, self.end, "ended", exit_code="0"))
        self.assertTrue(stream.wait_durable(sequence))
        self.assertEqual(list(stream.rejects), [])
        stream.close()

    def event(self, sequence, attempt, time_ns, kind, **fields):
        source = types_pb2.Source(job=JOB, host="host-0", attempt=attempt, task=0)
        return ingest_pb2.ClientMessage(
            event=ingest_pb2.Event(
                sequence=sequence, source=source, time_unix_ns=time_ns, kind=kind,
                message=f"It {kind}.", fields=fields,
            )  # fmt: skip
        )

    def range(self, *metrics, **fields):
        """{name of the first label or task: [(step, value)]} of points."""
        selector = query_pb2.Selector(job=JOB, metrics=metrics)
        request = query_pb2.RangeRequest(selector=selector, **fields)
        found, current = {}, None
        for piece in self.stub.Range(request, timeout=harness.PATIENCE_S):
            if piece.HasField("series"):
                current = found.setdefault(piece.series.task, [])
            points = piece.points
            current.extend(zip(points.steps, points.attempts or [0] * 10**6, points.values))
        return found

    def test_the_job_tells_of_its_attempts_tasks_hosts_and_chips(self):
        job = self.stub.GetJob(query_pb2.GetJobRequest(job=JOB))
        self.assertEqual(job.job.state, query_pb2.JOB_STATE_ENDED)
        self.assertEqual((job.job.attempts, job.job.tasks, job.job.hosts), (2, 2, 2))
        self.assertEqual((job.job.series, job.job.metrics, job.job.last_step), (6, 3, LAST))
        first, second = job.attempts
        self.assertEqual(first.state, query_pb2.JOB_STATE_REPLACED)
        self.assertFalse(first.HasField("ended_unix_ns"))
        self.assertEqual((first.first_step, first.last_step), (0, REACHED))
        self.assertEqual([(s.begin, s.end) for s in first.superseded], [(CHECKPOINT, REACHED)])
        self.assertEqual(second.state, query_pb2.JOB_STATE_ENDED)
        self.assertEqual(second.ended_unix_ns, self.end)
        self.assertEqual(second.end_message, "It ended.")
        self.assertEqual(dict(second.end_fields), {"exit_code": "0"})
        self.assertEqual((second.tasks, second.hosts), (2, 2))
        self.assertEqual(
            [(s.first_step, s.last_step, s.attempt) for s in job.timeline],
            [(0, CHECKPOINT - 1, 0), (CHECKPOINT, LAST, 1)],
        )
        self.assertEqual([(h.name, list(h.tasks), h.chips) for h in job.hosts],
                         [("host-0", [0], 1), ("host-1", [1], 1)])  # fmt: skip
        self.assertEqual([(c.host, c.chip, c.task) for c in job.chips],
                         [("host-0", "0", 0), ("host-1", "1", 1)])  # fmt: skip
        self.assertEqual(
            [(i.attempt, i.task, i.host, i.series) for i in job.incarnations],
            [(a, t, f"host-{t}", 3) for a in (0, 1) for t in (0, 1)],
        )
        self.assertEqual([t.first_seen_unix_ns for t in job.tasks], [self.begin] * 2)

    def test_each_step_is_of_the_latest_attempt_that_reached_it(self):
        effective = self.range("loss", axis=query_pb2.AXIS_STEP,
                               attempts=query_pb2.ATTEMPTS_EFFECTIVE)  # fmt: skip
        for task in (0, 1):
            expected = [(s, 0, float(s + task)) for s in range(CHECKPOINT)]
            expected += [(s, 1, 100.0 + s + task) for s in range(CHECKPOINT, LAST + 1)]
            self.assertEqual(effective[task], expected)
        everything = self.range("loss", attempts=query_pb2.ATTEMPTS_ALL)
        self.assertEqual(len(everything[0]), REACHED + 1 + LAST - CHECKPOINT + 1)
        latest = self.range("loss", attempts=query_pb2.ATTEMPTS_LATEST)
        self.assertEqual([p[0] for p in latest[0]], list(range(CHECKPOINT, LAST + 1)))

    def test_a_counter_that_began_again_counts_from_zero(self):
        for attempts, samples in (
            (query_pb2.ATTEMPTS_ALL, REACHED + 1 + LAST - CHECKPOINT + 1),
            (query_pb2.ATTEMPTS_EFFECTIVE, LAST + 1),
        ):
            grown = self.range("tokens", attempts=attempts,
                               counter=query_pb2.COUNTER_FUNCTION_INCREASE)  # fmt: skip
            # Ten a step; the very first has none before it.
            self.assertEqual([v for _, _, v in grown[0]], [10.0] * (samples - 1))

    def test_a_total_over_tasks_does_not_lose_what_was_counted(self):
        request = query_pb2.RangeRequest(
            selector=query_pb2.Selector(job=JOB, metrics=["tokens"]),
            counter=query_pb2.COUNTER_FUNCTION_INCREASE,
            attempts=query_pb2.ATTEMPTS_EFFECTIVE,
            max_points=5,
            aggregation=query_pb2.Aggregation(function=query_pb2.AGGREGATE_FUNCTION_SUM),
        )
        (answer,) = self.stub.Range(request)
        self.assertEqual(sum(answer.buckets.sum), 2 * 10.0 * LAST)
        self.assertEqual(sum(answer.buckets.counts), 2 * LAST)

    def test_jobs_are_found_by_what_they_are(self):
        def names(**fields):
            return [j.name for j in self.stub.ListJobs(query_pb2.ListJobsRequest(**fields)).jobs]

        def host(value):
            return query_pb2.Matcher(label="host", op=query_pb2.Matcher.OP_EQUAL, value=value)

        self.assertEqual(names(states=[query_pb2.JOB_STATE_ENDED]), [JOB])
        self.assertEqual(names(states=[query_pb2.JOB_STATE_RUNNING]), [])
        self.assertEqual(names(matchers=[host("host-1")]), [JOB])
        self.assertEqual(names(matchers=[host("host-7")]), [])
        before = query_pb2.TimeRange(begin_unix_ns=1, end_unix_ns=self.begin)
        self.assertEqual(names(time=before), [])
        with self.assertRaises(grpc.RpcError) as raised:
            names(states=[query_pb2.JOB_STATE_REPLACED])
        self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("states", raised.exception.details())

    def test_metrics_labels_and_events_are_told(self):
        metrics = self.stub.ListMetrics(query_pb2.ListMetricsRequest(job=JOB)).metrics
        self.assertEqual([(m.metric.name, m.series, list(m.labels)) for m in metrics],
                         [("duty", 2, ["chip"]), ("loss", 2, []), ("tokens", 2, [])])  # fmt: skip

        def values(label):
            request = query_pb2.LabelValuesRequest(
                selector=query_pb2.Selector(job=JOB), label=label
            )
            return [(v.value, v.series) for v in self.stub.LabelValues(request).values]

        self.assertEqual(values("task"), [("0", 3), ("1", 3)])
        self.assertEqual(values("attempt"), [("0", 0), ("1", 0)])
        self.assertEqual(values(""), [("chip", 2)])

        def events(**fields):
            request = query_pb2.ListEventsRequest(job=JOB, **fields)
            return [e.kind for piece in self.stub.ListEvents(request) for e in piece.events]

        self.assertEqual(events(), ["preempted", "ended"])
        self.assertEqual(events(newest=1), ["ended"])
        self.assertEqual(events(attempts=query_pb2.ATTEMPTS_LATEST), ["ended"])
        self.assertEqual(events(kinds=["preempted", "none"]), ["preempted"])

    def test_all_of_it_is_told_after_a_restart_of_the_collector(self):
        before = self.stub.GetJob(query_pb2.GetJobRequest(job=JOB))
        self.assertEqual(self.collector.stop(), 0)
        self.collector.start()
        query = client.Query(self.collector.address)
        self.addCleanup(query.close)
        self.assertEqual(query.stub.GetJob(query_pb2.GetJobRequest(job=JOB)), before)


if __name__ == "__main__":
    harness.main()
