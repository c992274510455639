"""The integration of PyTorch, with the real one: a loop, and what stands in for SummaryWriter."""
import sys

import case
import tacho

try:
    import torch
    import torch.utils.data
except ImportError:
    sys.exit(77)

from tacho.integrations.torch import SummaryWriter, steps


class LoopTest(case.Case):
    def loader(self, count=4):
        data = torch.utils.data.TensorDataset(torch.arange(float(count)))
        return torch.utils.data.DataLoader(data, batch_size=1)

    def test_each_batch_is_a_step_with_its_phases(self):
        run = self.init()
        model = torch.nn.Linear(1, 1)
        for step, (batch,) in steps(self.loader()):
            loss = model(batch).square().mean()
            loss.backward()
            step.log({"loss": loss.detach()})
        rows = self.read().rows
        self.assertEqual([row.step for row in rows], [0, 1, 2, 3])
        self.assertEqual(rows[-1].values["loss"], loss.item())
        for row in rows:
            self.assertLessEqual({"data_wait_seconds", "compute_seconds", "step_time_seconds"}, set(row.values))
        run.log({"after": 1})
        self.assertEqual(self.read().rows[-1].step, 4)

    def test_leaving_the_loop_writes_what_was_logged(self):
        run = self.init()
        for step, _ in steps(self.loader(), run=run, start=10):
            if step.number == 12:
                break
            step.log({"loss": 1.0})
            if step.number == 11:
                break
        self.assertEqual([row.step for row in self.read().rows], [10, 11])
        for step, _ in steps(self.loader(), start=20):
            break
        run.log({"loss": 2.0})
        self.assertEqual([row.step for row in self.read().rows], [10, 11, 12])

    def test_an_exception_of_the_body_or_the_loader_passes(self):
        self.init()

        def broken():
            yield 1
            raise OSError("disk")

        with self.assertRaisesRegex(OSError, "disk"):
            for step, _ in steps(broken()):
                step.log({"loss": 1.0})
        self.assertEqual([row.step for row in self.read().rows], [0])


class SummaryWriterTest(case.Case):
    def rows(self):
        return [(row.step, row.values) for row in self.read().rows]

    def test_scalars_of_a_step_are_one_row(self):
        self.init()
        with SummaryWriter("runs/a", flush_secs=5) as writer:
            for step in range(3):
                writer.add_scalar("Loss/train", torch.tensor(0.5 + step), step)
                writer.add_scalar("lr", 0.1, global_step=step)
                if step > 0:  # Known after the first step, so it is written with its last tag.
                    self.assertEqual(len(self.rows()), step + 1)
        self.assertEqual(
            self.rows(), [(step, {"Loss/train": 0.5 + step, "lr": 0.1}) for step in range(3)]
        )
        self.assertEqual(writer.get_logdir(), "runs/a")

    def test_tags_that_come_now_and_then(self):
        self.init()
        writer = SummaryWriter()
        writer.add_scalar("loss", 1, 0)
        writer.add_scalar("loss", 2, 1)
        writer.add_scalar("accuracy", 0.5, 1)
        writer.add_scalar("loss", 3, 2)
        writer.flush()
        self.assertEqual(
            self.rows(), [(0, {"loss": 1}), (1, {"loss": 2}), (1, {"accuracy": 0.5}), (2, {"loss": 3})]
        )

    def test_groups_times_and_no_step(self):
        self.init()
        writer = SummaryWriter()
        writer.add_scalars("loss", {"train": 1.0, "test": 2.0}, 5, walltime=1234.5)
        writer.add_scalar("plain", 3.0)
        writer.close()
        self.assertEqual(self.rows(), [(5, {"loss/train": 1, "loss/test": 2}), (None, {"plain": 3})])
        self.assertEqual(self.read().rows[0].time_ns, 1_234_500_000_000)

    def test_histograms_texts_and_hyperparameters(self):
        self.init(histogram_interval_s=0)
        writer = SummaryWriter()
        writer.add_histogram("weights", torch.tensor([-1.0, 1.0, -1e9]), 1)
        writer.add_histogram("list", [-1.0, 2.0], 1)
        writer.add_text("note", "hello", 3)
        writer.add_hparams({"lr": 0.1, "model": "mlp"}, {"hparam/accuracy": 0.9})
        read = self.read()
        self.assertEqual((sum(read.histograms["weights"]), read.histograms["weights"][-1]), (3, 1))
        self.assertEqual(sum(read.histograms["list"]), 2)
        self.assertEqual(read.events[-1].message, "hello")
        self.assertEqual(read.events[-1].fields, {"tag": "note", "step": "3"})
        self.assertEqual(read.attributes, {"lr": "0.1", "model": "mlp"})
        self.assertEqual(self.rows(), [(None, {"hparam/accuracy": 0.9})])

    def test_what_is_not_kept_is_said_once(self):
        self.init()
        writer = SummaryWriter()
        for _ in range(3):
            writer.add_image("image", torch.zeros(3, 4, 4), 1)
            writer.add_graph(torch.nn.Linear(1, 1))
            writer.add_scalar("loss", torch.zeros((), device="meta"), 1)
        self.assertEqual(len(self.warnings), 3, self.warnings)
        self.assertEqual(self.rows(), [])

    def test_it_takes_every_call_of_the_real_one(self):
        try:
            from torch.utils.tensorboard import SummaryWriter as Real
        except ImportError:
            self.skipTest("torch.utils.tensorboard needs tensorboard, which Debian does not have")
        self.init()
        writer = SummaryWriter()
        for name in dir(Real):
            if not name.startswith("_"):
                self.assertTrue(hasattr(writer, name), name)


if __name__ == "__main__":
    case.main()
