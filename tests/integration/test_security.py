"""Who is let in: the real programs, with certificates of openssl's and tokens of the collector's."""
import base64
import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import time

import certificates
import client
import harness  # First: it makes the stubs importable.
import grpc
from tacho.v1 import ingest_pb2, query_pb2, query_pb2_grpc, types_pb2

METRICS = [("loss", "1")]
# docs/security.md: a removed token ends what it opened at once, an expired one within this.
ROUND_S = 5.0


def make_token():
    """(token, SHA-256) as tacho-collector makes them."""
    made = subprocess.run(
        [os.environ["TACHO_COLLECTOR"], "--make-token"], capture_output=True, text=True, check=True
    )
    return made.stdout.strip(), re.search(r"sha256: ([0-9a-f]{64})", made.stderr)[1]


class SecurityCase(harness.TestCase):
    """Tokens and certificates in the test's directory, and a collector that knows them."""

    def setUp(self):
        super().setUp()
        self.tokens = {}  # Name: (token, entry of the file).
        self.tokens_file = self.file("tokens.yaml")

    def file(self, name, text=None, mode=0o600):
        path = os.path.join(self.directory, name)
        if text is not None:
            with open(path + ".new", "w") as file:
                file.write(text)
            os.chmod(path + ".new", mode)
            os.replace(path + ".new", path)
        return path

    def token(self, name, roles, jobs=".*", **more):
        """A file that holds a new token, of which the next write_tokens() tells the collector."""
        secret, digest = make_token()
        entry = f"  - {{name: {name}, sha256: {digest}, roles: [{roles}], jobs: '{jobs}'"
        entry += "".join(f", {key}: '{value}'" for key, value in more.items()) + "}\n"
        self.tokens[name] = (secret, entry)
        return self.file(name + ".token", secret + "\n")

    def secret(self, name):
        return self.tokens[name][0]

    def write_tokens(self, rest=""):
        entries = "".join(entry for _, entry in self.tokens.values())
        self.file("tokens.yaml", ("tokens:\n" + entries if entries else "") + rest)

    def start(self, config=""):
        if self.tokens:
            self.write_tokens()
            config += f"auth: {{tokens_file: {self.tokens_file}}}\n"
        self.collector = self.started(harness.Collector(self.directory, config))
        return self.collector

    def stream(self, token=None, agent_id="agent-1", credentials=None, address=None):
        stream = client.Stream(
            address or self.collector.address, agent_id, 7, 1, credentials=credentials, token=token
        )
        self.addCleanup(stream.close)
        return stream

    def deliver(self, stream, job, sequence=1):
        """Sends one row; the status code that ended the stream, or OK once it is durable."""
        now = time.time_ns()
        stream.send(client.layout(sequence, job, "host-1", METRICS))
        stream.send(client.batch(sequence, sequence, [now], [1.5]))
        if stream.wait_durable(sequence):
            return grpc.StatusCode.OK
        return stream.error.code()

    def query(self, method, request, token=None, credentials=None, address=None, timeout=None):
        """(code, text or answer) of a unary or streamed call."""
        channel = client.connect(address or self.collector.address, credentials)
        stub = query_pb2_grpc.QueryStub(channel)
        try:
            answer = getattr(stub, method)(
                request, metadata=client.bearer(token), timeout=timeout or harness.PATIENCE_S
            )
            if method not in ("ListJobs", "GetJob"):
                answer = list(answer)
            return grpc.StatusCode.OK, answer
        except grpc.RpcError as error:
            return error.code(), error.details()
        finally:
            channel.close()

    def wait_log(self, text):
        harness.wait_until(
            lambda: text in self.collector.program.tail(1 << 20), f"the log says {text!r}"
        )

    def reload(self):
        said = self.collector.program.tail(1 << 20).count("asked_by=SIGHUP")
        self.collector.program.process.send_signal(signal.SIGHUP)
        harness.wait_until(
            lambda: self.collector.program.tail(1 << 20).count("asked_by=SIGHUP") > said, "reloaded"
        )
        return self.collector.program.tail(1 << 20)


JOBS = query_pb2.ListJobsRequest()


class TokenTest(SecurityCase):
    def setUp(self):
        super().setUp()
        self.token("vision-writer", "write", "vision-.*")
        self.token("bound-writer", "write", "speech", agent_id="agent-7")
        self.token("vision-reader", "read", "vision-.*")
        self.token("reader", "read")
        self.token("admin", "admin")
        self.token("gone", "write, read, admin", expires="2020-01-01")
        self.start()

    def feed(self):
        for agent, token, job in [
            ("agent-1", "vision-writer", "vision-1"), ("agent-7", "bound-writer", "speech"),
        ]:  # fmt: skip
            stream = self.stream(self.secret(token), agent)
            self.assertEqual(self.deliver(stream, job), grpc.StatusCode.OK, stream.error)
            stream.close()

    def test_each_role_writes_what_it_may_and_nothing_else(self):
        OK = grpc.StatusCode.OK
        DENIED, UNKNOWN = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED
        rows = [
            (None, "agent-1", "vision-1", UNKNOWN, "no token was sent"),
            ("garbage", "agent-1", "vision-1", UNKNOWN, "not in auth.tokens_file"),
            (self.secret("gone"), "agent-1", "vision-1", UNKNOWN, "expired"),
            (self.secret("vision-reader"), "agent-1", "vision-1", DENIED, "lacks the role write"),
            (self.secret("admin"), "agent-1", "vision-1", DENIED, "lacks the role write"),
            (self.secret("vision-writer"), "agent-1", "vision-1", OK, ""),
            (self.secret("vision-writer"), "agent-2", "speech", DENIED, 'layout.source.job: "vision'),
            (self.secret("vision-writer"), "agent-2", "xvision-1", DENIED, '"xvision-1"'),
            (self.secret("bound-writer"), "agent-7", "speech", OK, ""),
            (self.secret("bound-writer"), "agent-8", "speech", DENIED, "hello.agent_id"),
        ]
        for token, agent, job, code, text in rows:
            with self.subTest(agent=agent, job=job, code=code, text=text):
                stream = self.stream(token, agent)
                self.assertEqual(self.deliver(stream, job), code, stream.error)
                if stream.error is not None:
                    self.assertIn(text, stream.error.details())
                stream.close()
        code, answer = self.query("ListJobs", JOBS, self.secret("reader"))
        self.assertEqual({job.name for job in answer.jobs}, {"vision-1", "speech"})

    def test_events_and_attributes_of_others_are_refused_with_their_field(self):
        source = types_pb2.Source(job="speech", host="h")
        event = ingest_pb2.Event(sequence=1, source=source, time_unix_ns=time.time_ns(), kind="k")
        facts = ingest_pb2.Attributes(sequence=1, job="speech", values={"a": "b"})
        for field, message in [
            ("event.source.job", ingest_pb2.ClientMessage(event=event)),
            ("attributes.job", ingest_pb2.ClientMessage(attributes=facts)),
        ]:
            stream = self.stream(self.secret("vision-writer"))
            stream.send(message)
            self.assertFalse(stream.wait(lambda: False, "its end"))
            self.assertEqual(stream.error.code(), grpc.StatusCode.PERMISSION_DENIED)
            self.assertIn(field, stream.error.details())
            stream.close()

    def test_queries_need_read_and_see_only_their_jobs(self):
        self.feed()
        OK = grpc.StatusCode.OK
        DENIED, UNKNOWN = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED

        def requests(job):
            selector = query_pb2.Selector(job=job)
            return [
                ("GetJob", query_pb2.GetJobRequest(job=job)),
                ("ListSeries", query_pb2.ListSeriesRequest(selector=selector)),
                ("Range", query_pb2.RangeRequest(selector=selector)),
                ("Latest", query_pb2.LatestRequest(selector=selector)),
                ("ListEvents", query_pb2.ListEventsRequest(job=job)),
            ]

        for name, own, other in [
            ("reader", OK, OK), ("vision-reader", OK, DENIED), ("vision-writer", DENIED, DENIED),
            ("admin", DENIED, DENIED), ("gone", UNKNOWN, UNKNOWN), (None, UNKNOWN, UNKNOWN),
        ]:  # fmt: skip
            token = name and self.secret(name)
            for job, expected in [("vision-1", own), ("speech", other)]:
                for method, request in requests(job):
                    with self.subTest(token=name, job=job, method=method):
                        code, text = self.query(method, request, token)
                        self.assertEqual(code, expected, text)
        # The answer does not tell whether there is such a job.
        existing = self.query(*requests("speech")[0], self.secret("vision-reader"))
        missing = self.query(*requests("speecx")[0], self.secret("vision-reader"))
        self.assertEqual(existing[1].replace("speech", "speecx"), missing[1])
        # Nor does a suggestion name what may not be seen.
        code, text = self.query(*requests("vision-1x")[0], self.secret("vision-reader"))
        self.assertEqual((code, text), (grpc.StatusCode.NOT_FOUND, 'no job "vision-1x"'))
        for name, jobs in [("reader", {"vision-1", "speech"}), ("vision-reader", {"vision-1"})]:
            _, answer = self.query("ListJobs", JOBS, self.secret(name))
            self.assertEqual({job.name for job in answer.jobs}, jobs)
        self.assertEqual(self.query("ListJobs", JOBS)[0], UNKNOWN)

    def test_pages_need_read_and_show_only_their_jobs(self):
        self.feed()

        def get(page, token=None, scheme="Bearer"):
            value = token
            if scheme == "Basic" and token:
                value = base64.b64encode(f"prometheus:{token}".encode()).decode()
            headers = {"Authorization": f"{scheme} {value}"} if token else {}
            return harness.http_get(self.collector.url(page), headers)

        for page in ["/", "/healthz", "/readyz"]:
            self.assertEqual(get(page)[0], 200, page)
        for token, code in [
            (None, 401), ("garbage", 401), (self.secret("gone"), 401),
            (self.secret("vision-writer"), 403), (self.secret("admin"), 403),
            (self.secret("reader"), 200), (self.secret("vision-reader"), 200),
        ]:  # fmt: skip
            for scheme in ["Bearer", "Basic"]:
                with self.subTest(code=code, scheme=scheme):
                    status, headers, body = get("/metrics", token, scheme)
                    self.assertEqual(status, code, body)
                    shown = headers.get_all("WWW-Authenticate") or []
                    self.assertEqual(len(shown), 2 if code == 401 else 0)
        everything = get("/metrics", self.secret("reader"))[2].decode()
        vision = get("/metrics", self.secret("vision-reader"))[2].decode()
        self.assertIn('tacho_job_loss{job="speech"', everything)
        self.assertIn('tacho_job_loss{job="vision-1"', vision)
        self.assertNotIn("speech", vision)
        self.assertIn('tacho_auth_refused_total{code="UNAUTHENTICATED"}', vision)
        log = self.collector.program.tail(1 << 20)
        self.assertIn("not let in: ", log)
        for name, (secret, _) in self.tokens.items():
            self.assertNotIn(secret, log, name)

    def test_health_and_reflection_are_open(self):
        channel = client.connect(self.collector.address)
        self.addCleanup(channel.close)
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(check(b"", timeout=harness.PATIENCE_S), b"\x08\x01")
        reflect = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        )
        names = b"".join(reflect(iter([b"\x3a\x01*"]), timeout=harness.PATIENCE_S))
        self.assertIn(b"tacho.v1.Ingest", names)

    def test_a_removed_token_ends_its_live_stream_and_no_other(self):
        removed = self.stream(self.secret("vision-writer"))
        kept = self.stream(self.secret("bound-writer"), "agent-7")
        self.assertEqual(self.deliver(removed, "vision-1"), grpc.StatusCode.OK)
        self.assertEqual(self.deliver(kept, "speech"), grpc.StatusCode.OK)
        del self.tokens["vision-writer"]
        self.write_tokens()
        self.reload()
        began = time.monotonic()
        self.assertFalse(removed.wait(lambda: False, "its end"))
        self.assertLess(time.monotonic() - began, 10 * ROUND_S)  # Generous: a busy machine.
        self.assertEqual(removed.error.code(), grpc.StatusCode.UNAUTHENTICATED)
        self.assertEqual(self.deliver(kept, "speech", 2), grpc.StatusCode.OK, kept.error)

    def test_other_rights_make_a_stream_connect_again(self):
        stream = self.stream(self.secret("vision-writer"))
        self.assertEqual(self.deliver(stream, "vision-1"), grpc.StatusCode.OK)
        secret, entry = self.tokens["vision-writer"]
        self.tokens["vision-writer"] = (secret, entry.replace("vision-.*", "speech"))
        self.write_tokens()
        self.reload()
        self.assertFalse(stream.wait(lambda: False, "its end"))
        self.assertEqual(stream.error.code(), grpc.StatusCode.UNAVAILABLE)
        again = self.stream(secret)
        self.assertEqual(self.deliver(again, "vision-1", 2), grpc.StatusCode.PERMISSION_DENIED)

    def test_a_token_that_expires_ends_its_live_stream(self):
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 8))
        self.token("soon", "write", expires=soon)
        self.write_tokens()
        self.reload()
        stream = self.stream(self.secret("soon"))
        self.assertEqual(self.deliver(stream, "vision-1"), grpc.StatusCode.OK, stream.error)
        self.assertFalse(stream.wait(lambda: False, "its end"))
        self.assertEqual(stream.error.code(), grpc.StatusCode.UNAUTHENTICATED)
        self.assertIn("expired", stream.error.details())

    def test_a_broken_tokens_file_changes_nothing(self):
        stream = self.stream(self.secret("vision-writer"))
        self.assertEqual(self.deliver(stream, "vision-1"), grpc.StatusCode.OK)
        self.write_tokens("  - {name: new, sha256: abc, roles: [read], jobs: a}\n")
        log = self.reload()
        self.assertIn('reason="auth.tokens_file', log)
        self.assertIn("tokens[6].sha256", log)
        self.assertEqual(self.deliver(stream, "vision-1", 2), grpc.StatusCode.OK, stream.error)


class TlsCase(SecurityCase):
    def setUp(self):
        super().setUp()
        self.ca = certificates.Authority(self.directory)
        self.other_ca = certificates.Authority(self.directory, "other-ca")

    def start_tls(self, clients="none"):
        self.certificate, self.key = self.ca.sign("collector", file="server")
        tls = f"certificate: {self.certificate}, key: {self.key}"
        if clients != "none":
            tls += f", client_ca: {self.ca.certificate}, client_certificates: {clients}"
        self.start(f"listen: {{tls: {{{tls}}}}}\n")
        self.address = f"localhost:{self.collector.grpc}"

    def credentials(self, ca=None, own=None):
        roots = certificates.read((ca or self.ca).certificate)
        if own is None:
            return grpc.ssl_channel_credentials(roots)
        certificate, key = own
        return grpc.ssl_channel_credentials(
            roots, certificates.read(key), certificates.read(certificate)
        )

    def jobs(self, ca=None, own=None, token=None):
        return self.query("ListJobs", JOBS, token, self.credentials(ca, own), self.address)[0]

    def page(self, page, ca=None, own=None, headers=None):
        """The status, or None if there was no connection."""
        context = ssl.create_default_context(cafile=(ca or self.ca).certificate)
        if own:
            context.load_cert_chain(*own)
        connection = http.client.HTTPSConnection(
            "localhost", self.collector.http, context=context, timeout=harness.PATIENCE_S
        )
        try:
            connection.request("GET", page, headers=headers or {})
            return connection.getresponse().status
        except (ssl.SSLError, ConnectionError):
            return None
        finally:
            connection.close()

    def serial(self, port):
        """Of the certificate that a new connection sees."""
        pem = ssl.get_server_certificate(("localhost", port), timeout=harness.PATIENCE_S)
        shown = subprocess.run(
            ["openssl", "x509", "-noout", "-serial"], input=pem, capture_output=True, text=True
        )
        return shown.stdout.strip()


class TlsTest(TlsCase):
    def test_client_certificates_of_the_authority_and_no_others(self):
        self.file(
            "tokens.yaml",
            "certificates:\n"
            "  - {name: agents, names: 'DNS:(?P<agent_id>[a-z0-9-]+)\\.agents', roles: [write],"
            " jobs: '.*'}\n"
            "  - {name: people, names: 'CN:p-.*', roles: [read], jobs: '.*'}\n",
        )
        self.certificate, self.key = self.ca.sign("collector", file="server")
        self.start(
            f"listen: {{tls: {{certificate: {self.certificate}, key: {self.key},"
            f" client_ca: {self.ca.certificate}, client_certificates: require}}}}\n"
            f"auth: {{tokens_file: {self.tokens_file}}}\n"
        )
        self.address = f"localhost:{self.collector.grpc}"
        person = self.ca.sign("p-eve")
        agent = self.ca.sign("whatever", "DNS:agent-1.agents")
        expired = self.ca.sign("p-old", days=-1)
        forged = self.other_ca.sign("p-eve")
        unknown = self.ca.sign("stranger")
        OK, AWAY = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE
        for own, code in [
            (person, OK), (None, AWAY), (expired, AWAY), (forged, AWAY),
            (agent, grpc.StatusCode.PERMISSION_DENIED),
            (unknown, grpc.StatusCode.UNAUTHENTICATED),
        ]:  # fmt: skip
            with self.subTest(own=own):
                self.assertEqual(self.jobs(own=own), code)
        # A client that trusts another authority does not talk to us.
        self.assertEqual(self.jobs(self.other_ca, person), AWAY)
        for agent_id, code in [("agent-1", OK), ("agent-2", grpc.StatusCode.PERMISSION_DENIED)]:
            stream = self.stream(None, agent_id, self.credentials(own=agent), self.address)
            self.assertEqual(self.deliver(stream, "vision"), code, stream.error)
            stream.close()
        for page, own, status in [
            ("/metrics", person, 200), ("/metrics", agent, 403), ("/metrics", unknown, 401),
            ("/metrics", None, 403), ("/healthz", None, 200), ("/readyz", None, 200),
            ("/healthz", forged, None), ("/healthz", expired, None),
        ]:  # fmt: skip
            with self.subTest(page=page, own=own):
                self.assertEqual(self.page(page, own=own), status)
        self.assertIsNone(self.page("/healthz", ca=self.other_ca))

    def test_a_certificate_is_replaced_while_streams_go_on(self):
        self.token("writer", "write")
        self.start_tls()
        secret = self.secret("writer")
        old = self.stream(secret, "agent-1", self.credentials(), self.address)
        self.assertEqual(self.deliver(old, "vision"), grpc.StatusCode.OK, old.error)
        before = self.serial(self.collector.grpc)
        self.assertEqual(self.serial(self.collector.http), before)
        # It is seen without a signal.
        self.ca.sign("collector", file="server")
        harness.wait_until(lambda: self.serial(self.collector.grpc) != before, "the new one seen")
        after = self.serial(self.collector.grpc)
        self.assertEqual(self.serial(self.collector.http), after)
        self.assertEqual(self.deliver(old, "vision", 2), grpc.StatusCode.OK, old.error)
        new = self.stream(secret, "agent-2", self.credentials(), self.address)
        self.assertEqual(self.deliver(new, "vision"), grpc.StatusCode.OK, new.error)

        # A certificate that is not right changes nothing, and is said.
        good = certificates.read(self.certificate)
        self.file("server.crt", "garbage\n")
        self.assertIn('reason="listen.tls.certificate', self.reload())
        self.assertEqual(self.serial(self.collector.grpc), after)
        expired, key = self.ca.sign("collector", days=-1, file="expired")
        os.replace(expired, self.certificate)
        os.replace(key, self.key)
        self.assertIn("has expired at", self.reload())
        self.assertEqual(self.serial(self.collector.grpc), after)
        # And a right one is taken at once by a signal.
        self.ca.sign("collector", file="server")
        self.assertIn("the configuration was read again", self.reload())
        self.assertNotEqual(self.serial(self.collector.grpc), after)
        self.assertNotEqual(certificates.read(self.certificate), good)

    def test_failed_handshakes_do_not_fill_the_log(self):
        self.start_tls("require")
        context = ssl.create_default_context(cafile=self.ca.certificate)
        for _ in range(60):
            try:
                with socket.create_connection(("localhost", self.collector.grpc)) as plain:
                    with context.wrap_socket(plain, server_hostname="localhost") as secured:
                        secured.recv(1)
            except (ssl.SSLError, ConnectionError):
                pass
        failed = lambda: self.collector.program.tail(1 << 20).count("Handshake failed")
        harness.wait_until(failed, "a line of it")
        self.assertLessEqual(failed(), 20)  # Ten a minute, and the minute may turn.

    def test_http_sessions_are_not_resumed(self):
        self.start_tls()
        for version in [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]:
            context = ssl.create_default_context(cafile=self.ca.certificate)
            context.minimum_version = context.maximum_version = version
            session = None
            for _ in range(2):
                with socket.create_connection(("localhost", self.collector.http)) as plain:
                    with context.wrap_socket(
                        plain, server_hostname="localhost", session=session
                    ) as secured:
                        secured.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                        self.assertIn(b" 200 ", secured.recv(100))
                        self.assertFalse(secured.session_reused, version)
                        session = secured.session

    def test_plaintext_is_not_answered_on_a_tls_port(self):
        self.token("reader", "read")
        self.start_tls()
        code, _ = self.query("ListJobs", JOBS, self.secret("reader"), timeout=20)
        self.assertIn(
            code, (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        )
        self.assertEqual(self.jobs(token=self.secret("reader")), grpc.StatusCode.OK)


class ProgramsTest(TlsCase):
    """Agent and tachoctl, configured as docs/security.md says."""

    def ctl(self, *arguments, env=None, address=None):
        return harness.tachoctl(address or self.address, *arguments, env=env)

    def agent(self, settings, address=None):
        agent = harness.Agent(
            self.directory, self.collector, "  host: {interval: 100ms}\n", "agent-1"
        )
        with open(agent.config) as file:
            text = file.read()
        text = text.replace(self.collector.address, address or self.address)
        text = text.replace("backoff_min", settings + ", backoff_min")
        with open(agent.config, "w") as file:
            file.write(text)
        return self.started(agent)

    def test_agent_and_tachoctl_over_tls_with_tokens(self):
        writer = self.token("writer", "write", "hosts")
        reader = self.token("reader", "read")
        self.start_tls()
        agent = self.agent(f"tls: {{enabled: true, ca: {self.ca.certificate}}}, token_file: {writer}")
        flags = ["--tls-ca", self.ca.certificate, "--token-file", reader]
        harness.wait_until(lambda: "hosts" in self.ctl("jobs", *flags).stdout, "rows of the agent")
        env = {"TACHO_TLS_CA": self.ca.certificate, "TACHO_TOKEN_FILE": reader}
        self.assertIn("hosts", self.ctl("jobs", env=env).stdout)

        done = self.ctl("jobs", "--tls-ca", self.ca.certificate)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--token-file", done.stderr)
        done = self.ctl("jobs", "--tls-ca", self.ca.certificate, "--token-file", writer)
        self.assertEqual(done.returncode, 1)
        self.assertIn("lacks the role read", done.stderr)
        done = self.ctl("jobs", "--tls-ca", self.other_ca.certificate, "--token-file", reader)
        self.assertEqual(done.returncode, 3)
        self.assertIn("--tls-ca", done.stderr)
        done = self.ctl("jobs", "--token-file", reader)
        self.assertEqual(done.returncode, 3)
        self.assertIn("TLS", done.stderr)
        self.assertTrue(agent.program.alive())
        self.assertEqual(agent.stop(), 0)
        for secret, _ in self.tokens.values():
            self.assertNotIn(secret, agent.program.tail(1 << 20))

    def test_an_agent_takes_a_new_token_without_a_restart(self):
        self.token("old", "write")
        reader = self.token("reader", "read")
        self.start_tls()
        token_file = self.file("agent.token", self.secret("old") + "\n")
        agent = self.agent(
            f"tls: {{enabled: true, ca: {self.ca.certificate}}}, token_file: {token_file}"
        )
        flags = ["--tls-ca", self.ca.certificate, "--token-file", reader]
        harness.wait_until(lambda: "hosts" in self.ctl("jobs", *flags).stdout, "rows of the agent")
        self.token("new", "write")
        del self.tokens["old"]
        self.write_tokens()
        self.reload()
        harness.wait_until(
            lambda: "not in auth.tokens_file" in agent.program.tail(1 << 20), "the agent turned away"
        )
        self.file("agent.token", self.secret("new") + "\n")
        harness.wait_until(
            lambda: re.search(r"^tacho_ingest_streams 1$", self.page_text("/metrics"), re.MULTILINE),
            "the agent let in again",
        )

    def page_text(self, page):
        context = ssl.create_default_context(cafile=self.ca.certificate)
        connection = http.client.HTTPSConnection(
            "localhost", self.collector.http, context=context, timeout=harness.PATIENCE_S
        )
        headers = {"Authorization": "Bearer " + self.secret("reader")}
        try:
            connection.request("GET", page, headers=headers)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def test_tokens_are_not_sent_in_plaintext_to_another_machine(self):
        reader = self.token("reader", "read")
        self.start()
        elsewhere = "192.0.2.1:7411"  # Reserved for documentation: nobody is there.
        done = self.ctl("jobs", "--token-file", reader, address=elsewhere)
        self.assertEqual(done.returncode, 2)
        self.assertIn("without TLS", done.stderr)
        self.assertIn("--allow-plaintext-token", done.stderr)
        # To this machine it is, TLS or not.
        done = self.ctl("jobs", "--token-file", reader, address=self.collector.address)
        self.assertIn("no jobs yet", done.stderr)
        self.address = elsewhere
        agent = self.agent(f"token_file: {reader}")
        self.assertEqual(agent.program.wait(), 2)
        self.assertIn("collector.token_file", agent.program.tail())
        self.assertIn("collector.allow_plaintext_token: true", agent.program.tail())

    def test_secrets_that_everybody_may_read_are_refused(self):
        reader = self.token("reader", "read")
        self.start()
        os.chmod(reader, 0o644)
        done = self.ctl("jobs", "--token-file", reader, address=self.collector.address)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"chmod o-r {reader}", done.stderr)


class StartTest(SecurityCase):
    def check(self, text, *arguments):
        path = self.file("collector.yaml", text)
        return subprocess.run(
            [os.environ["TACHO_COLLECTOR"], "--config", path, *arguments], text=True,
            capture_output=True, timeout=harness.PATIENCE_S, cwd=self.directory,
        )  # fmt: skip

    def test_other_machines_are_not_listened_to_without_authentication(self):
        open_port = "listen: {grpc: '0.0.0.0:0', http: '127.0.0.1:0'}\n"
        for arguments, code in [(["--check-config"], 2), ([], 1)]:
            done = self.check(open_port, *arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            for word in ["listen.grpc", "auth.tokens_file", "auth.allow_anonymous: true"]:
                self.assertIn(word, done.stderr)
        done = self.check(open_port + "auth: {allow_anonymous: true}\n", "--check-config")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_wrong_with_a_file_is_said_before_the_start(self):
        self.token("x", "read")
        self.write_tokens()
        done = self.check("auth: {tokens_file: nowhere.yaml}\n", "--check-config")
        self.assertEqual(done.returncode, 2)
        self.assertIn("auth.tokens_file: cannot read nowhere.yaml", done.stderr)
        done = self.check("listen: {tls: {certificate: a.crt}}\n", "--check-config")
        self.assertEqual(done.returncode, 2)
        self.assertIn("listen.tls.key: is missing", done.stderr)
        done = self.check(f"auth: {{tokens_file: {self.tokens_file}}}\n", "--check-config")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    harness.main()
