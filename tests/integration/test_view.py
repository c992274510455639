"""tacho.v1.View of a real collector: the fleet, who the caller is, and the collector's own figures."""
import time

import client
import harness
import grpc
from security_case import SecurityCase
from tacho.v1 import conditions_pb2, goodput_pb2, ingest_pb2, marks_pb2, marks_pb2_grpc
from tacho.v1 import query_pb2, query_pb2_grpc
from tacho.v1 import view_pb2, view_pb2_grpc

SECOND = 1_000_000_000
# Nothing judges a job any more, or makes ledgers of it, which would change.
LONG_AGO_S = 7 * 3600
CONFIG = "storage: {seal_rows: 64}\n"
METRICS = [("loss", "1"), ("step_time_seconds", "s")]


class ViewCase(SecurityCase):
    def record(self, job, values=None, age_s=0, host="host-1", token=None, attributes=None, end=""):
        """A job of one task with a step a second, the last `age_s` ago; `values` are its losses."""
        values = values or [2.0 - 0.01 * i for i in range(60)]
        stream = self.stream(token=token, agent_id=f"agent-{job}")
        stream.send(client.layout(1, job, host, METRICS, task=0, has_steps=True))
        last = time.time_ns() - age_s * SECOND
        times = [last - (len(values) - 1 - i) * SECOND for i in range(len(values))]
        rows = [cell for value in values for cell in (value, 0.5)]
        stream.send(client.batch(1, 1, times, rows, steps=list(range(len(values)))))
        kept = {"user": "ana", **(attributes or {})}
        attributes = ingest_pb2.Attributes(sequence=2, job=job, values=kept)
        stream.send(ingest_pb2.ClientMessage(attributes=attributes))
        sequence = 2
        if end:
            sequence = 3
            source = client.layout(1, job, host, METRICS, task=0).layout.source
            event = ingest_pb2.Event(sequence=3, source=source, time_unix_ns=last, kind=end)
            stream.send(ingest_pb2.ClientMessage(event=event))
        self.assertTrue(stream.wait_durable(sequence), stream.error)

    def view(self, method, request, token=None, timeout=harness.PATIENCE_S):
        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        stub = view_pb2_grpc.ViewStub(channel)
        return getattr(stub, method)(request, metadata=client.bearer(token), timeout=timeout)

    def refusal(self, method, request, token=None):
        with self.assertRaises(grpc.RpcError) as caught:
            self.view(method, request, token)
        return caught.exception.code(), caught.exception.details()

    def fleet(self, token=None, **request):
        return self.view("Fleet", view_pb2.FleetRequest(**request), token)

    def eventually_fleet(self, condition, what, **request):
        def found():
            answer = self.fleet(**request)
            return answer if condition(answer) else None

        return harness.wait_until(found, what)


def names(fleet):
    return [one.job.name for one in fleet.jobs]


class FleetTest(ViewCase):
    def setUp(self):
        super().setUp()
        self.start(CONFIG)

    def record_five(self):
        self.record("healthy", attributes={"device_count": "8", "planned_steps": "100"})
        self.record("diverged", [1.0] * 50 + [float("nan")] * 10, attributes={"device_count": "4"})
        self.record("silent", age_s=LONG_AGO_S)
        self.record("ended", age_s=100, end="ended")

    def test_a_row_says_what_the_single_calls_say(self):
        self.record_five()

        def is_judged(fleet):
            rows = {one.job.name: one for one in fleet.jobs}
            return rows["diverged"].conditions and rows["healthy"].HasField("goodput_ratio")

        fleet = self.eventually_fleet(is_judged, "a verdict and figures", spark_points=20)
        self.assertEqual(names(fleet), ["diverged", "healthy", "silent", "ended"])
        self.assertTrue(fleet.complete)
        code, jobs = self.query("ListJobs", query_pb2.ListJobsRequest())
        self.assertEqual({one.job.name: one.job for one in fleet.jobs}, {j.name: j for j in jobs.jobs})
        rows = {one.job.name: one for one in fleet.jobs}
        code, conditions = self.query(
            "Conditions",
            conditions_pb2.ConditionsRequest(
                job="diverged", statuses=[conditions_pb2.CONDITION_STATUS_TRUE]
            ),
        )
        self.assertEqual(rows["diverged"].conditions_true, len(conditions.conditions))
        self.assertEqual(
            [(c.condition, c.message) for c in rows["diverged"].conditions][:1],
            [("Diverged", conditions.conditions[0].message)],
        )
        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        stub = query_pb2_grpc.QueryStub(channel)
        goodput = stub.Goodput(goodput_pb2.GoodputRequest(job="healthy"))
        self.assertEqual(rows["healthy"].steps, goodput.steps)
        self.assertEqual(rows["healthy"].goodput_ratio, goodput.total.goodput_ratio)
        self.assertEqual(list(rows["healthy"].step_times), [0.5] * 20)
        totals = fleet.totals
        self.assertEqual((totals.jobs, totals.running, totals.silent, totals.ended), (4, 2, 1, 1))
        self.assertEqual((totals.critical, totals.chips, totals.chips_sick), (1, 12, 4))

    def test_later_answers_have_what_changed(self):
        harness.needs_one_collector("it returns the whole fleet each time")
        self.record("a", age_s=LONG_AGO_S)
        self.record("b", age_s=LONG_AGO_S)
        quiet = self.eventually_fleet(lambda fleet: len(fleet.jobs) == 2, "both jobs")
        answer = self.fleet(since_revision=quiet.revision)
        self.assertEqual((answer.complete, names(answer), list(answer.gone)), (False, [], []))
        self.assertLess(answer.ByteSize(), 100)
        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        marks_pb2_grpc.MarksStub(channel).ChangeMarks(
            marks_pb2.ChangeMarksRequest(job="b", add_tags=["good"])
        )
        changed = self.eventually_fleet(
            lambda fleet: fleet.jobs, "the tag", since_revision=quiet.revision
        )
        self.assertEqual((changed.complete, names(changed)), (False, ["b"]))
        self.assertEqual(list(changed.jobs[0].job.marks.tags), ["good"])
        self.record("c")
        grown = self.eventually_fleet(
            lambda fleet: fleet.jobs, "the new job", since_revision=changed.revision
        )
        self.assertEqual(names(grown), ["c"])
        # What another process has told is nothing to this one.
        self.collector.stop()
        self.collector.start()
        anew = self.fleet(since_revision=grown.revision)
        self.assertTrue(anew.complete)
        self.assertEqual(names(anew)[0], "c")
        self.assertEqual(sorted(names(anew)), ["a", "b", "c"])

    def test_a_matrix_has_the_samples_of_each_task(self):
        self.record("a")
        request = view_pb2.MatrixRequest(
            selector=query_pb2.Selector(job="a", metrics=["loss"]), axis=query_pb2.AXIS_STEP
        )
        head, *pieces = list(self.view("Matrix", request))
        self.assertEqual((head.head.columns, head.head.rows_total, head.head.samples), (60, 1, 60))
        values = [value for piece in pieces for value in piece.rows.values]
        self.assertEqual(len(values), 60)
        self.assertAlmostEqual(values[10], 1.9, 5)
        page = harness.http_get(self.collector.owner_of("a").url("/metrics"))[2].decode()
        self.assertIn('tacho_query_requests_total{code="OK",method="view.Matrix"} 1', page)

    def test_the_sickest_jobs_are_printed_first(self):
        self.record_five()
        self.eventually_fleet(lambda fleet: fleet.totals.critical, "a verdict")

        def printed(*arguments, code=0):
            done = harness.tachoctl(self.collector.address, "jobs", "--sick", *arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            return [line.split(",")[0] for line in done.stdout.splitlines()[1:]] or done.stderr

        wanted = ["diverged", "healthy", "silent", "ended"]
        self.assertEqual(printed("-o", "csv"), wanted)
        self.assertEqual(printed("-o", "csv", "--limit", "1"), wanted[:1])
        self.assertEqual(printed("-o", "csv", "--state", "silent", "--state", "ended"), wanted[2:])
        self.assertIn("--sick does not go with", printed("--seen", "1h", code=2))

    def test_wrong_requests_name_the_field(self):
        for request, field in (
            (view_pb2.FleetRequest(spark_points=121), "spark_points"),
            (view_pb2.FleetRequest(max_jobs=10_001), "max_jobs"),
            (view_pb2.FleetRequest(attributes=["a"] * 21), "attributes"),
            (view_pb2.FleetRequest(name_pattern="("), "name_pattern"),
            (view_pb2.FleetRequest(states=[query_pb2.JOB_STATE_REPLACED]), "states"),
            (view_pb2.FleetRequest(tags=[""]), "tags"),
        ):
            code, text = self.refusal("Fleet", request)
            self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT)
            self.assertTrue(text.startswith(field), text)


class WhoTest(ViewCase):
    def test_everybody_learns_who_they_are(self):
        self.token("people", "read", jobs="vision-.*|hosts")
        self.token("agents", "write")
        self.token("root", "read, write, admin", expires="2099-01-01T00:00:00Z")
        self.start(CONFIG)
        who = self.view("WhoAmI", view_pb2.WhoAmIRequest(), self.secret("people"))
        self.assertTrue(who.authentication)
        self.assertEqual((who.name, who.jobs_pattern), ("people", "vision-.*|hosts"))
        self.assertEqual((who.read, who.write, who.admin), (True, False, False))
        self.assertFalse(who.HasField("expires_unix_ns"))
        self.assertLess(abs(who.clock_unix_ns - time.time_ns()), 60 * SECOND)
        self.assertEqual(who.page_url, self.collector.url("/ui/"))
        who = self.view("WhoAmI", view_pb2.WhoAmIRequest(), self.secret("agents"))
        self.assertEqual((who.name, who.read, who.write, who.jobs_pattern), ("agents", False, True, ""))
        who = self.view("WhoAmI", view_pb2.WhoAmIRequest(), self.secret("root"))
        self.assertEqual((who.read, who.write, who.admin), (True, True, True))
        self.assertEqual(who.expires_unix_ns, 4_070_908_800 * SECOND)
        unauthenticated = grpc.StatusCode.UNAUTHENTICATED
        self.assertEqual(self.refusal("WhoAmI", view_pb2.WhoAmIRequest())[0], unauthenticated)
        self.assertEqual(self.refusal("WhoAmI", view_pb2.WhoAmIRequest(), "no")[0], unauthenticated)

    def test_a_reader_sees_only_its_jobs(self):
        harness.needs_one_collector("it looks at the queries and jobs of one process")
        self.token("vision", "read", jobs="vision-.*")
        self.token("all", "read, write")
        self.token("agents", "write")
        self.start(CONFIG)
        everything = self.secret("all")
        self.record("vision-1", token=everything, attributes={"device_count": "2"})
        self.record("secret-1", token=everything, attributes={"device_count": "5"})
        fleet = self.eventually_fleet(
            lambda fleet: fleet.totals.jobs == 2, "both", token=everything
        )
        self.assertEqual(fleet.totals.chips, 7)
        seen = self.fleet(self.secret("vision"))
        self.assertEqual((names(seen), seen.totals.jobs, seen.totals.chips), (["vision-1"], 1, 2))
        # A revision of somebody who sees more is nothing to those who see less.
        seen = self.fleet(self.secret("vision"), since_revision=fleet.revision)
        self.assertEqual((seen.complete, list(seen.gone)), (True, []))
        denied = grpc.StatusCode.PERMISSION_DENIED
        self.assertEqual(self.refusal("Fleet", view_pb2.FleetRequest(), self.secret("agents"))[0], denied)
        code, text = self.refusal("Collector", view_pb2.CollectorRequest(), self.secret("vision"))
        self.assertEqual(code, denied)
        self.assertIn('"vision" may not read every job', text)
        self.assertEqual(self.view("Collector", view_pb2.CollectorRequest(), everything).jobs, 2)
        self.check_what_is_at_work()
        matrix = view_pb2.MatrixRequest(selector=query_pb2.Selector(job="secret-1", metrics=["loss"]))
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.view("Matrix", matrix, self.secret("vision")))
        self.assertEqual(caught.exception.code(), denied)

    def check_what_is_at_work(self):
        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        watch = query_pb2_grpc.QueryStub(channel).Watch(
            query_pb2.WatchRequest(
                selector=query_pb2.Selector(job="vision-1"), begin_unix_ns=time.time_ns() - 3600 * SECOND
            ),
            metadata=client.bearer(self.secret("vision")),
        )
        while not next(watch).live:
            pass
        seen = self.view("Collector", view_pb2.CollectorRequest(), self.secret("all")).running
        self.assertEqual([(one.method, one.caller, one.job, one.watch) for one in seen],
                         [("Watch", "vision", "vision-1", True)])  # fmt: skip
        self.assertRegex(seen[0].peer, r"^ipv4:127\.0\.0\.1:\d+$")
        # It counts what it has read after the client has it.
        harness.wait_until(
            lambda: self.view("Collector", view_pb2.CollectorRequest(), self.secret("all")).running[0].samples_read
            == 120,
            "all of its past is counted",
        )
        self.assertLess(abs(seen[0].began_unix_ns - time.time_ns()), 60 * SECOND)
        watch.cancel()
        harness.wait_until(
            lambda: not self.view("Collector", view_pb2.CollectorRequest(), self.secret("all")).running,
            "the watch is gone",
        )

    def test_without_authentication_everybody_may_do_everything(self):
        self.start(CONFIG)
        who = self.view("WhoAmI", view_pb2.WhoAmIRequest())
        self.assertEqual((who.authentication, who.name, who.jobs_pattern), (False, "", ""))
        self.assertEqual((who.read, who.write, who.admin), (True, True, True))


class CollectorFiguresTest(ViewCase):
    def test_the_collector_shows_its_own_health(self):
        harness.needs_one_collector("each member has figures of its own")
        self.start(CONFIG + "query: {max_concurrent: 5, max_watches: 7}\nlimits: {series: 1000}\n")
        self.record("a")
        figures = self.view("Collector", view_pb2.CollectorRequest())
        self.assertEqual((figures.jobs, figures.series, figures.series_limit), (1, 2, 1000))
        self.assertEqual((figures.samples_appended, figures.streams), (120, 1))
        self.assertEqual((figures.queries, figures.queries_limit), (0, 5))
        self.assertEqual((figures.watches, figures.watches_limit), (0, 7))
        self.assertEqual((figures.not_ready, figures.draining), ("", False))
        self.assertEqual(figures.retention_ns, 90 * 86400 * SECOND)
        self.assertGreater(figures.memory_bytes, 1 << 20)
        self.assertGreater(figures.disk_free_bytes, 0)
        self.assertGreater(figures.disk_total_bytes, figures.disk_free_bytes)
        self.assertLess(figures.started_unix_ns, figures.clock_unix_ns)
        who = self.view("WhoAmI", view_pb2.WhoAmIRequest())
        self.assertEqual(figures.version, who.version)
        page = harness.http_get(self.collector.url("/metrics"))[2].decode()
        for method in ("view.Collector", "view.WhoAmI"):
            self.assertIn(f'tacho_query_requests_total{{code="OK",method="{method}"}} 1', page)


if __name__ == "__main__":
    harness.main()
