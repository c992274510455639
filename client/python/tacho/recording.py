"""Begins and ends the recording of a training by this process."""
import atexit
import ctypes
import os
import sys
from typing import Any, Iterable, Mapping, Optional, Union

from . import _library, _stacks
from ._library import Options, say_once
from ._run import Run
from .errors import ConfigurationError

_active: Optional[Run] = None


def init(
    job: Optional[str] = None,
    task: Optional[int] = None,
    config: Optional[Mapping[str, Any]] = None,
    *,
    attempt: Optional[int] = None,
    group: Optional[str] = None,
    tags: Iterable[str] = (),
    note: Optional[str] = None,
    directory: Optional[str] = None,
    ring_bytes: int = 0,
    ring_mode: int = 0,
    histogram_interval_s: Optional[float] = None,
    stacks: Union[bool, int] = False,
    strict: bool = False,
) -> Run:
    """Begins to record this process' part of a training.

    What is not given comes from the environment: TACHO_JOB, TACHO_TASK, TACHO_ATTEMPT, TACHO_GROUP,
    TACHO_RING_DIR, and what Kubernetes, Slurm, torchrun and TPUs leave there.

    Args:
      job: The training run as its owner names it. Without one nothing is recorded.
      task: Which process of the job this is, from 0.
      config: Facts about the attempt (model, batch_size, hyperparameters): see Run.config.
      attempt: Which start of the job this is, from 0.
      group: The group of runs that the job belongs to, such as a sweep.
      tags: Short words by which the job is found: `tachoctl jobs --tag WORD`.
      note: A sentence about the job, which `tachoctl status` shows.
      directory: Where the ring is created; /run/tacho by default, which the agent reads.
      ring_bytes: Room for records; 4 MiB by default.
      ring_mode: Permissions of the ring; 0o644 by default.
      histogram_interval_s: How often histograms are recorded; 1 by default, 0 is with every row.
      stacks: Let the agent see this process' Python stacks when an operator asks (`tachoctl hang
        JOB`): faulthandler writes them to a file beside the ring on a signal, SIGRTMIN+7 unless this
        is the number of another.
      strict: Raise ConfigurationError if nothing can be recorded, rather than warn.

    A process records one run at a time: a second init() ends the run before.
    """
    global _active
    if _active is not None:
        _active.finish(0)
    run = _open(
        job, task, attempt, group, directory, ring_bytes, ring_mode, histogram_interval_s
    )
    if not run.recording:
        if strict:
            raise ConfigurationError("nothing is recorded: " + run.error)
        return run
    _active = run
    run._stacks = _stacks.install(run.path, stacks)
    run._mark(tags, note)
    if config:
        run.config.update(config)
    run.event("attempt_started")
    return run


def _number(value: Optional[int]) -> int:
    return -1 if value is None else int(value)


def _open(
    job: Any, task: Any, attempt: Any, group: Any, directory: Any, ring_bytes: int,
    ring_mode: int, histogram_interval_s: Optional[float],
) -> Run:  # fmt: skip
    library, trouble = _library.load()
    if library is None:
        say_once("nothing is recorded: " + trouble)
        return Run(None, None, trouble)
    try:
        options = Options(
            size=ctypes.sizeof(Options),
            directory=None if directory is None else os.fsencode(directory),
            job=None if job is None else str(job).encode(),
            task=_number(task),
            attempt=_number(attempt),
            group=None if group is None else str(group).encode(),
            ring_bytes=ring_bytes,
            ring_mode=ring_mode,
            histogram_interval_ns=(
                -1 if histogram_interval_s is None else int(histogram_interval_s * 1e9)
            ),
        )
        handle = library.tacho_open(ctypes.byref(options))
    except Exception as error:
        say_once(f"nothing is recorded: {error}")
        return Run(None, None, str(error))
    run = Run(library, handle, "out of memory")
    if not run.recording:
        # The library has said it on standard error already.
        run._close(run.error)
    return run


def active_run() -> Optional[Run]:
    """The run that init() has begun and nobody has ended, or None."""
    return _active if _active is not None and _active._handle else None


def log(
    data: Mapping[str, Any],
    step: Optional[int] = None,
    commit: Optional[bool] = None,
    fetch: bool = False,
) -> None:
    """Run.log() of the active run; nothing without one."""
    if _active is None:
        return say_once("log() before init(): nothing is recorded")
    _active.log(data, step, commit, fetch)


def finish(exit_code: Optional[int] = None) -> None:
    """Run.finish() of the active run; nothing without one."""
    if _active is not None:
        _active.finish(exit_code)


def _at_exit() -> None:
    if _active is None:
        return
    # An interactive session goes on after an exception.
    uncaught = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    if uncaught is not None:
        _active._finish(1, uncaught)
    else:
        _active._leave_to_exit()


def _after_fork_in_child() -> None:
    if _active is not None:
        _active._forget()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
