"""What the files in samples/ hold, read by code that shares nothing with tachoctl's readers. All of
them were made for these tests."""
import collections
import csv
import decimal
import json
import os
import re

import event_files
from imported import START_NS, sample

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples")
# Files that are no logs.
OTHERS = ["hf/config.json", "json/samples.jsonl", "mlperf/README.txt"]


def _ns(seconds):
    return int(decimal.Decimal(str(seconds)) * 10**9)


def _open(name, encoding="utf-8"):
    return open(os.path.join(ROOT, name), encoding=encoding, newline="")


class Attempts:
    """A step below the one before it begins the next attempt."""

    def __init__(self):
        self.number, self.last = 0, None

    def of(self, step):
        if self.last is not None and step < self.last:
            self.number += 1
        self.last = step
        return self.number


def table(name):
    attempts, found = Attempts(), []
    with _open(name) as file:
        for row in csv.DictReader(file):
            step = int(row.pop("step"))
            time_ns, attempt = _ns(row.pop("timestamp")), attempts.of(step)
            del row["note"]
            found += [sample(m, time_ns, step, v, attempt=attempt) for m, v in row.items()]
    return found


def json_lines(name):
    attempts, found = Attempts(), []
    with _open(name) as file:
        for line in file:
            row = json.loads(line)
            step, time_ns = row.pop("step"), _ns(row.pop("_timestamp"))
            attempt = attempts.of(step)
            row.update({f"train/{k}": v for k, v in row.pop("train", {}).items()})
            for metric, value in row.items():
                if metric in ("train/loss", "train/acc", "ok", "eval"):
                    found.append(sample(metric, time_ns, step, value, attempt=attempt))
    return found


def trainer_state(name):
    with _open(name) as file:
        history = json.load(file)["log_history"]
    return [
        sample(metric, START_NS + entry["step"] * 10**9, entry["step"], value)
        for entry in history for metric, value in entry.items() if metric != "step"
    ]  # fmt: skip


def results(name):
    with _open(name) as file:
        values = json.load(file)
    return [sample(m, START_NS + _ns(values["train_runtime"]), None, v) for m, v in values.items()]


def golden_values(name):
    with _open(name) as file:
        metrics = json.load(file)
    metrics.pop("iteration_timing_avg", None)
    found = []
    for metric, log in metrics.items():
        values = log["values"]
        if isinstance(values, list):
            values = {log["start_step"] + i * log["step_interval"]: v for i, v in enumerate(values)}
        for step, value in values.items():  # A step takes half a second in all of the files.
            found.append(sample(metric, START_NS + int(step) * 10**9 // 2, int(step), value))
    return found


def mlperf(name):
    found = []
    with _open(name) as file:
        for line in file:
            match = re.match(r".*:::MLLOG (.*)", line)
            entry = json.loads(match[1]) if match else {}
            if entry.get("key") == "eval_error":
                step = entry["metadata"]["samples_count"]
                found.append(sample("eval_error", entry["time_ms"] * 10**6, step, entry["value"]))
    return found


def nanogpt(name):
    attempts, found = Attempts(), []
    with _open(name) as file:
        for line in file:
            match = re.match(r"s(?:tep)?:(\d+)(?:/\d+)? (.*)", line)
            if not match:
                continue
            step = int(match[1])
            attempt = attempts.of(step)
            values = {k: v.removesuffix("ms") for k, v in (f.split(":") for f in match[2].split())}
            time_ns = START_NS + step * 10**9
            if "train_time" in values:
                time_ns = START_NS + _ns(values["train_time"]) // 1000
            found += [sample(m, time_ns, step, v, attempt=attempt) for m, v in values.items()]
    return found


def monitor(name):
    attempt, found = -1, []
    with _open(name) as file:
        for line in file:
            if line.startswith("#"):
                attempt, steps = attempt + 1, 0
                begin = _ns(json.loads(line[1:], parse_float=str)["t_start"])
            elif line[0] != "r":
                reward, length, seconds, success = line.strip().split(",")
                steps += int(length)
                row = {"r": reward, "l": length, "is_success": success}
                found += [
                    sample(m, begin + _ns(seconds), steps, v, attempt=attempt)
                    for m, v in row.items()
                ]
    return found


def smi(name, encoding):
    found = []
    with _open(name, encoding) as file:
        header = [c.strip().split(" [")[0] for c in next(file).split(",")]
        for line in file:
            row = dict(zip(header, (c.strip() for c in line.split(","))))
            hour, minute, second = row.pop("timestamp").split(" ")[1].split(":")
            time_ns = START_NS + (int(hour) - 12) * 3600 * 10**9 + _ns(second)
            labels = (("chip", row.pop("index")), ("name", row.pop("name")))
            for metric, cell in row.items():
                if cell != "[N/A]":
                    text = cell.split(" ")[0]
                    value = int(text, 16) if text.startswith("0x") else float(text.lstrip("P"))
                    found.append(sample(metric, time_ns, None, value, labels=labels))
    return found


def event_file_run(name):
    found, attempt, highest = [], 0, None
    for file in sorted(os.listdir(os.path.join(ROOT, name))):
        path = os.path.join(ROOT, name, file)
        if not os.path.isfile(path):
            continue
        with open(path, "rb") as opened:
            scalars = event_files.scalars(opened.read())
        attempt += highest is not None and scalars[0].step <= highest
        highest = max([s.step for s in scalars] + [highest or 0])
        found += [(s.tag, 0, "imported", (), attempt, s.time_ns, s.step, s.bits) for s in scalars]
    return found


# Name of the run: (format, path, what is in it).
RUNS = {
    "csv/loss": ("csv", "csv/loss.csv", table),
    "json/metrics": ("jsonl", "json/metrics.jsonl", json_lines),
    "hf/trainer_state": ("hf", "hf/trainer_state.json", trainer_state),
    "hf/all_results": ("hf", "hf/all_results.json", results),
    "megatron/lines": ("megatron", "megatron/lines.json", golden_values),
    "megatron/old": ("megatron", "megatron/old.json", golden_values),
    "megatron/one_line": ("megatron", "megatron/one_line.json", golden_values),
    "mlperf/result_0": ("mlperf", "mlperf/result_0.txt", mlperf),
    "nanogpt/timed": ("nanogpt", "nanogpt/timed.log", nanogpt),
    "nanogpt/two_runs": ("nanogpt", "nanogpt/two_runs.log", nanogpt),
    "rl/0.monitor": ("monitor", "rl/0.monitor.csv", monitor),
    "gpu/smi": ("nvidia-smi", "gpu/smi.csv", lambda n: smi(n, "utf-8")),
    "gpu/smi_powershell": ("nvidia-smi", "gpu/smi_powershell.csv", lambda n: smi(n, "utf-16")),
    "runs/small": ("tfevents", "runs/small", event_file_run),
    "runs/small/eval": ("tfevents", "runs/small/eval", event_file_run),
}


def samples_of(run):
    _, path, read = RUNS[run]
    return read(path)


def labelled(run):
    """The same, as an import of several runs stores them."""
    return [
        s[:3] + (tuple(sorted(s[3] + (("run", run),))),) + s[4:] for s in samples_of(run)
    ]


def series_of(samples):
    """How many there are: those of all attempts are one."""
    return len({s[:4] for s in samples})


def attempts_of(samples):
    return collections.Counter(s[4] for s in samples)
