"""What is too large for one message: an agent cuts it, and one that does not is told, not shut out."""
import http.server
import threading

import client
import grpc
import harness

METRICS = 20
SERIES = 1000  # Of each metric.


def page():
    """20,000 series, of which the definition alone takes more than a message may have."""
    lines = []
    for m in range(METRICS):
        name = f"apiserver_request_wide_{m}"
        lines.append(f"# HELP {name} {'How long requests took, by verb and resource. ' * 4}")
        lines.append(f"# TYPE {name} gauge")
        for i in range(SERIES):
            lines.append(
                f'{name}{{resource="resource-{i // 100}",subresource="a-long-name-of-a-part-{i}",'
                f'verb="LIST"}} {m * SERIES + i}'
            )
    return "\n".join(lines).encode() + b"\n"


class Page(http.server.BaseHTTPRequestHandler):
    TEXT = page()

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(self.TEXT)))
        self.end_headers()
        self.wfile.write(self.TEXT)

    def log_message(self, *_):
        pass


class WideScrapeTest(harness.TestCase):
    CONFIG = "storage: {retention: 0s}\n"

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, self.CONFIG))

    def metric(self, name):
        _, _, body = harness.http_get(self.collector.url("/metrics"))
        return sum(
            float(line.split()[-1])
            for line in body.decode().splitlines()
            if line.startswith(name + "{") or line.startswith(name + " ")
        )

    def assert_nobody_is_shut_out(self):
        for _ in range(20):
            told = harness.tachoctl(self.collector.address, "jobs")
            self.assertNotIn("cannot", told.stderr)
        self.assertEqual(self.metric("tacho_connections_refused_total"), 0)

    def values(self, query, job):
        """{value of the newest sample of each series}, metric by metric."""
        found = {}
        for m in range(METRICS):
            samples = query.latest(job, f"apiserver_request_wide_{m}")
            found[m] = sorted(s.value for s in samples)
        return found

    def test_scrape_of_20000_series_arrives_whole(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        agent = self.started(
            harness.Agent(
                self.directory, self.collector,
                "  endpoints:\n    interval: 5s\n    targets:\n"
                f"      - {{url: 'http://127.0.0.1:{server.server_port}/metrics', name: wide,"
                " max_series: 50000, series: {job: wide}}\n",
            )
        )  # fmt: skip
        query = client.Query(self.collector.address)
        self.addCleanup(query.close)
        expected = {
            m: [float(m * SERIES + i) for i in range(SERIES)] for m in range(METRICS)
        }
        harness.wait_until(lambda: "wide" in query.jobs(), "the job stored")
        harness.wait_until(
            lambda: self.values(query, "wide") == expected, "every value stored", timeout_s=60
        )
        self.assert_nobody_is_shut_out()
        self.assertEqual(self.metric("tacho_ingest_messages_refused_total"), 0)
        self.assertEqual(self.metric("tacho_connections_closed_total"), 0)
        self.assertEqual(self.metric("tacho_ingest_lost_rows_total"), 0)
        self.assertNotIn("max_message_bytes", agent.program.tail(100_000))

    def send_too_much(self, help_bytes):
        """As an agent does that does not cut its layouts. Returns how its stream ends."""
        stream = client.Stream(self.collector.address, "careless", 7, 1)
        self.addCleanup(stream.close)
        self.assertTrue(stream.welcomed())
        message = client.layout(1, "job", "host", [(f"m{i}", "1") for i in range(10_000)])
        for series in message.layout.series:
            series.metric.help = "h" * help_bytes
        stream.send(message)
        stream.wait(lambda: False, "the stream ended")
        return stream.error

    def test_sender_of_a_message_that_is_too_large_is_told_the_limit_and_nobody_is_shut_out(self):
        for _ in range(5):
            error = self.send_too_much(600)  # 6 MB.
            self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            self.assertIn("ingest.max_message_bytes", error.details())
            self.assertIn("4194304", error.details())
        self.assertEqual(self.metric("tacho_connections_closed_total"), 0)
        self.assert_nobody_is_shut_out()

    def test_nor_is_anybody_for_a_message_of_any_size(self):
        for _ in range(3):
            self.assertIsNotNone(self.send_too_much(4000))  # 40 MB.
        self.assert_nobody_is_shut_out()


class RefusedInWordsTest(harness.TestCase):
    def test_tachoctl_says_why_the_collector_refuses_its_address(self):
        collector = self.started(
            harness.Collector(self.directory, "quotas: {max_connections_per_address: 1}\n")
        )
        stream = client.Stream(collector.address, "first", 7, 1)
        self.addCleanup(stream.close)
        self.assertTrue(stream.welcomed())
        told = harness.tachoctl(collector.address, "jobs")
        self.assertIn("quotas.max_connections_per_address", told.stderr)
        self.assertNotIn("Start one", told.stderr)


if __name__ == "__main__":
    harness.main()
