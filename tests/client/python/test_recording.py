"""What a trainer in Python can do to a run, and what its ring holds afterwards."""
import argparse
import copy
import math
import os
import pickle
import signal
import struct
import threading
import unittest

import case
import ring
import tacho

# The metrics that every step has.
TIMES = {"step_time_seconds", "step_duration_seconds"}


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


class LogTest(case.Case):
    def test_values_come_back_bit_for_bit(self):
        run = self.init(task=3, attempt=2)
        nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000ABC))[0]
        values = [0.1, -0.0, math.inf, 5e-324, nan, 1 << 60, True]
        for step, value in enumerate(values):
            run.log({"loss": value}, step=step)
        read = self.read()
        self.assertEqual((read.job, read.task, read.attempt), ("job", 3, 2))
        found = [(step, bits(value)) for step, value in read.column("loss")]
        self.assertEqual(found, [(i, bits(float(v))) for i, v in enumerate(values)])
        self.assertEqual(read.refused, 0)

    def test_without_a_step_it_is_the_one_after_the_last(self):
        run = self.init()
        run.log({"a": 1})
        run.log({"a": 2})
        run.log({"a": 3}, step=10)
        run.log({"a": 4})
        self.assertEqual([row.step for row in self.read().rows], [0, 1, 10, 11])

    def test_each_call_is_a_row_at_once(self):
        run = self.init()
        run.log({"a": 1}, step=7)
        self.assertEqual([row.values for row in self.read().rows], [{"a": 1}])
        run.log({"b": 2}, step=7)
        read = self.read()
        self.assertEqual([row.values for row in read.rows], [{"a": 1}, {"b": 2}])
        self.assertEqual([row.step for row in read.rows], [7, 7])

    def test_commit_false_leaves_values_for_the_row_to_come(self):
        run = self.init()
        run.log({"a": 1}, commit=False)
        self.assertEqual(self.read().rows, [])
        run.log({"b": 2}, step=3)
        self.assertEqual([(r.step, r.values) for r in self.read().rows], [(3, {"a": 1, "b": 2})])

    def test_nested_names_and_metrics_that_are_declared(self):
        run = self.init()
        run.define_metric("tokens", "tokens", "Seen.", kind="counter")
        run.define_metric("x", kind="gouge")
        run.log({"train": {"loss": 1.0, "deep": {"er": 2}}, "tokens": 5})
        run.log({"train": {"loss": 1.5}})
        read = self.read()
        self.assertEqual(read.rows[0].values, {"train.loss": 1, "train.deep.er": 2, "tokens": 5})
        self.assertEqual(read.rows[1].values, {"train.loss": 1.5, "tokens": 5}, "counters stay")
        self.assertEqual((read.counters, read.units["tokens"]), (["tokens"], "tokens"))
        self.assertIn("neither a gauge nor a counter", " ".join(self.warnings))

    def test_what_is_no_number_is_left_out_and_said_once(self):
        run = self.init()
        odd = {"bytes": b"x", "none": None, "list": [1], "huge": 10**400, "complex": 1j}
        for _ in range(3):
            run.log({"loss": 1.0, **odd}, step=1)
        self.assertEqual([row.values for row in self.read().rows], [{"loss": 1}] * 3)
        self.assertEqual(len(self.warnings), len(odd), self.warnings)

    def test_a_string_with_a_step_is_an_event_when_it_changes(self):
        run = self.init()
        run.log({"loss": 1.0, "sample": "a cat"}, step=5)
        run.log({"sample": "a cat"}, step=6)
        run.log({"nested": {"sample": "a dog"}}, step=7)  # No row, and yet its own step.
        with run.step(8):
            run.log({"sample": "x" * 2000})
        read = self.read()
        texts = [e for e in read.events if e.kind == "text"]
        self.assertEqual(
            [(e.step, e.message, e.fields) for e in texts],
            [
                (5, "a cat", {"tag": "sample"}),
                (7, "a dog", {"tag": "nested.sample"}),
                (8, "x" * 1024, {"tag": "sample"}),
            ],
        )
        self.assertEqual([row.step for row in read.rows], [5, 8])
        self.assertEqual(len(self.warnings), 1, self.warnings)
        self.assertIn('"sample": a text with a step is cut at 1024 bytes', self.warnings[0])

    def test_a_run_logs_a_thousand_texts_and_says_so(self):
        run = self.init(ring_bytes=4 << 20)
        for step in range(1003):
            run.log({"sample": f"text {step}"}, step=step)
        texts = [e for e in self.read().events if e.kind == "text"]
        self.assertEqual((len(texts), texts[-1].step), (1000, 999))
        self.assertEqual(len(self.warnings), 1, self.warnings)
        self.assertIn("at most 1000 texts", self.warnings[0])

    def test_a_string_without_a_step_is_an_attribute(self):
        run = self.init()
        run.log({"loss": 1.0, "phase": "warmup"})
        run.log({"phase": "main", "long": "é" * 3000})
        read = self.read()
        self.assertEqual(read.attributes["phase"], "main")
        self.assertEqual(len(read.attributes["long"].encode()), 4096)
        self.assertIn('tacho: "long": an attribute is cut at 4096 bytes', self.warnings)
        for i in range(70):
            run.log({f"name{i}": "x"})
        found = [name for name in self.read().attributes if name.startswith("name")]
        self.assertEqual(len(found), 62)
        self.assertIn("at most 64 attributes", self.warnings[-1])

    def test_tags_group_and_note_are_attributes(self):
        self.init(tags=["baseline", "good"], group="sweep", note="for the paper")
        self.assertEqual(
            self.read().attributes,
            {"tag.baseline": "1", "tag.good": "1", "group": "sweep", "note": "for the paper"},
        )

    def test_misuse_of_tags_never_raises(self):
        self.assertTrue(self.init(tags=5, note=7).recording)

    def test_misuse_never_raises(self):
        run = self.init()

        class Hostile:
            def __float__(self):
                raise RuntimeError("no")

        for arguments in ((5,), (None,), ({"a": 1}, "x"), ({"a": 1}, 1 << 70), ({1: 2},), ({},),
                          ({"a": Hostile()},), ({"\n": 1},), ({"": 1},), ({"a" * 300: 1},)):  # fmt: skip
            run.log(*arguments)
        run.log({"ok": 1}, step=3.5)
        run.event(5)
        run.event("kind", fields=Hostile(), message=7)
        run.event("e", **{"f" * 200: 1})
        run.config.update(7)
        run.config.update({"hostile": Hostile(), "self": run})
        run.observe("h", "text")
        run.observe(None, Hostile())
        run.define_histogram("h2", first=-1)
        run.define_metric(None, None)
        with run.step("x") as step:
            step.phase(7)
        with run.step(1) as step:
            step.phase(None)
            step.phase("")
            step.phase(object())
        tacho.log({"a": object()})
        self.assertTrue(self.warnings)
        run.log({"loss": 2.0}, step=9)
        self.assertEqual(self.read().column("loss"), [(9, 2)], "and it goes on")

    def test_more_metrics_than_there_may_be(self):
        run = self.init()
        run.log({f"m{i}": i for i in range(1025)})
        read = self.read()
        self.assertEqual(len(read.units), 1024)
        self.assertEqual(len(read.rows[0].values), 1024)
        self.assertGreater(run.refused, 0)
        self.assertIn("at most 1024", " ".join(self.warnings))

    def test_ever_new_sets_of_keys_take_no_memory(self):
        run = self.init()
        for i in range(1200):
            run.log({"a": 1, f"k{i % 3}": 2, f"n{i % 400}": i})
        self.assertLessEqual(len(run._plans), 1024)

    def test_threads_do_not_mix_their_rows(self):
        run = self.init(ring_bytes=4 << 20)

        def record(thread):
            for i in range(2000):
                run.log({"thread": thread, "check": thread * 10_000 + i, "i": i}, step=i)

        threads = [threading.Thread(target=record, args=(t,)) for t in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = self.read().rows
        self.assertEqual(len(rows), 8000)
        for row in rows:
            self.assertEqual(row.values["check"], row.values["thread"] * 10_000 + row.values["i"])
            self.assertEqual(row.step, row.values["i"])


class StepTest(case.Case):
    def test_a_step_is_a_row_with_its_phases(self):
        run = self.init()
        with run.step(7) as step:
            step.phase("data")
            step.phase("compute")
            run.log({"loss": 0.5})
            step.phase("augment")
            step.phase(None)
            step.log({"lr": 0.1})
        (row,) = self.read().rows
        self.assertEqual((row.step, row.values["loss"], row.values["lr"]), (7, 0.5, 0.1))
        phases = {"data_wait_seconds", "compute_seconds", "augment_seconds"}
        self.assertLessEqual(phases | {"step_duration_seconds", "step_time_seconds"}, set(row.values))
        parts = sum(row.values[name] for name in phases)
        self.assertLessEqual(parts, row.values["step_duration_seconds"] * (1 + 1e-9))
        run.log({"loss": 1})
        self.assertEqual(self.read().rows[-1].step, 8)

    def test_collectives_have_their_time_and_bytes(self):
        run = self.init()
        for n in range(2):
            with run.step(n) as step:
                step.phase("compute")
                with step.collective("dp-allreduce", 4096):
                    pass
                with step.collective("dp-allreduce", bytes=1):
                    pass
                with step.collective("pp-send", 512, peer=3):
                    pass
                with step.collective("barrier"):
                    pass
        row = self.read().rows[1]
        self.assertEqual(row.values["collective_dp_allreduce_bytes"], 4097)
        self.assertEqual(row.values["collective_pp_send_peer_3_bytes"], 512)
        self.assertNotIn("collective_barrier_bytes", row.values)
        parts = ["dp_allreduce", "pp_send_peer_3", "barrier"]
        seconds = sum(row.values[f"collective_{part}_seconds"] for part in parts)
        self.assertGreater(seconds, 0)
        self.assertAlmostEqual(row.values["comm_wait_seconds"], seconds)
        inside = row.values["comm_wait_seconds"] + row.values["compute_seconds"]
        self.assertLessEqual(inside, row.values["step_duration_seconds"] * (1 + 1e-9))

    def test_collectives_of_a_step_that_is_over_and_misuse_record_nothing(self):
        run = self.init()
        with run.step(0) as step:
            with step.collective("outer"):
                with step.collective("inner"):
                    pass
            for name, moved, peer in (("", 0, None), (7, 0, None), ("a", "x", None), ("a", 0, "x"),
                                      ("b", 0, 1 << 40), ("c", None, None)):  # fmt: skip
                with step.collective(name, moved, peer):
                    pass
            late = step.collective("late")
        with step.collective("over"):
            pass
        with late:
            pass
        with self.assertRaises(ZeroDivisionError):
            with run.step(1) as step:
                with step.collective("fails"):
                    1 / 0
        with run.step(2) as step:
            with step.collective("last"):
                pass
        found = {name for row in self.read().rows for name in row.values if "collective" in name}
        self.assertEqual(found, {"collective_outer_seconds", "collective_last_seconds"})
        self.assertIn("within another one", " ".join(self.warnings))

    def test_a_step_that_fails_writes_no_row(self):
        run = self.init()
        with self.assertRaises(ZeroDivisionError):
            with run.step(1):
                run.log({"loss": 1 / 1})
                run.log({"loss": 1 / 0})
        with run.step(2):
            run.log({"other": 1})
        (row,) = self.read().rows
        self.assertEqual(row.step, 2)
        self.assertNotIn("loss", row.values)

    def test_steps_within_steps_and_other_numbers(self):
        run = self.init()
        with run.step(1):
            with run.step(2) as inner:
                inner.phase("data")
                run.log({"a": 1}, step=9)
                run.log({"b": 1})
        run.log({"c": 1})
        self.assertEqual([(row.step, sorted(set(row.values) - TIMES)) for row in self.read().rows],
                         [(1, ["b"]), (9, ["a"]), (2, ["c"])])  # fmt: skip
        self.assertIn("within step 1", " ".join(self.warnings))

    def test_end_and_abandon_by_hand(self):
        run = self.init()
        with run.step(1) as step:
            run.log({"a": 1})
            step.end()
            run.log({"b": 1}, step=5)
        with run.step(2) as step:
            run.log({"a": 2})
            step.abandon()
        self.assertEqual([row.step for row in self.read().rows], [1, 5])


class FactsTest(case.Case):
    def test_config_is_attributes(self):
        run = self.init(config={"model": "mlp", "opt": {"lr": 1e-3, "betas": [0.9, 0.99]}})
        run.config.update(argparse.Namespace(batch_size=64), seed=1)
        run.config["amp"] = True
        run.config.note = None
        run.config.gone = 1
        del run.config["gone"]
        self.assertEqual(run.config.batch_size, 64)
        self.assertEqual(dict(run.config)["opt.lr"], 1e-3)
        with self.assertRaises(AttributeError):
            run.config.absent
        self.assertEqual(
            self.read().attributes,
            {"model": "mlp", "opt.lr": "0.001", "opt.betas": "[0.9, 0.99]", "batch_size": "64",
             "seed": "1", "amp": "true", "note": "null"},
        )  # fmt: skip

    def test_events(self):
        run = self.init()
        run.log({"a": 1}, step=4)
        run.event("checkpoint_saved", "To disk.", seconds=1.5, path="/x", steps=[1, 2])
        first, second = self.read().events
        self.assertEqual(first.kind, "attempt_started")
        self.assertEqual(
            second,
            ring.Event(4, "checkpoint_saved", "To disk.",
                       {"seconds": "1.5", "path": "/x", "steps": "[1, 2]"}),
        )  # fmt: skip

    def test_histograms(self):
        run = self.init(histogram_interval_s=0)
        run.define_histogram("norms", "1", "Norms.", first=1, factor=10, count=2)
        run.observe("norms", [0.5, 1, 5])
        run.observe("norms", 100)
        run.observe("latency_seconds", 0.1)
        run.log({"a": 1})
        read = self.read()
        self.assertEqual(read.histograms["norms"], [2, 1, 1])
        self.assertEqual(read.bounds["norms"], [1, 10])
        self.assertEqual((len(read.bounds["latency_seconds"]), sum(read.histograms["latency_seconds"])),
                         (24, 1))  # fmt: skip


class LifeTest(case.Case):
    def test_finish_says_how_it_went(self):
        run = self.init()
        run.log({"a": 1})
        run.finish()
        run.finish()
        run.log({"a": 2})
        run.event("late")
        with run.step(3):
            run.log({"a": 3})
        run.observe("h", 1)
        run.config.x = 1
        self.assertFalse(run.recording)
        self.assertIsNone(tacho.active_run())
        read = self.read()
        self.assertTrue(read.closed)
        self.assertEqual(len(read.rows), 1)
        self.assertEqual(read.events[-1].fields, {"status": "succeeded", "exit_code": "0"})

    def test_as_a_context_it_knows_of_failures(self):
        with self.assertRaises(KeyError):
            with self.init():
                raise KeyError
        failed = self.read().events[-1]
        self.assertEqual(failed.kind, "exited")
        self.assertEqual(failed.fields, {"status": "failed", "exit_code": "1", "exception": "KeyError"})

    def test_a_second_init_ends_the_first_run(self):
        first = self.init(job="one")
        second = self.init(job="two")
        self.assertFalse(first.recording)
        self.assertIs(tacho.active_run(), second)
        tacho.log({"a": 1})
        rings = [ring.read(os.path.join(self.directory, n)) for n in os.listdir(self.directory)]
        self.assertEqual({(r.job, r.closed, len(r.rows)) for r in rings},
                         {("one", True, 0), ("two", False, 1)})  # fmt: skip

    def test_at_exit(self):
        log_elsewhere = (
            "import threading; other = threading.Thread(target=tacho.log, args=({'b': 2},));"
            " other.start(); other.join()"
        )
        for ending, code, kind, exception in (
            ("", 0, "ended", None),
            ("sys.exit()", 0, "ended", None),
            (log_elsewhere, 0, "ended", None),
            ("1 / 0", 1, "exited", "ZeroDivisionError"),
            ("sys.exit(3)", 3, "exited", None),
            ("raise SystemExit(4)", 4, "exited", None),
            ("sys.exit('no data')", 1, "exited", None),
            (log_elsewhere + "; sys.exit(5)", 5, "exited", None),
            ("run.__exit__(SystemExit, SystemExit(6), None); sys.exit(6)", 6, "exited", None),
        ):
            with self.subTest(ending):
                program = f"import sys, tacho; run = tacho.init(); tacho.log({{'a': 1}}); {ending}"
                ended = self.python(program)
                self.assertEqual(ended.returncode, code, ended.stderr)
                read = self.read()
                self.assertTrue(read.closed)
                expected = {"status": "failed" if code else "succeeded", "exit_code": str(code)}
                if exception:
                    expected["exception"] = exception
                self.assertEqual([event.kind for event in read.events], ["attempt_started", kind])
                self.assertEqual(read.events[-1].fields, expected)
                os.remove(os.path.join(self.directory, os.listdir(self.directory)[0]))

    def test_a_process_that_skips_its_exit_leaves_the_ring_open(self):
        self.python("import os, tacho; tacho.init(); tacho.log({'a': 1}); os._exit(0)")
        self.assertFalse(self.read().closed)

    def test_what_was_logged_survives_a_kill(self):
        program = (
            "import os, signal, tacho; run = tacho.init()\n"
            "for i in range(100): run.log({'a': i}, step=i)\n"
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        self.assertEqual(self.python(program).returncode, -signal.SIGKILL)
        read = self.read()
        self.assertFalse(read.closed)
        self.assertEqual(read.column("a"), [(i, i) for i in range(100)])

    def test_a_signal_handler_may_finish_the_run(self):
        program = (
            "import os, signal, sys, threading, tacho; run = tacho.init()\n"
            "def stop(*_): run.event('preempted'); run.finish(143); sys.exit(143)\n"
            "signal.signal(signal.SIGALRM, stop); signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
            "i = 0\n"
            "while True: run.log({'a': i}, step=i); i += 1"
        )
        ended = self.python(program)
        self.assertEqual((ended.returncode, ended.stderr), (143, ""))
        (name,) = os.listdir(self.directory)
        with open(os.path.join(self.directory, name), "rb") as file:
            self.assertEqual(struct.unpack_from("<Q", file.read(600), 544), (1,), "closed")

    def test_copies_are_harmless(self):
        run = self.init()
        self.assertIs(copy.deepcopy({"run": run})["run"], run)
        copied = pickle.loads(pickle.dumps(run))
        copied.log({"a": 1})
        self.assertFalse(copied.recording)
        self.assertIn("copy", copied.error)


class TroubleTest(case.Case):
    def test_without_a_job(self):
        run = tacho.init(directory=self.directory)
        self.assertFalse(run.recording)
        self.assertIn("TACHO_JOB", run.error)
        run.log({"a": 1})
        with self.assertRaisesRegex(tacho.ConfigurationError, "TACHO_JOB"):
            tacho.init(directory=self.directory, strict=True)

    def test_without_a_directory(self):
        run = tacho.init(job="job", directory="/proc/nowhere/rings")
        self.assertFalse(run.recording)
        self.assertIn("/proc/nowhere", run.error)

    def test_wrong_arguments_are_said(self):
        run = tacho.init(job="job", directory=self.directory, task="three")
        self.assertFalse(run.recording)
        self.assertIn("three", run.error)

    def test_without_the_library_it_says_so_once_and_trains_on(self):
        program = (
            "import tacho\n"
            "for _ in range(2):\n"
            "  run = tacho.init(); run.log({'a': 1}); run.event('x'); run.config.update({'b': 1})\n"
            "  run.observe('h', 1)\n"
            "  with run.step(1) as s: s.phase('data')\n"
            "print(run.recording)"
        )
        ended = self.python(program, TACHO_LIBRARY="/nowhere/libtacho.so.1")
        self.assertEqual((ended.returncode, ended.stdout), (0, "False\n"), ended.stderr)
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        self.assertIn("/nowhere/libtacho.so.1", ended.stderr)
        self.assertIn("tacho_shared", ended.stderr)

    def test_log_before_init(self):
        program = "import tacho; tacho.log({'a': 1}); tacho.finish(); print(tacho.active_run())"
        ended = self.python(program)
        self.assertEqual((ended.returncode, ended.stdout), (0, "None\n"))
        self.assertIn("before init()", ended.stderr)

    def test_recording_imports_nothing_heavy(self):
        program = (
            "import sys, tacho; run = tacho.init(); run.log({'a': 1}); run.observe('h', 1)\n"
            "print([m for m in ('numpy', 'torch', 'grpc', 'google.protobuf') if m in sys.modules])"
        )
        self.assertEqual(self.python(program).stdout, "[]\n")


if __name__ == "__main__":
    case.main()
