"""For PyTorch: a loop over a data loader, and a SummaryWriter that records into a run.

    from tacho.integrations.torch import SummaryWriter, steps

    for step, batch in steps(loader, job="resnet"):
        loss = train(batch)
        step.log({"loss": loss.item()})      # .item() waits for the device, as it always does.
"""
from typing import Any, Mapping, Optional, Set

from .._guard import guards
from .._library import say_once
from .._run import Run
from ._base import run_of, steps

__all__ = ["SummaryWriter", "steps"]


@guards("add_", "flush", "close")
class SummaryWriter:
    """Stands in for torch.utils.tensorboard.SummaryWriter: change the import, and it records.

    Scalars of one step are one row. The row is written when all the tags that the step before had
    are there, and else when another step begins, or at flush() or close(). Kept besides: hyperparameters
    (as attributes), texts (as events of the kind "text"), and of histograms how often each magnitude
    was seen since the beginning, for at most 32 tags. Not kept, and said once: images, figures, video,
    audio, graphs, meshes, embeddings, precision-recall curves, layouts.

    Values on a device are left out unless fetch=True, which waits for them as TensorBoard's does.
    """

    def __init__(
        self,
        log_dir: Optional[str] = None,
        comment: str = "",
        purge_step: Optional[int] = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
        *,
        run: Optional[Run] = None,
        fetch: bool = False,
        **options: Any,
    ):
        """Records into `run`, else the active run, else init(**options).

        TensorBoard's own arguments are taken and have no effect: there are no files.
        """
        self.log_dir = log_dir or ""
        self.run = run_of(run, options)
        self._fetch = fetch
        self._step: Any = None  # The step of the scalars that are not written yet.
        self._time_ns: Optional[int] = None
        self._tags: Set[str] = set()
        self._tags_before: Set[str] = set()

    def get_logdir(self) -> str:
        return self.log_dir

    # ---- Scalars

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Every value keeps the precision that it has, whatever double_precision says."""
        step = None if global_step is None else int(global_step)
        if self._tags and (step != self._step or tag in self._tags):
            self.flush()
        if not self.run.recording or not self.run._set(tag, scalar_value, self._fetch):
            return
        self._step = step
        self._time_ns = None if walltime is None else int(walltime * 1e9)
        self._tags.add(tag)
        if self._tags >= self._tags_before and self._tags_before:
            self.flush()

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
    ) -> None:
        """The metrics are main_tag/tag, as TensorBoard names the runs."""
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step, walltime)

    def flush(self) -> None:
        """Writes the row of the scalars that were added last."""
        tags, self._tags = self._tags, set()
        if tags:
            self._tags_before = tags
            if self._time_ns is not None and self._step is not None:
                self.run._commit(self._step, self._time_ns)
            else:
                self.run._commit(self._step)

    def close(self) -> None:
        """Writes what is left. The run goes on: it ends with the process, or by its finish()."""
        self.flush()

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.close()

    # ---- Other things that are kept

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Optional[int] = None,
        bins: Any = "tensorflow",
        walltime: Optional[float] = None,
        max_bins: Optional[int] = None,
    ) -> None:
        """Counts the magnitude of each value: buckets are exponential, so signs have no place."""
        magnitudes = abs(values) if hasattr(values, "__abs__") else [abs(v) for v in values]
        self.run.observe(tag, magnitudes, fetch=self._fetch)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
    ) -> None:
        """An event; texts beyond 1,024 bytes are cut."""
        fields = {"tag": tag} if global_step is None else {"tag": tag, "step": global_step}
        self.run.event("text", str(text_string), **fields)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Any = None,
        run_name: Optional[str] = None,
        global_step: Optional[int] = None,
    ) -> None:
        """Hyperparameters become attributes of the attempt, the metrics a row."""
        self.flush()
        self.run.config.update(dict(hparam_dict))
        for tag, value in metric_dict.items():
            self.add_scalar(tag, value, global_step)
        self.flush()

    # ---- What is not kept

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("add_"):
            raise AttributeError(name)

        def ignore(*arguments: Any, **named: Any) -> None:
            say_once(f"{name}() is not kept: Tachograph has numbers, texts and facts")

        return ignore
