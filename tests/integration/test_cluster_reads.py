"""Any member of a cluster answers Prometheus and its tools about the jobs of all members, byte by byte
as one collector with all jobs answers."""
import concurrent.futures
import http.client
import itertools
import json
import urllib.parse

import harness  # First: it makes the stubs importable.
import client
import grpc
from cluster import ClusterCase
from remote_read_case import unpacked
from snappy_literals import packed
from test_cluster_hosts import HOSTS, JOB, SplitCase

from interop import prometheus_read_pb2 as read_pb2
from tacho.v1 import member_reads_pb2, member_reads_pb2_grpc, query_pb2

EQUAL, NOT_EQUAL, MATCHES, NOT_MATCHES = range(4)
EVERYTHING = [(NOT_EQUAL, "__name__", "")]


def read_request(*queries, streamed=False):
    request = read_pb2.ReadRequest()
    for matchers in queries:
        query = request.queries.add(end_timestamp_ms=1 << 60)
        for kind, name, value in matchers:
            query.matchers.add(type=kind, name=name.encode(), value=value.encode())
    if streamed:
        request.accepted_response_types.append(read_pb2.ReadRequest.STREAMED_XOR_CHUNKS)
    return packed(request.SerializeToString())


class ReadsCase(ClusterCase):
    def post(self, collector, body, parameters="", token=None):
        connection = http.client.HTTPConnection("127.0.0.1", collector.http, timeout=60)
        headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection.request("POST", f"/api/v1/read{parameters}", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    def list(self, collector, path, *parameters, token=None):
        text = urllib.parse.urlencode(list(parameters))
        connection = http.client.HTTPConnection("127.0.0.1", collector.http, timeout=60)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("GET", f"/api/v1/{path}?{text}", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def series_in(self, body):
        """[(sorted labels, samples)] of an answer with one query."""
        response = read_pb2.ReadResponse.FromString(unpacked(body))
        return [
            (tuple((label.name, label.value) for label in series.labels), len(series.samples))
            for series in response.results[0].timeseries
        ]

    def check_reads(self, selections, least):
        """Both forms of all selections, at each member. At least so many series each."""
        for matchers, streamed in itertools.product(selections, (False, True)):
            body = read_request(matchers, streamed=streamed)
            status, wanted = self.post(self.alone, body)
            self.assertEqual(status, 200, wanted)
            if not streamed:
                self.assertGreaterEqual(len(self.series_in(wanted)), least)
            for member in self.members:
                with self.subTest(matchers=matchers, streamed=streamed, member=member.address):
                    status, given = self.post(member, body)
                    self.assertEqual(status, 200, given)
                    self.assertEqual(given, wanted)

    def check_lists(self, lists):
        for path, *parameters in lists:
            wanted = self.list(self.alone, path, *parameters)
            self.assertEqual(wanted[0], 200, wanted)
            for member in self.members:
                with self.subTest(path=path, parameters=parameters, member=member.address):
                    self.assertEqual(self.list(member, path, *parameters), wanted)


class ReadsTest(ReadsCase):
    def test_each_member_reads_what_one_collector_reads(self):
        self.start_cluster()
        jobs = [self.job_of(shard, prefix) for prefix in ("vision", "speech") for shard in range(3)]
        for job in jobs:
            self.write(job, tasks=2, rows=300)
        self.check_reads(
            [
                EVERYTHING,
                [(MATCHES, "job", "vision.*")],
                [(EQUAL, "__name__", "loss")],
                [(NOT_MATCHES, "job", "vision.*"), (EQUAL, "task", "1")],
                [(EQUAL, "__name__", "tacho_step")],
                *([(EQUAL, "job", job)] for job in jobs),
            ],
            least=2,
        )
        several = read_request([(EQUAL, "job", jobs[0])], EVERYTHING, [(EQUAL, "job", "none")])
        wanted = self.post(self.alone, several)
        self.assertEqual(wanted[0], 200)
        for member in self.members:
            self.assertEqual(self.post(member, several), wanted)
        everything = read_request(EVERYTHING)
        own = [
            labels for member in self.members
            for labels, _ in self.series_in(self.post(member, everything, "?members=own")[1])
        ]  # fmt: skip
        of_all = [labels for labels, _ in self.series_in(self.post(self.alone, everything)[1])]
        self.assertEqual(sorted(own), of_all, "each member has its own, once")

    def test_lists_are_those_of_one_collector(self):
        self.start_cluster()
        jobs = [self.job_of(shard, prefix) for prefix in ("vision", "speech") for shard in range(3)]
        for place, job in enumerate(jobs):
            self.write(job, tasks=place + 1)
        every = ("match[]", '{__name__=~".+"}')
        first = ("match[]", f'{{job="{jobs[0]}"}}')
        self.check_lists(
            [
                ("labels",), ("labels", ("limit", "2")), ("labels", first), ("labels", every),
                *(("label/%s/values" % name,) for name in ("job", "host", "task", "__name__", "attempt")),
                ("label/job/values", ("limit", "4")), ("label/job/values", ("limit", "6")),
                ("label/host/values", first), ("label/task/values", ("match[]", '{job=~"speech.*"}')),
                ("series", every), ("series", first), ("series", every, ("limit", "5")),
                ("series", first, ("match[]", '{job=~"vision.*",task="0"}')),
                ("metadata",), ("metadata", ("metric", "loss")), ("metadata", ("limit", "1")),
            ]
        )  # fmt: skip
        names = json.loads(self.list(self.members[0], "label/job/values")[1])
        self.assertEqual(names["data"], sorted(jobs))
        for member in self.members:
            of_own = json.loads(self.list(member, "label/job/values", ("members", "own"))[1])["data"]
            self.assertEqual(of_own, sorted(j for j in jobs if self.owner_of(j) is member))
            status, body = self.list(member, "status/tsdb")
            self.assertEqual(status, 200)
            self.assertIn("other collectors of the cluster", json.loads(body)["warnings"][0])

    def test_wrong_requests_are_refused_as_by_one_collector(self):
        self.start_cluster(config="query: {max_series: 20, max_samples: 2000}\n")
        for shard in range(3):
            self.write(self.job_of(shard), tasks=6, rows=150)
        # Each member has few series and samples, and all together too many.
        for matchers, what in (
            ([(MATCHES, "job", ".+")], b"query.max_series"),
            ([(EQUAL, "__name__", "loss")], b"query.max_samples"),
        ):
            for member in self.members:
                status, text = self.post(member, read_request(matchers))
                self.assertEqual(status, 413, text)
                self.assertIn(what, text)
                self.assertEqual(self.post(member, read_request(matchers), "?members=own")[0], 200)
        for member in self.members:
            wanted = self.list(self.alone, "series", ("match[]", '{job=~".+"}'))
            self.assertEqual(self.list(member, "series", ("match[]", '{job=~".+"}')), wanted)
            self.assertEqual(wanted[0], 422)
            self.assertEqual(
                self.list(member, "label/job/values", ("match[]", '{job=~"("}')),
                self.list(self.alone, "label/job/values", ("match[]", '{job=~"("}')),
            )
            self.assertEqual(self.post(member, b"\x05no")[0], 400)
            no_utf8 = ("match[]", '{job="\\xff"}')
            given = self.list(member, "label/x/values", no_utf8)
            self.assertEqual(given, self.list(self.alone, "label/x/values", no_utf8))
            self.assertEqual(given[0], 400)

    def test_large_series_of_many_readers_pass(self):
        """Members send more than fits into what waits for a slow reader, and have few workers for it."""
        self.start_cluster(config="query: {max_concurrent: 4}\n")
        jobs = [self.job_of(shard) for shard in range(3)]
        for job in jobs:
            self.write(job, rows=150_000)
        body = read_request([(EQUAL, "__name__", "loss")])
        status, wanted = self.post(self.alone, body)
        self.assertEqual((status, [count for _, count in self.series_in(wanted)]), (200, [150_000] * 3))
        with concurrent.futures.ThreadPoolExecutor(12) as threads:
            for given in threads.map(lambda member: self.post(member, body), self.members * 4):
                self.assertEqual((given[0], given[1] == wanted), (200, True))

    def test_a_lost_member_makes_it_503_and_its_own_jobs_are_read_on(self):
        self.start_cluster()
        jobs = [self.job_of(shard) for shard in range(3)]
        for job in jobs:
            self.write(job)
        self.members[2].kill()
        for member in self.members[:2]:
            for form in (False, True):
                status, text = self.post(member, read_request(EVERYTHING, streamed=form))
                self.assertEqual(status, 503, text)
                self.assertIn(self.members[2].address.encode(), text)
            status, text = self.list(member, "labels")
            self.assertEqual(status, 503, text)
            self.assertIn(self.members[2].address.encode(), text)
            for job in jobs[:2]:
                self.assertEqual(self.post(member, read_request([(EQUAL, "job", job)]))[0], 200)
            status, _ = self.post(member, read_request(EVERYTHING), "?members=own")
            self.assertEqual(status, 200)


class MemberCallsTest(ReadsCase):
    """What a member answers when another program calls it."""

    def setUp(self):
        super().setUp()
        self.token("writer", "write")
        self.token("all", "read")
        self.start_cluster()
        self.write(self.job_of(1), token=self.secret("writer"))

    def call(self, member, method, request, token="all"):
        channel = client.connect(member.address)
        self.addCleanup(channel.close)
        try:
            secret = self.secret(token) if token else None
            call = getattr(member_reads_pb2_grpc.MemberReadsStub(channel), method)
            return grpc.StatusCode.OK, list(call(request, metadata=client.bearer(secret)))
        except grpc.RpcError as error:
            return error.code(), error.details()

    def test_it_answers_about_its_own_shard_only(self):
        selection = member_reads_pb2.MemberSelection(
            end_ms=1 << 60,
            matchers=[query_pb2.Matcher(label="task", op=query_pb2.Matcher.OP_EQUAL, value="0")],
        )
        kind = member_reads_pb2.MemberListRequest.KIND_LABEL_VALUES
        for shard in range(4):
            read = member_reads_pb2.MemberReadRequest(shard=shard, selection=selection)
            values = member_reads_pb2.MemberListRequest(
                shard=shard, kind=kind, label=b"job", everything={"end_ms": 1 << 60}
            )
            for member in self.members:
                code, series = self.call(member, "Read", read)
                listed, entries = self.call(member, "List", values)
                if member is not (self.members * 2)[shard] or shard == 3:
                    self.assertEqual((code, listed), (grpc.StatusCode.FAILED_PRECONDITION,) * 2)
                    self.assertIn("keeps shard", series)
                    continue
                self.assertEqual((code, listed), (grpc.StatusCode.OK,) * 2)
                found = [len(s.values) for message in series for s in message.series]
                self.assertEqual(found, [60, 60] if shard == 1 else [])
                names = [entry.key.decode() for message in entries for entry in message.entries]
                self.assertEqual(names, [self.job_of(1)] if shard == 1 else [])

    def test_wrong_calls_are_refused(self):
        read, listing = member_reads_pb2.MemberReadRequest, member_reads_pb2.MemberListRequest
        wrong = [
            ("Read", read(selection={"matchers": [query_pb2.Matcher(label="job")]})),
            ("List", listing()),
            ("List", listing(kind=listing.KIND_SERIES)),
            ("List", listing(kind=77)),
        ]
        for method, request in wrong:
            code, text = self.call(self.members[0], method, request)
            self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT, (method, request, text))
        for token, code in ((None, "UNAUTHENTICATED"), ("writer", "PERMISSION_DENIED")):
            for method, request in (("Read", read()), ("List", listing(kind=listing.KIND_METADATA))):
                given, _ = self.call(self.members[0], method, request, token)
                self.assertEqual(given, getattr(grpc.StatusCode, code))


class SplitReadsTest(ReadsCase, SplitCase):
    def test_a_split_job_is_read_once_and_whole(self):
        self.start_split()
        self.write_all()
        host = HOSTS[3]
        self.check_reads(
            [
                [(EQUAL, "job", JOB)],
                [(EQUAL, "job", JOB), (EQUAL, "host", host)],
                [(EQUAL, "job", JOB), (NOT_EQUAL, "host", host), (EQUAL, "__name__", "host_load")],
                [(MATCHES, "job", "h.*")],
                EVERYTHING,
            ],
            least=4,
        )
        of_job = ("match[]", f'{{job="{JOB}"}}')
        self.check_lists(
            [
                ("labels",), ("label/host/values",), ("label/chip/values",), ("series", of_job),
                ("series", ("match[]", f'{{job="{JOB}",host="{host}"}}')), ("metadata",),
            ]
        )  # fmt: skip
        for shard, member in enumerate(self.members):
            status, body = self.list(member, "label/host/values", ("members", "own"))
            self.assertEqual(json.loads(body)["data"], sorted(self.hosts_of(shard)))
        # Each member has copies of hosts of others, which must not show.
        whole = read_request([(EQUAL, "job", JOB)])
        own = [
            labels for member in self.members
            for labels, _ in self.series_in(self.post(member, whole, "?members=own")[1])
        ]  # fmt: skip
        wanted = [labels for labels, _ in self.series_in(self.post(self.alone, whole)[1])]
        self.assertEqual(sorted(own), wanted)


class TokensOfReadsTest(ReadsCase):
    def test_a_reader_sees_its_jobs_through_any_member(self):
        self.token("writer", "write")
        self.token("some", "read", "job-.*")
        self.start_cluster()
        for prefix in ("job", "secret"):
            for shard in range(self.MEMBERS):
                self.write(self.job_of(shard, prefix), token=self.secret("writer"))
        body = read_request(EVERYTHING)
        wanted = self.post(self.alone, body, token=self.secret("some"))
        self.assertEqual(len(self.series_in(wanted[1])), 6)
        for member in self.members:
            self.assertEqual(self.post(member, body, token=self.secret("some")), wanted)
            names = self.list(member, "label/job/values", token=self.secret("some"))
            self.assertEqual(names[0], 200)
            self.assertEqual(len(json.loads(names[1])["data"]), self.MEMBERS)
            for token, status in ((None, 401), ("garbage", 401), (self.secret("writer"), 403)):
                self.assertEqual(self.post(member, body, token=token)[0], status)
                self.assertEqual(self.list(member, "labels", token=token)[0], status)


if __name__ == "__main__":
    harness.main()
