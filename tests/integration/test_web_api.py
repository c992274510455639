"""The query services over HTTP: each call answers what gRPC answers, to whom gRPC answers it."""
import base64
import http.client
import json
import math
import time
import urllib.parse

import client
import harness  # First: it makes the stubs importable.
import grpc
from google.protobuf import json_format
from security_case import SecurityCase
from tacho.v1 import (conditions_pb2, cost_pb2, forecast_pb2, goodput_pb2, ingest_pb2, query_pb2,
                      query_pb2_grpc, types_pb2, view_pb2)  # fmt: skip

JOB = "bert"
SELECTOR = query_pb2.Selector(job=JOB)
SERVICES = [query_pb2.DESCRIPTOR.services_by_name["Query"],
            view_pb2.DESCRIPTOR.services_by_name["View"]]  # fmt: skip
# What a call is asked here; a method that is not listed gets an empty request.
REQUESTS = {
    "GetJob": query_pb2.GetJobRequest(job=JOB),
    "ListMetrics": query_pb2.ListMetricsRequest(job=JOB),
    "LabelValues": query_pb2.LabelValuesRequest(selector=SELECTOR, label="task"),
    "ListSeries": query_pb2.ListSeriesRequest(selector=SELECTOR),
    "Range": query_pb2.RangeRequest(selector=SELECTOR),
    "Integrate": query_pb2.IntegrateRequest(selector=SELECTOR),
    "Latest": query_pb2.LatestRequest(selector=SELECTOR),
    "Compare": query_pb2.CompareRequest(subjects=[query_pb2.Subject(job=JOB)]),
    "CompareSubject": query_pb2.CompareSubjectRequest(
        compare=query_pb2.CompareRequest(subjects=[query_pb2.Subject(job=JOB)], metrics=["loss"]),
        part=query_pb2.COMPARED_PART_PLACES, figures=True,
    ),
    "FirstNonFinite": query_pb2.FirstNonFiniteRequest(selector=SELECTOR),
    "Export": query_pb2.ExportRequest(selector=SELECTOR),
    "ListEvents": query_pb2.ListEventsRequest(job=JOB),
    "Goodput": goodput_pb2.GoodputRequest(job=JOB),
    "Cost": cost_pb2.CostRequest(job=JOB),
    "Forecast": forecast_pb2.ForecastRequest(job=JOB),  # Without a plan: the end moves with the time.
    "Cardinality": query_pb2.CardinalityRequest(job=JOB),
    "Conditions": conditions_pb2.ConditionsRequest(job=JOB),
    "Watch": query_pb2.WatchRequest(selector=SELECTOR),
    "WatchConditions": conditions_pb2.WatchConditionsRequest(job=JOB),
    "Matrix": view_pb2.MatrixRequest(
        selector=query_pb2.Selector(job=JOB, metrics=["loss"]), axis=query_pb2.AXIS_STEP
    ),
}
# They end only with their client; tests below look at them.
WATCHES = {"Watch", "WatchConditions"}
# They say the time, or what changes by itself.
UNSTEADY = {"WhoAmI", "Collector", "Fleet"}


def methods():
    return [(s.full_name, m) for s in SERVICES for m in s.methods if m.name not in WATCHES]


def watches():
    return [(s.full_name, m) for s in SERVICES for m in s.methods if m.name in WATCHES]


def request_of(method):
    return REQUESTS.get(method.name) or method.input_type._concrete_class()


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.type = response.getheader("Content-Type")
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class WebApiTest(SecurityCase):
    def ask(self, path, body=None, kind="application/json", token=None, verb="POST", **headers):
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.collector.http, timeout=harness.PATIENCE_S
        )
        sent = {"Content-Type": kind} if verb == "POST" else {}
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        if token is not None:
            sent["Authorization"] = "Bearer " + token
        try:
            connection.request(verb, path, body=body, headers=sent)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def channel(self):
        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        return channel

    def grpc_answers(self, channel, service, method, request, token=None):
        """All messages, and the error that ended the call, or None."""
        kind = channel.unary_stream if method.server_streaming else channel.unary_unary
        call = kind(
            f"/{service}/{method.name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=method.output_type._concrete_class.FromString,
        )
        try:
            answer = call(request, metadata=client.bearer(token), timeout=harness.PATIENCE_S)
            return (list(answer) if method.server_streaming else [answer]), None
        except grpc.RpcError as error:
            return [], error

    def record(self, job=JOB, task=0, agent="agent-1", token=None):
        """Ten steps of two metrics, NaN and infinity among them, and an event."""
        now = time.time_ns() - 10**10
        stream = self.stream(token, agent)
        stream.send(client.layout(1, job, "host-1", [("loss", "1"), ("power", "W")], task, 0, True))
        times = [now + i * 10**9 for i in range(10)]
        values = [v for i in range(10) for v in (1 / (i + 1), 100.0 + i)]
        values[8], values[10] = math.nan, math.inf
        stream.send(client.batch(1, 1, times, values, list(range(10))))
        event = ingest_pb2.Event(
            sequence=2, source=types_pb2.Source(job=job, host="host-1", task=task),
            time_unix_ns=now, kind="checkpoint_saved", message='"quoted" <b>',
        )  # fmt: skip
        stream.send(ingest_pb2.ClientMessage(event=event))
        self.assertTrue(stream.wait_durable(2), stream.error)
        stream.close()

    def path(self, service, method):
        return f"/{service}/{method.name}"


def envelopes(body):
    """(flags, message) of each."""
    found = []
    while body:
        size = int.from_bytes(body[1:5], "big")
        if len(body) < 5 + size:
            raise AssertionError("an envelope was cut")
        found.append((body[0], body[5 : 5 + size]))
        body = body[5 + size :]
    return found


class EqualTest(WebApiTest):
    def setUp(self):
        super().setUp()
        self.start("conditions: {interval: 10m}\n")
        for task in range(3):
            self.record(task=task, agent=f"agent-{task}")

    def test_every_method_answers_what_grpc_answers(self):
        channel = self.channel()
        for service, method in methods():
            request = request_of(method)
            expected, error = self.grpc_answers(channel, service, method, request)
            if error is not None and error.code() == grpc.StatusCode.UNIMPLEMENTED:
                raise AssertionError(f"{method.name} is not served")
            self.assertIsNone(error, method.name)
            self.assertTrue(expected, method.name)
            for name, found in self.over_http(service, method, request).items():
                with self.subTest(method=method.name, form=name):
                    self.assertEqual(len(found), len(expected))
                    if method.name in UNSTEADY:
                        continue
                    for one, other in zip(found, expected):
                        self.assertEqual(
                            one.SerializeToString(deterministic=True),
                            other.SerializeToString(deterministic=True),
                        )

    def over_http(self, service, method, request):
        """The messages by the form in which they were asked for."""
        text = json_format.MessageToJson(request)
        parse = method.output_type._concrete_class.FromString
        path = self.path(service, method)
        query = urllib.parse.urlencode({"connect": "v1", "encoding": "json", "message": text})
        packed = urllib.parse.urlencode(
            {"connect": "v1", "encoding": "json", "base64": "1",
             "message": base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")}
        )  # fmt: skip
        lines = lambda answer: [self.from_json(method, line) for line in answer.body.splitlines()]
        found = {
            "json": lines(self.ok(self.ask(path, text))),
            "GET": lines(self.ok(self.ask(f"{path}?{query}", verb="GET"))),
            "GET base64": lines(self.ok(self.ask(f"{path}?{packed}", verb="GET"))),
        }
        if not method.server_streaming:
            proto = self.ok(self.ask(path, request.SerializeToString(), "application/proto"))
            self.assertEqual(proto.type, "application/proto")
            found["proto"] = [parse(proto.body)]
            return found
        for codec, body in [("proto", request.SerializeToString()), ("json", text.encode())]:
            kind = "application/connect+" + codec
            sent = b"\0" + len(body).to_bytes(4, "big") + body
            answer = self.ok(self.ask(path, sent, kind))
            self.assertEqual(answer.type, kind)
            *messages, (flags, end) = envelopes(answer.body)
            self.assertEqual((flags, json.loads(end)), (2, {}))
            found[kind] = [
                parse(m) if codec == "proto" else self.from_json(method, m) for _, m in messages
            ]
        return found

    def from_json(self, method, text):
        return json_format.Parse(text, method.output_type._concrete_class())

    def ok(self, answer):
        self.assertEqual(answer.status, 200, answer.body[:300])
        return answer

    def test_a_watch_goes_on_until_its_client_goes(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        self.addCleanup(connection.close)
        body = json.dumps({"selector": {"job": JOB, "metrics": ["loss"]}})
        connection.request(
            "POST", "/tacho.v1.Query/Watch", body, {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        self.assertIn("live", json.loads(response.readline()))
        stream = self.stream(agent_id="agent-9")
        stream.send(client.layout(1, JOB, "host-9", [("loss", "1")], 9, 0, True))
        stream.send(client.batch(1, 1, [time.time_ns()], [0.25], [11]))
        self.assertTrue(stream.wait_durable(1), stream.error)
        said = [json.loads(response.readline()) for _ in range(2)]
        self.assertEqual(said[0]["series"]["series"]["host"], "host-9")
        self.assertEqual(said[1]["samples"]["points"]["values"], [0.25])

    def test_errors_are_those_of_grpc(self):
        answer = self.ask("/tacho.v1.Query/GetJob", '{"job":"bart"}')
        self.assertEqual(answer.status, 404)
        said = answer.json()
        self.assertEqual(said["code"], "not_found")
        self.assertIn("bert", said["message"])  # The nearest name.
        wrong = self.ask("/tacho.v1.Query/Range", '{"selector":{"job":"bert"},"maxPoints":9999999}')
        details = wrong.json()["error"]["details"]
        self.assertEqual([d["type"] for d in details], ["google.rpc.BadRequest"])
        self.assertEqual(details[0]["debug"]["fieldViolations"][0]["field"], "max_points")
        rows = [
            ("/tacho.v1.Query/GetJob", '{"jobb":"x"}', "application/json", 400, "jobb"),
            ("/tacho.v1.Query/GetJob", "{", "application/json", 400, "GetJobRequest"),
            ("/tacho.v1.Query/GetJob", b"\xff", "application/proto", 400, ""),
            ("/tacho.v1.Query/GetJob", "{}", "text/plain", 415, "application/json"),
            ("/tacho.v1.Query/Nothing", "{}", "application/json", 404, "/tacho.v1.Query/Nothing"),
            ("/tacho.v1.Ingest/Stream", "{}", "application/json", 404, ""),
            ("/tacho.v1.Admin/Drain", "{}", "application/json", 404, ""),
            ("/tacho.v1.Marks/ChangeMarks", "{}", "application/json", 404, ""),
        ]
        for path, body, kind, status, text in rows:
            with self.subTest(path=path, body=body):
                answer = self.ask(path, body, kind)
                self.assertEqual(answer.status, status, answer.body)
                self.assertIn(text, answer.body.decode())
        stream = self.ask("/tacho.v1.Query/Range", '{"selector":{"job":"bart"}}')
        self.assertEqual(stream.status, 200)
        self.assertEqual(stream.json()["error"]["code"], "not_found")

    def test_a_long_request_and_an_unwanted_verb_are_refused(self):
        answer = self.ask("/tacho.v1.Query/GetJob", '{"job":"' + "x" * (300 << 10) + '"}')
        self.assertEqual(answer.status, 413)
        self.assertEqual(self.ask("/tacho.v1.Query/GetJob", "{}", verb="PUT").status, 405)

    def test_other_sites_cannot_ask(self):
        path = "/tacho.v1.Query/ListJobs"
        self.assertEqual(self.ask(path, "{}", Host="evil.example").status, 421)
        self.assertEqual(self.ask(path, "{}", Sec_Fetch_Site="cross-site").status, 403)
        self.assertEqual(self.ask(path, "{}", Sec_Fetch_Site="same-origin").status, 200)
        self.assertIsNone(self.ask(path, "{}").headers.get("Access-Control-Allow-Origin"))


class ConditionsTest(WebApiTest):
    def test_a_watch_begins_with_the_conditions_of_now(self):
        self.start("conditions: {interval: 1s}\n")
        self.record()
        stub = query_pb2_grpc.QueryStub(self.channel())

        def names(conditions):
            return sorted(one.condition for one in conditions)

        def judged():
            answer = stub.Conditions(REQUESTS["Conditions"], timeout=harness.PATIENCE_S)
            return names(answer.conditions)

        harness.wait_until(judged, "the job is judged")
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=30)
        self.addCleanup(connection.close)
        path = "/tacho.v1.Query/WatchConditions"
        body = json.dumps({"job": JOB})
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        found, live = [], False
        while not live:
            message = conditions_pb2.WatchConditionsResponse()
            json_format.Parse(response.readline(), message)
            found += message.conditions
            live = message.live
        self.assertEqual(names(found), judged())
        self.assertEqual({one.job for one in found}, {JOB})


class AccessTest(WebApiTest):
    def test_roles_and_jobs_are_those_of_grpc(self):
        for name, roles, jobs in [
            ("writer", "write", ".*"), ("reader", "read", ".*"), ("admin", "admin", ".*"),
            ("other", "read", "vision-.*"), ("mine", "read", JOB),
        ]:  # fmt: skip
            self.token(name, roles, jobs)
        self.start("conditions: {interval: 10m}\n")
        self.record(token=self.secret("writer"))
        channel = self.channel()
        tokens = [None, "garbage"] + [self.secret(name) for name in self.tokens]
        refused = 0
        for service, method in methods():
            request = request_of(method)
            for token in tokens:
                with self.subTest(method=method.name, token=token):
                    _, error = self.grpc_answers(channel, service, method, request, token)
                    code = None if error is None else error.code().name.lower()
                    refused += code is not None
                    self.assertEqual(self.code(service, method, request, token), code)
        self.assertGreater(refused, len(methods()) * 3)

    def test_watches_refuse_whom_grpc_refuses(self):
        for name, roles, jobs in [("writer", "write", ".*"), ("other", "read", "vision-.*")]:
            self.token(name, roles, jobs)
        self.start("conditions: {interval: 10m}\n")
        self.record(token=self.secret("writer"))
        channel = self.channel()
        self.assertEqual({method.name for _, method in watches()}, WATCHES)
        for service, method in watches():
            request = request_of(method)
            for name, token in [("none", None), ("garbage", "garbage"),
                                ("writer", self.secret("writer")), ("other", self.secret("other"))]:  # fmt: skip
                with self.subTest(method=method.name, token=name):
                    _, error = self.grpc_answers(channel, service, method, request, token)
                    self.assertIsNotNone(error)
                    self.assertNotEqual(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
                    code = error.code().name.lower()
                    self.assertEqual(self.code(service, method, request, token), code)

    def code(self, service, method, request, token):
        """None, or the error's."""
        answer = self.ask(
            self.path(service, method), json_format.MessageToJson(request), token=token
        )
        if answer.status == 401:
            self.assertEqual(answer.headers.get_all("WWW-Authenticate"), ['Bearer realm="tacho"'])
        if not answer.body:
            return None
        last = json.loads(answer.body.splitlines()[-1])
        return last.get("error", last).get("code")


if __name__ == "__main__":
    harness.main()
