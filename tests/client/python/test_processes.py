"""Children of a trainer record nothing, and disturb nothing: forks, pools, data loaders."""
import multiprocessing
import os
import sys
import unittest

import case
import tacho

try:
    import torch
    import torch.utils.data
except ImportError:
    torch = None


def log_in_child(run):
    """In a child: everything that a run can do. Returns whether it recorded."""
    run.log({"child": 1}, step=99)
    with run.step(100) as step:
        step.phase("data")
        run.log({"child": 2})
    run.event("child")
    run.config.update({"child": 1})
    run.observe("child", [1.0])
    tacho.log({"child": 3})
    return run.recording


if torch is not None:

    class Squares(torch.utils.data.Dataset):
        """A data set that records, as one with a reference to the run may."""

        def __init__(self, run):
            self.run = run

        def __len__(self):
            return 8

        def __getitem__(self, index):
            if torch.utils.data.get_worker_info() is not None and log_in_child(self.run):
                raise AssertionError("a worker records")
            return torch.tensor(float(index * index))


class ProcessTest(case.Case):
    def assert_only_the_parent(self, losses):
        read = self.read()
        self.assertEqual([loss for _, loss in read.column("loss")], losses)
        self.assertNotIn("child", read.units)
        self.assertNotIn("child", read.attributes)
        self.assertNotIn("child", read.bounds)
        self.assertEqual([event.kind for event in read.events], ["attempt_started"])
        self.assertFalse(read.closed)

    def test_a_child_of_fork_records_nothing(self):
        run = self.init()
        run.log({"loss": 1})
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if not log_in_child(run) and "fork" in run.error else 1
                run.finish()
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        run.log({"loss": 2})
        self.assert_only_the_parent([1, 2])

    def test_a_fork_within_a_step(self):
        run = self.init()
        with run.step(0):
            run.log({"loss": 1})
            child = os.fork()
            if child == 0:
                run.log({"loss": 5})
                os._exit(0)
            os.waitpid(child, 0)
        self.assert_only_the_parent([1])

    def test_a_child_may_have_a_run_of_its_own(self):
        self.init().log({"loss": 1})
        child = os.fork()
        if child == 0:
            own = tacho.init(job="child", directory=self.directory + "/own", ring_bytes=1 << 18)
            own.log({"loss": 7})
            os._exit(0 if own.recording else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assert_only_the_parent([1])

    def test_pools_of_every_start_method(self):
        run = self.init()
        for method in ("fork", "spawn", "forkserver"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.map(log_in_child, [run] * 4), [False] * 4, method)
            run.log({"loss": 1})
        self.assert_only_the_parent([1, 1, 1])

    def test_a_child_that_ends_normally_does_not_end_the_run(self):
        program = (
            "import os, sys, tacho; run = tacho.init()\n"
            "if os.fork() == 0: sys.exit(0)\n"
            "os.wait(); run.log({'loss': 1}); print(run.recording)"
        )
        self.assertEqual(self.python(program).stdout, "True\n")
        read = self.read()
        self.assertEqual([event.kind for event in read.events], ["attempt_started", "ended"])
        self.assertEqual(len(read.rows), 1)

    @unittest.skipIf(torch is None, "no torch: deploy/packages.sh test provides it")
    def test_data_loader_workers(self):
        for method in ("fork", "spawn"):
            run = self.init()
            loader = torch.utils.data.DataLoader(
                Squares(run), batch_size=2, num_workers=2, multiprocessing_context=method
            )
            losses = []
            for batch in loader:
                losses.append(batch.sum().item())
                run.log({"loss": batch.sum()})
            self.assertEqual(losses, [1, 13, 41, 85])
            self.assert_only_the_parent(losses)
            run.finish()
            for name in os.listdir(self.directory):
                os.remove(os.path.join(self.directory, name))


if __name__ == "__main__":
    case.main()
