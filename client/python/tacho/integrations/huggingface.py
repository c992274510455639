"""A callback for the Trainer of transformers: `Trainer(..., callbacks=[TachoCallback(job="bert")])`."""
from typing import Any, Mapping, Optional

from .._guard import guards
from .._run import Run
from ._base import StepByHand, base_class, run_of


class _Callback:
    """What the Trainer asks of a callback, for where transformers is not installed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *arguments, **named: None
        raise AttributeError(name)


_Base: Any = base_class(
    ("transformers.trainer_callback", "transformers"), "TrainerCallback", _Callback
)

# TrainingArguments that become attributes of the attempt, under the names in docs/notation.md.
_FACTS = {
    "learning_rate": "learning_rate", "per_device_train_batch_size": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps", "weight_decay": "weight_decay",
    "warmup_steps": "warmup_steps", "num_train_epochs": "epochs", "seed": "seed", "bf16": "bf16",
    "fp16": "fp16",
}  # fmt: skip


@guards("on_")
class TachoCallback(_Base):
    """Records each optimizer step's time, what the Trainer logs, evaluations and checkpoints.

    The Trainer's numbers are already on the host. They keep their names; its "train_" of the summary
    at the end too. Every process records itself, as a task.
    """

    def __init__(self, run: Optional[Run] = None, **options: Any):
        """Records into `run`, else the active run, else init(**options)."""
        super().__init__()
        self._given = run
        self._options = options
        self.run: Any = None
        self._step: Any = None
        self._evaluating = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.run = run_of(self._given, self._options)
        self._step = StepByHand(self.run)
        for name, key in _FACTS.items():
            value = getattr(args, name, None)
            if value is not None:
                self.run.config[key] = value
        if getattr(state, "max_steps", 0) > 0:
            self.run.config["planned_steps"] = state.max_steps
        config = getattr(kwargs.get("model"), "config", None)
        for name, key in (("_name_or_path", "model"), ("model_type", "model_type")):
            if getattr(config, name, None):
                self.run.config.setdefault(key, getattr(config, name))

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # The Trainer raises global_step between the beginning and the end of a step.
        self._step.begin(state.global_step + 1)
        self._step.phase("compute")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._step.end()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Optional[Mapping[str, Any]] = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if self.run is not None and logs:
            numbers = {k: v for k, v in logs.items() if isinstance(v, (int, float))}
            self.run.log(numbers, step=state.global_step)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.run is not None and not self._evaluating:
            self._evaluating = True
            self.run.event("eval_started")

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._evaluating:
            self._evaluating = False
            self.run.event("eval_ended")

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        self.on_evaluate(args, state, control)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.run is not None:
            self.run.event("checkpoint_saved", path=getattr(args, "output_dir", ""))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._step.abandon()
