"""The time that a training waits for its input, and the stage of the input that takes it.

The training's thread and those of stages only add to numbers here. Run takes them when it writes a
row, so an element costs no call of the library. Stages count in memory that children of fork() share:
each process has a slot that nobody else writes, and the trainer sums them up.
"""
import functools
import itertools
import mmap
import os
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, TypeVar

from ._guard import guarded
from ._library import say_once

_now = time.perf_counter_ns
_Value = TypeVar("_Value")

# A name is a metric, and metrics last as long as the run.
_MAX_PROFILES = 8
_MAX_STAGES = 16
# Trainer and workers; the next child takes the slot of the oldest one.
_SLOTS = 256
# The size of an element is measured for one in so many, of so many leaves at most.
_SIZE_EVERY = 16
_MAX_LEAVES = 64
_MAX_DEPTH = 4
_MAX_WORKERS = 256
_CPU_INTERVAL_NS = 1_000_000_000

_slot = 0  # This process adds its times here.
_children = itertools.count(1)
_next_child = 0


def _before_fork() -> None:
    global _next_child
    _next_child = next(_children) % (_SLOTS - 1) + 1


def _after_fork_in_child() -> None:
    global _slot
    _slot = _next_child
    for stage in _stages.values():
        stage.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)


class _Thread(threading.local):
    inner_ns = 0  # Time of stages within the present one: it is not this one's own.


_thread = _Thread()


class _Stage:
    """What one stage worked, in all processes."""

    def __init__(self) -> None:
        self._sums = memoryview(mmap.mmap(-1, 8 * _SLOTS)).cast("q")
        self._taken = [0] * _SLOTS
        self.after_fork()

    def after_fork(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.Lock()
        self._threads: set = set()

    def add(self, begin_ns: int, outer_ns: int) -> None:
        """The stage worked from then until now. `outer_ns`: inner_ns as it was then."""
        took = _now() - begin_ns
        own = took - _thread.inner_ns
        _thread.inner_ns = outer_ns + took
        with self._lock:
            self._sums[_slot] += own
            if len(self._threads) < _SLOTS:
                self._threads.add(threading.get_ident())

    def take(self) -> Optional[float]:
        """Seconds since the last call, as the mean over the threads and processes that worked."""
        with self._lock:  # Two threads may write rows.
            sums = self._sums.tolist()
            workers = max(0, len(self._threads) - 1)
            self._threads.clear()
            worked = 0
            for now, before in zip(sums, self._taken):
                if now != before:
                    worked += now - before
                    workers += 1
            self._taken = sums
        return worked * 1e-9 / workers if workers else None


_stages: Dict[Tuple[str, str], _Stage] = {}


def _stage_of(name: str, profile: str) -> Optional[_Stage]:
    stage = _stages.get((profile, name))
    if stage is None:
        if sum(owner == profile for owner, _ in _stages) >= _MAX_STAGES:
            say_once(f'the stage "{name}" is not timed: "{profile}" has {_MAX_STAGES} already')
            return None
        if len({owner for owner, _ in _stages} | {profile}) > _MAX_PROFILES:
            say_once(f'the stage "{name}" is not timed: {_MAX_PROFILES} other inputs have stages')
            return None
        stage = _stages[(profile, name)] = _Stage()
    return stage


class _TimedIterable:
    def __init__(self, iterable: Any, stage: _Stage):
        self._iterable, self._stage = iterable, stage

    def __iter__(self) -> Iterator[Any]:
        add, take = self._stage.add, iter(self._iterable).__next__
        while True:
            outer, _thread.inner_ns = _thread.inner_ns, 0
            begin = _now()
            try:
                value = take()
            except StopIteration:
                return
            finally:
                add(begin, outer)
            yield value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterable, name)

    def __len__(self) -> int:
        return len(self._iterable)

    def __reduce__(self) -> Any:
        return _same, (self._iterable,)


class _TimedFunction:
    """A class, because workers that are spawned get the function by pickle: there it is not timed."""

    def __init__(self, function: Callable[..., Any], stage: _Stage):
        self._function, self._stage = function, stage
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        outer, _thread.inner_ns = _thread.inner_ns, 0
        begin = _now()
        try:
            return self._function(*arguments, **named)
        finally:
            self._stage.add(begin, outer)

    def __reduce__(self) -> Any:
        return _same, (self._function,)


def _same(function: Any) -> Any:
    return function


def input_stage(stage: str, work: _Value, name: str = "input") -> _Value:
    """The same function or iterable, whose time is that of a stage of the input.

        dataset.decode = tacho.input_stage("decode", dataset.decode)
        batches = tacho.input_stage("transfer", map(to_device, loader))

    The time of a stage within another one counts for the inner one alone. Call it before a data
    loader forks its workers: their time counts, too. A worker that is spawned is not timed.

    Args:
      stage: What it does: "read", "decode", "collate", "transfer", …: at most 16 names.
      work: A function, or an iterable.
      name: The name of the input that it belongs to, as in profile_input().
    """
    try:
        timed = _stage_of(str(stage), str(name))
        if timed is None:
            return work
        if hasattr(work, "__iter__") or hasattr(work, "__next__"):
            return _TimedIterable(work, timed)  # type: ignore[return-value]
        if callable(work):
            return _TimedFunction(work, timed)  # type: ignore[return-value]
        say_once(f"the stage {stage!r} is not timed: {type(work).__name__} cannot be called or iterated")
        return work
    except Exception as error:
        say_once(f"the stage {stage!r} is not timed: {type(error).__name__}: {error}")
        return work


def _size_of(value: Any) -> Tuple[int, int]:
    """(examples, bytes) of an element: a tensor's first dimension, and what its leaves report."""
    examples, size, seen = 0, 0, 0
    waiting: List[Tuple[Any, int]] = [(value, 0)]
    while waiting and seen < _MAX_LEAVES:
        leaf, depth = waiting.pop()
        seen += 1
        if isinstance(leaf, (dict, list, tuple)):
            if depth < _MAX_DEPTH:
                inner = leaf.values() if isinstance(leaf, dict) else leaf
                waiting += [(one, depth + 1) for one in itertools.islice(inner, _MAX_LEAVES)]
            continue
        shape = getattr(leaf, "shape", None)
        if shape is None:
            size += len(leaf) if isinstance(leaf, (bytes, bytearray)) else 0
            continue
        if hasattr(leaf, "nbytes"):
            size += int(leaf.nbytes)
        elif hasattr(leaf, "element_size"):  # Tensors of PyTorch before 2.0.
            size += leaf.element_size() * leaf.nelement()
        examples = max(examples, int(shape[0]) if len(shape) else 1)
    return examples or 1, size


class InputProfile:
    """What profile_input() returns: the iterable, with the waits for its elements timed."""

    def __init__(self, iterable: Iterable[Any], name: str, depth: Optional[Callable[[], float]]):
        self._iterable, self._name, self._depth = iterable, name, depth
        self._iterator: Any = None
        self._lock = threading.Lock()
        self._wait_ns = self._waits = self._elements = 0
        self._size = (0, 0)
        self._examples = self._bytes = 0
        self._cpu: Dict[int, int] = {}  # Ticks by worker.
        self._cpu_ns = 0
        self._run: Any = None

    def __iter__(self) -> Iterator[Any]:
        iterator = iter(self._iterable)
        self._attach(iterator)
        take, lock = iterator.__next__, self._lock
        while True:
            begin = _now()
            try:
                value = take()
            except StopIteration:
                return
            wait = _now() - begin
            with lock:
                if self._elements % _SIZE_EVERY == 0:
                    self._measure(value)
                self._elements += 1
                self._wait_ns += wait
                self._waits += 1
                self._examples += self._size[0]
                self._bytes += self._size[1]
            yield value

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterable, name)

    def __reduce__(self) -> Any:
        return _same, (self._iterable,)

    @guarded
    def _attach(self, iterator: Any) -> None:
        """From now on the rows of the active run have its numbers."""
        from .recording import active_run

        self._iterator = iterator
        run = active_run()
        if run is None or run is self._run:
            return
        others = {name for name in run._inputs if name != self._name}
        if len(others) >= _MAX_PROFILES:
            return say_once(f'the input "{self._name}" is not recorded: there are {_MAX_PROFILES}')
        for what, unit, kind, help in _METRICS:
            run.define_metric(f"{self._name}_{what}", unit, help, kind=kind)
        self._run = run
        run._inputs[self._name] = self

    def _measure(self, value: Any) -> None:
        try:
            self._size = _size_of(value)
        except Exception as error:
            say_once(f'the elements of "{self._name}" have no size: {error}')

    def take(self) -> Dict[str, float]:
        """What the next row says of it: nothing if the training took no element since the last."""
        with self._lock:
            if not self._waits:
                return {}
            wait, self._wait_ns, self._waits = self._wait_ns, 0, 0
            values = {"wait_seconds": wait * 1e-9, "examples_total": self._examples}
            values["bytes_total"] = self._bytes
        depth = self._queue_depth()
        if depth is not None:
            values["queue_depth"] = depth
        values.update(self._workers())
        for (owner, stage), timed in list(_stages.items()):
            seconds = timed.take() if owner == self._name else None
            if seconds is not None:
                values[f"stage_{stage}_seconds"] = seconds
        return {f"{self._name}_{what}": value for what, value in values.items()}

    def _queue_depth(self) -> Optional[float]:
        queue = getattr(self._iterator, "_data_queue", None)  # Of torch's DataLoader.
        sources = (self._depth, getattr(self._iterable, "qsize", None), getattr(queue, "qsize", None))
        for source in sources:
            if callable(source):
                try:
                    return float(source())
                except Exception as error:
                    say_once(f'the queue of "{self._name}" has no depth: {error}')
        return None

    def _workers(self) -> Dict[str, float]:
        """At most once a second: cores that the workers of a DataLoader used, and how many they are."""
        now = _now()
        passed = now - self._cpu_ns
        if passed < _CPU_INTERVAL_NS:
            return {}
        workers = getattr(self._iterator, "_workers", None) or ()
        ticks = {}
        for worker in itertools.islice(workers, _MAX_WORKERS):
            pid = getattr(worker, "pid", None)
            used = None if pid is None else _ticks_of(pid)
            if used is not None:
                ticks[pid] = used
        used = sum(now_used - self._cpu[pid] for pid, now_used in ticks.items() if pid in self._cpu)
        first, self._cpu, self._cpu_ns = not self._cpu, ticks, now
        if first or not ticks:
            return {}
        seconds = used / os.sysconf("SC_CLK_TCK")
        return {"workers": len(ticks), "workers_cpu_ratio": seconds / (passed * 1e-9) / len(ticks)}


# Name behind that of the input, unit, kind, help. Stages are gauges that their names explain.
_METRICS = (
    ("wait_seconds", "s", "gauge", "Time that the trainer waited for elements since the last row."),
    ("examples_total", "", "counter", "Examples taken."),
    ("bytes_total", "By", "counter", "Bytes taken, estimated from one element in 16."),
    ("queue_depth", "", "gauge", "Elements that are ready."),
    ("workers", "", "gauge", "Worker processes of the data loader."),
    ("workers_cpu_ratio", "", "gauge", "Busy share of a core, as the mean over the workers."),
)


def _ticks_of(pid: int) -> Optional[int]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name of the program may contain anything, even a parenthesis.
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError, ValueError):  # It has ended.
        return None


def profile_input(
    iterable: Iterable[Any], name: str = "input", depth: Optional[Callable[[], float]] = None
) -> InputProfile:
    """The same iterable, which records how long the training waits for each of its elements.

        for n, batch in enumerate(tacho.profile_input(loader)):
            with run.step(n):
                run.log({"loss": train_on(batch)})

    Each row of the active run that follows an element has `input_wait_seconds`, and the counters
    `input_examples_total` and `input_bytes_total` (an estimate); where they are known,
    `input_queue_depth`, `input_workers`, `input_workers_cpu_ratio`, and for each input_stage()
    `input_stage_STAGE_seconds`. docs/notation.md explains them. Iterate after init().

    Args:
      iterable: A DataLoader, a generator, anything that can be iterated.
      name: The beginning of the metrics' names. Conditions and goodput read those of "input".
      depth: Returns how many elements are ready. Without it qsize() of the iterable, or of the
        queue of a DataLoader with workers, is asked.
    """
    return InputProfile(iterable, str(name), depth)
