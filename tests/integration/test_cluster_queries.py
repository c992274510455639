"""Any member of a cluster answers every query: about a job what its owner answers, about all jobs
what one collector with all of them answers."""
import json
import time
import urllib.parse

import client
import harness
import grpc
from cluster import ClusterCase
from tacho.v1 import (conditions_pb2, cost_pb2, forecast_pb2, goodput_pb2, marks_pb2,
                      marks_pb2_grpc, query_pb2, view_pb2)  # fmt: skip

QUERY = query_pb2.DESCRIPTOR.services_by_name["Query"]
VIEW = view_pb2.DESCRIPTOR.services_by_name["View"]


def requests_of(job):
    """What each method about one job is asked."""
    selector = query_pb2.Selector(job=job)
    loss = query_pb2.Selector(job=job, metrics=["loss"])
    return {
        "GetJob": query_pb2.GetJobRequest(job=job),
        "ListMetrics": query_pb2.ListMetricsRequest(job=job),
        "LabelValues": query_pb2.LabelValuesRequest(selector=selector, label="task"),
        "ListSeries": query_pb2.ListSeriesRequest(selector=selector),
        "Range": query_pb2.RangeRequest(selector=selector),
        "Integrate": query_pb2.IntegrateRequest(selector=selector),
        "Latest": query_pb2.LatestRequest(selector=selector),
        "Compare": query_pb2.CompareRequest(subjects=[query_pb2.Subject(job=job)]),
        "CompareSubject": query_pb2.CompareSubjectRequest(
            compare=query_pb2.CompareRequest(subjects=[query_pb2.Subject(job=job)]),
            part=query_pb2.COMPARED_PART_SERIES,
        ),
        "FirstNonFinite": query_pb2.FirstNonFiniteRequest(selector=selector),
        "Export": query_pb2.ExportRequest(selector=selector),
        "ListEvents": query_pb2.ListEventsRequest(job=job),
        "Goodput": goodput_pb2.GoodputRequest(job=job),
        "Cost": cost_pb2.CostRequest(job=job),
        "Forecast": forecast_pb2.ForecastRequest(job=job),
        "Cardinality": query_pb2.CardinalityRequest(job=job),
        "Conditions": conditions_pb2.ConditionsRequest(job=job),
        "Matrix": view_pb2.MatrixRequest(selector=loss, axis=query_pb2.AXIS_STEP),
    }


# They end with their client, or are about all jobs or none; other tests look at them.
OTHERS = {"Watch", "WatchConditions", "ListJobs", "Fleet", "WhoAmI", "Collector"}


def plain(answer):
    """Equal for equal answers: maps have no order in bytes."""
    code, text, details, messages = answer
    return code, text, details, [m.SerializeToString(deterministic=True) for m in messages]


class JobTest(ClusterCase):
    def test_each_member_answers_what_the_owner_answers(self):
        self.start_cluster()
        jobs = [self.job_of(shard) for shard in range(self.MEMBERS)]
        for job in jobs:
            self.write(job, tasks=2)
        asked = 0
        for service in (QUERY, VIEW):
            for method in service.methods:
                if method.name in OTHERS:
                    continue
                for job in [*jobs, "no-such-job"]:
                    request = requests_of(job)[method.name]
                    owner = self.owner_of(job)
                    wanted = plain(self.ask(owner, service.name, method, request))
                    code = grpc.StatusCode.NOT_FOUND if job == "no-such-job" else grpc.StatusCode.OK
                    self.assertEqual(wanted[0], code, (method.name, job, wanted[1]))
                    for member in self.others_of(job):
                        with self.subTest(method=method.name, job=job, member=member.address):
                            given = plain(self.ask(member, service.name, method, request))
                            self.assertEqual(given, wanted)
                            asked += 1
        self.assertEqual(asked, len(requests_of("")) * 4 * 2)
        for member in self.members:
            forwarded = 'tacho_queries_forwarded_total{result="ok"}'
            self.assertGreater(self.metric(member, forwarded), 0)
        self.assertEqual(self.metric(self.alone, "tacho_queries_forwarded_total"), 0)

    def test_wrong_requests_are_refused_as_by_the_owner(self):
        self.start_cluster()
        job = self.job_of(1)
        self.write(job)
        method = QUERY.methods_by_name["Range"]
        matcher = query_pb2.Matcher(label="task", op=query_pb2.Matcher.OP_MATCHES, value="(")
        for selector in [
            query_pb2.Selector(job=job, matchers=[matcher]), query_pb2.Selector(),
        ]:  # fmt: skip
            request = query_pb2.RangeRequest(selector=selector)
            wanted = self.ask(self.members[1], "Query", method, request)
            self.assertEqual(wanted[0], grpc.StatusCode.INVALID_ARGUMENT)
            for member in self.members:
                self.assertEqual(self.ask(member, "Query", method, request), wanted)

    def test_an_answer_of_many_megabytes_passes_whole(self):
        self.start_cluster()
        job = self.job_of(2)
        self.write(job, rows=400_000)
        request = query_pb2.RangeRequest(selector=query_pb2.Selector(job=job))
        answers = {}
        for member in self.members:
            pieces = [p.SerializeToString() for p in self.stub(member).Range(request)]
            self.assertGreater(sum(map(len, pieces)), 15 << 20)
            answers[member.address] = pieces
        self.assertEqual(len(set(map(tuple, answers.values()))), 1)

    def test_marks_are_changed_through_any_member(self):
        self.start_cluster()
        job = self.job_of(0)
        self.write(job)
        for i, member in enumerate(self.members):
            channel = client.connect(member.address)
            self.addCleanup(channel.close)
            stub = marks_pb2_grpc.MarksStub(channel)
            answer = stub.ChangeMarks(marks_pb2.ChangeMarksRequest(job=job, add_tags=[f"by-{i}"]))
            self.assertEqual(answer.marks.tags, [f"by-{j}" for j in range(i + 1)])

    def test_the_page_asks_any_member(self):
        self.start_cluster()
        job = self.job_of(0)
        self.write(job)
        for member in self.members:
            message = urllib.parse.quote(json.dumps({"job": job}))
            status, _, body = harness.http_get(member.url(
                f"/tacho.v1.Query/GetJob?connect=v1&encoding=json&message={message}"
            ))  # fmt: skip
            self.assertEqual((status, json.loads(body)["job"]["name"]), (200, job))


class ListTest(ClusterCase):
    def pages(self, collector, **request):
        """The names of all pages, and how many they are."""
        names, token, pages = [], "", 0
        while True:
            answer = self.stub(collector).ListJobs(
                query_pb2.ListJobsRequest(page_token=token, **request)
            )
            names.extend(job.name for job in answer.jobs)
            pages += 1
            token = answer.next_page_token
            if not token:
                return names, pages

    def test_lists_are_those_of_one_collector(self):
        self.start_cluster()
        for i in range(20):
            # Some run, some ended at different times.
            running = i % 3 == 0
            self.write(
                f"job-{i:02}", age_s=0 if running else 600 * (1 + (i * 7) % 20),
                end="" if running else "ended", attributes={"user": "bob" if i % 2 else "ana"},
            )  # fmt: skip
        self.assertEqual({harness.shard_of(f"job-{i:02}", 3) for i in range(20)}, {0, 1, 2})
        bob = query_pb2.Matcher(label="user", op=query_pb2.Matcher.OP_EQUAL, value="bob")
        for request in [
            {}, {"page_size": 1}, {"page_size": 3}, {"page_size": 7}, {"page_size": 20},
            {"name_pattern": "job-1.*", "page_size": 4},
            {"matchers": [bob], "page_size": 2}, {"states": [query_pb2.JOB_STATE_RUNNING]},
        ]:  # fmt: skip
            wanted = self.pages(self.alone, **request)
            self.assertGreater(len(wanted[0]), 0)
            for member in self.members:
                with self.subTest(request=request, member=member.address):
                    self.assertEqual(self.pages(member, **request), wanted)
        wanted = self.stub(self.alone).ListJobs(query_pb2.ListJobsRequest())
        for member in self.members:
            self.assertEqual(self.stub(member).ListJobs(query_pb2.ListJobsRequest()), wanted)
        self.check_cardinality()
        self.check_fleet()

    def check_cardinality(self):
        request = query_pb2.CardinalityRequest(top=1000)
        wanted = self.stub(self.alone).Cardinality(request)
        in_order = lambda uses: sorted((u.job, u.name, u.used, u.limit) for u in uses)
        for member in self.members:
            answer = self.stub(member).Cardinality(request)
            for field in ("jobs", "metrics", "labels"):
                with self.subTest(field=field, member=member.address):
                    given = getattr(answer, field)
                    self.assertEqual(in_order(given), in_order(getattr(wanted, field)))
            totals = {total.name: total for total in answer.totals}
            for total in wanted.totals:
                self.assertEqual(totals[total.name].limit, total.limit * self.MEMBERS)
                if total.name in ("series", "stored_series", "jobs"):
                    self.assertEqual(totals[total.name].used, total.used)

    def check_fleet(self):
        request = view_pb2.FleetRequest(max_jobs=12, attributes=["user"])
        wanted = self.stub(self.alone, "View").Fleet(request)
        self.assertEqual(wanted.left_out, 8)
        for member in self.members:
            with self.subTest(member=member.address):
                answer = self.stub(member, "View").Fleet(request)
                self.assertEqual(answer.left_out, 8)
                self.assertTrue(answer.complete)
                self.assertEqual(
                    [(job.job.name, job.attributes["user"]) for job in answer.jobs],
                    [(job.job.name, job.attributes["user"]) for job in wanted.jobs],
                )
                for field in ("jobs", "running", "silent", "ended", "critical", "warning"):
                    given = getattr(answer.totals, field)
                    self.assertEqual(given, getattr(wanted.totals, field), field)
                later = view_pb2.FleetRequest()
                later.CopyFrom(request)
                later.since_revision = answer.revision
                self.assertTrue(self.stub(member, "View").Fleet(later).complete)

    def test_conditions_of_all_jobs(self):
        self.start_cluster("conditions: {interval: 500ms, settle: 1s}\n")
        jobs = [self.job_of(shard) for shard in range(self.MEMBERS)]
        for job in jobs:
            self.write(job, age_s=1, end="")

        def judged(collector):
            answer = self.stub(collector).Conditions(conditions_pb2.ConditionsRequest())
            listed = [profile.job for profile in answer.profiles]
            if listed != sorted(jobs):
                return None
            self.assertEqual([c.job for c in answer.conditions], sorted(c.job for c in answer.conditions))
            return [(c.job, c.condition) for c in answer.conditions]

        wanted = harness.wait_until(lambda: judged(self.alone), "judged")
        for member in self.members:
            given = harness.wait_until(lambda: judged(member), "judged by all")
            self.assertEqual(given, wanted)


class WatchTest(ClusterCase):
    def test_a_watch_through_another_member_sees_new_rows(self):
        self.start_cluster()
        job = self.job_of(0)
        owner, other = self.members[0], self.members[1]
        self.write(job, age_s=1, end="")
        request = query_pb2.WatchRequest(selector=query_pb2.Selector(job=job))
        watch = self.stub(other).Watch(request)
        self.assertTrue(next(watch).HasField("live"))
        stream = client.Stream(owner.address, "more", 7, 1, shard=0, shards=self.MEMBERS)
        self.addCleanup(stream.close)
        stream.send(client.layout(1, job, "host-9", [("accuracy", "1")], task=9))
        stream.send(client.batch(1, 1, [time.time_ns()], [0.75]))
        messages = [next(watch), next(watch)]
        self.assertEqual(messages[0].series.series.metric.name, "accuracy")
        self.assertEqual(list(messages[1].samples.points.values), [0.75])
        self.assertEqual(self.metric(owner, "tacho_query_watches"), 1)
        watch.cancel()
        harness.wait_until(
            lambda: self.metric(owner, "tacho_query_watches") == 0, "the owner's watch has ended",
            timeout_s=8,  # Before it notices by the message that comes after 15 s.
        )  # fmt: skip

    def test_a_cancelled_query_ends_at_its_owner(self):
        self.start_cluster()
        job = self.job_of(1)
        owner, other = self.members[1], self.members[2]
        self.write(job, rows=400_000)
        call = self.stub(other).Range(
            query_pb2.RangeRequest(selector=query_pb2.Selector(job=job), max_points=0)
        )
        next(call)  # It does not read on: back pressure keeps the owner from ending.
        time.sleep(1)
        self.assertEqual(self.metric(owner, "tacho_query_active"), 1)
        call.cancel()
        harness.wait_until(
            lambda: self.metric(owner, "tacho_query_active") == 0, "no query is at work", 10
        )

    def test_a_deadline_holds_at_the_owner(self):
        self.start_cluster()
        job = self.job_of(1)
        self.write(job, age_s=1, end="")
        request = query_pb2.WatchRequest(selector=query_pb2.Selector(job=job))
        began = time.monotonic()
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.stub(self.members[0]).Watch(request, timeout=2))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertLess(time.monotonic() - began, 10)
        harness.wait_until(
            lambda: self.metric(self.members[1], "tacho_query_watches") == 0, "no watch is open"
        )


    def test_one_watch_has_the_conditions_of_all_jobs(self):
        self.start_cluster("conditions: {interval: 500ms, settle: 1s}\n")
        jobs = {self.job_of(shard) for shard in range(self.MEMBERS)}
        for job in jobs:
            self.write(job, age_s=1, end="")
        watch = self.stub(self.members[1]).WatchConditions(conditions_pb2.WatchConditionsRequest())
        seen, live = set(), 0
        for message in watch:
            seen.update(condition.job for condition in message.conditions)
            live += message.live
            if live and seen == jobs:
                break
        self.assertEqual(live, 1)
        for member in self.members:
            self.assertEqual(self.metric(member, "tacho_query_watches"), 1)
        self.members[2].kill()
        with self.assertRaises(grpc.RpcError) as caught:
            for message in watch:
                self.assertFalse(message.live)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn(self.members[2].address, caught.exception.details())
        for member in self.members[:2]:
            harness.wait_until(
                lambda: self.metric(member, "tacho_query_watches") == 0, "no watch is open"
            )


class LostMemberTest(ClusterCase):
    def test_a_member_out_of_reach_is_named_and_used_again_when_it_is_back(self):
        self.start_cluster()
        jobs = [self.job_of(shard) for shard in range(self.MEMBERS)]
        for job in jobs:
            self.write(job)
        lost, asked = self.members[2], self.members[0]
        self.stub(asked).GetJob(query_pb2.GetJobRequest(job=jobs[2]))  # They are connected.
        lost.kill()
        get_job = QUERY.methods_by_name["GetJob"]
        for method, request in [
            (get_job, query_pb2.GetJobRequest(job=jobs[2])),
            (QUERY.methods_by_name["Range"], requests_of(jobs[2])["Range"]),
            (QUERY.methods_by_name["ListJobs"], query_pb2.ListJobsRequest()),
        ]:
            code, text, details, _ = self.ask(asked, "Query", method, request)
            self.assertEqual(code, grpc.StatusCode.UNAVAILABLE)
            self.assertIn(f"member {lost.address} (shard 2 of 3) cannot be reached", text)
            self.assertIn(b"google.rpc.RetryInfo", details)
        for job in jobs[:2]:
            code, *_ = self.ask(asked, "Query", get_job, query_pb2.GetJobRequest(job=job))
            self.assertEqual(code, grpc.StatusCode.OK)
        self.assertEqual(
            self.metric(asked, 'tacho_queries_forwarded_total{result="unreachable"}'), 3
        )
        lost.start()
        request = query_pb2.GetJobRequest(job=jobs[2])
        harness.wait_until(
            lambda: self.ask(asked, "Query", get_job, request)[0] == grpc.StatusCode.OK, "it is back"
        )

    def test_a_call_that_was_passed_on_is_answered_from_what_is_there(self):
        self.start_cluster()
        job = self.job_of(0)
        self.write(job)
        stub = self.stub(self.members[1])
        marked = (("tacho-forwarded", "1"),)
        with self.assertRaises(grpc.RpcError) as caught:
            stub.GetJob(query_pb2.GetJobRequest(job=job), metadata=marked)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(len(stub.ListJobs(query_pb2.ListJobsRequest(), metadata=marked).jobs), 0)


class CompareTest(ClusterCase):
    """Jobs that different members keep."""

    METHOD = QUERY.methods_by_name["Compare"]

    def setUp(self):
        super().setUp()
        self.token("reader", "read")
        self.token("some", "read", self.job_of(0))
        self.token("writer", "write")
        self.start_cluster()
        self.jobs = [self.job_of(shard) for shard in range(self.MEMBERS)]
        for i, job in enumerate(self.jobs):
            self.write(
                job, rows=60 + 7 * i, tasks=2, attributes={"lr": str(i)}, token=self.secret("writer")
            )

    def request(self, **more):
        subjects = [query_pb2.Subject(job=job) for job in self.jobs]
        return query_pb2.CompareRequest(subjects=subjects, **more)

    def test_each_member_says_what_a_collector_with_all_jobs_says(self):
        percentile = query_pb2.Aggregation(function=query_pb2.AGGREGATE_FUNCTION_P90)
        for more in (
            {}, {"packed": True}, {"metrics": ["loss"], "max_points": 7}, {"aggregation": percentile},
            {"alignment": query_pb2.ALIGNMENT_ELAPSED, "max_points": 10_000},
            {"alignment": query_pb2.ALIGNMENT_ELAPSED, "max_points": 3},
            {"steps": query_pb2.StepRange(begin=10, end=62)}, {"metrics": ["none"]},
            {"max_points": 10_001},
        ):  # fmt: skip
            wanted = plain(self.ask(self.alone, "Query", self.METHOD, self.request(**more), self.secret("reader")))
            for member in self.members:
                with self.subTest(more=str(more), member=member.address):
                    given = self.ask(member, "Query", self.METHOD, self.request(**more), self.secret("reader"))
                    self.assertEqual(plain(given), wanted)

    def test_rights_are_those_of_the_caller(self):
        for token, code in [
            ("some", grpc.StatusCode.PERMISSION_DENIED), ("writer", grpc.StatusCode.PERMISSION_DENIED),
            (None, grpc.StatusCode.UNAUTHENTICATED),
        ]:  # fmt: skip
            for member in self.members:
                secret = token and self.secret(token)
                given = self.ask(member, "Query", self.METHOD, self.request(), secret)
                self.assertEqual((given[0], given[3]), (code, []), given[1])

    def test_a_job_that_is_not_there_and_a_member_that_is_lost_are_named(self):
        request = self.request()
        request.subjects[1].job = self.job_of(1, "missing")
        for member in self.members:
            given = self.ask(member, "Query", self.METHOD, request, self.secret("reader"))
            self.assertEqual(given[0], grpc.StatusCode.NOT_FOUND)
            self.assertIn(request.subjects[1].job, given[1])
        self.members[2].kill()
        given = self.ask(self.members[0], "Query", self.METHOD, self.request(), self.secret("reader"))
        self.assertEqual(given[0], grpc.StatusCode.UNAVAILABLE)
        self.assertIn(f"member {self.members[2].address} (shard 2 of 3) cannot be reached", given[1])


class TokenTest(ClusterCase):
    def test_a_reader_sees_the_same_through_any_member(self):
        self.token("writer", "write")
        self.token("some", "read", "job-.*")
        self.start_cluster()
        jobs = [self.job_of(shard) for shard in range(self.MEMBERS)]
        secrets = [self.job_of(shard, "secret") for shard in range(self.MEMBERS)]
        for job in jobs + secrets:
            self.write(job, token=self.secret("writer"))
        get_job, list_jobs = (QUERY.methods_by_name[name] for name in ("GetJob", "ListJobs"))
        listing = query_pb2.ListJobsRequest()
        wanted = plain(self.ask(self.alone, "Query", list_jobs, listing, self.secret("some")))
        self.assertEqual(wanted[0], grpc.StatusCode.OK)
        for member in self.members:
            answer = plain(self.ask(member, "Query", list_jobs, listing, self.secret("some")))
            self.assertEqual(answer, wanted)
            for token, code, names in [
                (self.secret("some"), grpc.StatusCode.OK, jobs),
                (self.secret("some"), grpc.StatusCode.PERMISSION_DENIED, secrets),
                (self.secret("writer"), grpc.StatusCode.PERMISSION_DENIED, jobs),
                (None, grpc.StatusCode.UNAUTHENTICATED, jobs),
                ("garbage", grpc.StatusCode.UNAUTHENTICATED, jobs),
            ]:
                for job in names:
                    request = query_pb2.GetJobRequest(job=job)
                    given = self.ask(member, "Query", get_job, request, token)
                    alone = self.ask(self.alone, "Query", get_job, request, token)
                    with self.subTest(job=job, code=code, member=member.address):
                        self.assertEqual(given[0], code, given[1])
                        self.assertEqual(given[:2], alone[:2])


def without_page(text):
    """Each collector names its own page."""
    return [line for line in text.splitlines() if "/ui/" not in line]


class ToolTest(ClusterCase):
    def test_tachoctl_says_the_same_at_any_member(self):
        self.start_cluster()
        jobs = [self.job_of(shard) for shard in range(self.MEMBERS)]
        for job in jobs:
            self.write(job, age_s=7 * 3600 + 10)  # No minute ends while they are asked.
        for arguments in [
            ["jobs"], ["status", jobs[0]], ["query", jobs[2], "loss"], ["goodput", jobs[1]],
            ["events", jobs[0]], ["series", jobs[1]],
        ]:  # fmt: skip
            wanted = harness.tachoctl(self.alone.address, *arguments)
            self.assertEqual(wanted.returncode, 0, (arguments, wanted.stderr))
            for member in self.members:
                given = harness.tachoctl(member.address, *arguments)
                with self.subTest(arguments=arguments, member=member.address):
                    self.assertEqual(
                        (given.returncode, without_page(given.stdout)),
                        (0, without_page(wanted.stdout)), given.stderr,
                    )  # fmt: skip

    def test_tachoctl_lists_the_conditions_of_all_jobs_at_any_member(self):
        self.start_cluster("conditions: {interval: 500ms, settle: 1s}\n")
        jobs = [self.job_of(shard) for shard in range(self.MEMBERS)]
        for job in jobs:
            self.write(job, age_s=1, end="")
        for member in self.members:
            for arguments in [["conditions", "--all"], ["conditions", jobs[0], "--all"]]:

                def judged():
                    given = harness.tachoctl(member.address, *arguments)
                    wanted = jobs if len(arguments) == 2 else jobs[:1]
                    return given.returncode == 0 and all(job in given.stdout for job in wanted)

                harness.wait_until(judged, f"{arguments} at {member.address}")


if __name__ == "__main__":
    harness.main()
