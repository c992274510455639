"""Faults of a fleet become alerts: agents, collector, Prometheus, Alertmanager and webhook, all real.

64 simulated tasks of six jobs train on 16 hosts, each with an agent of its own. In one job a chip
loses HBM a little at a time from its start on. Then in one job a host slows down, in one a host
hangs, in one a host's HBM is suddenly full, in one a task turns NaN, and one job ends well. Rules,
routes and inhibition are those of deploy/.

Configured shorter than by default are times only: how often is judged, scraped and evaluated, how
long Stalled, TaskMissing, TrainerSilent, AgentSilent wait, how far MemoryPressure looks back and
how little suffices MemoryLeak, how long what is found must hold, and Alertmanager's waits.
Thresholds are the defaults.
"""
import collections
import json
import os
import time
import urllib.parse

import yaml

import alerting
import fleet
import harness

DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/prometheus")
FLOOR_S, SPAN_S, SILENT_S = 15, 10, 20
WARMUP_S, LEAK_SPAN_S = 5, 60
CONDITIONS = f"""
conditions:
  interval: 1s
  progress:
    stalled: {{floor: {FLOOR_S}s, for: 1s}}
    straggling: {{for: 2s}}
    throughput_dropped: {{for: 5s}}
    task_missing: {{grace: {SILENT_S}s, gone_after: {SILENT_S}s, for: 5s}}
    trainer_silent: {{silent_after: {SILENT_S}s, for: 5s}}
    agent_silent: {{disconnected_after: {SILENT_S}s, silent_after: {SILENT_S}s, for: 5s}}
  curves:
    plateau: {{for: 5s}}
    oscillating: {{for: 5s}}
    gradient_vanished: {{for: 5s}}
    weights_frozen: {{for: 5s}}
  hardware:
    memory_leak: {{warmup: {WARMUP_S}s, min_span: {LEAK_SPAN_S}s, for: 1s}}
    memory_pressure: {{span: {SPAN_S}s, for: 1s}}
    throttled: {{span: {SPAN_S}s, for: 2s}}
"""
JOBS = ["slow:tasks=16", "hung:tasks=16", "hbm:tasks=8", "leak:tasks=4", "nan:tasks=12",
        "well:tasks=8,steps=450"]  # fmt: skip
TRAINED = 150  # Steps without fault.
# From a verdict to the webhook: judging, scrape, rules, Alertmanager's wait, a second each; and what a
# busy machine with two cores adds to all of it.
PATH_S, BUSY_S = 5, 55
# What may follow from a fault in the same job, besides the alert that is about it.
FOLLOWS = {
    "slow": {"ThroughputDropped", "SlowerThanBaseline", "LowUtilization"},
    "hung": {"Straggling", "LowUtilization"},
    "hbm": {"MemoryLeak"},
    "leak": set(),
    "nan": {"GradientExploding", "LossSpike", "WeightsFrozen", "ReplicaDisagreement"},
}

# alert: its name. after_s: when it is due, from the fault on. step: of the fault, or None if the
# condition is of a chip, which knows no steps.
Expected = collections.namedtuple("Expected", "alert host task chip step after_s")


class Prometheus:
    """With rules and scrape configuration of deploy/, every second."""

    def __init__(self, directory, collector, alertmanager):
        self.directory = directory
        self.log = os.path.join(directory, "prometheus.log")
        with open(os.path.join(DEPLOY, "prometheus.yml")) as file:
            document = yaml.safe_load(file)
        document["global"] = {
            "scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"
        }  # fmt: skip
        document["rule_files"] = [os.path.join(DEPLOY, "rules/*.yml")]
        document["scrape_configs"][0]["static_configs"][0]["targets"] = [
            f"127.0.0.1:{collector.http}"
        ]
        managers = document["alerting"]["alertmanagers"][0]
        managers["static_configs"][0]["targets"] = [f"127.0.0.1:{alertmanager.port}"]
        self.config = os.path.join(directory, "prometheus.yml")
        with open(self.config, "w") as file:
            yaml.safe_dump(document, file)

    def start(self):
        self.port = harness.free_port()
        self.program = harness.Program(
            [harness.tool("prometheus"), f"--config.file={self.config}",
             f"--storage.tsdb.path={self.directory}/prometheus",
             "--rules.alert.resend-delay=1s",
             f"--web.listen-address=127.0.0.1:{self.port}"], self.log)  # fmt: skip
        return self

    def ask(self, expression):
        """[(labels, value)]; nothing while it starts."""
        path = "/api/v1/query?query=" + urllib.parse.quote(expression)
        try:
            status, _, body = harness.http_get(f"http://127.0.0.1:{self.port}{path}")
        except OSError:
            return []
        if status != 200:
            return []
        return [(r["metric"], float(r["value"][1])) for r in json.loads(body)["data"]["result"]]


class FleetConditionsTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        harness.tool("prometheus")
        harness.tool("prometheus-alertmanager")
        self.receiver = alerting.Receiver()
        self.addCleanup(self.receiver.stop)
        self.alertmanager = self.started(
            alerting.Alertmanager(self.directory, alerting.configuration(self.receiver.url))
        )
        self.collector = self.started(harness.Collector(self.directory, CONDITIONS))
        self.prometheus = self.started(
            Prometheus(self.directory, self.collector, self.alertmanager)
        )
        self.fleet = fleet.Fleet(self.directory, self.collector, JOBS, ["--seed", "7"])
        self.addCleanup(self.fleet.kill)
        self.fleet.start()
        self.begun = {}  # {job: what the fleet said of its fault}

    def alerts(self):
        """Every alert on jobs that ever came: [labels and annotations]."""
        with self.receiver.lock:
            came = [alert for _, alert in self.receiver.alerts]
        return [
            {**alert["annotations"], **alert["labels"]}
            for alert in came
            if alert["labels"]["alertname"].startswith("TachoJob")
        ]

    def alert(self, job, name):
        return next(
            (a for a in self.alerts() if (a["job"], a["alertname"]) == (job, name)), None
        )

    def steps(self):
        """The newest step of each job."""
        answer = self.prometheus.ask('tacho_job_last_step{stat="min"}')
        return {labels["job"]: value for labels, value in answer}

    def train(self):
        """Until all jobs have trained for a while and are judged, and nothing was said."""
        names = [job.partition(":")[0] for job in JOBS]
        harness.wait_until(
            lambda: all(self.steps().get(job, 0) > TRAINED for job in names),
            "all jobs trained", 120,
        )  # fmt: skip
        judged = {labels["job"] for labels, _ in self.prometheus.ask("tacho_job_condition")}
        self.assertEqual(judged & set(names), set(names), "every job is judged")
        told = [alert for alert in self.alerts() if alert["job"] != "leak"]
        self.assertEqual(told, [], "nothing is wrong yet")

    def begin_to_leak(self):
        """{job: Expected}: 40 MB a second of one chip, which lasts for half an hour."""
        host = self.fleet.hosts()["leak"][0]
        self.begun["leak"] = self.fleet.fault(f"leak job=leak host={host} chip=1 bytes=40e6")
        due = WARMUP_S + LEAK_SPAN_S + 2
        return {"leak": Expected("TachoJobMemoryLeak", host, None, "1", None, due)}

    def break_things(self):
        """{job: Expected}, beginning now."""
        hosts = self.fleet.hosts()
        slow, hung, hbm = hosts["slow"][1], hosts["hung"][2], hosts["hbm"][1]
        begun = {
            job: self.fleet.fault(line)
            for job, line in {
                "nan": "nan job=nan task=5",
                "slow": f"slow job=slow host={slow} factor=1.6",
                "hung": f"hang job=hung host={hung}",
                "hbm": f"leak job=hbm host={hbm} chip=2 bytes=10e9",
            }.items()
        }
        self.begun.update(begun)
        step = {job: document["step"] for job, document in begun.items()}
        # Straggling: three windows of ten steps that take half as long again; HBM: a quarter of 80 GiB.
        return {
            "nan": Expected("TachoJobDiverged", hosts["nan"][1], "5", "", step["nan"], 0),
            "slow": Expected("TachoJobStraggling", slow, None, "", step["slow"], 30 * 0.16 + 2),
            "hung": Expected("TachoJobStalled", hung, None, "", step["hung"], FLOOR_S + 1),
            "hbm": Expected("TachoJobMemoryPressure", hbm, None, "2", None, 2.3 + SPAN_S + 1),
        }

    def await_alerts(self, expected):
        """{job: (its alert, how many seconds after the fault it came)}; fails when one is overdue."""
        came = {}
        while len(came) < len(expected):
            now = time.time()
            for job in expected.keys() - came.keys():
                since = now - self.begun[job]["time_unix_ns"] / 1e9
                alert = self.alert(job, expected[job].alert)
                if alert:
                    came[job] = alert, since
                    continue
                self.assertLess(
                    since, expected[job].after_s + PATH_S + BUSY_S,
                    f"{expected[job].alert} of {job} is overdue; came: "
                    + json.dumps(self.alerts(), indent=1),
                )  # fmt: skip
            time.sleep(0.1)
        return came

    def suspects(self, job, condition):
        """By host, what the lines of /metrics say of each suspect."""
        selector = f'{{job="{job}",condition="{condition}"}}'
        found = self.prometheus.ask(f"last_over_time(tacho_job_condition_info{selector}[10m])")
        return {labels.get("host", ""): labels for labels, _ in found}

    def expect_culprit(self, alert, expected):
        # The labels hold what does not change while the alert fires.
        self.assertFalse({"host", "task", "chip"} & set(alert), alert)
        self.assertIn(expected.host, alert["hosts"].split(", "), alert)
        suspect = self.suspects(alert["job"], alert["condition"])[expected.host]
        if expected.task is not None:
            self.assertEqual(suspect["task"], expected.task, alert)
        if expected.chip:
            self.assertEqual(suspect["chip"], expected.chip, alert)
        if expected.step is not None:
            # The last good step or the first bad one; a window of ten steps may begin before it.
            self.assertLessEqual(abs(int(alert["step"]) - expected.step), 10, alert)

    def test_each_fault_reaches_the_webhook_and_a_job_that_ends_well_does_not(self):
        broken = self.begin_to_leak()
        self.train()
        broken.update(self.break_things())
        for job, (alert, after) in self.await_alerts(broken).items():
            expected = broken[job]
            print(f"{expected.alert} of {job}: {after:.1f} s after the fault, hosts {alert['hosts']}, "
                  f"step {alert.get('step') or '-'}, due after {expected.after_s:.0f} s")  # fmt: skip
            self.expect_culprit(alert, expected)
            if expected.alert == "TachoJobDiverged":
                self.assertEqual(int(alert["step"]), expected.step, "of a NaN the step is exact")
        self.expect_tachoctl_to_say_the_same()
        self.expect_nothing_of_the_job_that_ended_well()
        self.expect_nothing_but_what_follows()
        self.expect_the_hang_to_be_told_once()

    def expect_tachoctl_to_say_the_same(self):
        told = harness.tachoctl(self.collector.address, "conditions", "--fail-on", "critical")
        self.assertEqual(told.returncode, 4, told.stderr)
        for name in ("Stalled", "Straggling", "Diverged", "MemoryPressure"):
            self.assertIn(name, told.stdout)
        told = harness.tachoctl(self.collector.address, "status", "hung")
        self.assertIn("Stalled", told.stdout)

    def expect_nothing_of_the_job_that_ended_well(self):
        ended = self.fleet.wait_for(
            lambda d: (d["job"], d["what"]) == ("well", "ended"), "the job has ended"
        )
        # Long enough for all that waits for silence.
        quiet_until = ended["time_unix_ns"] / 1e9 + SILENT_S + PATH_S + 5
        harness.wait_until(
            lambda: time.time() > quiet_until, "time to be silent", SILENT_S + PATH_S + 6
        )
        self.assertEqual([a for a in self.alerts() if a["job"] == "well"], [])
        ever = self.prometheus.ask('max_over_time(tacho_job_condition{job="well"}[10m]) > 0')
        self.assertEqual(ever, [])

    def expect_nothing_but_what_follows(self):
        for alert in self.alerts():
            name = alert["alertname"][len("TachoJob"):]
            about = {"slow": "Straggling", "hung": "Stalled", "hbm": "MemoryPressure",
                     "leak": "MemoryLeak", "nan": "Diverged"}[alert["job"]]  # fmt: skip
            self.assertIn(name, FOLLOWS[alert["job"]] | {about}, alert)

    def expect_the_hang_to_be_told_once(self):
        """Its trainers are silent as well, but nobody gets an alert for that."""
        fired = 'max_over_time(ALERTS{alertname="TachoJobTrainerSilent",job="hung"}[10m])'
        harness.wait_until(lambda: self.prometheus.ask(fired), "TrainerSilent fires, too", 60)
        told = {(who, name) for who, name, job in self.receiver.received() if job == "hung"}
        self.assertEqual({one for one in told if one[0] == "page"}, {("page", "TachoJobStalled")})
        self.assertNotIn("TachoJobTrainerSilent", {name for _, name in told})


if __name__ == "__main__":
    harness.main()
