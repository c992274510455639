"""Figures that tachoctl shows, against the same figures computed here from the raw samples that it
prints, at several resolutions."""
import csv
import io
import json
import math
import os
import time

import client
import harness
from tacho.v1 import ingest_pb2, types_pb2

SECOND = 1_000_000_000
NAN, INFINITY = float("nan"), float("inf")
COUNTER = types_pb2.METRIC_TYPE_COUNTER
HISTOGRAM = types_pb2.METRIC_TYPE_HISTOGRAM
METRICS = [
    ("loss", "nats"), ("noisy", "1"), ("tokens", "1", COUNTER, {}), ("power", "W"),
    ("latency", "s", HISTOGRAM, {"le": "0.1"}), ("latency", "s", HISTOGRAM, {"le": "+Inf"}),
]  # fmt: skip
POINTS = [(), ("-n", "1"), ("-n", "37"), ("-n", "10000")]
# (attempt, first step, last step, first second): the second attempt runs 150 steps again, 90 s later.
ATTEMPTS = [(0, 0, 649, 0), (1, 500, 999, 740)]


def row(job, task, attempt, step):
    """The values of METRICS at a step."""
    worse = 1.003 if job == "b" else 1.0
    loss = worse * 3 / (1 + step / 40) + 0.01 * math.sin(step + task)
    noisy = NAN if step % 97 == 5 else INFINITY if step == 120 + task else 0.5 + step % 11
    if job == "b" and step == 999 and task == 1:
        noisy = -INFINITY
    since = step - ATTEMPTS[attempt][1]
    tokens = (512 + 8 * task) * (since + 1) * worse
    return [loss, noisy, tokens, 200 + 50 * math.sin(step / 9) + task, 3.0 * since, 4.0 * since]


class Figures(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))
        self.begin_ns = time.time_ns() - 4000 * SECOND
        self.stream = client.Stream(self.collector.address, "agent", 1, 1)
        self.addCleanup(self.stream.close)
        self.sequence = self.layouts = 0

    def send(self, message):
        self.stream.send(message)
        self.assertTrue(self.stream.wait_durable(self.sequence), self.stream.error)

    def feed(self, job, metrics, rows, task=0, attempt=0, host=None):
        """`rows`: (second, step, values)."""
        self.layouts += 1
        self.sequence += 1
        host = host or f"host-{task}"
        self.stream.send(client.layout(self.layouts, job, host, metrics, task, attempt, True))
        times = [self.begin_ns + round(second * SECOND) for second, _, _ in rows]
        values = [value for _, _, values in rows for value in values]
        steps = [step for _, step, _ in rows]
        self.send(client.batch(self.sequence, self.layouts, times, values, steps))

    def feed_restarted(self, job):
        for task in (0, 1):
            for attempt, first, last, second in ATTEMPTS:
                rows = [
                    (second + step - first + 0.1 * task, step, row(job, task, attempt, step))
                    for step in range(first, last + 1)
                ]
                self.feed(job, METRICS, rows, task, attempt, f"host-{task}-{attempt}")

    def plan(self, job, steps):
        self.sequence += 1
        facts = ingest_pb2.Attributes(
            sequence=self.sequence, job=job, attempt=0, values={"planned_steps": str(steps)}
        )
        self.send(ingest_pb2.ClientMessage(attributes=facts))

    def ctl(self, *arguments, code=0, env=None):
        done = harness.tachoctl(self.collector.address, *arguments, env=env)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        return done

    def json(self, *arguments, env=None):
        return json.loads(self.ctl(*arguments, "-o", "json", env=env).stdout)

    def raw(self, job, metric, *arguments):
        """{series: [(time ns, attempt, step, value)]}, as recorded."""
        text = self.ctl("query", job, metric, *arguments, "-o", "csv").stdout
        series = {}
        for line in csv.DictReader(io.StringIO(text)):
            name = (line["task"], line["host"], line["labels"])
            sample = (
                int(line["time_unix_ns"]), int(line["attempt"]), int(line["step"]),
                float(line["value"].replace("Infinity", "inf")),
            )  # fmt: skip
            series.setdefault(name, []).append(sample)
        return series

    def expect_close(self, actual, expected, what):
        actual = float(str(actual).replace("Infinity", "inf"))
        if math.isnan(expected):
            self.assertTrue(math.isnan(actual), (what, actual))
        elif math.isinf(expected):
            self.assertEqual(actual, expected, what)
        else:
            self.assertAlmostEqual(actual, expected, delta=1e-9 * max(1, abs(expected)), msg=what)


def mean(values):
    return math.fsum(values) / len(values) if values else NAN


def by_step(series):
    """The samples of each step that count: of each series the newest."""
    steps = {}
    for samples in series.values():
        newest = {}
        for time_ns, attempt, step, value in samples:
            if step not in newest or (attempt, time_ns) >= newest[step][:2]:
                newest[step] = (attempt, time_ns, value)
        for step, (_, _, value) in newest.items():
            steps.setdefault(step, []).append(value)
    return steps


def across(values):
    """IEEE's average, which math.fsum refuses for infinities."""
    return sum(values) / len(values)


def figures(series):
    steps = by_step(series)
    samples = [value for values in steps.values() for value in values]
    finite = [value for value in samples if math.isfinite(value)]
    return {
        "count": len(samples), "non_finite": len(samples) - len(finite),
        "min": min(finite), "max": max(finite), "avg": mean(finite),
        "first": across(steps[min(steps)]), "first_step": min(steps),
        "last": across(steps[max(steps)]), "last_step": max(steps),
    }  # fmt: skip


def growth(series):
    """What a counter grew by, and how fast one series did on average."""
    increase = seconds = 0
    for samples in series.values():
        samples = sorted(samples)
        seconds += (samples[-1][0] - samples[0][0]) / 1e9
        for before, after in zip(samples, samples[1:]):
            reset = after[1] != before[1] or after[3] < before[3]
            increase += after[3] if reset else after[3] - before[3]
    return increase, increase / seconds


def differences(first, second):
    a, b = by_step(first), by_step(second)
    pairs = [(across(a[step]), across(b[step])) for step in sorted(set(a) & set(b))]
    pairs = [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
    difference = mean([y - x for x, y in pairs])
    return {
        "shared": len(pairs), "mean_difference": difference,
        "max_difference": max(abs(y - x) for x, y in pairs),
        "relative_difference": difference / abs(mean([x for x, _ in pairs])),
    }  # fmt: skip


def integral(samples, max_gap_s=60.0):
    """Joules, seconds covered, and seconds that are not."""
    finite = [(t, v) for t, _, _, v in samples if math.isfinite(v)]
    total, covered, left = [], 0, 0  # Times in ns: as seconds they would lose their last digits.
    for (t0, v0), (t1, v1) in zip(finite, finite[1:]):
        if t1 - t0 > max_gap_s * 1e9:
            left += t1 - t0
        else:
            covered += t1 - t0
            total.append((v0 + v1) / 2 * (t1 - t0) / 1e9)
    return math.fsum(total), covered / 1e9, left / 1e9


class CompareTest(Figures):
    def setUp(self):
        super().setUp()
        self.feed_restarted("a")
        self.feed_restarted("b")
        self.feed("a", [("one", "1")], [(5, 17, [0.125])])
        self.feed("b", [("one", "1")], [(5, 17, [0.25])])

    def metric(self, name, *arguments):
        answer = self.json("compare", "a", "b", "--metric", name, *arguments)
        return answer["metrics"][0]["columns"]

    def test_figures_are_those_of_the_raw_samples_at_any_number_of_points(self):
        for name in ("loss", "noisy", "power", "one"):
            raw = [self.raw(job, name, "--attempts", "effective") for job in ("a", "b")]
            self.assertGreater(sum(map(len, raw[0].values())), 0)
            for points in POINTS:
                columns = self.metric(name, *points)
                for column, samples in zip(columns, raw):
                    for figure, expected in figures(samples).items():
                        self.expect_close(column[figure], expected, (name, points, figure))
                for figure, expected in differences(*raw).items():
                    self.expect_close(columns[1][figure], expected, (name, points, figure))

    def test_one_attempt_and_all_attempts(self):
        for points in POINTS:
            for subject, *choice in (("a@1", "--attempt", "1"), ("a@0", "--attempt", "0")):
                answer = self.json("compare", subject, "b", "--metric", "loss", *points)
                column = answer["metrics"][0]["columns"][0]
                expected = figures(self.raw("a", "loss", *choice))
                for figure, value in expected.items():
                    self.expect_close(column[figure], value, (subject, points, figure))

    def test_elapsed_time_has_the_same_figures_at_any_number_of_points(self):
        raw = self.raw("a", "noisy", "--attempts", "effective")
        samples = [value for rows in raw.values() for *_, value in rows]
        finite = [value for value in samples if math.isfinite(value)]
        ends = [max(rows) for rows in raw.values()]
        last = [rows[3] for rows in ends if rows[1] == 1]  # Attempt 0 ended on other hosts.
        first = self.metric("noisy", "--by", "elapsed")
        for points in POINTS:
            columns = self.metric("noisy", "--by", "elapsed", *points)
            self.assertEqual(columns, first, points)
            self.expect_close(columns[0]["avg"], mean(finite), points)
            self.expect_close(columns[0]["last"], across(last), points)
            self.assertEqual(columns[0]["count"], len(samples))

    def test_counters_and_histograms_are_compared_by_their_rate(self):
        for name, match in (("tokens", ()), ("latency", ("-m", "le=+Inf"))):
            raw = [self.raw(job, name, "--attempts", "effective", *match) for job in ("a", "b")]
            (increase, rate), (_, other) = map(growth, raw)
            for points in POINTS:
                columns = self.metric(name, *points)
                self.assertIsNone(columns[0]["avg"])
                self.expect_close(columns[0]["increase"], increase, (name, points))
                self.expect_close(columns[0]["rate"], rate, (name, points))
                self.expect_close(columns[1]["mean_difference"], other - rate, (name, points))
                self.expect_close(columns[0]["last"], figures(raw[0])["last"], (name, points))

    def test_the_verdict_of_a_report_does_not_depend_on_the_points(self):
        raw = [self.raw(job, "loss", "--attempts", "effective") for job in ("a", "b")]
        ends = [figures(samples)["last"] for samples in raw]
        for statistic, change in (
            ("mean", differences(*raw)["relative_difference"]),
            ("last", (ends[1] - ends[0]) / ends[0]),
        ):
            self.assertGreater(change, 0)
            for points in POINTS:
                for factor, code in ((1.001, 0), (0.999, 4)):
                    limit = f"loss:{statistic}:+{100 * change * factor:.9f}%"
                    self.ctl("report", "a", "b", "--metric", "loss", "-t", limit, *points, code=code)

    def test_a_metric_without_samples_has_no_figures(self):
        done = self.ctl("compare", "a", "b", "--metric", "loss", "--steps", "5000:", code=1)
        self.assertIn("no metric has samples", done.stderr)
        self.feed("a", [("only_a", "1")], [(5, 17, [2.0])])
        for points in POINTS:
            columns = self.metric("only_a", *points)
            self.assertEqual((columns[1]["count"], columns[1]["last"]), (0, "NaN"))
            self.assertEqual((columns[0]["last"], columns[1]["shared"]), (2, 0))

    def test_a_plot_says_the_last_sample_at_any_width(self):
        raw = self.raw("b", "loss", "--attempts", "effective")
        last = figures(raw)["last"]
        for columns in ("40", "97", "300"):
            env = {"COLUMNS": columns}
            (curve,) = self.json("plot", "b", "loss", "--by", "step", env=env)["curves"]
            self.expect_close(curve["last"], last, columns)
            text = self.ctl("plot", "b", "loss", "--by", "step", env=env).stdout
            self.assertIn(f"last {last:.6g}", text)


class PointsTest(Figures):
    def test_points_are_where_samples_are(self):
        for attempt, second in ((0, 0), (1, 98)):
            rows = [(second + i / 25, 200 * attempt + i, [float(i)]) for i in range(200)]
            self.feed("a", [("loss", "1")], rows, 0, attempt)
        rows = [(s * 1000, s * 1000, [1.0]) for s in range(3)]
        self.feed("sparse", [("loss", "1")], rows)
        for by in (("--by", "time"), ("--by", "step")):
            (series,) = self.json("query", "a", "loss", "--points", "20", *by)["series"]
            points = series["samples"]
            self.assertGreaterEqual(len(points), 18, "two attempts of 8 s, 90 s apart")
            self.assertLessEqual(len(points), 20)
            self.assertEqual(sum(point["count"] for point in points), 400)
            key = "last_time_unix_ns", "first_time_unix_ns"
            if by[1] == "step":
                key = "last_step", "first_step"
            for point in points:
                self.assertLess(point[key[0]] - point[key[1]], series["bucket_width"])
            self.assertEqual(points[-1]["last"], 199)
        text = self.ctl("query", "a", "loss", "--points", "20").stdout
        self.assertIn("points of 0.", text, "how much a point covers")
        (series,) = self.json("query", "sparse", "loss", "--points", "100")["series"]
        self.assertEqual([point["count"] for point in series["samples"]], [1, 1, 1])

    def test_tasks_still_meet_where_gaps_take_no_points(self):
        for task in (0, 1):
            for attempt, second in ((0, 0), (1, 98)):
                rows = [(second + i / 25 + task / 300, i, [1.0]) for i in range(200)]
                self.feed("a", [("loss", "1")], rows, task, attempt)
            # Ten seconds from one sample to the next: no gap, however many points are asked for.
            rows = [(10 * i + task / 300, i, [1.0]) for i in range(12)]
            self.feed("slow", [("loss", "1")], rows, task)
        (series,) = self.json(
            "query", "a", "loss", "--across", "sum", "--points", "20"
        )["series"]  # fmt: skip
        self.assertGreaterEqual(len(series["samples"]), 17)
        self.assertEqual({point["last"] for point in series["samples"]}, {2.0})
        self.assertEqual(sum(point["count"] for point in series["samples"]), 800)
        for points in ("5", "60", "400"):
            (series,) = self.json(
                "query", "slow", "loss", "--across", "sum", "--points", points
            )["series"]  # fmt: skip
            self.assertEqual({point["last"] for point in series["samples"]}, {2.0}, points)


class IntegralTest(Figures):
    def expect(self, found, expected, what):
        joules, covered, left = expected
        self.expect_close(found["value"], joules, what)
        self.assertAlmostEqual(found["covered_seconds"], covered, places=6, msg=what)
        self.assertAlmostEqual(found["not_covered_seconds"], left, places=6, msg=what)
        self.assertEqual(found["unit"], "J")
        self.expect_close(found["kilowatt_hours"], joules / 3.6e6, what)

    def integrate(self, *arguments):
        return self.json("query", "a", "power", "--integrate", *arguments)["integrals"]

    def test_energy_is_what_the_raw_samples_come_to(self):
        odd = {40: NAN, 41: INFINITY, 90: 0.0}
        for task in (0, 1):
            rows = [
                (1.3 * i + (80 * task if i > 100 else 0), i, [odd.get(i, 300 + 7.5 * (i % 13))])
                for i in range(300)
            ]
            self.feed("a", [("power", "W")], rows, task)
        raw = self.raw("a", "power")
        for gap, flags in ((60, ()), (600, ("--max-gap", "10m")), (2, ("--max-gap", "2s"))):
            found = self.integrate(*flags)
            self.assertEqual(len(found), 2)
            each = [integral(samples, gap) for _, samples in sorted(raw.items())]
            for one, expected in zip(found, each):
                self.expect(one, expected, gap)
            (total,) = self.integrate("--across", "sum", *flags)
            self.expect(total, [sum(figure) for figure in zip(*each)], gap)
            self.assertEqual((total["series"], total["task"], total["non_finite"]), (2, None, 4))
        self.assertGreater(integral(raw["1", "host-1", ""])[2], 80, "the gap is reported")
        apart = self.integrate("--across", "sum", "--group-by", "task")
        self.assertEqual([one["task"] for one in apart], [0, 1])
        self.assertIn("KWH", self.ctl("query", "a", "power", "--integrate").stdout)
        self.ctl("query", "a", "powre", "--integrate", code=1)

    def test_a_report_has_the_energy_of_the_job(self):
        self.feed_restarted("a")
        self.feed_restarted("b")
        report = self.json("report", "a", "b@1")
        (energy,) = report["energy"]
        everything = [integral(rows) for rows in self.raw("a", "power").values()]
        attempt = [integral(rows) for rows in self.raw("b", "power", "--attempt", "1").values()]
        for column, parts in zip(energy["columns"], (everything, attempt)):
            self.expect_close(column["joules"], sum(joules for joules, _, _ in parts), energy)
            covered = sum(seconds for _, seconds, _ in parts)
            self.assertAlmostEqual(column["covered_seconds"], covered, places=6)
        self.assertIn(" kWh", self.ctl("report", "a", "b").stdout)


class ProgressTest(Figures):
    def test_status_and_goodput_agree_and_a_hundred_percent_is_all(self):
        self.plan("a", 1000)
        for end, text in ((999, "99.9 %"), (1000, "100.0 %")):
            first = 0 if end == 999 else 999
            rows = [(step, step, [1.0]) for step in range(first, end)]
            self.feed("a", [("step_time_seconds", "s")], rows)
            status = self.json("status", "a")["progress"]
            self.assertEqual(status, end / 1000)
            self.assertEqual(self.json("goodput", "a")["steps"]["progress_ratio"], status)
            for command in ("status", "goodput"):
                self.assertIn(text, self.ctl(command, "a").stdout, command)


if __name__ == "__main__":
    harness.main()
