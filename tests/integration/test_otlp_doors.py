"""OpenTelemetry's metrics and logs over gRPC and over HTTP."""
import gzip
import hashlib
import json
import os
import subprocess
import time

import harness
import client
import doors


def post(collector, path, request, headers=None):
    """(status, body) of the answer to a request in JSON."""
    form = {"Content-Type": "application/json", "Content-Encoding": "gzip", **(headers or {})}
    status, _, body = doors.send(collector, "POST", path, gzip.compress(json.dumps(request).encode()), form)
    return status, body


class OpenTelemetryTest(harness.TestCase):
    """The same points over gRPC and over HTTP, with and without a token."""

    CONFIG = "auth: {tokens_file: %s, allow_plaintext: true}\n"

    def setUp(self):
        super().setUp()
        tokens = os.path.join(self.directory, "tokens.yaml")
        with open(tokens, "w") as file:
            for name, jobs in (("writer", "vision.*"), ("reader", ".*")):
                digest = hashlib.sha256(f"token-of-{name}-0123456789".encode()).hexdigest()
                roles = "write" if name == "writer" else "read"
                file.write("tokens:\n" if name == "writer" else "")
                file.write(f"  - {{name: {name}, sha256: {digest}, roles: [{roles}], jobs: '{jobs}'}}\n")
        os.chmod(tokens, 0o600)
        self.collector = self.started(harness.Collector(self.directory, self.CONFIG % tokens))

    @staticmethod
    def request(job, values):
        now = time.time_ns()
        text = {
            "resourceMetrics": [{
                "resource": {"attributes": [
                    {"key": "service.name", "value": {"stringValue": job}},
                    {"key": "host.name", "value": {"stringValue": "h1"}},
                    {"key": "tacho.task", "value": {"intValue": "2"}},
                ]},
                "scopeMetrics": [{"metrics": [{"name": "train.loss", "unit": "1", "gauge": {"dataPoints": [
                    {"timeUnixNano": str(now + i), "asDouble": value} for i, value in enumerate(values)
                ]}}]}],
            }]
        }  # fmt: skip
        return text

    def export(self, request, token):
        from interop import otlp_metrics_service_pb2, otlp_metrics_service_pb2_grpc
        from google.protobuf import json_format
        import grpc

        message = json_format.ParseDict(
            request, otlp_metrics_service_pb2.ExportMetricsServiceRequest()
        )
        with client.connect(self.collector.address) as channel:
            stub = otlp_metrics_service_pb2_grpc.MetricsServiceStub(channel)
            try:
                stub.Export(message, metadata=client.bearer(token), timeout=30)
                return "OK"
            except grpc.RpcError as error:
                return error.code().name

    def export_logs(self, request, token):
        from interop import otlp_logs_service_pb2, otlp_logs_service_pb2_grpc
        from google.protobuf import json_format
        import grpc

        message = json_format.ParseDict(request, otlp_logs_service_pb2.ExportLogsServiceRequest())
        with client.connect(self.collector.address) as channel:
            stub = otlp_logs_service_pb2_grpc.LogsServiceStub(channel)
            try:
                stub.Export(message, metadata=client.bearer(token), timeout=30)
                return "OK"
            except grpc.RpcError as error:
                return error.code().name

    def post(self, request, token, path="/v1/metrics"):
        return post(self.collector, path, request, token and {"Authorization": f"Bearer {token}"})[0]

    def test_a_captured_request_is_explained(self):
        from interop import otlp_metrics_service_pb2
        from google.protobuf import json_format

        message = json_format.ParseDict(
            self.request("vision", [0.5]), otlp_metrics_service_pb2.ExportMetricsServiceRequest()
        ).SerializeToString()
        path = os.path.join(self.directory, "request.bin")
        for body in (message, gzip.compress(message)):
            with open(path, "wb") as file:
                file.write(body)
            asked = subprocess.run([os.environ["TACHO_COLLECTOR"], "--explain-mapping", path],
                                   capture_output=True, text=True, timeout=30)  # fmt: skip
            self.assertEqual(asked.returncode, 0, asked.stderr)
            self.assertIn("job vision, host ", asked.stdout)
            self.assertIn("train.loss", asked.stdout)

    def test_both_ways_store_the_same_for_those_who_may_write(self):
        writer, reader = "token-of-writer-0123456789", "token-of-reader-0123456789"
        self.assertEqual(self.export(self.request("vision-grpc", [0.5, 0.25]), writer), "OK")
        self.assertEqual(self.post(self.request("vision-http", [0.5, 0.25]), writer), 200)
        for token, code, status in ((None, "UNAUTHENTICATED", 401), (reader, "PERMISSION_DENIED", 403)):
            self.assertEqual(self.export(self.request("vision", [1.0]), token), code)
            self.assertEqual(self.post(self.request("vision", [1.0]), token), status)
        self.assertEqual(self.export(self.request("speech", [1.0]), writer), "PERMISSION_DENIED")
        self.assertEqual(self.post(self.request("speech", [1.0]), writer), 403)
        token_file = os.path.join(self.directory, "reader.token")
        with open(token_file, "w") as file:
            file.write(reader)
        os.chmod(token_file, 0o600)
        shown = {}
        for job in ("vision-grpc", "vision-http", "vision", "speech"):
            answer = harness.tachoctl(
                self.collector.address, "query", job, "train.loss", "-o", "csv",
                env={"TACHO_TOKEN_FILE": token_file})  # fmt: skip
            shown[job] = answer.stdout
        self.assertIn("0.25", shown["vision-grpc"])
        self.assertIn("0.25", shown["vision-http"])
        for job in ("vision", "speech"):
            self.assertLessEqual(len(shown[job].splitlines()), 1, "the head of the table, no sample")

    def test_large_requests_are_no_flood(self):
        """A connection carries as much as it likes if it is useful, and ingest.max_message_bytes at once."""
        from interop import otlp_metrics_service_pb2, otlp_metrics_service_pb2_grpc
        from google.protobuf import json_format

        one = json_format.ParseDict(
            self.request("vision", [0.5]), otlp_metrics_service_pb2.ExportMetricsServiceRequest())  # fmt: skip
        size = one.ByteSize()
        with client.connect(self.collector.address) as channel:
            export = otlp_metrics_service_pb2_grpc.MetricsServiceStub(channel).Export
            for megabytes, times in ((3, 1), (0.1, 1), (0.5, 20), (2, 5), (4, 3)):
                large = otlp_metrics_service_pb2.ExportMetricsServiceRequest(
                    resource_metrics=list(one.resource_metrics) * int(megabytes * 2**20 / size))  # fmt: skip
                for _ in range(times):
                    export(large, metadata=client.bearer("token-of-writer-0123456789"), timeout=30)
        page = harness.http_get(self.collector.url("/metrics"), {"Authorization": "Bearer token-of-reader-0123456789"})
        self.assertIn('tacho_connections_closed_total{reason="flood"} 0', page[2].decode())

    def test_events_need_the_same_rights(self):
        def logs(job):
            return {"resourceLogs": [{
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": job}}]},
                "scopeLogs": [{"logRecords": [{"eventName": "text", "timeUnixNano": str(time.time_ns())}]}],
            }]}  # fmt: skip

        writer, reader = "token-of-writer-0123456789", "token-of-reader-0123456789"
        for job, token, code, status in (
            ("vision", writer, "OK", 200),
            ("speech", writer, "PERMISSION_DENIED", 403),
            ("vision", reader, "PERMISSION_DENIED", 403),
            ("vision", None, "UNAUTHENTICATED", 401),
        ):
            self.assertEqual(self.export_logs(logs(job), token), code)
            self.assertEqual(self.post(logs(job), token, "/v1/logs"), status)


class OpenTelemetryLogsTest(harness.TestCase):
    """Events arrive over gRPC and over HTTP, once each, and outlive a kill; other logs do not."""

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))

    @staticmethod
    def record(name, body, time_ns, **attributes):
        return {
            "timeUnixNano": str(time_ns),
            "severityNumber": 9,
            "eventName": name,
            "body": {"stringValue": body},
            "attributes": [
                {"key": key, "value": {"intValue" if isinstance(value, int) else "stringValue": str(value)}}
                for key, value in attributes.items()
            ],
        }

    @staticmethod
    def request(job, *records):
        attributes = {"service.name": job, "host.name": "h1", "tacho.task": "2"}
        return {
            "resourceLogs": [{
                "resource": {"attributes": [
                    {"key": key, "value": {"stringValue": value}} for key, value in attributes.items()
                ]},
                "scopeLogs": [{"logRecords": list(records)}],
            }]
        }  # fmt: skip

    def export(self, request):
        """(rejected records, message) over gRPC."""
        from interop import otlp_logs_service_pb2, otlp_logs_service_pb2_grpc
        from google.protobuf import json_format

        message = json_format.ParseDict(
            request, otlp_logs_service_pb2.ExportLogsServiceRequest(), ignore_unknown_fields=True
        )
        with client.connect(self.collector.address) as channel:
            partial = (
                otlp_logs_service_pb2_grpc.LogsServiceStub(channel)
                .Export(message, timeout=30)
                .partial_success
            )
        return partial.rejected_log_records, partial.error_message

    def post(self, request):
        """The same over HTTP, in JSON."""
        status, text = post(self.collector, "/v1/logs", request)
        self.assertEqual(status, 200, text)
        partial = json.loads(text).get("partialSuccess", {})
        return int(partial.get("rejectedLogRecords", 0)), partial.get("errorMessage", "")

    def events(self, job):
        query = client.Query(self.collector.address)
        found = query.events(job)
        query.close()
        return found

    def test_events_are_read_back_over_both_ways_and_stored_once(self):
        now = time.time_ns()
        for job, send in (("by-grpc", self.export), ("by-http", self.post)):
            request = self.request(
                job,
                self.record("checkpoint_saved", "saved", now, step=100, path="/ckpt/100"),
                self.record("tacho.sweep_began", "", now + 1),
            )
            for _ in range(3):  # As if the answer had been lost.
                self.assertEqual(send(request), (0, ""))
            saved, began = sorted(self.events(job), key=lambda event: event.time_unix_ns)
            self.assertEqual((saved.kind, saved.message, saved.step), ("checkpoint_saved", "saved", 100))
            self.assertEqual(dict(saved.fields), {"path": "/ckpt/100"})
            self.assertEqual((saved.source.host, saved.source.task), ("h1", 2))
            self.assertEqual(saved.time_unix_ns, now)
            self.assertEqual((began.kind, began.HasField("step")), ("sweep_began", False))

    def test_other_logs_are_refused_politely(self):
        now = time.time_ns()
        for job, send in (("by-grpc", self.export), ("by-http", self.post)):
            rejected, message = send(self.request(
                job, self.record("", "GET / 200", now), self.record("text", "kept", now),
                self.record("browser.page_view", "", now)))  # fmt: skip
            self.assertEqual(rejected, 2)
            self.assertIn("only events", message)
            self.assertIn("checkpoint_saved", message)
            self.assertEqual([event.message for event in self.events(job)], ["kept"])

    def test_an_answered_event_outlives_a_kill_and_its_repeat_is_known(self):
        for i in range(5):
            request = self.request("vision", self.record("text", str(i), time.time_ns()))
            self.assertEqual(self.export(request), (0, ""))
            self.collector.kill()
            self.collector.start()
            self.assertEqual(self.post(request), (0, ""))
            self.assertEqual(
                sorted(event.message for event in self.events("vision")), [str(n) for n in range(i + 1)]
            )


if __name__ == "__main__":
    harness.main()
