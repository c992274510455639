"""For JAX and Flax: a loop, a MetricWriter of CLU, and logging behind the device.

    from tacho.integrations.jax import LaggedLog, steps

    lagged = LaggedLog(job="lm")
    for step, batch in steps(batches):
        state, metrics = train_step(state, batch)    # Returns before the device has finished.
        lagged.log(metrics, step.number)
    lagged.flush()
"""
import collections
from typing import Any, Deque, Mapping, Optional, Tuple

from .._guard import guarded, guards
from .._library import say_once
from .._run import Run
from .._values import fetch as _fetch
from ._base import base_class, run_of, steps

__all__ = ["LaggedLog", "MetricWriter", "steps"]


def _ready(tree: Any) -> bool:
    """Whether looking at the values would wait for nothing."""
    if isinstance(tree, Mapping):
        return all(_ready(value) for value in tree.values())
    return tree.is_ready() if hasattr(tree, "is_ready") else True


class LaggedLog:
    """Records arrays some steps later, when the device has finished them, so that nothing waits.

    Copies to the host begin at once, in the background. Each log() records what is ready of the steps
    before. Only when `lag` steps are still not ready it waits for the oldest: the device is that far
    behind, and memory must not grow. Rows have the step of their values, and the time at which they
    were read.
    """

    def __init__(self, run: Optional[Run] = None, lag: int = 2, **options: Any):
        self.run = run_of(run, options)
        self._lag = max(lag, 0)
        self._waiting: Deque[Tuple[int, Mapping[str, Any]]] = collections.deque()

    @guarded
    def log(self, metrics: Mapping[str, Any], step: int) -> None:
        """Takes the values of a step; those on the host need not be arrays."""
        if not self.run.recording:
            return
        for value in metrics.values():
            if hasattr(value, "copy_to_host_async"):
                value.copy_to_host_async()
        self._waiting.append((step, dict(metrics)))
        while self._waiting and (len(self._waiting) > self._lag or _ready(self._waiting[0][1])):
            self._record_oldest()

    @guarded
    def flush(self) -> None:
        """Waits for everything that is left, and records it."""
        while self._waiting:
            self._record_oldest()

    def _record_oldest(self) -> None:
        step, metrics = self._waiting.popleft()
        self.run.log(metrics, step=step, fetch=True)


_Base: Any = base_class(("clu.metric_writers.interface", "clu.metric_writers"), "MetricWriter")


@guards("write_")
class MetricWriter(_Base):
    """A clu.metric_writers.MetricWriter, as Flax's examples use it.

    write_scalars() looks at its values, as every writer of CLU does: put it behind CLU's AsyncWriter,
    or use LaggedLog, for a loop that must not wait. Not kept, and said once: images, video, audio, point
    clouds, raw summaries.
    """

    def __init__(self, run: Optional[Run] = None, **options: Any):
        self.run = run_of(run, options)

    def write_scalars(self, step: int, scalars: Mapping[str, Any]) -> None:
        self.run.log(scalars, step=step, fetch=True)

    def write_texts(self, step: int, texts: Mapping[str, str]) -> None:
        for tag, text in texts.items():
            self.run.event("text", str(text), tag=tag, step=step)

    def write_histograms(
        self, step: int, arrays: Mapping[str, Any],
        num_buckets: Optional[Mapping[str, int]] = None,
    ) -> None:  # fmt: skip
        """Counts magnitudes: buckets are exponential, so signs have no place."""
        for name, values in arrays.items():
            self.run.observe(name, abs(_fetch(values)))

    def write_hparams(self, hparams: Mapping[str, Any]) -> None:
        self.run.config.update(hparams)

    def _not_kept(self, *arguments: Any, **named: Any) -> None:
        say_once("images, video, audio, point clouds and raw summaries are not kept")

    write_summaries = write_images = write_videos = write_audios = write_pointcloud = _not_kept

    def flush(self) -> None:
        pass

    def close(self) -> None:
        """The run goes on: it ends with the process, or by its finish()."""
