"""What files hold that tachoctl imports, read by code that shares nothing with its readers; and what
a collector has stored."""
import collections
import json
import os
import re

import client
import event_files
import harness
import mllog

START = "2026-01-31T12:00:00Z"
START_NS = 1_769_860_800 * 10**9


def stored(address, job):
    """Counter of (metric, task, host, labels, attempt, time, step, bits)."""
    from tacho.v1 import query_pb2

    query = client.Query(address)
    found = collections.Counter()
    try:
        request = query_pb2.RangeRequest(selector=query_pb2.Selector(job=job))
        for piece in query.stub.Range(request, timeout=harness.PATIENCE_S):
            if piece.HasField("series"):
                info = piece.series
                key = (
                    info.metric.name, info.task if info.HasField("task") else None, info.host,
                    tuple((label.name, label.value) for label in info.labels),
                )  # fmt: skip
            for time_ns, step, attempt, bits in client.points_of(piece.points):
                step = None if step == -(1 << 63) else step
                found[key + (attempt, time_ns, step, bits)] += 1
    finally:
        query.close()
    return found


def once(samples):
    """Of samples with the same series, attempt, time and step only the last one stays."""
    last = {}
    for sample in samples:
        last[sample[:-1]] = sample
    return collections.Counter(last.values())


def sample(metric, time_ns, step, value, host="imported", labels=(), attempt=0):
    return metric, 0, host, tuple(labels), attempt, time_ns, step, client.bits(float(value))


def event_file_samples(root):
    """What all runs below root hold, with the label that distinguishes them; and what is skipped."""
    runs = collections.defaultdict(list)
    for directory, _, names in os.walk(root):
        for name in names:
            if "tfevents" in name:
                runs[directory].append(os.path.join(directory, name))
    found, timeless = [], 0
    for directory, paths in runs.items():
        label = ("run", os.path.relpath(directory, root))
        seen, other_tags = None, set()
        attempt = 0
        for path in sorted(paths):
            with open(path, "rb") as file:
                scalars = event_files.scalars(file.read(), other_tags)
            timed = [s for s in scalars if s.time_ns is not None]
            timeless += len(scalars) - len(timed)
            if timed and seen is not None and timed[0].step <= seen:
                attempt += 1
            for s in timed:
                found.append(
                    (s.tag, 0, "imported", (label,), attempt, s.time_ns, s.step, s.bits)
                )
                seen = s.step if seen is None else max(seen, s.step)
    return found, timeless


def nanogpt_samples(path):
    found = []
    for line in open(path):
        match = re.match(r"s:(\d+) (.*)", line)
        step = int(match[1])
        for field in match[2].split():
            name, value = field.split(":")
            found.append(sample(name, START_NS + step * 10**9, step, value))
    return found


def trainer_state_samples(path):
    found = []
    for entry in json.load(open(path))["log_history"]:
        step = entry["step"]
        for name, value in entry.items():
            if name != "step":
                found.append(sample(name, START_NS + step * 10**9, step, value))
    return found


def megatron_samples(path):
    found = []
    for metric, log in json.load(open(path)).items():
        for step, value in log["values"].items():
            found.append(sample(metric, START_NS + int(step) * 10**9, int(step), value))
    return found


def power_samples(paths):
    found = []
    for path in paths:
        host = os.path.splitext(os.path.basename(path))[0]
        for line in mllog.lines(path):
            if line.key == "power_reading":
                time_ns = line.time_ms * 10**6
                found.append(sample(line.key, time_ns, None, line.value, host=host))
    return found


class ImportCase(harness.TestCase):
    """A collector that keeps everything, and tachoctl."""

    def setUp(self):
        super().setUp()
        self.collector = self.started(
            harness.Collector(self.directory, "storage: {retention: 0s}\n")
        )

    def tachoctl(self, *arguments):
        return harness.tachoctl(self.collector.address, *arguments)

    def run_import(self, *arguments):
        """The report, of an import that must succeed."""
        done = self.tachoctl("import", *arguments, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def write_csv(self, rows, name="big.csv", first=0):
        path = os.path.join(self.directory, name)
        with open(path, "w") as out:
            out.write("step,time_unix_ns,a,b,c\n")
            for i in range(first, first + rows):
                out.write(f"{i},{START_NS + i * 10**6},{i / 7},{i % 3},{-i}\n")
        return path

    def csv_samples(self, rows):
        found = collections.Counter()
        for i in range(rows):
            for metric, value in (("a", i / 7), ("b", i % 3), ("c", -i)):
                found[sample(metric, START_NS + i * 10**6, i, value)] += 1
        return found

    def expect_stored(self, job, expected):
        got = stored(self.collector.address, job)
        self.assertEqual(list((expected - got).items())[:3], [], f"{job}: lost")
        self.assertEqual(list((got - expected).items())[:3], [], f"{job}: not in the file")
