"""An agent on a machine of Google Compute Engine: what it knows of it, and what is announced to it."""
import json
import os
import subprocess

import client
import fake_metadata
import harness

TPU_VM = {
    "instance/id": "4520031799277581759",
    "instance/name": "t1v-n-3a2b-w-3",
    "instance/zone": "projects/123456/zones/europe-west4-b",
    "instance/machine-type": "projects/123456/machineTypes/ct4p-hightpu-4t",
    "instance/scheduling/preemptible": "TRUE",
    "instance/attributes/accelerator-type": "v4-256",
    "instance/attributes/agent-worker-number": "3",
    "instance/attributes/tpu-env": "TOPOLOGY: '4x4x8'\nNODE_ID: 'big-pod'\nWORKER_ID: '3'\n",
    "instance/maintenance-event": "NONE",
    "instance/preempted": "FALSE",
    "instance/upcoming-maintenance": '{ "error": "no notifications have been received yet" }',
    "project/project-id": "research",
}


class IdentityTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.metadata = fake_metadata.MetadataServer(TPU_VM)
        self.addCleanup(self.metadata.stop)
        self.collector = self.started(harness.Collector(self.directory))
        self.query = client.Query(self.collector.address)
        self.addCleanup(self.query.close)
        self.rings = os.path.join(self.directory, "rings")
        self.config = harness.Agent(
            self.directory, self.collector,
            "  host: {interval: 1s}\n"
            f"  rings: {{directory: {self.rings}, poll_interval: 50ms}}\n"
            "  gpu: {enabled: false}\n  tpu: {enabled: false}\n"
            "  notices: {interval: 1s}\n",
        ).config  # fmt: skip
        self.env = {"GCE_METADATA_HOST": self.metadata.authority, "POD_NAME": "bert-0-3"}

    def start_agent(self):
        arguments = [os.environ["TACHO_AGENT"], "--config", self.config]
        log = os.path.join(self.directory, "agent-1.log")
        return self.started(harness.Program(arguments, log, self.env))

    def start_trainer(self):
        os.makedirs(self.rings, exist_ok=True)
        arguments = [
            os.environ["TACHO_TRAIN"], "--job", "spirals", "--task", "2", "--attempt", "1",
            "--steps", "1000000", "--step-delay-ms", "20", "--ring-dir", self.rings,
        ]  # fmt: skip
        return self.started(harness.Program(arguments, os.path.join(self.directory, "train.log")))

    def told(self, job):
        """Kinds of what was announced, in order, with task and attempt."""
        kinds = ("preempted", "maintenance_started", "maintenance_ended", "maintenance_planned")
        return [
            (event.kind, event.source.task if event.source.HasField("task") else None,
             event.source.attempt, event.source.host)
            for event in self.query.events(job) if event.kind in kinds
        ]  # fmt: skip

    def test_what_is_announced_reaches_the_host_and_its_job_once(self):
        agent = self.start_agent()
        self.start_trainer()
        harness.wait_until(lambda: "spirals" in self.query.jobs(), "the job is there")
        self.metadata.set("instance/maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE")
        started = [("maintenance_started", 2, 1, "host-1")]
        harness.wait_until(lambda: self.told("spirals") == started, "maintenance at the job")
        agent.kill()  # What it reported stays.
        agent = self.start_agent()
        self.metadata.set("instance/preempted", "TRUE")
        both = started + [("preempted", 2, 1, "host-1")]
        harness.wait_until(lambda: self.told("spirals") == both, "preemption at the job")
        self.metadata.set("instance/maintenance-event", "NONE")
        ended = both + [("maintenance_ended", 2, 1, "host-1")]
        harness.wait_until(lambda: self.told("spirals") == ended, "the end at the job")
        self.assertEqual(agent.stop(), 0, agent.tail())
        hosts = [(kind, None, 0, host) for kind, _, _, host in ended]
        self.assertEqual(self.told("hosts"), hosts)

    def test_what_is_known_of_the_machine_is_a_series(self):
        self.start_agent()
        told = harness.wait_until(self.host_info, "host_info")
        for label, value in (
            ("zone", "europe-west4-b"), ("machine_type", "ct4p-hightpu-4t"),
            ("accelerator_type", "v4-256"), ("tpu_topology", "4x4x8"), ("tpu_worker", "3"),
            ("tpu_name", "big-pod"), ("pod", "bert-0-3"), ("instance_id", "4520031799277581759"),
            ("project", "research"), ("preemptible", "true"),
        ):  # fmt: skip
            self.assertEqual(told.get(label), value, label)

    def host_info(self):
        told = harness.tachoctl(
            self.collector.address, "query", "hosts", "host_info", "-o", "json"
        )
        if told.returncode != 0:
            return None
        return json.loads(told.stdout)["series"][0]["labels"]

    def test_diagnose_says_what_came_from_where(self):
        told = subprocess.run(
            [os.environ["TACHO_AGENT"], "diagnose", "--config", self.config, "--compute", "never",
             "-o", "json"],
            env={**os.environ, **self.env}, capture_output=True, text=True,
            timeout=harness.PATIENCE_S,
        )  # fmt: skip
        findings = {
            finding["subject"]: finding
            for finding in json.loads(told.stdout)["findings"] if finding["check"] == "identity"
        }  # fmt: skip
        self.assertEqual(findings["zone"]["figures"]["from"], "instance/zone")
        self.assertEqual(findings["tpu_topology"]["message"], "4x4x8, from tpu-env TOPOLOGY")
        self.assertEqual(findings["pod"]["message"], "bert-0-3, from POD_NAME")
        self.assertEqual(findings["metadata server"]["severity"], "ok")


if __name__ == "__main__":
    harness.main()
