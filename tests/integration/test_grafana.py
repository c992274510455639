"""Every query of every dashboard is answered with data, by a real Prometheus of a real collector.

A fleet trains: a job of it turns NaN, so that a condition holds. What Grafana would send is what
the committed JSON says, with its variables replaced as Grafana replaces them.
"""
import json
import math
import os
import re
import sys
import time
import urllib.parse

import client
import fleet
import harness
import test_bucket

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../grafana"))
import boards  # noqa: E402

EXAMPLE = os.path.join(boards.REPOSITORY, "deploy/prometheus/prometheus.yml")
JOB = "ill"
NAN_TASK = "1"
RANGE_S = 300
WAIT_S = 180
# Grafana's own, as it would compute them for scrapes every second.
BUILT_IN = {"__rate_interval": "15s", "__range": f"{RANGE_S}s", "__interval": "5s"}
# What Linux reports on a machine with everything that a host's dashboard shows.
PROC = {
    "stat": "cpu  1000 0 500 20000 10 0 5 0 0 0\ncpu0 1000 0 500 20000 10 0 5 0 0 0\n",
    "loadavg": "1.50 1.20 0.90 2/300 4711\n",
    "uptime": "86400.00 80000.00\n",
    "meminfo": "MemTotal: 65536000 kB\nMemFree: 30000000 kB\nMemAvailable: 50000000 kB\n",
    "net/dev": "Inter-| Receive | Transmit\n face |bytes packets errs drop\n"
    "  eth0: 123456 1000 0 0 0 0 0 0 654321 900 0 0 0 0 0 0\n",
    "diskstats": "   8 0 sda 1000 0 80000 500 2000 0 160000 900 0 700 1400\n",
    "pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=123456\n",
    "pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=234\n",
    "pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=5678\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=567\n",
}


def substitute(text, values):
    """As Grafana: $name, ${name} and ${name:format}."""

    def value(match):
        name = match[1] or match[2]
        return match[0] if name.isdigit() else values[name]

    return re.sub(r"\$(?:\{(\w+)[^}]*\}|(\w+))", value, text)


def escaped(value):
    """What Grafana makes of a value for a regular expression that stands in a string of PromQL."""
    return re.sub(r"([.^$*+?()\[\]{}|])", r"\\\\\1", value)


class Question:
    """One query of a dashboard, as it is sent."""

    def __init__(self, where, expr, instant):
        self.where = where
        self.expr = expr
        self.instant = instant


class Prometheus:
    """Scrapes a collector as the example of deploy/ does, but every second."""

    def __init__(self, directory, collector):
        with open(EXAMPLE) as file:
            example = file.read()
        config = example.replace("127.0.0.1:7412", f"127.0.0.1:{collector.http}")
        config = config.replace("scrape_interval: 15s", "scrape_interval: 1s")
        config = config.replace("scrape_timeout: 10s", "scrape_timeout: 1s")
        self.config = os.path.join(directory, "prometheus.yml")
        with open(self.config, "w") as file:
            file.write(config)
        self.directory = directory
        self.port = harness.free_port()
        self.program = None

    def start(self):
        arguments = [harness.tool("prometheus"), f"--config.file={self.config}",
                     f"--storage.tsdb.path={self.directory}/prometheus",
                     f"--web.listen-address=127.0.0.1:{self.port}"]  # fmt: skip
        log = os.path.join(self.directory, "prometheus.log")
        self.program = harness.Program(arguments, log)
        return self

    def kill(self):
        self.program.kill()

    def get(self, path, **parameters):
        """The data, or None while it starts. A query that is wrong fails the test."""
        query = urllib.parse.urlencode(parameters, doseq=True)
        try:
            status, _, body = harness.http_get(
                f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout_s=30
            )
        except OSError:
            return None
        if status == 503:
            return None
        answer = json.loads(body)
        if status != 200:
            raise ValueError(f"{parameters}: {answer.get('error')}")
        return answer["data"]

    def has_data(self, question):
        """Whether there is any value that can be drawn."""
        now = time.time()
        if question.instant:
            data = self.get("query", query=question.expr, time=now)
        else:
            span = {"start": now - RANGE_S, "end": now, "step": 5}
            data = self.get("query_range", query=question.expr, **span)
        if data is None:
            return False
        found = [
            float(value)
            for series in data["result"]
            for _, value in series.get("values") or [series["value"]]
        ]
        return any(math.isfinite(value) for value in found)

    def label_values(self, definition):
        """Of label_values(selector, label)."""
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", definition).groups()
        found = self.get(f"label/{label}/values", **{"match[]": selector})
        return [value for value in found or [] if value]


class OneOfTwo(harness.SingleCollector):
    """A collector that has everything the dashboards show: a bucket and a spare, which is away."""

    def __init__(self, directory, endpoint):
        own, spare = (f"127.0.0.1:{harness.free_port()}" for _ in range(2))
        config = (
            f"bucket: {{url: 's3://tests/grafana', endpoint: '{endpoint}', path_style: true}}\n"
            f"cluster: {{ack: shared, members: ['{own}'], spares: ['{spare}'], member: '{own}'}}\n"
        )
        keys = {"AWS_ACCESS_KEY_ID": test_bucket.KEY_ID, "AWS_SECRET_ACCESS_KEY": test_bucket.SECRET}
        super().__init__(directory, config, env={**os.environ, **keys})
        self.grpc = int(own.rpartition(":")[2])


class GrafanaTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        harness.tool("prometheus")
        store = test_bucket.ObjectStore().start()
        self.addCleanup(store.kill)
        self.collector = self.started(OneOfTwo(self.directory, store.endpoint))
        jobs = [f"{JOB}:tasks=2,per_host=1,eval=10,checkpoint=20,steps=100000", "well:tasks=2"]
        self.fleet = self.started(fleet.Fleet(self.directory, self.collector, jobs))
        self.started(self.machine())
        self.prometheus = self.started(Prometheus(self.directory, self.collector))

    def machine(self):
        root = os.path.join(self.directory, "machine")
        for name, text in PROC.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        source = f"  host: {{interval: 1s, proc: '{root}', cgroup: '{root}/cgroup'}}\n"
        return harness.Agent(self.directory, self.collector, source, "machine", host="machine")

    def choices(self, some):
        """The variables' values: everything, or with `some` one of each."""
        culprit = self.fleet.hosts()[JOB][int(NAN_TASK)]
        one = {"attempt": "0", "task": NAN_TASK, "host": culprit,
               "instance": escaped(f"127.0.0.1:{self.collector.http}")}  # fmt: skip
        every = dict.fromkeys(one, ".*")
        return {**BUILT_IN, "job": JOB, **(one if some else every)}

    def questions(self, some):
        values = self.choices(some)
        for board in boards.load():
            for panel in boards.panels(board):
                for target in panel["targets"]:
                    where = f"{board['uid']}: {panel['title']} {target['refId']}"
                    if some and self.shows_other_hosts(board, panel):
                        continue
                    if panel["title"] == "Queries asked of other members":
                        continue  # There are none; integration_cluster_queries looks at the metric.
                    expr = substitute(target["expr"], values)
                    yield Question(where, expr, target.get("instant", False))
            for mark in boards.marks(board):
                expr = substitute(mark["expr"], values)
                yield Question(f"{board['uid']}: {mark['name']}", expr, False)

    @staticmethod
    def shows_other_hosts(board, panel):
        """The simulated hosts have no disks, networks, load and pressure; the machine has."""
        if board["uid"] != "tacho-host":
            return False
        return panel["title"] in ("Load", "Pressure", "Network", "Disks")

    def keep_asking(self):
        """Asks once, so that the collector has queries to count."""
        query = client.Query(self.collector.address)
        try:
            query.latest(JOB, "loss")
        finally:
            query.close()

    def expect_data(self, questions):
        open_questions = list(questions)

        def all_answered():
            self.keep_asking()
            open_questions[:] = [q for q in open_questions if not self.prometheus.has_data(q)]
            return not open_questions

        try:
            harness.wait_until(all_answered, "data", WAIT_S, pause_s=1)
        except AssertionError:
            missing = "\n".join(f"{q.where}:\n    {q.expr}" for q in open_questions)
            self.fail(f"{len(open_questions)} queries without data:\n{missing}")

    def wait_for_healthy_history(self):
        """The curves have a finite past before everything is NaN."""
        for metric in ("loss", "eval_loss", "grad_norm"):
            expr = f'tacho_job_{metric}{{job="{JOB}",stat="avg"}}'
            question = Question(metric, expr, False)
            harness.wait_until(lambda q=question: self.prometheus.has_data(q), expr, WAIT_S)

    def test_every_query_returns_data(self):
        self.wait_for_healthy_history()
        self.fleet.fault(f"nan job={JOB} task={NAN_TASK}")
        questions = [q for some in (False, True) for q in self.questions(some)]
        self.assertGreater(len(questions), 200)
        self.expect_data(questions)
        self.expect_variables()
        self.expect_only_hosts_of_the_job()

    def expect_only_hosts_of_the_job(self):
        """Where a job's dashboard has a line for each host."""
        board = next(b for b in boards.load() if b["uid"] == "tacho-job")
        hosts = set(self.fleet.hosts()[JOB])
        asked = 0
        for panel in boards.panels(board):
            for target in panel["targets"]:
                if target.get("legendFormat") != "{{host}}":
                    continue
                expr = substitute(target["expr"], self.choices(False))
                shown = self.prometheus.get("query", query=expr)["result"]
                self.assertEqual({one["metric"]["host"] for one in shown}, hosts, panel["title"])
                asked += 1
        self.assertGreaterEqual(asked, 4)

    def expect_variables(self):
        values = {**self.choices(True), "page": f"http://127.0.0.1:{self.collector.http}/ui/"}
        for board in boards.load():
            for name, variable in boards.variables(board).items():
                if variable["type"] == "datasource":
                    continue
                definition = substitute(variable["definition"], values)
                told = self.prometheus.label_values(definition)
                self.assertIn(values[name].replace("\\", ""), told, (board["uid"], definition))


if __name__ == "__main__":
    harness.main()
