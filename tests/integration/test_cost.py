"""Energy and cost of a job, with a real collector, planted power and the price list of docs/cost.md.

Every expected figure is computed here by hand from what is planted; the page shows what tachoctl prints of it.
"""
import json
import os
import re
import signal
import subprocess
import time

import client
import harness
from tacho.v1 import cost_pb2, goodput_pb2, ingest_pb2, types_pb2

SECOND = 1_000_000_000
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COUNTER = types_pb2.METRIC_TYPE_COUNTER
GAUGE = types_pb2.METRIC_TYPE_GAUGE
JOB = "bert-base"
# (attempt, first step, last step, second of the first): the second attempt repeats 50 steps.
ATTEMPTS = [(0, 0, 200, 360), (1, 151, 251, 2660)]
STEP_S, WATTS, CHIPS = 10, 500, 8
# Seconds of the ledger, which all figures follow from.
SECONDS = {
    "productive_step": 2500, "initializing": 60 + 60, "compiling": 300, "wasted": 500, "down": 240,
}  # fmt: skip
ATTEMPT_S = 2360 + 1060
GAP_S = 600  # Of one chip.
WALL_S = sum(SECONDS.values())
JOULES = (ATTEMPT_S * CHIPS - GAP_S) * WATTS
STEPS = 250


def blocks_of_page():
    """The price list, and what tachoctl prints."""
    with open(os.path.join(ROOT, "docs/cost.md")) as file:
        text = file.read()
    prices = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1]
    shown = re.search(r"```\n\$ tachoctl cost bert-base\n(.*?)```", text, re.DOTALL)[1]
    return prices, shown


class CostTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.prices, self.shown = blocks_of_page()
        self.collector = self.started(harness.Collector(self.directory))
        self.begin_ns = time.time_ns() - 4000 * SECOND
        self.stream = client.Stream(self.collector.address, "agent", 1, 1)
        self.addCleanup(self.stream.close)
        self.sequence = self.layouts = 0

    def send(self, **message):
        self.sequence += 1
        for part in message.values():
            part.sequence = self.sequence
        self.stream.send(ingest_pb2.ClientMessage(**message))
        self.assertTrue(self.stream.wait_durable(self.sequence), self.stream.error)

    def at(self, second):
        return self.begin_ns + round(second * SECOND)

    def event(self, kind, second, attempt=0, task=0):
        source = types_pb2.Source(job=JOB, host="host-0", attempt=attempt, task=task)
        self.send(event=ingest_pb2.Event(source=source, time_unix_ns=self.at(second), kind=kind))

    def rows(self, job, host, metrics, rows, task=None, attempt=0):
        """`rows`: (second, step or None, values)."""
        self.layouts += 1
        steps = [step for _, step, _ in rows if step is not None]
        self.stream.send(
            client.layout(self.layouts, job, host, metrics, task, attempt, bool(steps))
        )
        times = [self.at(second) for second, _, _ in rows]
        values = [value for _, _, values in rows for value in values]
        self.sequence += 1
        self.stream.send(client.batch(self.sequence, self.layouts, times, values, steps))
        self.assertTrue(self.stream.wait_durable(self.sequence), self.stream.error)

    def plant_steps(self):
        metrics = [("step_time_seconds", "s"), ("tokens", "1", COUNTER, {})]
        for attempt, first, last, second in ATTEMPTS:
            for task in (0, 1):
                rows = [
                    (second + STEP_S * (step - first), step, [STEP_S, 2e6 * (step + 1)])
                    for step in range(first, last + 1)
                ]
                self.rows(JOB, f"host-{task}", metrics, rows, task, attempt)
        accuracy = [(860, 50, [0.21]), (2360, 200, [0.63])]
        self.rows(JOB, "host-0", [("eval_accuracy", "1")], accuracy, task=0)
        self.rows(JOB, "host-0", [("eval_accuracy", "1")], [(3660, 251, [0.71])], 0, 1)
        self.event("attempt_started", 0)
        self.event("compile_started", 0)
        self.event("compiled", 300)
        self.event("attempt_started", 2600, attempt=1)
        self.event("ended", 3660, attempt=1, task=None)
        values = {
            "device_count": str(CHIPS), "device_kind": "NVIDIA H100 80GB HBM3",
            "capacity_type": "reserved",
        }  # fmt: skip
        self.send(attributes=ingest_pb2.Attributes(job=JOB, attempt=0, values=values))

    def plant_power(self):
        for host in ("host-0", "host-1", "host-2"):
            for chip in range(CHIPS // 2):
                gap = (host, chip) == ("host-1", 3)
                rows = [
                    (second, None, [WATTS])
                    for second in range(-100, 3801, 10)
                    if not (gap and 1000 < second < 1000 + GAP_S)
                ]
                metric = ("chip_power_watts", "W", GAUGE, {"chip": str(chip)})
                self.rows("hosts", host, [metric], rows)

    def ctl(self, *arguments):
        done = harness.tachoctl(self.collector.address, "cost", JOB, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def reload(self, config):
        with open(self.collector.config, "w") as file:
            file.write(config)
        self.collector.program.process.send_signal(signal.SIGHUP)

    def metric(self, line):
        _, _, body = harness.http_get(self.collector.url("/metrics"))
        found = re.search(rf"^{re.escape(line)} (\S+)$", body.decode(), re.MULTILINE)
        return None if found is None else float(found[1])

    def expect_energy(self, answer):
        energy = answer["energy"]
        self.assertAlmostEqual(energy["joules"], JOULES, places=3)
        self.assertAlmostEqual(energy["covered_seconds"], ATTEMPT_S * CHIPS - GAP_S, places=6)
        self.assertAlmostEqual(energy["due_seconds"], ATTEMPT_S * CHIPS, places=6)
        self.assertEqual((energy["gaps"], energy["chips"], energy["hosts"]), (1, CHIPS, 0))

    def check_config(self, config):
        path = os.path.join(self.directory, "checked.yaml")
        with open(path, "w") as file:
            file.write(config)
        return subprocess.run(
            [os.environ["TACHO_COLLECTOR"], "--config", path, "--check-config"],
            capture_output=True, text=True, timeout=harness.PATIENCE_S,
        )  # fmt: skip

    def test_energy_without_prices_then_money_then_a_wrong_list(self):
        self.plant_steps()
        self.plant_power()

        # Without a price list: energy, and no money.
        answer = json.loads(self.ctl("-o", "json"))
        self.expect_energy(answer)
        self.assertEqual(answer["currency"], "")
        self.assertIsNone(answer["cost"])
        self.assertIn("cost.chips", answer["no_chip_cost"])
        seconds = {one["bucket"]: one["seconds"] for one in answer["buckets"] if one["seconds"]}
        self.assertEqual(seconds, SECONDS)

        # With one: to the cent, and each bucket.
        self.assertEqual(self.check_config(self.prices).returncode, 0)
        self.reload(self.prices)
        harness.wait_until(lambda: json.loads(self.ctl("-o", "json"))["currency"], "prices")
        answer = json.loads(self.ctl("-o", "json"))
        self.expect_energy(answer)
        chip_cost = WALL_S * CHIPS * 2.00 / 3600
        energy_cost = JOULES / 3.6e6 * 0.20 * 1.25
        cost = chip_cost + energy_cost
        expected = {
            "chip_cost": chip_cost, "energy_cost": energy_cost, "cost": cost,
            "cost_per_step": cost / STEPS, "tokens": 2e6 * STEPS,
            "cost_per_million_tokens": cost / STEPS / 2, "cost_per_accuracy_point": cost / 50,
            "chip_seconds": WALL_S * CHIPS, "chip_seconds_not_priced": 0,
        }  # fmt: skip
        for name, value in expected.items():
            self.assertAlmostEqual(answer[name], value, places=6, msg=name)
        for one in answer["buckets"]:
            wanted = SECONDS.get(one["bucket"], 0) * CHIPS * 2.00 / 3600
            self.assertAlmostEqual(one["chip_cost"], wanted, places=6, msg=one["bucket"])
        self.assertAlmostEqual(sum(one["joules"] for one in answer["buckets"]), JOULES, places=3)
        self.assertEqual(self.ctl(), self.shown, "docs/cost.md shows it")
        self.assertEqual(self.ctl("-o", "csv").splitlines()[0].split(",")[0], "bucket")

        # The same by gRPC and on the metrics page.
        query = client.Query(self.collector.address)
        self.addCleanup(query.close)
        proto = query.stub.Cost(cost_pb2.CostRequest(job=JOB))
        self.assertAlmostEqual(proto.cost, cost, places=6)
        self.assertEqual(proto.buckets[7].bucket, goodput_pb2.GOODPUT_BUCKET_WASTED)
        line = f'tacho_job_cost{{job="{JOB}",currency="USD",bucket="wasted",of="chips"}}'
        wasted = harness.wait_until(lambda: self.metric(line), "the page has it")
        self.assertAlmostEqual(wasted, SECONDS["wasted"] * CHIPS * 2.00 / 3600, places=5)
        page_step = self.metric(f'tacho_job_cost_per_step{{job="{JOB}",currency="USD"}}')
        self.assertAlmostEqual(page_step, cost / STEPS, places=6)
        report = harness.tachoctl(self.collector.address, "report", JOB, JOB)
        self.assertIn("| Cost of the whole job | 17.1958 USD, 0.0687833 USD a step |", report.stdout)

        # A wrong list is refused with its key, the reason and the remedy, and changes nothing.
        wrong = self.prices.replace("per_hour: 1.25", "per_hour: 0")
        checked = self.check_config(wrong)
        self.assertEqual(checked.returncode, 2)
        for words in ("cost.chips[1].per_hour", "is 0 for H100", "leave the entry out"):
            self.assertIn(words, checked.stderr)
        self.reload(wrong)
        refused = 'tacho_config_reloads_total{result="failure"}'
        harness.wait_until(lambda: self.metric(refused) == 1, "refused")
        self.assertAlmostEqual(json.loads(self.ctl("-o", "json"))["cost"], cost, places=6)
        self.assertEqual(self.collector.stop(), 0)


if __name__ == "__main__":
    harness.main()
