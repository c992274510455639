"""What the tests of security share: a collector with tokens of its own, and one with certificates."""
import http.client
import os
import re
import signal
import ssl
import subprocess
import time

import certificates
import client
import harness  # First: it makes the stubs importable.
import grpc
from tacho.v1 import query_pb2, query_pb2_grpc

METRICS = [("loss", "1")]
JOBS = query_pb2.ListJobsRequest()


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
        """A file that holds a new token, which the next write_tokens() gives to the collector."""
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
            if method not in ("ListJobs", "GetJob", "Conditions"):
                answer = list(answer)
            return grpc.StatusCode.OK, answer
        except grpc.RpcError as error:
            return error.code(), error.details()
        finally:
            channel.close()

    def wait_log(self, text, job=""):
        """In a cluster that of the member which keeps the job."""
        program = self.collector.owner_of(job).program
        harness.wait_until(lambda: text in program.tail(1 << 20), f"the log says {text!r}")

    def reload(self):
        said = self.collector.program.tail(1 << 20).count("asked_by=SIGHUP")
        self.collector.program.process.send_signal(signal.SIGHUP)
        harness.wait_until(
            lambda: self.collector.program.tail(1 << 20).count("asked_by=SIGHUP") > said, "reloaded"
        )
        return self.collector.program.tail(1 << 20)


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
