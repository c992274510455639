"""A split job: its hosts are divided over the members, and any member answers about all of them what
one collector with all rows answers."""
import hashlib
import time

import client
import doors
import harness
import grpc
from cluster import SECOND, ClusterCase
from tacho.v1 import (conditions_pb2, cost_pb2, forecast_pb2, goodput_pb2, ingest_pb2, marks_pb2,
                      marks_pb2_grpc, query_pb2, types_pb2, view_pb2)  # fmt: skip

QUERY = query_pb2.DESCRIPTOR.services_by_name["Query"].methods_by_name
VIEW = view_pb2.DESCRIPTOR.services_by_name["View"].methods_by_name
MARKS = marks_pb2.DESCRIPTOR.services_by_name["Marks"].methods_by_name
JOB = "hosts"
HOSTS = [f"host-{i}" for i in range(7)]
CHIPS = 2
ROWS = 120
FUNCTIONS = ["SUM", "AVG", "MIN", "MAX", "COUNT"]


def part_of(host, parts):
    digest = hashlib.sha256(JOB.encode() + b"\0" + host.encode()).digest()
    return int.from_bytes(digest[:8], "big") % parts


def plain(messages):
    return [message.SerializeToString(deterministic=True) for message in messages]


class SplitCase(ClusterCase):
    def start_split(self, config=""):
        self.start_cluster(config, cluster_config=f", split_jobs: [{JOB}]")
        parts = {part_of(host, self.MEMBERS) for host in HOSTS}
        self.assertEqual(len(parts), self.MEMBERS, "each member has hosts")
        # After hours nothing changes by itself.
        self.begin = time.time_ns() - 7 * 3600 * SECOND

    def layout(self, number, host, copy=False):
        gauge = types_pb2.METRIC_TYPE_GAUGE
        chips = [("chip_power_watts", "W", gauge, {"chip": str(chip)}) for chip in range(CHIPS)]
        counter = ("host_packets", "1", types_pb2.METRIC_TYPE_COUNTER, {})
        message = client.layout(number, JOB, host, [*chips, ("host_load", "1"), counter])
        message.layout.copy = copy
        return message

    def send(self, collector, hosts, copies=(), shard=0, rows=ROWS, begin=None, agent="agent"):
        """Whole numbers, so that sums are the same in any order. Each host has an event."""
        in_cluster = collector is not self.alone
        stream = client.Stream(
            collector.address, f"{agent}-{collector.address}", 7, 1,
            shard=shard if in_cluster else 0, shards=self.MEMBERS if in_cluster else 0,
        )  # fmt: skip
        sequence = 0
        begin = begin or self.begin
        for number, host in enumerate([*hosts, *copies], start=1):
            stream.send(self.layout(number, host, copy=host in copies))
            place = HOSTS.index(host)
            times = [begin + i * SECOND + place * 1000 for i in range(rows)]
            values = [
                v for i in range(rows)
                for v in (100.0 + place + i % 7, 200.0 + place + i % 5, float(place * i % 11),
                          float(1000 * place + 8 * i))
            ]  # fmt: skip
            sequence += 1
            stream.send(client.batch(sequence, number, times, values))
            if host in copies:
                continue
            sequence += 1
            source = self.layout(number, host).layout.source
            event = ingest_pb2.Event(
                sequence=sequence, source=source, time_unix_ns=begin + place * SECOND, kind="boot"
            )
            stream.send(ingest_pb2.ClientMessage(event=event))
        if sequence:
            self.assertTrue(stream.wait_durable(sequence), stream.error)
        stream.close()

    def hosts_of(self, shard):
        return [host for host in HOSTS if part_of(host, self.MEMBERS) == shard]

    def write_all(self, **arguments):
        """Each member has copies of some hosts of the next one, too."""
        for shard, member in enumerate(self.members):
            copies = self.hosts_of((shard + 1) % self.MEMBERS)[:2]
            self.send(member, self.hosts_of(shard), copies, shard, **arguments)
        self.send(self.alone, HOSTS, **arguments)


class IdleChipsTest(SplitCase):
    def test_idle_chips_are_those_on_hosts_that_no_member_has_a_job_on(self):
        self.start_cluster()
        begin = time.time_ns() - ROWS * SECOND
        keeper = harness.shard_of(JOB, self.MEMBERS)
        for shard, member in enumerate(self.members):
            copies = [] if shard == keeper else HOSTS[:2]
            self.send(member, HOSTS if shard == keeper else [], copies, shard, begin=begin)
        self.send(self.alone, HOSTS, begin=begin)
        self.check_idle_chips()

    def test_the_hosts_may_be_split(self):
        self.start_split()
        self.write_all(begin=time.time_ns() - ROWS * SECOND)
        self.check_idle_chips()

    def check_idle_chips(self):
        jobs = [self.job_of(shard) for shard in range(self.MEMBERS)]
        self.write(jobs[0], age_s=1, tasks=2, end="")
        self.write(jobs[1], age_s=1, tasks=4, end="")  # On host-0 to host-3.
        self.write(jobs[2], tasks=6)  # Hours ago.

        def idle(collector):
            fleet = self.stub(collector, "View").Fleet(view_pb2.FleetRequest(hosts=True))
            # A look that saw the hosts before all rows had come is kept for 10 s.
            return fleet if fleet.totals.chips_idle == 3 * CHIPS else None

        for collector in (self.alone, *self.members):
            with self.subTest(collector=collector.address):
                fleet = harness.wait_until(lambda: idle(collector), "idle chips")
                chips = {host.name: (host.chips, host.used) for host in fleet.hosts}
                self.assertEqual(chips, {host: (CHIPS, host < "host-4") for host in HOSTS})
                without_hosts = self.stub(collector, "View").Fleet(view_pb2.FleetRequest())
                self.assertEqual(without_hosts.totals.chips_idle, 3 * CHIPS)
                self.assertFalse(without_hosts.hosts)


def requests():
    """(method, request) of what is put together."""
    all_of = query_pb2.Selector(job=JOB)
    power = query_pb2.Selector(job=JOB, metrics=["chip_power_watts"])
    one = query_pb2.Selector(
        job=JOB,
        matchers=[query_pb2.Matcher(label="host", op=query_pb2.Matcher.OP_EQUAL, value="host-3")],
    )
    yield "GetJob", query_pb2.GetJobRequest(job=JOB)
    yield "GetJob", query_pb2.GetJobRequest(job=JOB, max_entities=3)
    yield "ListMetrics", query_pb2.ListMetricsRequest(job=JOB)
    yield "ListMetrics", query_pb2.ListMetricsRequest(job=JOB, name_pattern="host.*")
    for label in ("host", "chip", "metric", ""):
        yield "LabelValues", query_pb2.LabelValuesRequest(selector=all_of, label=label)
    for selector in (all_of, power, one):
        yield "ListSeries", query_pb2.ListSeriesRequest(selector=selector)
        yield "Latest", query_pb2.LatestRequest(selector=selector)
        yield "Range", query_pb2.RangeRequest(selector=selector)
        yield "Range", query_pb2.RangeRequest(selector=selector, max_points=10)
        yield "Integrate", query_pb2.IntegrateRequest(selector=selector)
        yield "Integrate", query_pb2.IntegrateRequest(selector=selector, sum=True)
    yield "Integrate", query_pb2.IntegrateRequest(selector=power, sum=True, by=["chip"])
    for name in FUNCTIONS:
        function = getattr(query_pb2, f"AGGREGATE_FUNCTION_{name}")
        for by in ([], ["chip"], ["host"]):
            aggregation = query_pb2.Aggregation(function=function, by=by)
            for points in (1, 30):
                yield "Range", query_pb2.RangeRequest(
                    selector=power, aggregation=aggregation, max_points=points
                )
    yield "Range", query_pb2.RangeRequest(
        selector=all_of, max_points=20, bucket_values=[query_pb2.BUCKET_VALUE_MAX],
        aggregation=query_pb2.Aggregation(function=query_pb2.AGGREGATE_FUNCTION_MAX),
    )  # fmt: skip
    packets = query_pb2.Selector(job=JOB, metrics=["host_packets"])
    for counter in (query_pb2.COUNTER_FUNCTION_INCREASE, query_pb2.COUNTER_FUNCTION_RATE):
        for name in ("SUM", "MAX", "COUNT"):
            function = getattr(query_pb2, f"AGGREGATE_FUNCTION_{name}")
            yield "Range", query_pb2.RangeRequest(
                selector=packets, max_points=30, counter=counter,
                aggregation=query_pb2.Aggregation(function=function),
            )  # fmt: skip
    yield "ListEvents", query_pb2.ListEventsRequest(job=JOB)
    yield "ListEvents", query_pb2.ListEventsRequest(job=JOB, newest=2)
    yield "Export", query_pb2.ExportRequest(selector=all_of)
    yield "Export", query_pb2.ExportRequest(selector=one)


def series_of(name, messages):
    """A stream's messages may be cut elsewhere: what they say, one thing after the other."""
    if name == "Range":
        pieces = [p for m in messages for p in (m, *m.more)]
        for piece in pieces:
            piece.ClearField("more")
            for field in ("min", "max", "avg", "first", "last", "sum"):
                column = getattr(piece.buckets, field)
                # Values are added in another order.
                column[:] = [float(f"{value:.12g}") for value in column]
        return plain(pieces)
    for field in ("series", "samples", "integrals", "events"):
        if name in ("ListSeries", "Latest", "Integrate", "ListEvents") and hasattr(messages[0], field):
            return plain(one for message in messages for one in getattr(message, field))
    return plain(messages)


class SplitJobTest(SplitCase):
    def test_each_member_answers_what_one_collector_answers(self):
        self.start_split()
        self.write_all()
        asked = 0
        for name, request in requests():
            wanted = self.ask(self.alone, "Query", QUERY[name], request)
            self.assertEqual(wanted[0], grpc.StatusCode.OK, (name, request, wanted[1]))
            for member in self.members:
                with self.subTest(method=name, request=str(request), member=member.address):
                    given = self.ask(member, "Query", QUERY[name], request)
                    self.assertEqual(given[:2], wanted[:2])
                    self.assertEqual(series_of(name, given[3]), series_of(name, wanted[3]))
                    asked += 1
        self.assertGreater(asked, 150)

    def test_packed_messages_and_limits_are_those_of_the_whole(self):
        self.start_split()
        self.write_all()
        selector = query_pb2.Selector(job=JOB)
        for member in self.members:
            pieces = list(self.stub(member).Range(query_pb2.RangeRequest(selector=selector, packed=True)))
            self.assertEqual(len(pieces), 1)
            self.assertEqual(len(pieces[0].more), len(HOSTS) * (CHIPS + 2) - 1)
            for request, what in (
                (query_pb2.RangeRequest(selector=selector, max_series=27), "max_series = 27"),
                (query_pb2.RangeRequest(selector=selector, max_samples=1000), "max_samples = 1000"),
            ):
                code, text, *_ = self.ask(member, "Query", QUERY["Range"], request)
                self.assertEqual(code, grpc.StatusCode.RESOURCE_EXHAUSTED)
                self.assertIn(what, text)
            whole = query_pb2.RangeRequest(selector=selector, max_series=28)
            self.assertEqual(self.ask(member, "Query", QUERY["Range"], whole)[0], grpc.StatusCode.OK)

    def test_lists_and_the_fleet_have_it_once(self):
        self.start_split()
        self.write_all()
        other = self.job_of(1)
        self.write(other)
        wanted = {job.name: job for job in self.stub(self.alone).ListJobs(query_pb2.ListJobsRequest()).jobs}
        for member in self.members:
            jobs = self.stub(member).ListJobs(query_pb2.ListJobsRequest()).jobs
            self.assertEqual(sorted(job.name for job in jobs), sorted([JOB, other]))
            for job in jobs:
                self.assertEqual(plain([job]), plain([wanted[job.name]]))
            fleet = self.stub(member, "View").Fleet(view_pb2.FleetRequest())
            self.assertEqual(sorted(job.job.name for job in fleet.jobs), sorted([JOB, other]))
            self.assertEqual((fleet.totals.jobs, fleet.totals.silent, fleet.totals.ended), (2, 1, 1))
            [row] = [job for job in fleet.jobs if job.job.name == JOB]
            self.assertEqual(row.job.hosts, len(HOSTS))
            self.assertEqual(row.job.series, len(HOSTS) * (CHIPS + 2))

    def test_what_cannot_be_put_together_is_refused_with_the_reason(self):
        self.start_split()
        self.write_all()
        power = query_pb2.Selector(job=JOB, metrics=["chip_power_watts"])
        subjects = [query_pb2.Subject(job=JOB), query_pb2.Subject(job="other")]
        refused = [
            ("Query", QUERY["Compare"], query_pb2.CompareRequest(subjects=subjects)),
            ("Query", QUERY["Goodput"], goodput_pb2.GoodputRequest(job=JOB)),
            ("Query", QUERY["Cost"], cost_pb2.CostRequest(job=JOB)),
            ("Query", QUERY["Forecast"], forecast_pb2.ForecastRequest(job=JOB)),
            ("Query", QUERY["FirstNonFinite"], query_pb2.FirstNonFiniteRequest(selector=power)),
            ("View", VIEW["Matrix"], view_pb2.MatrixRequest(selector=power, rows="host")),
        ]
        for member in self.members:
            for service, method, request in refused:
                code, text, *_ = self.ask(member, service, method, request)
                self.assertEqual(code, grpc.StatusCode.FAILED_PRECONDITION, (method.name, text))
                self.assertIn("cluster.split_jobs", text)
            for aggregation, axis in (
                ("P90", query_pb2.AXIS_TIME), ("STDDEV", query_pb2.AXIS_TIME), ("SUM", query_pb2.AXIS_STEP),
            ):  # fmt: skip
                function = getattr(query_pb2, f"AGGREGATE_FUNCTION_{aggregation}")
                request = query_pb2.RangeRequest(
                    selector=power, max_points=10, axis=axis,
                    aggregation=query_pb2.Aggregation(function=function),
                )  # fmt: skip
                code, text, *_ = self.ask(member, "Query", QUERY["Range"], request)
                self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT, aggregation)
                self.assertIn("does not follow from those of its parts", text)
            channel = client.connect(member.address)
            self.addCleanup(channel.close)
            with self.assertRaises(grpc.RpcError) as raised:
                marks_pb2_grpc.MarksStub(channel).ChangeMarks(
                    marks_pb2.ChangeMarksRequest(job=JOB, add_tags=["x"])
                )
            self.assertEqual(raised.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
            unknown = query_pb2.RangeRequest(selector=power)
            unknown.selector.part.part, unknown.selector.part.parts = 3, 3
            code, text, *_ = self.ask(member, "Query", QUERY["Range"], unknown)
            self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT)

    def test_a_query_about_one_host_needs_its_member_only(self):
        self.start_split()
        self.write_all()
        host = self.hosts_of(2)[0]
        selector = query_pb2.Selector(job=JOB, metrics=["chip_power_watts"], matchers=[
            query_pb2.Matcher(label="host", op=query_pb2.Matcher.OP_EQUAL, value=host)
        ])  # fmt: skip
        p90 = query_pb2.Aggregation(function=query_pb2.AGGREGATE_FUNCTION_P90)
        asked = [
            ("Range", query_pb2.RangeRequest(selector=selector)),
            ("Range", query_pb2.RangeRequest(selector=selector, max_points=9, aggregation=p90)),
            ("Latest", query_pb2.LatestRequest(selector=selector)),
            ("Integrate", query_pb2.IntegrateRequest(selector=selector, sum=True)),
        ]
        self.members[1].kill()
        for name, request in asked:
            wanted = self.ask(self.alone, "Query", QUERY[name], request)
            given = self.ask(self.members[0], "Query", QUERY[name], request)
            self.assertEqual(given[:2], (grpc.StatusCode.OK, ""))
            self.assertEqual(series_of(name, given[3]), series_of(name, wanted[3]))

    def test_a_job_that_nobody_has_is_not_found(self):
        self.start_split()
        for name, request in requests():
            for member in self.members:
                code, text, *_ = self.ask(member, "Query", QUERY[name], request)
                self.assertEqual(code, grpc.StatusCode.NOT_FOUND, (name, text))

    def test_a_lost_member_is_named(self):
        self.start_split()
        self.write_all()
        self.members[1].kill()
        for name, request in requests():
            if any(m.value for m in getattr(getattr(request, "selector", None), "matchers", [])):
                continue  # It may need one member only.
            code, text, *_ = self.ask(self.members[0], "Query", QUERY[name], request)
            self.assertEqual(code, grpc.StatusCode.UNAVAILABLE, (name, text))
            self.assertIn(self.members[1].address, text)

    def test_a_watch_has_the_rows_of_all_members_once(self):
        self.start_split()
        self.write_all(rows=5)
        request = query_pb2.WatchRequest(
            selector=query_pb2.Selector(job=JOB), begin_unix_ns=self.begin, events=True
        )
        watch = self.stub(self.members[2]).Watch(request)
        series, samples, events = {}, {}, []
        live = 0

        def take(message):
            nonlocal live
            kind = message.WhichOneof("message")
            if kind == "series":
                self.assertNotIn(message.series.index, series)
                info = message.series.series
                series[message.series.index] = (info.metric.name, info.host, str(info.labels))
            elif kind == "samples":
                points = message.samples.points
                samples.setdefault(series[message.samples.index], []).extend(points.times_unix_ns)
            elif kind == "event":
                events.append(message.event.source.host)
            live += kind == "live"

        for message in watch:
            take(message)
            if live:
                break
        self.assertEqual(sorted(events), HOSTS)
        for shard, member in enumerate(self.members):
            copies = self.hosts_of((shard + 1) % self.MEMBERS)[:2]
            self.send(
                member, self.hosts_of(shard), copies, shard, rows=5, begin=self.begin + 3600 * SECOND,
                agent="later",
            )  # fmt: skip
        wanted = len(HOSTS) * (CHIPS + 2) * 10
        while sum(map(len, samples.values())) < wanted or len(events) < 2 * len(HOSTS):
            take(next(watch))
        watch.cancel()
        self.assertEqual(len(samples), len(HOSTS) * (CHIPS + 2))
        for name, times in samples.items():
            self.assertEqual((len(times), len(set(times))), (10, 10), name)
        self.assertEqual((live, sorted(events)), (1, sorted(HOSTS * 2)))

    def test_metrics_of_all_members_have_each_host_once(self):
        self.start_split()
        self.begin = time.time_ns() - 20 * SECOND
        self.write_all(rows=20)
        for family in ("tacho_job_hosts", "tacho_job_series", 'tacho_job_chip_power_watts{job="hosts",stat="sum"}'):
            name = family if "{" in family else f'{family}{{job="{JOB}"}}'
            wanted = self.metric(self.alone, name)
            self.assertGreater(wanted, 0, name)
            given = [self.metric(member, name) for member in self.members]
            self.assertEqual(sum(given), wanted, (name, given))

    def test_rows_of_another_members_host_are_refused(self):
        self.start_split()
        stranger = self.hosts_of(1)[0]
        for message in (
            self.layout(1, stranger),
            ingest_pb2.ClientMessage(event=ingest_pb2.Event(
                sequence=1, source=self.layout(1, stranger).layout.source,
                time_unix_ns=self.begin, kind="boot",
            )),
        ):  # fmt: skip
            stream = client.SingleStream(
                self.members[0].address, "agent-wrong", 7, 1, shard=0, shards=self.MEMBERS
            )
            self.assertTrue(stream.welcomed())
            stream.send(message)
            stream.wait(lambda: stream.error is not None, "the end of the stream")
            self.assertEqual(stream.error.code(), grpc.StatusCode.FAILED_PRECONDITION)
            self.assertIn(f"host {stranger} belongs to {self.members[1].address}", stream.error.details())
            stream.close()

    def test_other_tools_write_to_any_member(self):
        self.start_split()
        for member in self.members:
            lines = "".join(
                f"cpu,job={JOB},host={host} busy={i} {time.time_ns() - 60 * SECOND}\n"
                for i, host in enumerate(HOSTS)
            )
            status, _, body = doors.send(member, "POST", "/api/v2/write", lines.encode())
            self.assertEqual(status, 204, body)
        found = self.stub(self.members[0]).Latest(
            query_pb2.LatestRequest(selector=query_pb2.Selector(job=JOB))
        )
        values = [(s.series.host, s.value) for m in found for s in m.samples]
        self.assertEqual(values, [(host, float(i)) for i, host in enumerate(HOSTS)])


if __name__ == "__main__":
    harness.main()
