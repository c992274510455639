"""An agent that watches its Kubernetes node, at an API server with TLS."""
import json
import os
import subprocess
import time

import certificates
import client
import fake_node_api
import harness

NODE = "gke-train-7"
KINDS = ("preempted", "node_tainted", "node_untainted", "node_cordoned", "node_uncordoned",
         "node_unhealthy", "node_healthy")  # fmt: skip


class NodeTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.authority = certificates.Authority(self.directory)
        self.account = os.path.join(self.directory, "serviceaccount")
        os.mkdir(self.account)
        self.write("token", "first")
        os.symlink(self.authority.certificate, os.path.join(self.account, "ca.crt"))
        self.api = self.serve(self.authority)
        self.collector = self.started(harness.Collector(self.directory))
        self.query = client.Query(self.collector.address)
        self.addCleanup(self.query.close)
        self.rings = os.path.join(self.directory, "rings")
        self.agent = harness.Agent(
            self.directory, self.collector,
            "  host: {interval: 1s}\n"
            f"  rings: {{directory: {self.rings}, poll_interval: 50ms}}\n"
            "  gpu: {enabled: false}\n  tpu: {enabled: false}\n"
            f"  node: {{interval: 1s, service_account: {self.account}}}\n",
            env={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.api.port),
                 "NODE_NAME": NODE},
        )  # fmt: skip

    def write(self, name, text):
        path = os.path.join(self.account, name)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def serve(self, authority, **options):
        certificate, key = authority.sign("api", **options)
        api = fake_node_api.NodeApi(NODE, "first", certificate, key)
        self.addCleanup(api.stop)
        return api

    def told(self, job, kinds=KINDS):
        """What was announced, in order: kind, and the taint or condition."""
        return [
            (event.kind, event.fields.get("taint") or event.fields.get("condition") or "")
            for event in self.query.events(job) if event.kind in kinds
        ]  # fmt: skip

    def await_told(self, wanted, what, job="hosts"):
        harness.wait_until(lambda: self.told(job) == wanted, f"{what}: {wanted}, not {self.told(job)}")

    def await_source(self, word, kind="source_failed"):
        """Until the agent says of its source `node` that it fails, or works again; returns the reason."""
        def reason():
            found = [event.message for event in self.query.events("hosts")
                     if event.kind == kind and event.fields["source"] == "node"]  # fmt: skip
            return found[-1] if found and word in found[-1] else None

        return harness.wait_until(reason, f"{kind}: {word}")

    def gauge(self, name):
        rows = self.query.range("hosts", name).get((name, None, "host-1"))
        return client.double(rows[-1][3]) if rows else None

    def diagnose(self, **env):
        told = subprocess.run(
            [os.environ["TACHO_AGENT"], "diagnose", "--config", self.agent.config, "--compute", "never",
             "-o", "json"],
            env={**os.environ, **self.agent.env, **env}, capture_output=True, text=True,
            timeout=harness.PATIENCE_S,
        )  # fmt: skip
        (node,) = [one for one in json.loads(told.stdout)["findings"]
                   if (one["check"], one["subject"]) == ("metrics", "node")]  # fmt: skip
        return node

    def test_changes_reach_the_host_and_its_task_once(self):
        gpu = "nvidia.com/gpu=present:NoSchedule"
        self.api.change([gpu])
        self.started(self.agent)
        arguments = [
            os.environ["TACHO_TRAIN"], "--job", "spirals", "--task", "2", "--attempt", "1",
            "--steps", "1000000", "--step-delay-ms", "20", "--ring-dir", self.rings,
        ]  # fmt: skip
        self.started(harness.Program(arguments, os.path.join(self.directory, "train.log")))
        harness.wait_until(lambda: "spirals" in self.query.jobs(), "the job is there")
        harness.wait_until(lambda: self.gauge("host_node_taints") == 1, "the first look")

        self.api.change([gpu, "example.com/broken=link:NoSchedule"])
        told = [("node_tainted", "example.com/broken")]
        self.await_told(told, "a new taint", "spirals")
        self.agent.kill()  # What it reported stays.
        self.started(self.agent)
        ending = "cloud.google.com/impending-node-termination"
        self.api.change([gpu, f"{ending}:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"],
                        cordoned=True, Ready="False")  # fmt: skip
        told += [("preempted", ending), ("node_untainted", "example.com/broken"), ("node_cordoned", ""),
                 ("node_unhealthy", "Ready")]  # fmt: skip
        self.await_told(told, "changes after a restart", "spirals")
        self.agent.kill()
        asked = len(self.api.tokens)
        self.started(self.agent)
        harness.wait_until(lambda: len(self.api.tokens) > asked + 1, "a look at a state that was told")
        self.api.change([gpu], cordoned=False, Ready="True")
        told += [("node_untainted", ending), ("node_uncordoned", ""), ("node_healthy", "Ready")]
        self.await_told(told, "the way back", "spirals")
        self.assertEqual(self.agent.stop(), 0, self.agent.program.tail())
        self.assertEqual(self.told("hosts"), told)
        (preempted,) = [event for event in self.query.events("spirals") if event.kind == "preempted"]
        source = preempted.source
        self.assertEqual((source.task, source.attempt, source.host), (2, 1, "host-1"))
        self.assertEqual(preempted.fields["notice"], ending)

    def test_gauges_follow_the_node(self):
        names = ("host_node_ready", "host_node_unschedulable", "host_node_ending", "host_node_taints",
                 "host_node_unhealthy_conditions")  # fmt: skip
        self.started(self.agent)
        for change, wanted in (
            ({}, [1, 0, 0, 0, 0]),
            ({"taints": ["karpenter.sh/disrupted:NoSchedule"], "cordoned": True}, [1, 1, 1, 1, 0]),
            ({"taints": ["a:NoSchedule", "b:NoExecute"], "Ready": "Unknown", "PIDPressure": "True"},
             [0, 1, 0, 2, 2]),
        ):  # fmt: skip
            self.api.change(**change)
            harness.wait_until(lambda: [self.gauge(name) for name in names] == wanted, f"{wanted}")

    def test_a_new_token_is_taken_from_its_file(self):
        self.started(self.agent)
        harness.wait_until(lambda: self.api.tokens, "a question")
        self.write("token", "second\n")
        self.api.token = "second"
        self.api.change(["a:NoSchedule"])
        self.await_told([("node_tainted", "a")], "with the new token")
        self.assertEqual(self.api.tokens[-1], "Bearer second")
        self.api.token = "third"
        self.assertIn("refuses the token", self.await_source("token"))

    def test_an_authority_may_be_listed_twice(self):
        with open(self.authority.certificate) as file:
            self.write("ca.crt", file.read() * 2)
        self.started(self.agent)
        harness.wait_until(lambda: self.gauge("host_node_ready") == 1, "the node is read")

    def test_a_server_that_the_authority_does_not_vouch_for_gets_no_token(self):
        other = self.serve(certificates.Authority(self.directory, "other"))
        elsewhere = self.serve(self.authority, names="DNS:elsewhere,IP:127.0.0.2", file="elsewhere")
        for api, word in ((other, "unable to get local issuer certificate"),
                          (elsewhere, "IP address mismatch")):  # fmt: skip
            node = self.diagnose(KUBERNETES_SERVICE_PORT=str(api.port))
            self.assertEqual(node["severity"], "warning")
            self.assertIn(f"the certificate of 127.0.0.1:{api.port} is not trusted: ", node["message"])
            self.assertIn(word, node["message"])
            self.assertEqual(api.tokens, [])

    def test_diagnose_says_what_is_missing(self):
        self.assertEqual(self.diagnose()["severity"], "ok")
        self.api.forbidden = True
        node = self.diagnose()
        self.assertEqual(node["severity"], "info")
        self.assertIn("{apiGroups: [''], resources: [nodes], verbs: [get]}", node["message"])
        self.api.forbidden = False
        self.assertIn("set NODE_NAME from spec.nodeName", self.diagnose(NODE_NAME="")["message"])
        self.assertIn("has no node 'n2'", self.diagnose(NODE_NAME="n2")["message"])
        os.remove(os.path.join(self.account, "token"))
        self.assertIn("automountServiceAccountToken: true", self.diagnose()["message"])

    def test_an_agent_without_the_right_works_and_does_not_insist(self):
        self.api.forbidden = True
        self.started(self.agent)
        harness.wait_until(lambda: self.api.tokens, "a question")
        time.sleep(3)  # Three intervals.
        self.assertEqual(len(self.api.tokens), 1, "it asks again after a minute")
        self.assertEqual(self.told("hosts", ("source_failed",)), [])
        self.assertEqual(self.agent.program.tail().count("verbs: [get]"), 1)

    def test_answers_that_are_none_are_reasons(self):
        self.started(self.agent)
        harness.wait_until(lambda: self.gauge("host_node_ready") == 1, "the first look")
        for instead, word in (
            (b"<html>", "the answer is no Node"),
            (b'{"kind":"Node","metadata":{"name":"' + b"a" * (5 << 20), "more than 4194304 bytes"),
        ):
            self.api.instead = instead
            self.await_source(word)
        self.api.instead = None
        self.await_source("", "source_recovered")
        self.assertEqual(self.told("hosts"), [], "none of it was a change of the node")

    def test_a_server_that_hangs_holds_nobody(self):
        self.api.hanging.set()
        self.started(self.agent)
        harness.wait_until(lambda: self.gauge("host_cpu_cores_busy") is not None, "rows of the host")
        self.assertIn("no answer in time", self.await_source("in time"))
        begin = time.monotonic()
        self.assertEqual(self.agent.stop(), 0, self.agent.program.tail())
        self.assertLess(time.monotonic() - begin, 10)


if __name__ == "__main__":
    harness.main()
