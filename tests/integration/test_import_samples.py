"""tachoctl import of a small file of every format, one by one and as a mixed directory, against a
real collector: values are those of the file bit for bit, runs have the names of an agent's, and
nothing is lost in silence."""
import collections
import glob
import json
import os

import client
import harness
import import_samples
import imported
from imported import START


class SampleTest(imported.ImportCase):
    def test_each_format_alone(self):
        for run, (form, name, _) in import_samples.RUNS.items():
            if run == "runs/small":
                continue  # A directory with another run below it.
            samples = import_samples.samples_of(run)
            self.assertGreater(len(samples), 1, run)
            for given in (form, "auto"):
                job = f"{given}:{run}"
                path = os.path.join(import_samples.ROOT, name)
                report = self.run_import(given, path, "--job", job, "--start", START)
                self.assertEqual([u["format"] for u in report["units"]], [form], run)
                self.assertEqual(report["samples"], len(samples), run)
                self.assertEqual(report["series"], import_samples.series_of(samples), run)
                self.assertEqual(report["replaced"], 0, run)
                self.expect_stored(job, imported.once(samples))

    def test_mixed_directory(self):
        arguments = ["auto", import_samples.ROOT, "--job", "all", "--start", START]
        report = self.run_import(*arguments)
        self.assertEqual({u["name"] for u in report["units"]}, set(import_samples.RUNS))
        first = report["passed_over_first"]
        over = {os.path.relpath(p["path"], import_samples.ROOT) for p in first}
        self.assertEqual(over, set(import_samples.OTHERS))
        self.assertEqual(report["passed_over"], len(over))
        samples = [s for run in import_samples.RUNS for s in import_samples.labelled(run)]
        self.assertEqual(report["series"], import_samples.series_of(samples))
        self.expect_stored("all", imported.once(samples))
        self.assertEqual(self.run_import(*arguments)["stored"], 0)
        text = self.tachoctl("import", *arguments).stdout
        self.assertIn("over 3 files that are no logs", text)
        self.assertIn("hf/config.json", text)

    def test_directory_of_one_format(self):
        for form in {form for form, _, _ in import_samples.RUNS.values()}:
            report = self.run_import(
                form, import_samples.ROOT, "--job", f"only {form}", "--start", START
            )
            runs = {run for run, row in import_samples.RUNS.items() if row[0] == form}
            self.assertEqual({u["name"] for u in report["units"]}, runs)
            samples = [s for run in runs for s in import_samples.labelled(run)]
            if len(runs) == 1:
                samples = import_samples.samples_of(*runs)
            self.expect_stored(f"only {form}", imported.once(samples))

    def test_runs_that_are_made_one_attempt_lose_values_and_say_so(self):
        path = os.path.join(import_samples.ROOT, "nanogpt/two_runs.log")
        both = import_samples.samples_of("nanogpt/two_runs")
        self.assertEqual(set(import_samples.attempts_of(both)), {0, 1})
        arguments = ["nanogpt", path, "--job", "one", "--start", START, "--attempt", "0"]
        report = self.run_import(*arguments)
        one = [s[:4] + (0,) + s[5:] for s in both]
        last, replaced = {}, 0
        for sample in one:
            replaced += last.setdefault(sample[:-1], sample) != sample
            last[sample[:-1]] = sample
        self.assertEqual(report["replaced"], replaced)
        self.assertGreater(replaced, 3)
        self.expect_stored("one", imported.once(one))
        lost = f"{replaced} of these, because they differ from the one that stays; the first: tel"
        self.assertIn(lost, self.tachoctl("import", *arguments).stdout)

    def test_runs_have_the_names_that_an_agent_gives_them(self):
        # The agent's run is a job, with its default pattern; the import's is a label.
        sources = (
            "  host: {enabled: false}\n  rings: {directory: ''}\n"
            f"  tfevents: {{poll_interval: 50ms, directories: [{{path: {import_samples.ROOT}}}]}}\n"
        )
        self.started(harness.Agent(self.directory, self.collector, sources))
        self.run_import("tfevents", import_samples.ROOT, "--job", "imported")
        by_run = collections.defaultdict(collections.Counter)
        for key, count in imported.stored(self.collector.address, "imported").items():
            metric, _, _, labels, attempt, time_ns, step, bits = key
            by_run[dict(labels)["run"]][metric, attempt, time_ns, step, bits] += count
        query = client.Query(self.collector.address)
        self.addCleanup(query.close)
        harness.wait_until(lambda: set(query.jobs()) >= set(by_run), "the jobs of the agent")
        self.assertEqual(set(query.jobs()), set(by_run) | {"imported"})

        def followed(run):
            found = collections.Counter()
            for metric, _, _, _, attempt, time_ns, step, bits in imported.stored(
                self.collector.address, run
            ):
                found[metric, attempt, time_ns, step, bits] += 1
            return found

        for run, expected in by_run.items():
            harness.wait_until(lambda: followed(run) == expected, f"the samples of {run}")


class RealFilesTest(imported.ImportCase):
    """Files of other projects: each is taken, or is none of ours."""

    # Data set: units, and what is passed over for a reason: licences, an empty object, a sum in
    # words, a table without times.
    FILES = {
        "hf": (2, {"LICENSE"}),
        "megatron": (39, {"LICENSE", "golden_values_lts_dgx_a100.json"}),
        "mlperf-power": (65, {"LICENSE.md", "total_power.txt"}),
        "mlperf-tpu": (41, {"LICENSE.md"}),
        "modded-nanogpt": (1, {"LICENSE"}),
        "nezha": (13, {"LICENSE", "dependency.csv"}),
        "tfevents": (30, {"LICENSE", "LICENSE.txt"}),
    }

    def test_no_log_is_refused(self):
        for folder, (units, others) in self.FILES.items():
            root = harness.shared_data(folder)
            report = self.run_import("auto", root, "--job", folder, "--start", START, "--dry-run")
            over = {os.path.basename(p["path"]) for p in report["passed_over_first"]}
            print(f"{folder}: {len(report['units'])} units, {report['samples']} samples, "
                  f"{report['passed_over']} files passed over, {report['replaced']} values lost")
            self.assertEqual((len(report["units"]), over), (units, others), folder)

    def test_golden_values_on_one_line(self):
        files = glob.glob(harness.shared_data("megatron") + "/*/*.json")
        small = [p for p in files if 10 < os.path.getsize(p) < 10**5]
        lines = [p for p in small if "\n" not in open(p).read()]
        self.assertGreater(len(lines), 4)
        for i, path in enumerate(sorted(lines)):
            report = self.run_import(
                "auto", path, "--job", f"golden{i}", "--start", START, "--step-time", "1s"
            )
            self.assertEqual(report["units"][0]["format"], "megatron")
            samples = imported.megatron_samples(path)
            self.assertEqual(report["samples"], len(samples), json.dumps(report["notes"]))
            self.expect_stored(f"golden{i}", imported.once(samples))


if __name__ == "__main__":
    harness.main()
