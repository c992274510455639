"""TLS and client certificates of the collector, with certificates of openssl's."""
import os
import signal
import socket
import ssl

import certificates
import harness  # First: it makes the stubs importable.
import grpc
from security_case import JOBS, TlsCase


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
        # It is seen without a signal. Looked for no more often than connections without a call may
        # come from one address: more of them would be turned away.
        self.ca.sign("collector", file="server")
        harness.wait_until(
            lambda: self.serial(self.collector.grpc) != before, "the new one seen", pause_s=0.5
        )
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

    def test_a_write_to_a_client_that_hung_up_does_not_end_the_process(self):
        # OpenSSL's writes raise SIGPIPE. Only chance makes one of them meet a closed connection, so the
        # test asks the kernel whether the process ignores the signal.
        self.start_tls()
        with open(f"/proc/{self.collector.program.process.pid}/status") as file:
            ignored = [line.split()[1] for line in file if line.startswith("SigIgn:")]
        self.assertTrue(int(ignored[0], 16) & 1 << (signal.SIGPIPE - 1))

    def test_plaintext_is_not_answered_on_a_tls_port(self):
        self.token("reader", "read")
        self.start_tls()
        code, _ = self.query("ListJobs", JOBS, self.secret("reader"), timeout=20)
        self.assertIn(
            code, (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        )
        self.assertEqual(self.jobs(token=self.secret("reader")), grpc.StatusCode.OK)


if __name__ == "__main__":
    harness.main()
