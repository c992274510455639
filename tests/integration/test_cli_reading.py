"""tachoctl's plots, comparisons, reports and live views, against a live collector."""
import csv
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import client
import harness
from tacho.v1 import ingest_pb2, types_pb2

SECOND = 1_000_000_000
METRICS = [("loss", "nats"), ("accuracy", "1")]
RESTART = 200  # The second attempt begins here; the first one had reached LAST_OF_FIRST.
LAST_OF_FIRST = 249
STEPS = 400
TERMINAL = {"TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "", "LC_CTYPE": ""}


def loss(job, task, step):
    if job == "bad" and task == 1 and step >= 150:
        return float("nan")
    worse = 1.1 if job == "bad" else 1.0
    return worse * (3 + task / 4 - 2 * step / STEPS)


class Feeder:
    """Rows of any job, durable when a method returns."""

    def __init__(self, test, address, begin_ns, generation=1):
        self.begin_ns = begin_ns
        self.stream = client.Stream(address, f"agent-{generation}", generation, 1)
        test.addCleanup(self.stream.close)
        self.sequence = 0
        self.layouts = 0

    def rows(self, job, task, attempt, steps, values):
        self.layouts += 1
        self.stream.send(
            client.layout(self.layouts, job, f"host-{task}", METRICS, task, attempt, True)
        )
        times = [self.begin_ns + (attempt * 1000 + step) * SECOND for step in steps]
        flat = [v for step in steps for v in (values(step), step / STEPS)]
        self.sequence += 1
        self.stream.send(client.batch(self.sequence, self.layouts, times, flat, list(steps)))
        self.done()

    def event(self, job, attempt, kind, step, message, fields=None):
        self.sequence += 1
        source = types_pb2.Source(job=job, task=0, host="host-0", attempt=attempt)
        time_ns = self.begin_ns + (attempt * 1000 + step) * SECOND
        event = ingest_pb2.Event(
            sequence=self.sequence, source=source, time_unix_ns=time_ns, step=step, kind=kind,
            message=message, fields=fields or {},
        )  # fmt: skip
        self.stream.send(ingest_pb2.ClientMessage(event=event))
        self.done()

    def attributes(self, job, attempt, **values):
        self.sequence += 1
        facts = ingest_pb2.Attributes(
            sequence=self.sequence, job=job, attempt=attempt, values=values
        )
        self.stream.send(ingest_pb2.ClientMessage(attributes=facts))
        self.done()

    def done(self):
        if not self.stream.wait_durable(self.sequence):
            raise AssertionError(self.stream.error)


def on_terminal(arguments, columns, env):
    """What a program prints on a terminal of so many columns, and its exit code."""
    master, slave = pty.openpty()
    size = ["stty", "rows", "24", "cols", str(columns)]
    subprocess.run(size, stdin=slave, check=True)
    process = subprocess.Popen(
        arguments, env=env, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave
    )
    os.close(slave)
    text = b""
    try:
        while piece := os.read(master, 65536):
            text += piece
    except OSError:  # How a terminal ends.
        pass
    os.close(master)
    return text.decode(), process.wait(harness.PATIENCE_S)


class Reading(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))
        self.begin_ns = time.time_ns() - 3000 * SECOND
        self.feeder = Feeder(self, self.collector.address, self.begin_ns)

    def feed_restarted_job(self):
        feed = self.feeder
        for task in (0, 1):
            feed.rows("good", task, 0, range(LAST_OF_FIRST + 1), lambda s: loss("good", task, s))
        feed.event("good", 0, "ended", LAST_OF_FIRST, "killed", {"exit_code": "137"})
        for task in (0, 1):
            feed.rows("good", task, 1, range(RESTART, STEPS), lambda s: loss("good", task, s))
        feed.attributes("good", 1, planned_steps="500", seed="1")

    def feed_bad_job(self):
        for task in (0, 1):
            self.feeder.rows("bad", task, 0, range(STEPS), lambda s: loss("bad", task, s))
        self.feeder.attributes("bad", 0, planned_steps="500", seed="2")

    def ctl(self, *arguments, code=0, env=None):
        done = harness.tachoctl(self.collector.address, *arguments, env=env)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        return done

    def json(self, *arguments, code=0):
        return json.loads(self.ctl(*arguments, "-o", "json", code=code).stdout)

    def csv(self, *arguments):
        text = self.ctl(*arguments, "-o", "csv").stdout
        return list(csv.DictReader(io.StringIO(text), strict=True))


class ListsTest(Reading):
    def test_attempts_and_what_was_superseded(self):
        self.feed_restarted_job()
        answer = self.json("attempts", "good")
        first, second = answer["attempts"]
        self.assertEqual(first["state"], "ended")
        self.assertEqual(first["end"]["fields"], {"exit_code": "137"})
        self.assertEqual(
            first["superseded"], [{"first_step": RESTART, "last_step": LAST_OF_FIRST}]
        )
        self.assertEqual((second["first_step"], second["last_step"]), (RESTART, STEPS - 1))
        spans = [(s["first_step"], s["last_step"], s["attempt"]) for s in answer["timeline"]]
        self.assertEqual(spans, [(0, RESTART - 1, 0), (RESTART, STEPS - 1, 1)])
        self.assertIn("Effective steps: 0..199 of attempt 0", self.ctl("attempts", "good").stdout)

    def test_query_of_the_effective_timeline(self):
        self.feed_restarted_job()
        rows = self.csv("query", "good", "loss", "-m", "task=0", "--by", "step",
                        "--attempts", "effective")  # fmt: skip
        self.assertEqual([int(r["step"]) for r in rows], list(range(STEPS)))
        self.assertEqual({int(r["attempt"]) for r in rows if int(r["step"]) >= RESTART}, {1})
        everything = self.csv("query", "good", "loss", "-m", "task=0")
        self.assertEqual(len(everything), LAST_OF_FIRST + 1 + STEPS - RESTART)
        latest = self.csv("query", "good", "loss", "-m", "task=0", "--attempts", "latest")
        self.assertEqual(len(latest), STEPS - RESTART)

    def test_query_counter_and_quantile(self):
        self.feed_bad_job()
        rows = self.csv("query", "bad", "accuracy", "-m", "task=0", "--rate")
        self.assertEqual(len(rows), STEPS - 1)
        self.assertAlmostEqual(float(rows[10]["value"]), 1 / STEPS)
        rows = self.csv("query", "bad", "loss", "--quantile", "0.5", "--steps", "10:10")
        self.assertAlmostEqual(
            float(rows[0]["value"]), (loss("bad", 0, 10) + loss("bad", 1, 10)) / 2
        )

    def test_jobs_by_state_label_and_time(self):
        self.feed_restarted_job()
        self.feed_bad_job()
        jobs = {job["job"]: job["state"] for job in self.json("jobs")["jobs"]}
        self.assertEqual(set(jobs), {"good", "bad"})
        named = [j["job"] for j in self.json("jobs", "--label", "seed=2")["jobs"]]
        self.assertEqual(named, ["bad"])
        state = jobs["good"]
        self.assertIn("good", [j["job"] for j in self.json("jobs", "--state", state)["jobs"]])
        self.ctl("jobs", "--since", "1s", "--to", "now", code=1)

    def test_labels(self):
        self.feed_bad_job()
        said = self.ctl("labels", "bad", code=1).stderr
        self.assertIn("tachoctl labels bad task", said, "it has no labels of its own")
        values = [(r["value"], int(r["series"])) for r in self.csv("labels", "bad", "task")]
        self.assertEqual(values, [("0", 2), ("1", 2)])
        layout = client.layout(99, "chips", "host-0", [("watts", "W")] * 2)
        for chip, series in enumerate(layout.layout.series):
            series.labels.add(name="chip", value=str(chip))
        self.feeder.stream.send(layout)
        self.feeder.sequence += 1
        rows = client.batch(self.feeder.sequence, 99, [self.begin_ns], [1.0, 2.0])
        self.feeder.stream.send(rows)
        self.feeder.done()
        self.assertEqual(self.csv("labels", "chips"), [{"label": "chip", "series": "2"}])
        values = self.csv("labels", "chips", "chip", "-m", "chip=1")
        self.assertEqual(values, [{"value": "1", "series": "1"}])

    def test_first_non_finite(self):
        self.feed_bad_job()
        answer = self.json("nonfinite", "bad")
        (one,) = answer["spread"]
        self.assertEqual((one["metric"], one["task"], one["step"]), ("loss", 1, 150))
        self.assertEqual((one["value"], one["last_finite"]), ("NaN", loss("bad", 1, 149)))
        self.assertEqual((one["non_finite"], one["finite_after"]), (STEPS - 150, 0))
        self.assertIn("1 of 4 series", self.ctl("nonfinite", "bad").stdout)
        self.assertIn("All finite", self.ctl("nonfinite", "bad", "accuracy").stdout)

    def test_events_newest_and_of_kinds(self):
        self.feed_restarted_job()
        for step in (210, 220, 230):
            self.feeder.event("good", 1, "checkpoint_saved", step, "")
        events = self.json("events", "good", "--kind", "checkpoint_saved", "--kind", "ended",
                           "--newest", "2")["events"]  # fmt: skip
        self.assertEqual([e["step"] for e in events], [220, 230])


class PlotTest(Reading):
    def test_plot_is_the_stored_course(self):
        self.feed_restarted_job()
        (curve,) = self.json("plot", "good", "loss", "--by", "step")["curves"]
        self.assertEqual(curve["series"], 2)
        points = curve["points"]
        self.assertEqual(sum(p["count"] for p in points), 2 * STEPS, "effective: each step once")
        self.assertEqual(max(p["max"] for p in points), loss("good", 1, 0))
        self.assertEqual(min(p["min"] for p in points), loss("good", 0, STEPS - 1))
        for point in points:
            self.assertLessEqual(point["min"], point["avg"])
            self.assertLessEqual(point["avg"], point["max"])

    def test_plot_fits_and_has_no_colour_when_piped(self):
        self.feed_restarted_job()
        self.feed_bad_job()
        for columns in ("80", "40"):
            for flags in (["--by", "step"], ["--by", "step", "--ascii"], ["--log"]):
                done = self.ctl("plot", "good", "bad", "loss", *flags, env={"COLUMNS": columns})
                lines = done.stdout.splitlines()
                self.assertGreater(len(lines), 15)
                self.assertLessEqual(max(map(len, lines)), int(columns), done.stdout)
                self.assertNotIn("\x1b", done.stdout)
        self.assertIn("NaN or infinite", self.ctl("plot", "bad", "loss", "--by", "step").stdout)
        self.assertIn("\x1b[", self.ctl("plot", "bad", "loss", "--color", "always").stdout)

    def test_plot_on_a_terminal_takes_its_width_and_colours(self):
        self.feed_bad_job()
        arguments = [os.environ["TACHO_CTL"], "plot", "bad", "loss"]
        env = {**os.environ, **TERMINAL, "TACHO_ADDRESS": self.collector.address, "TZ": "UTC"}
        env.pop("COLUMNS", None)
        env.pop("NO_COLOR", None)
        text, code = on_terminal(arguments, 100, env)
        self.assertEqual(code, 0, text)
        self.assertIn("\x1b[36m", text)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text).split("\r\n")
        self.assertEqual(max(map(len, plain)), 100)
        text, _ = on_terminal(arguments, 100, {**env, "NO_COLOR": "1"})
        self.assertNotIn("\x1b", text)
        text, _ = on_terminal(arguments, 100, {**env, "LANG": "C"})
        self.assertTrue(text.isascii(), text)

    def test_plot_of_nothing_says_why(self):
        self.feed_bad_job()
        self.assertIn("'loss'", self.ctl("plot", "bad", "los", code=1).stderr)
        self.assertIn("bad", self.ctl("plot", "bda", "loss", code=1).stderr)
        self.assertIn("--height", self.ctl("plot", "bad", "loss", "--height", "1", code=2).stderr)


class CompareTest(Reading):
    def setUp(self):
        super().setUp()
        self.feed_restarted_job()
        self.feed_bad_job()

    def test_compare_two_jobs(self):
        answer = self.json("compare", "good", "bad", "--steps", "0:99")
        self.assertEqual([a["name"] for a in answer["attributes"]], ["seed"])
        (metric,) = [m for m in answer["metrics"] if m["metric"] == "loss"]
        self.assertAlmostEqual(metric["columns"][1]["relative_difference"], 0.1, places=6)
        text = self.ctl("compare", "good", "bad", env={"COLUMNS": "80"}).stdout
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)

    def test_compare_two_attempts(self):
        answer = self.json("compare", "good@0", "good@1", "--metric", "loss", "--rows",
                           "--points", "1000")  # fmt: skip
        rows = answer["metrics"][0]["rows"]
        both = [r for r in rows if None not in r["avg"]]
        self.assertEqual(len(both), LAST_OF_FIRST + 1 - RESTART)
        self.assertTrue(all(row["difference"][1] == 0 for row in both))
        self.ctl("compare", "good@0", "good@7", code=1)

    def test_report_and_its_exit_codes(self):
        path = os.path.join(self.directory, "report.html")
        done = self.ctl("report", "good", "bad", "--format", "html", "-f", path,
                        "--threshold", "accuracy:1%")  # fmt: skip
        self.assertEqual(done.stdout, "")
        with open(path, encoding="utf-8") as file:
            page = file.read()
        self.assertIn("<svg", page)
        self.assertNotIn("<script", page)
        self.assertEqual(re.findall(r'(?:src|href)="', page), [])
        done = self.ctl("report", "good", "bad", "--threshold", "loss:+5%", code=4)
        self.assertIn("**FAILED: 1 of 1 threshold**", done.stdout)
        self.assertIn("NaN or infinite", done.stderr)
        finite = ["--steps", "0:99"]
        self.ctl("report", "good", "bad", *finite, "--threshold", "loss:+5%", code=4)
        self.ctl("report", "good", "bad", *finite, "--threshold", "loss:+11%")
        self.ctl("report", "good", "nobody", "--threshold", "loss:+11%", code=1)
        self.ctl("report", "good", "bad", "--threshold", "loss", code=2)
        self.assertEqual(self.json("report", "good", "good@1")["verdict"], "none")


class WatchTest(Reading):
    def begin(self, *arguments, terminal=False):
        """A running 'tachoctl watch' and what it prints to."""
        if terminal:
            master, slave = pty.openpty()
            subprocess.run(["stty", "rows", "20", "cols", "70"], stdin=slave, check=True)
        else:
            master, slave = os.pipe()
        self.addCleanup(os.close, master)
        process = subprocess.Popen(
            [os.environ["TACHO_CTL"], "watch", *arguments],
            env={**os.environ, **TERMINAL, "TACHO_ADDRESS": self.collector.address, "TZ": "UTC"},
            stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(slave)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        return process, master

    def read_until(self, source, text, seen=""):
        """Everything printed up to `text`."""
        deadline = time.monotonic() + harness.PATIENCE_S
        while text not in seen:
            self.assertLess(time.monotonic(), deadline, f"no {text!r} in {seen!r}")
            if not select.select([source], [], [], 0.2)[0]:
                continue
            try:
                piece = os.read(source, 65536)
            except OSError:  # How a terminal ends.
                piece = b""
            self.assertTrue(piece, f"ended without {text!r}: {seen!r}")
            seen += piece.decode("utf-8", "replace")
        return seen

    def recent(self, generation=2):
        return Feeder(self, self.collector.address, time.time_ns() - 100 * SECOND, generation)

    def test_samples_as_they_come_over_a_restart_of_the_collector(self):
        feed = self.recent()
        feed.rows("live", 0, 0, range(10), float)
        process, out = self.begin("live", "loss", "-o", "json")
        seen = self.read_until(out, '"value": 9}')
        feed.rows("live", 0, 0, range(10, 20), float)
        seen = self.read_until(out, '"value": 19}', seen)
        self.collector.stop()
        seen = self.read_until(out, "lost the collector", seen)
        self.collector.start()
        again = self.recent(3)
        again.begin_ns = feed.begin_ns
        again.rows("live", 0, 0, range(20, 25), float)
        seen = self.read_until(out, '"value": 24}', seen)
        self.assertIn("connected again", seen)
        lines = [json.loads(line) for line in seen.splitlines() if line.endswith("}")]
        steps = [line["step"] for line in lines if "value" in line]
        self.assertEqual(steps, list(range(25)), "each once, in order")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(harness.PATIENCE_S), 0)

    def test_screen_is_taken_down_by_ctrl_c(self):
        feed = self.recent()
        feed.rows("live", 0, 0, range(90), lambda step: 1 + step)
        feed.rows("live", 1, 0, range(50), lambda step: float("nan") if step == 49 else 1)
        process, terminal = self.begin("live", terminal=True)
        seen = self.read_until(terminal, "loss is NaN at step 49")
        self.assertTrue(seen.startswith("\x1b[?1049h\x1b[?25l"), seen[:40])
        self.assertIn("COURSE", seen)
        feed.rows("live", 0, 0, range(90, 95), lambda step: 1 + step)
        seen = self.read_until(terminal, "step 94", seen)
        process.send_signal(signal.SIGINT)
        end = self.read_until(terminal, "\x1b[?25h\x1b[?1049l", seen)
        self.assertEqual(process.wait(harness.PATIENCE_S), 0)
        screen = end.split("\x1b[?25h")[0].split("\x1b[H")[-1]
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen).split("\r\n")
        self.assertLessEqual(max(len(line.rstrip()) for line in lines), 70, lines)
        self.assertLessEqual(len(lines), 20)

    def test_job_that_is_not_there_yet_is_waited_for(self):
        process, out = self.begin("later")
        seen = self.read_until(out, "no job 'later' yet")
        self.recent().rows("later", 0, 0, range(5), lambda step: 2.5)
        self.read_until(out, "loss=2.5", seen)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(harness.PATIENCE_S), 0)


if __name__ == "__main__":
    harness.main()
