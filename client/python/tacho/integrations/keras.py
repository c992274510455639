"""A callback for Keras: `model.fit(x, y, callbacks=[TachoCallback(job="mnist")])`."""
from typing import Any, Mapping, Optional

from .._guard import guards
from .._run import Run
from ._base import StepByHand, base_class, run_of


class _Callback:
    """What Keras asks of a callback, for where it is not installed."""

    def set_params(self, params: Any) -> None:
        self.params = params

    def set_model(self, model: Any) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *arguments, **named: None
        raise AttributeError(name)


_Base: Any = base_class(("keras.callbacks", "tensorflow.keras.callbacks"), "Callback", _Callback)


@guards("on_")
class TachoCallback(_Base):
    """Records every batch as a step, and epochs' results at the step of their last batch.

    Batches have what Keras gives to callbacks ("loss" and the metrics, which are means over the epoch
    so far); epochs have "epoch_loss", …, and those on held-out data "val_loss", …. What the model is
    trained with ("epochs", "steps") becomes attributes. Keras gives numbers, for which it waits itself.
    """

    def __init__(
        self, run: Optional[Run] = None, start: int = 0, fetch: bool = False, **options: Any
    ):
        """Records into `run`, else the active run, else init(**options); the first step is `start`."""
        super().__init__()
        self._given = run
        self._options = options
        self._fetch = fetch
        self._epoch_begin = start  # The step of the epoch's first batch.
        self._next = start
        self._training = False
        self.run: Any = None
        self._step: Any = None

    def _open(self) -> None:
        if self.run is None:
            self.run = run_of(self._given, self._options)
            self._step = StepByHand(self.run)

    def on_train_begin(self, logs: Optional[Mapping[str, Any]] = None) -> None:
        self._open()
        self._training = True
        params = getattr(self, "params", None) or {}
        for name, key in (("epochs", "epochs"), ("steps", "steps_per_epoch")):
            if params.get(name):
                self.run.config[key] = params[name]
        model = getattr(getattr(self, "model", None), "name", None)
        if model:
            self.run.config.setdefault("model", model)

    def on_epoch_begin(self, epoch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
        self._epoch_begin = self._next

    def on_train_batch_begin(self, batch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
        self._step.begin(self._epoch_begin + batch)
        self._step.phase("compute")

    def on_train_batch_end(self, batch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
        # With steps_per_execution it is the last of several batches.
        self._next = self._epoch_begin + batch + 1
        if self._step.number == self._epoch_begin + batch:
            self.run.log(logs or {}, fetch=self._fetch)
            self._step.end()
        else:
            self._step.abandon()
            self.run.log(logs or {}, step=self._next - 1, fetch=self._fetch)

    def on_epoch_end(self, epoch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
        named = {
            name if name.startswith("val_") else f"epoch_{name}": value
            for name, value in (logs or {}).items()
        }
        self.run.log({**named, "epoch": epoch}, step=max(self._next - 1, 0), fetch=self._fetch)

    def on_test_begin(self, logs: Optional[Mapping[str, Any]] = None) -> None:
        self._open()
        self.run.event("eval_started")

    def on_test_end(self, logs: Optional[Mapping[str, Any]] = None) -> None:
        self.run.event("eval_ended")
        if not self._training and logs:  # evaluate() by itself; fit() gives them to on_epoch_end.
            named = {f"eval_{name}": value for name, value in logs.items()}
            self.run.log(named, step=max(self._next - 1, 0), fetch=self._fetch)

    def on_train_end(self, logs: Optional[Mapping[str, Any]] = None) -> None:
        self._training = False
        self._step.abandon()
