"""tachoctl import over real data: what is read, stored, exported and imported again is the same, bit
for bit, and counted right; interruptions lose and double nothing."""
import collections
import glob
import json
import os
import subprocess
import time

import client
import event_files
import harness
import grpc
import imported
from imported import START


class ImportTest(imported.ImportCase):
    def expect_counts(self, report, samples, skipped):
        self.assertEqual(report["samples"], len(samples))
        self.assertEqual(report["repeated"], len(samples) - sum(imported.once(samples).values()))
        self.assertEqual(report["stored"], len(samples) + report["events"])
        self.assertEqual(sum(report["skipped"].values()), skipped)
        self.assertEqual(report["read"], len(samples) + skipped)
        self.assertEqual(report["refused"], [])
        self.assertTrue(report["exact"])

    def expect_same_again(self, arguments, job, expected):
        """Imported again nothing changes; exported and imported as another job it is the same."""
        report = self.run_import(*arguments, "--job", job)
        self.assertEqual(report["stored"], 0)
        self.assertEqual(report["already_stored"], report["samples"] + report["events"])
        self.expect_stored(job, expected)
        for form in ("jsonl", "csv"):
            path = os.path.join(self.directory, f"{job}.{form}")
            done = self.tachoctl("export", job, "--format", form, "-f", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            copy = f"{job}-{form}"
            self.run_import("auto", path, "--job", copy)
            self.expect_stored(copy, expected)
        query = client.Query(self.collector.address)
        self.addCleanup(query.close)
        plain = lambda name: sorted(  # noqa: E731
            (e.time_unix_ns, e.kind, e.step, e.message, sorted(e.fields.items()))
            for e in query.events(name)
        )
        self.assertEqual(plain(job), plain(f"{job}-jsonl"))
        self.assertEqual(
            self.attributes(query, job), self.attributes(query, f"{job}-jsonl")
        )

    def attributes(self, query, job):
        from tacho.v1 import query_pb2

        answer = query.stub.GetJob(query_pb2.GetJobRequest(job=job))
        return {a.attempt: dict(a.attributes) for a in answer.attempts}

    def check(self, job, arguments, samples, skipped=0):
        report = self.run_import(*arguments, "--job", job)
        print(f"{job}: {len(samples)} samples, {report['events']} events, {skipped} skipped")
        self.expect_counts(report, samples, skipped)
        expected = imported.once(samples)
        self.expect_stored(job, expected)
        self.expect_same_again(arguments, job, expected)

    def test_event_files(self):
        root = harness.shared_data("tfevents")
        samples, timeless = imported.event_file_samples(root)
        self.assertGreater(len(samples), 80_000)
        report = self.run_import("tfevents", root, "--job", "tf")
        self.assertEqual(report["samples"], len(samples))
        self.assertEqual(report["skipped"].get("no_time", 0), timeless)
        expected = imported.once(samples)
        self.expect_stored("tf", expected)
        self.expect_same_again(["tfevents", root], "tf", expected)

    def test_event_files_written_for_tensorboard(self):
        root = os.path.join(harness.shared_data("tfevents"), "phlippe-saved_models", "tutorial5")
        run = os.path.join(root, "tensorboards", "GoogleNet")
        self.run_import("tfevents", run, "--job", "net")
        logs = os.path.join(self.directory, "logs")
        done = self.tachoctl("export", "net", "--format", "tfevents", "-f", logs)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("rounded", done.stderr)
        files = glob.glob(logs + "/net/0/*tfevents*")
        self.assertEqual(len(files), 1)
        expected, got = collections.Counter(), collections.Counter()
        for path in glob.glob(run + "/*"):
            expected.update(event_files.scalars(open(path, "rb").read()))
        got.update(event_files.scalars(open(files[0], "rb").read()))
        self.assertEqual(got, expected)
        # And once more through tachoctl.
        run = os.path.join(logs, "net")
        self.run_import("tfevents", run, "--job", "again", "--run-pattern", r"(?P<attempt>\d+)")
        self.assertEqual(
            imported.stored(self.collector.address, "again"), imported.stored(self.collector.address, "net")
        )

    def test_nanogpt(self):
        path = os.path.join(harness.shared_data("modded-nanogpt"), "main.log")
        self.check("gpt", ["auto", path, "--start", START], imported.nanogpt_samples(path))

    def test_trainer_states(self):
        for i, path in enumerate(sorted(glob.glob(harness.shared_data("hf") + "/*/*.json"))):
            self.check(f"hf{i}", ["auto", path, "--start", START], imported.trainer_state_samples(path))
            query = client.Query(self.collector.address)
            self.addCleanup(query.close)
            state = json.load(open(path))
            attributes = self.attributes(query, f"hf{i}")[0]
            for name in ("global_step", "max_steps", "num_train_epochs"):
                self.assertEqual(attributes[name], str(state[name]))
            self.assertEqual(attributes["planned_steps"], str(state["max_steps"]))

    def test_megatron(self):
        name = "gpt3_15b_8t_release_sm/golden_values_dev_dgx_h100.json"
        path = os.path.join(harness.shared_data("megatron"), name)
        samples = imported.megatron_samples(path)
        nans = [s for s in samples if s[-1] == 0x7FF8000000000000]
        self.assertGreater(len(nans), 0)
        self.check("mega", ["auto", path, "--start", START, "--step-time", "1s"], samples)

    def test_mlperf_power(self):
        pattern = harness.shared_data("mlperf-power") + "/*/node_*.txt"
        paths = sorted(glob.glob(pattern))
        self.check("power", ["auto", *paths, "--each", "host"], imported.power_samples(paths))

    def test_dry_run_writes_nothing(self):
        path = self.write_csv(100)
        report = self.run_import("csv", path, "--job", "dry", "--dry-run")
        self.assertEqual((report["samples"], report["stored"]), (300, 0))
        query = client.Query(self.collector.address)
        self.addCleanup(query.close)
        self.assertEqual(query.jobs(), {})

    def test_wrong_input_says_what_and_where(self):
        def file(name, data):
            path = os.path.join(self.directory, name)
            with open(path, "wb") as out:
                out.write(data)
            return path

        event_file = event_files.first_record(1.7e9) + event_files.event(1.7e9, 1, "a", 0)
        damaged = bytearray(event_file)
        damaged[-6] ^= 1
        cases = [
            (["auto", "missing.csv"], 1, "missing.csv"),
            (["auto", file("empty.csv", b"")], 2, "is empty"),
            (["auto", file("garbage", bytes(range(256)) * 9)], 2, "not known"),
            (["csv", file("garbage.csv", b"a,b\0\1\n")], 2, "zero bytes"),
            (["csv", file("names.csv", b"a,b\n1,2\n")], 2, "--step-field"),
            (["csv", file("times.csv", b"step,b\n1,2\n")], 2, "--start"),
            (["csv", file("cut.csv", b"step,time,b\n1,1769860800,2\n3,17")], 2, "line 3"),
            (["hf", file("other.json", b'{"a": 1}')], 2, "log_history"),
            (["megatron", file("cut.json", b'{"a": {"values": {"1": ')], 2, "ends too early"),
            (["mlperf", file("log.txt", b"hello\n")], 2, "no MLPerf log"),
            (["tfevents", file("x.tfevents", bytes(damaged))], 2, "record 2"),
            (["tfevents", self.directory + "/data"], 2, "no event files"),
            (["toml", "x"], 2, "is not a format"),
        ]
        for arguments, code, text in cases:
            done = self.tachoctl("import", *arguments, "--job", "bad")
            self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
            self.assertIn(text, done.stderr)
        done = self.tachoctl("import", "csv", "x.csv")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--job", done.stderr)
        # A file that was cut inside a record is as a trainer leaves it: the rest is taken.
        torn = file("torn.tfevents", event_file + event_files.event(1.7e9, 2, "a", 0)[:-3])
        report = self.run_import("tfevents", torn, "--job", "torn")
        self.assertEqual(report["samples"], 1)
        self.assertIn("ends inside a record", report["notes"][0])

    def begin_import(self, path, job, log):
        program = harness.Program(
            [os.environ["TACHO_CTL"], "-a", self.collector.address, "import", "csv", path,
             "--job", job, "-o", "json"],
            os.path.join(self.directory, log), stdout=subprocess.PIPE,
        )  # fmt: skip
        self.addCleanup(program.kill)
        return program

    def wait_for_rows(self, job):
        """Until something of it can be read, which is then durable."""

        def there():
            query = client.Query(self.collector.address)
            try:
                return query.latest(job)
            except grpc.RpcError:
                return False
            finally:
                query.close()

        harness.wait_until(there, f"first rows of {job}", pause_s=0.01)

    def test_killed_import_goes_on(self):
        rows = 60_000
        path = self.write_csv(rows)
        interrupted = 0
        for attempt in range(3):
            program = self.begin_import(path, "killed", f"import{attempt}.log")
            if attempt == 0:
                self.wait_for_rows("killed")
            else:
                time.sleep(self.random.uniform(0.2, 1.5))
            interrupted += program.alive()
            program.kill()
            program.process.stdout.close()
        report = self.run_import("csv", path, "--job", "killed")
        print(f"{interrupted} times interrupted, {report['already_stored']} had been stored")
        self.assertGreater(report["already_stored"], 0)
        self.assertEqual(report["stored"] + report["already_stored"], 3 * rows)
        self.expect_stored("killed", self.csv_samples(rows))

    def test_collector_is_killed_during_an_import(self):
        rows = 60_000
        path = self.write_csv(rows)
        program = self.begin_import(path, "survives", "import.log")
        self.wait_for_rows("survives")
        self.collector.kill()
        was_running = program.alive()
        self.collector.start()
        output = program.process.stdout.read()
        program.process.stdout.close()
        self.assertEqual(program.wait(), 0, program.tail())
        report = json.loads(output)
        print(f"running when the collector was killed: {was_running}, exact: {report['exact']}")
        self.assertEqual(report["samples"], 3 * rows)
        self.expect_stored("survives", self.csv_samples(rows))

    def test_what_is_older_than_the_retention_is_refused_with_a_remedy(self):
        self.collector.stop()
        with open(self.collector.config, "w") as file:
            file.write("storage: {retention: 30d}\n")
        self.collector.start()
        path = os.path.join(self.directory, "old.csv")
        with open(path, "w") as out:
            out.write("step,time,a\n1,2001-09-09T01:46:40Z,1\n2,2001-09-09T01:46:41Z,1\n")
        done = self.tachoctl("import", "csv", path, "--job", "old", "-o", "json")
        self.assertEqual(done.returncode, 1, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["stored"], 0)
        self.assertEqual([(r["reason"], r["samples"]) for r in report["refused"]], [("too_old", 2)])
        done = self.tachoctl("import", "csv", path, "--job", "old", "--agent-id", "again")
        self.assertIn("storage.retention", done.stdout)

    def test_nobody_answers(self):
        path = self.write_csv(10)
        self.collector.stop()
        done = self.tachoctl("import", "csv", path, "--job", "x")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("cannot reach a collector", done.stderr)


if __name__ == "__main__":
    harness.main()
