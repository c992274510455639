"""What a wrapped input records: waits, stages in all threads and processes, sizes, queues, workers."""
import os
import pickle
import queue
import threading
import time
import unittest

import case
import tacho
from tacho import _input


def slow(seconds):
    def work(value):
        time.sleep(seconds)
        return value

    return work


class Tensor:
    def __init__(self, rows, nbytes):
        self.shape, self.nbytes = (rows, 3), nbytes


class WaitTest(case.Case):
    def test_each_row_has_the_wait_since_the_one_before(self):
        run = self.init()
        waits = [0.02, 0.0, 0.04]
        for step, _ in enumerate(tacho.profile_input(map(time.sleep, waits))):
            with run.step(step):
                run.log({"loss": 1.0})
        column = self.read().column("input_wait_seconds")
        self.assertEqual([step for step, _ in column], [0, 1, 2])
        for (_, measured), waited in zip(column, waits):
            self.assertGreaterEqual(measured, waited)
            self.assertLess(measured, waited + 0.015)

    def test_several_elements_of_a_step_add_up_and_a_row_without_one_has_no_wait(self):
        run = self.init()
        elements = iter(tacho.profile_input(map(time.sleep, [0.01] * 4)))
        for step in range(2):
            next(elements), next(elements)
            run.log({"loss": 1.0}, step=step)
            run.log({"accuracy": 1.0}, step=step)
        column = self.read().column("input_wait_seconds")
        self.assertEqual([step for step, _ in column], [0, 1])
        self.assertTrue(all(0.02 <= wait < 0.04 for _, wait in column), column)

    def test_elements_pass_unchanged_and_so_do_errors_and_attributes(self):
        self.init()
        elements = [object() for _ in range(40)]
        profile = tacho.profile_input(elements)
        self.assertEqual(list(profile), elements)
        self.assertEqual((len(profile), profile.index(elements[3])), (40, 3))

        def broken():
            yield 1
            raise KeyError("no such file")

        iterator = iter(tacho.profile_input(tacho.input_stage("read", broken())))
        self.assertEqual(next(iterator), 1)
        with self.assertRaisesRegex(KeyError, "no such file"):
            next(iterator)

    def test_without_a_run_nothing_is_recorded_and_nothing_breaks(self):
        self.assertEqual(list(tacho.profile_input(range(3))), [0, 1, 2])

    def test_examples_bytes_and_depth(self):
        run = self.init()
        waiting = queue.Queue()
        for _ in range(5):
            waiting.put({"image": [Tensor(8, 100)], "label": Tensor(8, 20), "name": b"12345"})
        batches = (waiting.get() for _ in range(5))
        for step, _ in enumerate(tacho.profile_input(batches, depth=waiting.qsize)):
            run.log({"loss": 1.0}, step=step)
        read = self.read()
        last = read.rows[-1].values
        self.assertEqual((last["input_examples_total"], last["input_bytes_total"]), (40, 625))
        self.assertEqual([depth for _, depth in read.column("input_queue_depth")], [4, 3, 2, 1, 0])
        self.assertIn("input_bytes_total", read.counters)
        self.assertEqual(read.units["input_wait_seconds"], "s")


class StageTest(case.Case):
    def setUp(self):
        super().setUp()
        _input._stages.clear()

    def stages(self):
        values = self.read().rows[-1].values
        return {name[12:-8]: value for name, value in values.items() if "_stage_" in name}

    def test_time_within_another_stage_counts_for_the_inner_one(self):
        run = self.init()
        read = tacho.input_stage("read", slow(0.03))
        decode = tacho.input_stage("decode", lambda value: slow(0.01)(read(value)))
        batches = tacho.input_stage("transfer", map(decode, range(2)))
        for _ in tacho.profile_input(batches):
            pass
        run.log({"loss": 1.0}, step=1)
        stages = self.stages()
        self.assertEqual(sorted(stages), ["decode", "read", "transfer"])
        self.assertTrue(0.06 <= stages["read"] < 0.08, stages)
        self.assertTrue(0.02 <= stages["decode"] < 0.04, stages)
        self.assertLess(stages["transfer"], 0.01)

    def test_threads_and_forked_processes_count_as_their_mean(self):
        run = self.init()
        decode = tacho.input_stage("decode", slow(0.05))
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                decode(0)
                os._exit(0)
            children.append(child)
        threads = [threading.Thread(target=decode, args=(0,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for child in children:
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        list(tacho.profile_input([1]))
        run.log({"loss": 1.0}, step=1)
        self.assertTrue(0.05 <= self.stages()["decode"] < 0.065, self.stages())

    def test_there_are_limits_and_what_is_beyond_works_untimed(self):
        function = slow(0)
        wrapped = [tacho.input_stage(f"s{i}", function, name="limited") for i in range(17)]
        self.assertIsNot(wrapped[15], function)
        self.assertIs(wrapped[16], function)
        self.assertIn('"limited" has 16 already', " ".join(self.warnings))
        self.assertEqual(tacho.input_stage("decode", 5), 5)
        self.assertIn("int cannot be called or iterated", " ".join(self.warnings))

    def test_a_copy_for_another_process_is_the_function_itself(self):
        timed = tacho.input_stage("decode", os.path.basename)
        self.assertIs(pickle.loads(pickle.dumps(timed)), os.path.basename)
        self.assertEqual(timed("/a/b"), "b")


try:
    import torch.utils.data
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "no python3-torch: deploy/packages.sh test provides it")
class DataLoaderTest(case.Case):
    def test_workers_stages_and_cpu(self):
        run = self.init()

        def spin(value):
            end = time.process_time() + 0.05
            while time.process_time() < end:
                pass
            return value

        decode = tacho.input_stage("decode", spin)

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return 64

            def __getitem__(self, index):
                return decode(torch.zeros(10))

        loader = torch.utils.data.DataLoader(Images(), batch_size=2, num_workers=2)
        for step, batch in enumerate(tacho.profile_input(loader)):
            run.log({"loss": 1.0}, step=step)
        read = self.read()
        last = read.rows[-1].values
        self.assertEqual((last["input_examples_total"], last["input_bytes_total"]), (64, 64 * 40))
        self.assertTrue(read.column("input_queue_depth"))
        decoded = [seconds for _, seconds in read.column("input_stage_decode_seconds")]
        self.assertGreater(sum(decoded), 1.0)
        self.assertIn(2, [workers for _, workers in read.column("input_workers")])
        cpu = [ratio for _, ratio in read.column("input_workers_cpu_ratio")]
        self.assertTrue(cpu and 0 < max(cpu) <= 1.1, cpu)


if __name__ == "__main__":
    case.main()
