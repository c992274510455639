"""What integrations share."""
import importlib
from typing import Any, Iterable, Iterator, Optional, Sequence, Tuple, TypeVar

from .. import recording
from .._run import Run
from .._step import Step

_Item = TypeVar("_Item")


def run_of(run: Optional[Run], options: dict) -> Run:
    """The run to record into: the one given, else the active one, else a new one."""
    if run is None:
        run = recording.active_run()
    if run is None:
        return recording.init(**options)
    if options.get("config"):
        run.config.update(options["config"])
    return run


def base_class(modules: Sequence[str], name: str, otherwise: type = object) -> type:
    """The class of the first of these modules that is installed; frameworks change where it is."""
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except Exception:  # Also of a framework that is there but broken.
            continue
    return otherwise


class StepByHand:
    """A step that begins in one callback and ends in another."""

    def __init__(self, run: Run):
        self._run = run
        self._step: Optional[Step] = None

    def begin(self, number: int) -> None:
        self.abandon()
        self._step = self._run.step(number).__enter__()

    @property
    def number(self) -> Optional[int]:
        return None if self._step is None else self._step.number

    def phase(self, name: Optional[str]) -> None:
        if self._step is not None:
            self._step.phase(name)

    def end(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.end()

    def abandon(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.abandon()


def steps(
    batches: Iterable[_Item], run: Optional[Run] = None, start: int = 0, **options: Any
) -> Iterator[Tuple[Step, _Item]]:
    """Goes through batches with a step around each: `for step, batch in steps(loader):`.

    Waiting for a batch is the phase "data", the body of the loop the phase "compute" until it enters
    another. What is logged in the body belongs to the step, whose row is written when the next batch
    is asked for. When the body leaves the loop, its step is written if something was logged in it.
    """
    run = run_of(run, options)
    iterator = iter(batches)
    number = start
    while True:
        with run.step(number) as step:
            step.phase("data")
            try:
                batch = next(iterator)
            except StopIteration:
                step.abandon()
                return
            step.phase("compute")
            try:
                yield step, batch
            except GeneratorExit:
                step.leave()
                raise
        number += 1
