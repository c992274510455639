"""deploy/prometheus: what promtool says of it; rules, tests and runbooks belong together."""
import glob
import os
import re
import subprocess
import tempfile

import yaml

import harness
from harness import tool

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PROMETHEUS = os.path.join(ROOT, "deploy/prometheus")
RUNBOOKS = os.path.join(ROOT, "docs/runbooks")
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Fix", "False alarms"]
# Written by Prometheus itself, or by recording rules of whoever expects jobs.
FOREIGN = set(
    "up scrape_duration_seconds scrape_samples_scraped ALERTS tacho:expected_job".split()
)
# What trainers and agents record, in examples of the runbooks.
RECORDED = {"tacho_job_loss", "tacho_job_"}


# In commands of the runbooks.
PLACEHOLDERS = {
    "JOB": "a", "EARLIER_JOB": "b", "HOST": "h1", "TASK": "1", "METRIC": "loss", "FROM": "1",
    "TO": "2", "COLLECTOR": "c",
}  # fmt: skip


def read(path):
    with open(path) as file:
        return file.read()


def load(path):
    return yaml.safe_load(read(path))


def rules(kind):
    """[(file, rule)] of every rule that is an `alert` or a `record`."""
    found = []
    for path in sorted(glob.glob(os.path.join(PROMETHEUS, "rules/*.yml"))):
        for group in load(path)["groups"]:
            found += [(path, rule) for rule in group["rules"] if kind in rule]
    return found


def runbook(name):
    return read(os.path.join(RUNBOOKS, name + ".md"))


def metrics_in(expression):
    """Names of metrics: neither label values, nor names that operators group by."""
    text = re.sub(r'"[^"]*"', '""', expression)
    text = re.sub(r"\b(by|on|without|ignoring|group_left|group_right) *\([^)]*\)", " ", text)
    text = re.sub(r"\{[^}]*\}", " ", text)
    words = re.findall(r"(?<![\w:])([a-zA-Z_:][\w:]*)(?! *\()(?![\w:])", text)
    return {w for w in words if "_" in w or w in FOREIGN}


class RulesTest(harness.TestCase):
    def promtool(self, *arguments):
        done = subprocess.run(
            [tool("promtool"), *arguments], capture_output=True, text=True, timeout=120
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_promtool_takes_every_configuration(self):
        paths = [os.path.join(PROMETHEUS, "prometheus.yml")]
        paths += sorted(glob.glob(os.path.join(PROMETHEUS, "scrape/*.yml")))
        configurations = [path for path in paths if "targets." not in path]
        self.assertGreaterEqual(len(configurations), 4)
        for path in configurations:
            configuration = load(path)
            for scrape in configuration["scrape_configs"]:
                self.assertEqual(scrape["job_name"], "tacho-collector", "the rules know this name")
                self.assertTrue(scrape["honor_labels"], path)
                # Debian builds Prometheus without this discovery; all else is checked.
                scrape.pop("kubernetes_sd_configs", None)
            with tempfile.NamedTemporaryFile("w", suffix=".yml") as checked:
                yaml.safe_dump(configuration, checked)
                checked.flush()
                # Secrets that the examples name are not on this machine.
                self.promtool("check", "config", "--syntax-only", checked.name)

    def test_promtool_takes_every_rule(self):
        paths = sorted(glob.glob(os.path.join(PROMETHEUS, "rules/*.yml")))
        self.promtool("check", "rules", *paths)

    def test_each_alert_fires_and_stays_silent_as_its_tests_say(self):
        paths = sorted(glob.glob(os.path.join(PROMETHEUS, "tests/*.yml")))
        self.promtool("test", "rules", *paths)

    def test_every_alert_has_tests_of_both_kinds(self):
        tests = []
        patient = {rule["alert"] for _, rule in rules("alert") if "for" in rule}
        for path in glob.glob(os.path.join(PROMETHEUS, "tests/*.yml")):
            if os.path.basename(path) == "recording.yml":
                continue
            for test in load(path)["tests"]:
                tests.append(test["name"])
                alert, what = test["name"].split(" ", 1)
                checks = test["promql_expr_test"]
                for check in checks:
                    self.assertIn(f'alertname="{alert}"', check["expr"], test["name"])
                self.assertEqual(bool(checks[-1]["exp_samples"]), what == "fires", test["name"])
                if what == "fires" and alert in patient:
                    self.assertEqual(checks[0]["exp_samples"], [], f"{alert} waits at first")
        expected = []
        for _, rule in rules("alert"):
            expected.append(rule["alert"] + " fires")
            if rule["expr"] != "vector(1)":
                expected.append(rule["alert"] + " stays silent")
        self.assertEqual(sorted(tests), sorted(expected))

    def test_every_alert_says_what_it_is_about(self):
        for _, rule in rules("alert"):
            annotations = rule["annotations"]
            self.assertLessEqual({"summary", "description", "runbook_url"}, set(annotations))
            # Each leads to a screen, unless no collector is reached or nothing is wrong.
            without = ("TachoCollectorDown", "TachoCollectorMissing", "TachoWatchdog")
            self.assertEqual("page" not in annotations, rule["alert"] in without, rule["alert"])
            # A condition brings its own.
            if "tacho_job_condition_info" not in rule["expr"]:
                self.assertIn(rule["labels"]["severity"], ("critical", "warning", "none"))

    def test_every_alert_has_its_runbook_and_every_runbook_its_alert(self):
        alerts = [rule["alert"] for _, rule in rules("alert")]
        self.assertEqual(len(alerts), len(set(alerts)))
        pages = [os.path.basename(p)[:-3] for p in glob.glob(os.path.join(RUNBOOKS, "*.md"))]
        self.assertEqual(sorted(alerts), sorted(set(pages) - {"README"}))
        index = runbook("README")
        # An operator replaces it everywhere by the command in alerting.md.
        page = read(os.path.join(ROOT, "docs/alerting.md"))
        base = re.search(r"sed -i\s+'s#(https://[^#]+)#", page)[1]
        for _, rule in rules("alert"):
            name = rule["alert"]
            url = rule["annotations"]["runbook_url"]
            self.assertEqual(url, f"{base}/docs/runbooks/{name}.md")
            page = runbook(name)
            self.assertTrue(page.startswith(f"# {name}\n"), name)
            self.assertEqual(re.findall(r"^## (.+)$", page, re.MULTILINE), SECTIONS, name)
            self.assertTrue(all(part.strip() for part in re.split(r"^## .+$", page, flags=re.M)))
            self.assertIn(f"({name}.md)", index)

    def test_every_condition_has_an_alert(self):
        registry = read(os.path.join(ROOT, "server/conditions/detectors/detectors.h"))
        judged = re.findall(r"Row\(Detect(\w+),", registry)
        self.assertGreaterEqual(len(judged), 24)
        names = [rule["alert"] for path, rule in rules("alert") if path.endswith("conditions.yml")]
        self.assertEqual(sorted(names), sorted("TachoJob" + name for name in judged))

    def expressions(self):
        """[(where, expression)] of every rule and runbook."""
        found = [(r.get("alert") or r["record"], r["expr"]) for _, r in rules("expr")]
        for _, rule in rules("alert"):
            for block in re.findall(r"```promql\n(.*?)```", runbook(rule["alert"]), re.DOTALL):
                found += [(rule["alert"] + ".md", line) for line in block.splitlines()]
        return found

    def test_expressions_of_runbooks_are_promql(self):
        lines = ["groups:", "  - name: runbooks", "    rules:"]
        for index, (_, expression) in enumerate(self.expressions()):
            lines += [f"      - record: r{index}", "        expr: |-"]
            lines += ["          " + line for line in expression.splitlines()]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as checked:
            checked.write("\n".join(lines) + "\n")
            checked.flush()
            self.promtool("check", "rules", checked.name)

    def test_every_metric_of_rules_and_runbooks_exists(self):
        page = read(os.path.join(ROOT, "docs/metrics.md"))
        documented = set(re.findall(r"`([a-z0-9_]+)[`{]", page))
        endings = {"_bucket", "_sum", "_count"}
        documented |= {name + ending for name in documented for ending in endings}
        recorded = {rule["record"] for _, rule in rules("record")}
        known = documented | FOREIGN | RECORDED | recorded
        for where, expression in self.expressions():
            unknown = metrics_in(expression) - known
            self.assertEqual(unknown, set(), f"{where}: in no table of docs/metrics.md")

    def test_commands_of_runbooks_are_understood(self):
        collector = self.started(harness.Collector(self.directory))
        commands = set()
        for _, rule in rules("alert"):
            for block in re.findall(r"```sh\n(.*?)```", runbook(rule["alert"]), re.DOTALL):
                commands |= {line for line in block.splitlines() if line.startswith("tachoctl ")}
        self.assertGreater(len(commands), 30)
        environment = {"TACHO_ADMIN_ADDRESS": f"unix:{collector.path}/admin.sock"}
        for command in sorted(commands):
            for placeholder, value in PLACEHOLDERS.items():
                command = re.sub(rf"\b{placeholder}\b", value, command)
            done = harness.tachoctl(
                collector.address, *command.split()[1:], env=environment
            )
            # 1: the empty collector has nothing of it.
            self.assertIn(done.returncode, (0, 1), command + "\n" + done.stderr)

    def test_commands_of_runbooks_exist(self):
        helped = subprocess.run(
            [os.environ["TACHO_CTL"], "help"], capture_output=True, text=True, timeout=60
        )
        commands = set(re.findall(r"^  ([a-z]+) ", helped.stdout, re.MULTILINE))
        for _, rule in rules("alert"):
            for command in re.findall(r"tachoctl ([a-z]+)", runbook(rule["alert"])):
                self.assertIn(command, commands, rule["alert"])


if __name__ == "__main__":
    harness.main()
