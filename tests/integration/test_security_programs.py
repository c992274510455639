"""Agent and tachoctl before a collector that does not let everybody in."""
import http.client
import json
import os
import re
import ssl
import time

import harness
from security_case import TlsCase


class ProgramsTest(TlsCase):
    """Agent and tachoctl, configured as docs/security.md says."""

    def ctl(self, *arguments, env=None, address=None):
        return harness.tachoctl(address or self.address, *arguments, env=env)

    def agent(self, settings, address=None, sources="  host: {interval: 100ms}\n"):
        agent = harness.Agent(self.directory, self.collector, sources, "agent-1")
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
        self.token("agents", "write")
        reader = self.token("reader", "read")
        self.start_tls()
        token_file = self.file("agent.token", self.secret("agents") + "\n")
        agent = self.agent(
            f"tls: {{enabled: true, ca: {self.ca.certificate}}}, token_file: {token_file}"
        )
        flags = ["--tls-ca", self.ca.certificate, "--token-file", reader]
        harness.wait_until(lambda: "hosts" in self.ctl("jobs", *flags).stdout, "rows of the agent")
        # The new token has the old one's name, so it owns the same agent ids.
        self.token("agents", "write")
        self.write_tokens()
        self.reload()
        harness.wait_until(
            lambda: "not in auth.tokens_file" in agent.program.tail(1 << 20), "the agent turned away"
        )
        self.file("agent.token", self.secret("agents") + "\n")

        def has_stream():
            return re.search(r"^tacho_ingest_streams 1$", self.page_text("/metrics"), re.MULTILINE)

        # A stream that is refused counts for a moment.
        harness.wait_until(
            lambda: has_stream() and (time.sleep(0.5) or has_stream()), "the agent let in again"
        )
        self.assertNotIn("PERMISSION_DENIED", agent.program.tail(1 << 20))

    def test_a_job_that_may_not_be_written_holds_up_no_other(self):
        writer = self.token("writer", "write", "spirals")
        reader = self.token("reader", "read")
        self.start()
        rings = os.path.join(self.directory, "rings")
        os.mkdir(rings)
        agent = self.agent(
            f"token_file: {writer}", self.collector.address,
            f"  host: {{interval: 100ms}}\n  rings: {{directory: {rings}, poll_interval: 20ms}}\n",
        )  # fmt: skip
        steps = 1000
        arguments = [
            os.environ["TACHO_TRAIN"], "--job", "spirals", "--task", "0", "--tasks", "1",
            "--steps", str(steps), "--ring-dir", rings, "--step-delay-ms", "3",
        ]  # fmt: skip
        trainer = harness.Program(arguments, self.file("train.log"))
        self.addCleanup(trainer.kill)

        def ask(*words):
            return self.ctl(*words, "--token-file", reader, address=self.collector.address)

        def stored():
            told = ask("query", "spirals", "loss", "-o", "json")
            if told.returncode != 0:
                return 0
            return sum(len(series["samples"]) for series in json.loads(told.stdout)["series"])

        harness.wait_until(lambda: stored() == steps, "every step of the job that may be written")
        self.assertNotIn("hosts", ask("jobs").stdout)
        said = agent.program.tail(1 << 20).splitlines()
        # At most once a minute, with what to do; the test may take some minutes.
        for words in ["PERMISSION_DENIED", "gave up"]:
            lines = [line for line in said if words in line]
            self.assertTrue(0 < len(lines) <= 3, lines)
            self.assertIn("layout.source.job", lines[0])
            self.assertIn("auth.tokens_file", lines[0])
        told = harness.http_get(
            self.collector.url("/metrics"), {"Authorization": "Bearer " + self.secret("reader")}
        )[2].decode()
        lost = re.search(r"^tacho_ingest_lost_messages_total (\d+)", told, re.MULTILINE)
        self.assertGreater(int(lost[1]), 0)

        # Once it may be, what is recorded from then on is stored, without a restart of the agent.
        secret, entry = self.tokens["writer"]
        self.tokens["writer"] = (secret, entry.replace("'spirals'", "'spirals|hosts'"))
        self.write_tokens()
        self.reload()
        harness.wait_until(lambda: "hosts" in ask("jobs").stdout, "the job let in")

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
        # Within this machine it sends the token, TLS or not.
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


if __name__ == "__main__":
    harness.main()
