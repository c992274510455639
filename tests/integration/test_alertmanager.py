"""deploy/alertmanager: what amtool says of it, and to whom a real Alertmanager sends what."""
import glob
import json
import os
import re
import subprocess

import yaml

import alerting
import harness
from harness import tool

RULES = os.path.join(alerting.DIRECTORY, "../prometheus/rules/*.yml")
EAST, WEST = "east:7412", "west:7412"


def condition(name, job="a", severity="warning", instance=EAST, **labels):
    return {"alertname": "TachoJob" + name, "condition": name, "job": job, "severity": severity,
            "instance": instance, **labels}  # fmt: skip


def system(name, severity="critical", instance=EAST, **labels):
    return {"alertname": name, "job": "tacho-collector", "severity": severity,
            "instance": instance, **labels}  # fmt: skip


class AmtoolTest(harness.TestCase):
    def amtool(self, *arguments):
        done = subprocess.run([tool("amtool"), *arguments],
                              capture_output=True, text=True, timeout=60)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.strip()

    def test_amtool_takes_the_configuration_also_with_early_stopping(self):
        self.amtool("check-config", alerting.CONFIGURATION)
        path = os.path.join(self.directory, "early.yml")
        with open(path, "w") as file:
            yaml.safe_dump(alerting.configuration("http://127.0.0.1:1", ("http://x/", "y")), file)
        self.amtool("check-config", path)
        self.assertEqual(
            self.route(path, "alertname=TachoJobDiverged", "severity=critical"),
            "early-stopping,page",
        )

    def route(self, path, *labels):
        return self.amtool("config", "routes", "test", f"--config.file={path}", *labels)

    def test_each_severity_goes_where_it_should(self):
        for labels, receiver in (
            (["severity=critical", "alertname=TachoJobDiverged", "job=a"], "page"),
            (["severity=critical", "alertname=TachoCollectorDown"], "page"),
            (["severity=warning", "alertname=TachoJobStraggling", "job=a"], "chat"),
            (["severity=info", "alertname=TachoJobPlateau", "job=a"], "mail"),
            (["severity=none", "alertname=TachoWatchdog"], "nobody"),
            (["alertname=SomethingElse"], "chat"),
        ):
            self.assertEqual(self.route(alerting.CONFIGURATION, *labels), receiver, labels)

    def test_inhibition_names_alerts_and_conditions_that_exist(self):
        alerts = set()
        for path in glob.glob(RULES):
            with open(path) as file:
                for group in yaml.safe_load(file)["groups"]:
                    alerts |= {rule["alert"] for rule in group["rules"] if "alert" in rule}
        conditions = {name[len("TachoJob"):] for name in alerts if name.startswith("TachoJob")}
        with open(alerting.CONFIGURATION) as file:
            text = file.read()
        for label, known in (("alertname", alerts), ("condition", conditions)):
            for pattern in re.findall(label + r'=~?"([^"]+)"', text):
                for name in pattern.split("|"):
                    found = [one for one in known if re.fullmatch(name, one)]
                    self.assertTrue(found, f"{label} {name}: no rule makes it")

    def test_templates_tell_job_host_step_page_and_runbook(self):
        data = os.path.join(self.directory, "data.json")
        alert = {"status": "firing", "labels": condition("Diverged"),
                 "annotations": {"summary": "Job a has <diverged>", "description": "NaN.",
                                 "step": "4711", "hosts": "h7, h9", "reason": "Because",
                                 "page": "https://x/ui/#/job/a",
                                 "runbook_url": "https://x/y.md"},
                 "startsAt": "2026-11-21T20:00:00Z"}  # fmt: skip
        with open(data, "w") as file:
            document = {"status": "firing", "commonLabels": alert["labels"], "alerts": [alert]}
            json.dump(document, file)
        said = {
            name: self.amtool(
                "template", "render", f"--template.data={data}",
                f"--template.glob={alerting.DIRECTORY}/templates/*.tmpl",
                f'--template.text={{{{ template "tacho.{name}" . }}}}',
            )
            for name in ("title", "text", "html")
        }  # fmt: skip
        self.assertEqual(said["title"], "[FIRING 1] a TachoJobDiverged")
        for name in ("text", "html"):
            for part in ("hosts h7, h9 step 4711 (Because)", "NaN.", "https://x/ui/#/job/a",
                         "https://x/y.md"):
                self.assertIn(part, said[name], name)


class AlertmanagerTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.receiver = alerting.Receiver()
        self.addCleanup(self.receiver.stop)
        document = alerting.configuration(self.receiver.url)
        self.alertmanager = self.started(alerting.Alertmanager(self.directory, document))

    def settled(self, alerts):
        """What is inhibited of the alerts, once Alertmanager has looked at all of them."""
        self.alertmanager.post(alerts)
        wanted = {(labels["alertname"], labels.get("job", "")) for labels in alerts}
        self.assertEqual(len(wanted), len(alerts), "the test tells them apart by these")
        harness.wait_until(lambda: set(self.alertmanager.states()) >= wanted, "all processed")
        states = self.alertmanager.states()
        return {f"{name} {job}" for name, job in wanted if states[name, job]}

    def test_a_dead_collector_silences_its_jobs_and_no_others(self):
        inhibited = self.settled([
            system("TachoCollectorDown"),
            condition("Stalled", "a"), condition("Diverged", "b", severity="critical"),
            condition("Stalled", "c", instance=WEST),
            system("TachoScrapeSlow", "warning"),
            {"alertname": "TachoExpectedJobMissing", "severity": "critical", "job": "nightly"},
            {"alertname": "TachoWatchdog", "severity": "none"},
        ])  # fmt: skip
        self.assertEqual(inhibited, {
            "TachoJobStalled a", "TachoJobDiverged b", "TachoScrapeSlow tacho-collector",
            "TachoExpectedJobMissing nightly"})  # fmt: skip
        expected = {("page", "TachoCollectorDown", "tacho-collector"),
                    ("chat", "TachoJobStalled", "c"), ("nobody", "TachoWatchdog", "")}  # fmt: skip
        harness.wait_until(lambda: self.receiver.received() >= expected, "told")
        self.assertEqual(self.receiver.received(), expected)

    def test_what_follows_from_a_cause_is_not_told(self):
        inhibited = self.settled([
            condition("Stalled", "a", severity="critical"),
            condition("Straggling", "a"), condition("LowUtilization", "a"),
            condition("ThroughputDropped", "a"), condition("Diverged", "a"),
            condition("LossSpike", "a"), condition("HardwareErrors", "a"),
            condition("LowUtilization", "b"), condition("LossSpike", "b"),
        ])  # fmt: skip
        self.assertEqual(inhibited, {
            f"TachoJob{name} a"
            for name in ("Straggling", "LowUtilization", "ThroughputDropped", "LossSpike")
        })  # fmt: skip

    def test_a_hang_is_told_once(self):
        inhibited = self.settled([
            condition("Stalled", "a", severity="critical"),
            condition("TrainerSilent", "a"),
            condition("TaskMissing", "a", reason="Gone"),
            condition("Stalled", "b", severity="critical"),
            condition("TaskMissing", "b", reason="NeverSeen"),
            condition("TrainerSilent", "c"),
        ])  # fmt: skip
        self.assertEqual(inhibited, {"TachoJobTrainerSilent a", "TachoJobTaskMissing a"})
        expected = {("page", "TachoJobStalled", "a"), ("page", "TachoJobStalled", "b"),
                    ("chat", "TachoJobTaskMissing", "b"),
                    ("chat", "TachoJobTrainerSilent", "c")}  # fmt: skip
        harness.wait_until(lambda: self.receiver.received() >= expected, "told")
        self.assertEqual(self.receiver.received(), expected)

    def test_what_explains_another_alert_of_the_job(self):
        inhibited = self.settled([
            condition("Throttled", "a"), condition("Straggling", "a"), condition("Straggling", "b"),
            condition("AgentSilent", "c"), condition("TrainerSilent", "c"),
            condition("Stalled", "d"), condition("PhaseLong", "d"), condition("PhaseLong", "e"),
        ])  # fmt: skip
        self.assertEqual(inhibited, {"TachoJobStraggling a", "TachoJobPhaseLong d"})

    def test_a_full_disk_is_told_once(self):
        inhibited = self.settled([
            system("TachoStorageRefusing"), system("TachoDiskAlmostFull"),
            system("TachoNothingArrives"), condition("TrainerSilent"), condition("Diverged"),
        ])  # fmt: skip
        self.assertEqual(inhibited, {
            "TachoDiskAlmostFull tacho-collector", "TachoNothingArrives tacho-collector",
            "TachoJobTrainerSilent a"})  # fmt: skip

    def test_each_cause_quiets_what_follows_from_it(self):
        follows = [
            condition("SlowerThanBaseline", "s"), condition("LowUtilization", "i"),
            condition("MemoryLeak", "m"), condition("TrainerSilent", "w", instance=WEST),
            system("TachoAgentsDropped", "warning"),
            system("TachoCertificateExpiring", "warning"),
            system("TachoDiskFillsUp", "warning"),
            system("TachoCardinalityHeadroomLow", "warning", limit="series"),
            system("TachoNothingArrives"), system("TachoNoAgents"),
        ]  # fmt: skip
        causes = [
            condition("Straggling", "s"), condition("InputBound", "i"),
            condition("MemoryPressure", "m"),
            system("TachoStorageRefusing", instance=WEST), system("TachoCollectorNotReady"),
            system("TachoCertificateExpiresSoon"),
            system("TachoDiskAlmostFull"),
            system("TachoCardinalityLimitHit", "warning", limit="series", action="reject"),
        ]  # fmt: skip
        others = [system("TachoScrapeSlow", "warning"), condition("MemoryLeak", "n")]
        inhibited = self.settled(follows + causes + others)
        self.assertEqual(inhibited, {f"{one['alertname']} {one['job']}" for one in follows})

    def test_without_agents_a_part_of_them_is_not_missed_as_well(self):
        inhibited = self.settled([
            system("TachoNoAgents"), system("TachoAgentsDropped", "warning"),
            system("TachoJournalSyncSlow", "warning"),
        ])  # fmt: skip
        self.assertEqual(inhibited, {"TachoAgentsDropped tacho-collector"})

    def test_a_disk_that_refuses_explains_what_waits_for_it(self):
        inhibited = self.settled([
            system("TachoStorageRefusing"), system("TachoPendingBytesHigh", "warning"),
            system("TachoIngestThrottled", "warning", how="flow_control"),
            system("TachoQueryErrors", "warning"),
        ])  # fmt: skip
        follows = {"TachoPendingBytesHigh", "TachoIngestThrottled"}
        self.assertEqual(inhibited, {name + " tacho-collector" for name in follows})

    def test_without_any_collector_no_job_is_told_of(self):
        missing = system("TachoCollectorMissing")
        del missing["instance"]
        inhibited = self.settled([
            missing, condition("Diverged"),
            {"alertname": "TachoConditionWidespread", "severity": "critical"},
            {"alertname": "TachoWatchdog", "severity": "none"},
        ])  # fmt: skip
        self.assertEqual(inhibited, {"TachoJobDiverged a", "TachoConditionWidespread "})

    def test_one_message_has_all_that_is_wrong_with_a_job(self):
        self.alertmanager.post([condition("MemoryPressure", "a"), condition("DataLoss", "a"),
                                condition("DataLoss", "b")])  # fmt: skip
        harness.wait_until(lambda: len(self.receiver.received()) == 3, "told")
        jobs = [labels["job"] for _, labels, _ in self.receiver.groups]
        self.assertEqual(sorted(set(jobs)), ["a", "b"])
        for _, labels, alerts in self.receiver.groups:
            self.assertEqual({alert["labels"]["job"] for alert in alerts}, {labels["job"]})


if __name__ == "__main__":
    harness.main()
