"""A real OpenTelemetry SDK writes to the collector, in each of OTLP's three forms, and every value that queries
return is the one that the script recorded."""
import json
import math
import os
import subprocess

import harness
import client
import node_packages
from client import bits, double

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "otel_sdk")
GAUGE, COUNTER = 1, 2  # Of tacho.v1.MetricType.
BOUNDS = [-10, 0, 0.5, 10, 250]
INSTRUMENTS = [
    {"name": "train.loss", "kind": "Gauge", "unit": "nats", "description": "Loss of a step."},
    {"name": "train.epoch", "kind": "Gauge", "whole": True},
    {"name": "examples", "kind": "Counter", "unit": "1", "description": "Examples seen.", "whole": True},
    {"name": "busy", "kind": "Counter", "unit": "s"},
    {"name": "queue", "kind": "UpDownCounter", "whole": True},
    {"name": "balance", "kind": "UpDownCounter"},
    {"name": "chip.power", "kind": "ObservableGauge", "unit": "W"},
    {"name": "joules", "kind": "ObservableCounter", "unit": "J"},
    {"name": "memory", "kind": "ObservableUpDownCounter", "unit": "By", "whole": True},
    {"name": "step.time", "kind": "Histogram", "unit": "s", "bounds": BOUNDS},
    {"name": "latency", "kind": "Histogram", "unit": "ms", "exponential": True},
]
ATTRIBUTES = [{}, {"phase": "train", "chip.index": 3}, {"phase": "eval \"x\"\n", "warm": True}]
ROUNDS = 6


class OpenTelemetrySdkTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        node = harness.tool("node")
        node_packages.install(FOLDER)
        self.node = node
        self.collector = self.started(harness.Collector(self.directory))

    # --- What the script does -----------------------------------------------------------------------

    def value_for(self, instrument, protocol):
        kind = instrument["kind"]
        if instrument.get("exponential"):
            return self.random.choice([0.0, self.random.lognormvariate(0, 4)])  # The SDK takes none below 0.
        if instrument.get("whole"):
            value = self.random.randrange(0 if kind.endswith("Counter") else -1000, 1 << 40)
            return -value if kind.endswith("UpDownCounter") and self.random.random() < 0.5 else value
        if kind == "Histogram":  # Bounds are in the bucket below them.
            return self.random.choice([*BOUNDS[1:], self.random.uniform(0, 300)])
        if kind == "Gauge" and protocol != "http/json" and self.random.random() < 0.3:
            return self.random.choice(["NaN", "Infinity", "-Infinity"])
        value = self.random.uniform(0, 1e6) * 10 ** self.random.randrange(-9, 9)
        return -value if kind in ("Gauge", "UpDownCounter") and self.random.random() < 0.5 else value

    def plan(self, protocol, temporality, job, gzip=False):
        url = f"http://{self.collector.address}" if protocol == "grpc" else self.collector.url("/v1/metrics")
        rounds = []
        for number in range(ROUNDS):
            recorded = []
            for at, instrument in enumerate(INSTRUMENTS):
                once = instrument["kind"].startswith("Observable")
                if once and temporality == "delta":
                    continue  # A value that falls would be a reset.
                for chosen in range(min(number + 1, len(ATTRIBUTES))):
                    attributes = ATTRIBUTES[chosen]
                    for _ in range(1 if once else self.random.randrange(1, 5)):
                        recorded.append({"at": at, "value": self.value_for(instrument, protocol),
                                         "attributes": attributes})  # fmt: skip
            rounds.append(recorded)
        return {
            "protocol": protocol, "url": url, "temporality": temporality, "gzip": gzip,
            "resource": {"service.name": job, "host.name": "h1", "tacho.task": 3, "os.type": "linux"},
            "instruments": INSTRUMENTS, "rounds": rounds,
        }  # fmt: skip

    def send(self, plan):
        done = subprocess.run([self.node, "send.mjs"], cwd=FOLDER, input=json.dumps(plan),
                              capture_output=True, text=True, timeout=harness.PATIENCE_S)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(len(set(report["times"])), ROUNDS, report)
        return [int(time) for time in report["times"]], report["warnings"]

    # --- What queries should return -------------------------------------------------------------------

    @staticmethod
    def labels_of(attributes):
        text = {True: "true", False: "false"}
        return tuple(sorted(
            (name.replace(".", "_"), text[value] if isinstance(value, bool) else str(value))
            for name, value in attributes.items()
        ))  # fmt: skip

    def expected(self, plan, times):
        """{(metric, labels): {time: bits}}, and the values of exponential histograms by (metric, labels, time).
        Totals are added in the order in which the SDK adds them, so that they are equal to the bit."""
        found, exponential, state = {}, {}, {}
        deltas = plan["temporality"] == "delta"  # Of counters and histograms.

        def put(name, labels, time, value):
            found.setdefault((name, labels), {})[time] = bits(float(value))

        for time, recorded in zip(times, plan["rounds"], strict=True):
            for rounds in state.values():
                rounds.append([])
            for one in recorded:
                key = (one["at"], self.labels_of(one["attributes"]))
                state.setdefault(key, [[]])[-1].append(float(one["value"]))
            for (at, labels), rounds in state.items():
                values = [value for one in rounds for value in one]
                # A round, and then the rounds: of deltas the collector adds these.
                total = self.total([self.total(one) for one in rounds])
                instrument = INSTRUMENTS[at]
                name, kind = instrument["name"], instrument["kind"]
                if kind == "Histogram":
                    if instrument.get("exponential") and deltas:
                        continue
                    put(name + "_count", labels, time, len(values))
                    put(name + "_sum", labels, time, total)
                    put(name + "_min", labels, time, min(rounds[-1] if deltas else values))
                    put(name + "_max", labels, time, max(rounds[-1] if deltas else values))
                    if instrument.get("exponential"):
                        exponential[name, labels, time] = values
                        continue
                    for bound in [*BOUNDS, math.inf]:
                        le = "+Inf" if math.isinf(bound) else f"{bound:g}"
                        put(name + "_bucket", tuple(sorted([*labels, ("le", le)])), time,
                            sum(value <= bound for value in values))  # fmt: skip
                elif kind in ("Counter", "UpDownCounter"):
                    put(name, labels, time, total)
                elif kind in ("ObservableCounter", "ObservableUpDownCounter"):
                    put(name, labels, time, self.observed_total(values, falls=kind != "ObservableCounter"))
                else:
                    put(name, labels, time, values[-1])
        return found, exponential

    @staticmethod
    def observed_total(values, falls):
        """What the SDK reports of a total that it observes: it adds the differences of what it observed, and
        each sum is rounded. A counter that falls starts again."""
        reported = values[0]
        for before, value in zip(values, values[1:]):
            reported = value if value < before and not falls else reported + (value - before)
        return reported

    @staticmethod
    def total(values):
        result = 0.0
        for value in values:
            result += value
        return result

    def stored(self, job):
        query = client.Query(self.collector.address)
        found, metrics = {}, {}
        for info, points in query.series(job):
            labels = tuple(sorted((label.name, label.value) for label in info.labels))
            self.assertEqual((info.host, info.task), ("h1", 3))
            found[info.metric.name, labels] = {time: pattern for time, _, _, pattern in points}
            metrics[info.metric.name] = info.metric
        query.close()
        return found, metrics

    def check_exponential(self, stored, exponential):
        """The bounds are the SDK's choice, so each bucket is checked for what it counts."""
        for (name, labels, time), values in exponential.items():
            buckets = {}
            for (metric, own), points in stored.items():
                rest = tuple(label for label in own if label[0] != "le")
                if metric == name + "_bucket" and rest == labels and time in points:
                    buckets[float(dict(own)["le"])] = double(points[time])
            self.assertEqual(buckets[math.inf], len(values))
            for bound, count in buckets.items():
                self.assertEqual(count, sum(value <= bound for value in values), (name, labels, bound))
            for value in values:
                above = min(bound for bound in buckets if bound >= value)
                # The SDK has 160 buckets. For the powers of ten here they are narrower than a factor of 2.
                self.assertLessEqual(above, 2 * value)

    def check(self, protocol, gzip=False, temporality="cumulative"):
        job = "sdk"
        plan = self.plan(protocol, temporality, job, gzip)
        times, warnings = self.send(plan)
        if temporality == "delta":
            self.assertEqual(len(warnings), ROUNDS, warnings)
            self.assertIn("an exponential histogram latency has deltas", warnings[0])
        else:
            self.assertEqual(warnings, [], "the SDK complains of an export")
        stored, metrics = self.stored(job)
        expected, exponential = self.expected(plan, times)
        self.check_exponential(stored, exponential)
        plain = {key: points for key, points in stored.items() if key[0] != "latency_bucket"}
        self.assertEqual(plain.keys(), expected.keys())
        for key, points in expected.items():
            self.assertEqual({t: double(v) for t, v in plain[key].items()}.keys(), points.keys(), key)
            for time, pattern in points.items():
                self.assertTrue(
                    plain[key][time] == pattern
                    or math.isnan(double(pattern)) and math.isnan(double(plain[key][time])),
                    (key, time, double(plain[key][time]), double(pattern)))  # fmt: skip
        self.assertGreater(sum(map(len, stored.values())), 200)
        for name, kind, unit, help_ in (
            ("train.loss", GAUGE, "nats", "Loss of a step."),
            ("examples", COUNTER, "1", "Examples seen."),
            ("balance", GAUGE, "", ""),
            ("joules", COUNTER, "J", ""),
            ("memory", GAUGE, "By", ""),
        ):
            if temporality == "delta" and name in ("joules", "memory"):
                continue
            metric = metrics[name]
            self.assertEqual((metric.type, metric.unit, metric.help), (kind, unit, help_), name)

    # --- Tests ---------------------------------------------------------------------------------

    def test_grpc(self):
        self.check("grpc")

    def test_grpc_gzip(self):
        self.check("grpc", gzip=True)

    def test_http_protobuf(self):
        self.check("http/protobuf")

    def test_http_protobuf_gzip(self):
        self.check("http/protobuf", gzip=True)

    def test_http_json(self):
        self.check("http/json")

    def test_deltas_become_totals_and_those_of_exponential_histograms_are_refused(self):
        self.check("http/protobuf", gzip=True, temporality="delta")


if __name__ == "__main__":
    harness.main()
