"""'tachoctl agents', with real agents: which there are, and what becomes of a source that fails."""
import http.server
import json
import os
import threading

import harness


class Exporter:
    """An endpoint on a port that it keeps while it is away."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            text = b"# TYPE queue_length gauge\nqueue_length 3\n"
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    def __init__(self):
        self.port = harness.free_port()
        self.server = None

    def start(self):
        self.server = http.server.HTTPServer(("127.0.0.1", self.port), self.Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def kill(self):
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


class AgentsTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))

    def rings(self, number):
        return os.path.join(self.directory, f"rings-{number}")

    def agent(self, number, sources=""):
        os.mkdir(self.rings(number))
        return self.started(
            harness.Agent(
                self.directory, self.collector,
                f"  host: {{interval: 200ms}}\n  rings: {{directory: {self.rings(number)}}}\n"
                + sources,
                agent_id=f"agent-{number}", host=f"host-{number}",
            )
        )  # fmt: skip

    def ctl(self, *arguments, code=0):
        told = harness.tachoctl(self.collector.address, "agents", *arguments)
        self.assertEqual(told.returncode, code, (arguments, told.stdout, told.stderr))
        return told

    def agents(self, *arguments):
        """{host: the report on its agent}; empty if there is no agent yet."""
        told = harness.tachoctl(self.collector.address, "agents", "-o", "json", *arguments)
        if told.returncode != 0:
            return {}
        return {agent["host"]: agent for agent in json.loads(told.stdout)["agents"]}

    def source(self, name):
        for source in self.agents().get("host-1", {}).get("sources", []):
            if source["source"] == name:
                return source
        return None

    def wait_for_source(self, name, state, what):
        return harness.wait_until(
            lambda: (s := self.source(name)) is not None and s["state"] == state and s, what
        )

    def test_a_source_that_fails_says_why_and_when_it_is_tried_again_until_it_works(self):
        exporter = Exporter()
        self.addCleanup(exporter.kill)
        self.agent(
            1,
            "  endpoints:\n    interval: 200ms\n    targets:\n"
            f"      - {{url: 'http://127.0.0.1:{exporter.port}/metrics', name: queue}}\n",
        )
        failing = self.wait_for_source("endpoint:queue", "failing", "the source told as failing")
        failing = harness.wait_until(
            lambda: (s := self.source("endpoint:queue"))["reason"] and s, "its reason stored"
        )
        self.assertIn("onnection refused", failing["reason"])
        self.assertEqual(failing["code"], "UNAVAILABLE")
        self.assertGreater(failing["failures"], 0)
        self.assertLess(failing["since_unix_ns"], failing["retry_unix_ns"])
        # Later reasons are the same: it keeps failing since the same moment.
        harness.wait_until(
            lambda: self.source("endpoint:queue")["failures"] > failing["failures"], "tried again"
        )
        since = self.source("endpoint:queue")["since_unix_ns"]
        self.assertLess(abs(since - failing["since_unix_ns"]), 1_000_000_000)
        self.assertEqual(self.source("host")["state"], "ok")
        table = self.ctl("--failing").stdout
        self.assertRegex(table, r"host-1 .*failing .*1 of \d+ fails")
        self.assertRegex(table, r"endpoint:queue fails for \S+.*UNAVAILABLE: .*onnection")

        exporter.start()
        works = self.wait_for_source("endpoint:queue", "ok", "the source works again")
        self.assertEqual((works["reason"], works["since"], works["retry"]), (None, None, None))
        harness.wait_until(lambda: self.agents()["host-1"]["state"] == "ok", "the agent is well")
        told = self.ctl("--failing")
        self.assertEqual(told.stdout, "The one agent neither fails nor is silent\n")

        exporter.kill()
        self.wait_for_source("endpoint:queue", "failing", "it fails once more")

    def test_tasks_rows_losses_and_what_waits(self):
        agent = self.agent(1)
        other = self.agent(2)
        arguments = [
            os.environ["TACHO_TRAIN"], "--job", "spirals", "--task", "3", "--steps", "100000",
            "--ring-dir", self.rings(1), "--step-delay-ms", "5",
        ]  # fmt: skip
        self.started(harness.Program(arguments, os.path.join(self.directory, "train.log")))
        told = harness.wait_until(
            lambda: (a := self.agents()) and any(one["jobs"] for one in a.values()) and a,
            "the task on a host",
        )
        # Their first rows say that no row was stored yet.
        told = harness.wait_until(
            lambda: len(a := self.agents()) == 2 and all(one["rows"] for one in a.values()) and a,
            "both agents report, with rows",
        )
        self.assertEqual(told["host-1"]["jobs"], [{"job": "spirals", "tasks": [3]}])
        self.assertEqual(told["host-2"]["jobs"], [])
        self.assertEqual({one["agent"] for one in told.values()}, {"agent-1", "agent-2"})
        for one in told.values():
            self.assertGreater(one["rows"], 0)
            self.assertEqual(one["lost_rows"], 0)
            self.assertGreater(one["resident_bytes"], 1_000_000)
            self.assertGreaterEqual({s["source"] for s in one["sources"]}, {"host", "rings"})

        # The collector knows them after a restart, from what is stored.
        other.kill()
        self.collector.kill()
        self.collector.start()
        harness.wait_until(
            lambda: self.agents("--silent-after", "1s").get("host-2", {}).get("state") == "silent",
            "the agent that is gone is silent",
        )
        self.assertNotIn("host-1", self.agents("host-2"))
        self.assertTrue(agent.program.alive())

    def test_wrong_input_is_answered_well(self):
        told = self.ctl(code=1)
        self.assertIn("hosts", told.stderr)  # No agent was ever here: there is no such job.
        self.agent(1)
        harness.wait_until(self.agents, "the agent told")
        self.assertIn("no agent matches", self.ctl("web-.*", code=1).stderr)
        self.assertIn("(", self.ctl("host-(", code=1).stderr)
        self.assertIn("--seen", self.ctl("--seen", "never", code=2).stderr)
        nowhere = harness.tachoctl(f"127.0.0.1:{harness.free_port()}", "agents")
        self.assertEqual(nowhere.returncode, 3, nowhere.stderr)


if __name__ == "__main__":
    harness.main()
