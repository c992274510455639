"""A logger for Lightning: `Trainer(logger=TachoLogger(job="resnet"))`."""
from typing import Any, Mapping, Optional, Union

from .._guard import guards
from .._run import Run
from .._values import to_float
from ._base import base_class, run_of

_Base: Any = base_class(
    (
        "lightning.pytorch.loggers.logger",
        "pytorch_lightning.loggers.logger",
        "lightning_fabric.loggers.logger",
    ),
    "Logger",
)


@guards("log_", "after_", "finalize")
class TachoLogger(_Base):
    """Records what self.log() and self.log_dict() send to loggers, on every rank.

    Each rank is a task of the job, so nothing here is for rank 0 alone. Hyperparameters become
    attributes; checkpoints are events. Lightning turns tensors into numbers before it calls a logger.
    """

    def __init__(self, run: Optional[Run] = None, prefix: str = "", **options: Any):
        """Records into `run`, else the active run, else init(**options) in the process that trains."""
        super().__init__()
        self._given = run
        self._options = options
        self._prefix = prefix
        self._run: Optional[Run] = None

    @property
    def experiment(self) -> Run:
        """The run, which the first use begins."""
        if self._run is None:
            self._run = run_of(self._given, self._options)
        return self._run

    @property
    def name(self) -> Optional[str]:
        return self._options.get("job")

    @property
    def version(self) -> Optional[Union[int, str]]:
        return self._options.get("attempt")

    @property
    def save_dir(self) -> Optional[str]:
        return None

    @property
    def root_dir(self) -> Optional[str]:
        return None

    @property
    def log_dir(self) -> Optional[str]:
        return None

    @property
    def group_separator(self) -> str:
        return "/"

    def log_metrics(self, metrics: Mapping[str, Any], step: Optional[int] = None) -> None:
        if self._prefix:
            metrics = {f"{self._prefix}{name}": value for name, value in metrics.items()}
        self.experiment.log(metrics, step=step)

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        if params is not None:
            self.experiment.config.update(params)

    def log_graph(self, model: Any, input_array: Any = None) -> None:
        pass

    def save(self) -> None:
        pass

    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        path = getattr(checkpoint_callback, "last_model_path", "") or getattr(
            checkpoint_callback, "best_model_path", ""
        )
        self.experiment.event("checkpoint_saved", path=path)

    def finalize(self, status: str) -> None:
        """The run ends with the process: Lightning calls this after each of fit, test, predict."""
        if status == "failed" and self._run is not None:
            self._run.finish(1)
