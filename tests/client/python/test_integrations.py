"""Integrations of frameworks that Debian does not have, driven by fakes.

Each fake calls what its framework's documentation says, in its order: Keras 3 (keras.io/api/callbacks),
Lightning 2 (lightning.pytorch.loggers.logger), transformers 4 (main_classes/callback), CLU
(metric_writers.MetricWriter) and JAX's arrays.
"""
import types

import case
import tacho
from tacho.integrations import huggingface, jax, keras, lightning


class KerasTest(case.Case):
    @staticmethod
    def fit(callback, epochs=2, batches=3, executions=1, validate=True):
        """Model.fit()'s calls; `executions` is steps_per_execution."""
        callback.set_params({"verbose": 0, "epochs": epochs, "steps": batches})
        callback.set_model(types.SimpleNamespace(name="sequential"))
        callback.on_train_begin()
        for epoch in range(epochs):
            callback.on_epoch_begin(epoch)
            for batch in range(0, batches, executions):
                last = min(batch + executions, batches) - 1
                callback.on_train_batch_begin(batch)
                callback.on_train_batch_end(last, {"loss": 10.0 * epoch + last, "accuracy": 0.5})
            logs = {"loss": 1.0 + epoch, "accuracy": 0.75}
            if validate:
                callback.on_test_begin()
                callback.on_test_batch_begin(0)
                callback.on_test_batch_end(0, {"loss": 3.0})
                callback.on_test_end({"loss": 3.0})
                logs["val_loss"] = 3.0
            callback.on_epoch_end(epoch, logs)
        callback.on_train_end(logs)

    def test_batches_are_steps_and_epochs_are_rows(self):
        self.init()
        self.fit(keras.TachoCallback())
        read = self.read()
        self.assertEqual(read.column("loss"), [(0, 0), (1, 1), (2, 2), (3, 10), (4, 11), (5, 12)])
        self.assertEqual([s for s, _ in read.column("step_time_seconds")], [0, 1, 2, 3, 4, 5])
        self.assertEqual(read.column("epoch_loss"), [(2, 1), (5, 2)])
        self.assertEqual(read.column("val_loss"), [(2, 3), (5, 3)])
        self.assertEqual(read.column("epoch"), [(2, 0), (5, 1)])
        self.assertEqual(
            read.attributes, {"epochs": "2", "steps_per_epoch": "3", "model": "sequential"}
        )
        kinds = [event.kind for event in read.events]
        self.assertEqual(kinds, ["attempt_started"] + ["eval_started", "eval_ended"] * 2)

    def test_several_batches_in_one_execution(self):
        self.init()
        self.fit(keras.TachoCallback(), epochs=1, batches=5, executions=2)
        self.assertEqual([step for step, _ in self.read().column("loss")], [1, 3, 4])

    def test_it_begins_a_run_when_the_training_begins(self):
        callback = keras.TachoCallback(job="mnist", directory=self.directory, ring_bytes=1 << 18)
        self.assertIsNone(tacho.active_run())
        self.fit(callback, epochs=1)
        self.assertEqual(self.read().job, "mnist")

    def test_evaluate_by_itself(self):
        self.init()
        callback = keras.TachoCallback()
        callback.on_test_begin()
        callback.on_test_end({"loss": 4.0})
        self.assertEqual(self.read().column("eval_loss"), [(0, 4)])


class LightningTest(case.Case):
    def test_metrics_hyperparameters_and_checkpoints(self):
        logger = lightning.TachoLogger(
            job="lit", directory=self.directory, ring_bytes=1 << 18, attempt=2
        )
        self.assertIsNone(tacho.active_run(), "the process that trains begins the run")
        # Trainer.fit()'s calls.
        self.assertEqual((logger.name, logger.version, logger.log_dir), ("lit", 2, None))
        logger.log_hyperparams({"lr": 0.1, "optimizer": {"name": "adam"}})
        logger.log_graph(object())
        logger.save()
        logger.log_metrics({"train_loss": 0.5, "epoch": 0}, 49)
        logger.log_metrics({"val_loss": 0.75, "epoch": 0}, step=49)
        logger.after_save_checkpoint(types.SimpleNamespace(last_model_path="/x.ckpt"))
        logger.finalize("success")
        read = self.read()
        self.assertEqual((read.job, read.attempt), ("lit", 2))
        self.assertEqual(read.attributes, {"lr": "0.1", "optimizer.name": "adam"})
        self.assertEqual(read.column("train_loss"), [(49, 0.5)])
        self.assertEqual(read.column("val_loss"), [(49, 0.75)])
        self.assertEqual(read.events[-1].kind, "checkpoint_saved")
        self.assertEqual(read.events[-1].fields, {"path": "/x.ckpt"})
        self.assertFalse(read.closed, "fit() may be followed by test()")
        logger.finalize("failed")
        self.assertEqual(self.read().events[-1].fields["status"], "failed")

    def test_it_records_into_the_run_that_is_there(self):
        run = self.init()
        logger = lightning.TachoLogger(prefix="a/")
        self.assertIs(logger.experiment, run)
        logger.log_metrics({"loss": 1.0}, 3)
        self.assertEqual(self.read().column("a/loss"), [(3, 1)])


class HuggingFaceTest(case.Case):
    @staticmethod
    def train(callback, steps=4):
        """Trainer.train()'s calls, logging every second step and evaluating at the end."""
        args = types.SimpleNamespace(
            learning_rate=5e-5, per_device_train_batch_size=8, num_train_epochs=1, seed=42,
            output_dir="/out",
        )  # fmt: skip
        state = types.SimpleNamespace(global_step=0, max_steps=steps)
        control = types.SimpleNamespace()
        model = types.SimpleNamespace(config=types.SimpleNamespace(_name_or_path="bert", model_type="bert"))

        def call(event, **named):
            getattr(callback, event)(args, state, control, model=model, **named)

        call("on_init_end")
        call("on_train_begin")
        call("on_epoch_begin")
        for _ in range(steps):
            call("on_step_begin")
            call("on_substep_end")
            call("on_pre_optimizer_step")
            call("on_optimizer_step")
            state.global_step += 1
            call("on_step_end")
            if state.global_step % 2 == 0:
                logs = {"loss": 1.0 / state.global_step, "learning_rate": 1e-5, "epoch": 0.5}
                call("on_log", logs=logs)
        call("on_prediction_step")
        call("on_prediction_step")
        call("on_log", logs={"eval_loss": 0.25, "eval_runtime": 1.5})
        call("on_evaluate", metrics={"eval_loss": 0.25})
        call("on_save")
        call("on_epoch_end")
        call("on_log", logs={"train_loss": 0.5, "total_flos": 10**15})
        call("on_train_end")

    def test_steps_logs_evaluations_and_checkpoints(self):
        self.init()
        self.train(huggingface.TachoCallback())
        read = self.read()
        self.assertEqual([step for step, _ in read.column("step_time_seconds")], [1, 2, 3, 4])
        self.assertEqual(read.column("loss"), [(2, 0.5), (4, 0.25)])
        self.assertEqual(read.column("eval_loss"), [(4, 0.25)])
        self.assertEqual(read.column("train_loss"), [(4, 0.5)])
        self.assertEqual(read.attributes["planned_steps"], "4")
        self.assertEqual(read.attributes["model"], "bert")
        self.assertEqual(read.attributes["epochs"], "1")
        kinds = [event.kind for event in read.events[1:]]
        self.assertEqual(kinds, ["eval_started", "eval_ended", "checkpoint_saved"])

    def test_it_begins_a_run_when_the_training_begins(self):
        options = {"job": "bert", "directory": self.directory, "ring_bytes": 1 << 18}
        self.train(huggingface.TachoCallback(**options))
        self.assertEqual(self.read().job, "bert")


class FakeArray:
    """What jax.Array offers of itself; says when it is looked at too early."""

    __module__ = "jaxlib.xla_extension"
    size, shape, ndim = 1, (), 0
    waited_for = 0

    def __init__(self, value, ready=False):
        self.value, self.ready, self.copying = value, ready, False

    def is_ready(self):
        return self.ready

    def copy_to_host_async(self):
        self.copying = True

    def item(self):
        FakeArray.waited_for += not self.ready
        return self.value


class JaxTest(case.Case):
    def setUp(self):
        super().setUp()
        FakeArray.waited_for = 0

    def test_values_are_recorded_when_they_are_ready(self):
        self.init()
        lagged = jax.LaggedLog(lag=2)
        arrays = [FakeArray(float(step)) for step in range(5)]
        for step, array in enumerate(arrays):
            lagged.log({"loss": array, "lr": 0.1}, step)
            self.assertTrue(array.copying)
            if step > 0:
                arrays[step - 1].ready = True  # The device is a step behind.
        self.assertEqual(FakeArray.waited_for, 0)
        self.assertEqual([step for step, _ in self.read().column("loss")], [0, 1, 2])
        lagged.flush()
        self.assertEqual(self.read().column("loss"), [(step, step) for step in range(5)])
        self.assertGreater(FakeArray.waited_for, 0)

    def test_it_waits_only_when_the_device_is_far_behind(self):
        self.init()
        lagged = jax.LaggedLog(lag=2)
        for step in range(5):
            lagged.log({"loss": FakeArray(1.0)}, step)
            self.assertEqual(FakeArray.waited_for, max(0, step - 1))

    def test_within_a_loop_rows_keep_their_steps(self):
        self.init()
        lagged = jax.LaggedLog(lag=1)
        for step, batch in jax.steps([1.0, 2.0, 3.0]):
            run = tacho.active_run()
            run.log({"now": batch})
            lagged.log({"loss": FakeArray(batch)}, step.number)
        lagged.flush()
        read = self.read()
        self.assertEqual(read.column("now"), [(0, 1), (1, 2), (2, 3)])
        self.assertEqual(read.column("loss"), [(0, 1), (1, 2), (2, 3)])

    def test_the_metric_writer_of_clu(self):
        self.init(histogram_interval_s=0)
        writer = jax.MetricWriter()
        writer.write_hparams({"learning_rate": 0.001})
        writer.write_scalars(5, {"loss": FakeArray(0.5, ready=True), "accuracy": 0.25})
        writer.write_texts(5, {"note": "hello"})
        writer.write_histograms(5, {"h": 0.1})
        writer.write_images(5, {"image": object()})
        writer.write_scalars(6, {"loss": 1.0})
        writer.flush()
        writer.close()
        read = self.read()
        self.assertEqual(read.column("loss"), [(5, 0.5), (6, 1)])
        self.assertEqual(read.attributes, {"learning_rate": "0.001"})
        self.assertEqual(read.events[-1].fields["tag"], "note")
        self.assertEqual(sum(read.histograms["h"]), 1)
        self.assertEqual(len(self.warnings), 1, self.warnings)


class ImportTest(case.Case):
    def test_each_module_imports_without_its_framework(self):
        for name in ("keras", "torch", "lightning", "huggingface", "jax"):
            frameworks = ("keras", "tensorflow", "torch", "lightning", "pytorch_lightning",
                          "lightning_fabric", "transformers", "jax", "flax", "clu", "numpy")  # fmt: skip
            program = (
                f"import sys\nfor name in {frameworks!r}: sys.modules[name] = None\n"
                f"import tacho.integrations.{name}"
            )
            ended = self.python(program)
            self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_they_subclass_what_is_installed(self):
        program = (
            "import sys, types\n"
            "def make(path, name):\n"
            "    parts = path.split('.')\n"
            "    for i in range(len(parts)):\n"
            "        sys.modules.setdefault('.'.join(parts[:i+1]), types.ModuleType(parts[i]))\n"
            "    base = type(name, (), {}); setattr(sys.modules[path], name, base); return base\n"
            "a = make('keras.callbacks', 'Callback')\n"
            "b = make('lightning.pytorch.loggers.logger', 'Logger')\n"
            "c = make('transformers.trainer_callback', 'TrainerCallback')\n"
            "d = make('clu.metric_writers.interface', 'MetricWriter')\n"
            "from tacho.integrations import huggingface, jax, keras, lightning\n"
            "print(issubclass(keras.TachoCallback, a), issubclass(lightning.TachoLogger, b),\n"
            "      issubclass(huggingface.TachoCallback, c), issubclass(jax.MetricWriter, d))"
        )
        self.assertEqual(self.python(program).stdout, "True True True True\n")


if __name__ == "__main__":
    case.main()
