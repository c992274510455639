"""A run: what one process records of one training."""
import operator
import struct
import sys
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Tuple

from . import _library
from ._guard import guarded
from ._library import NO_METRIC, OK, say_once
from ._stacks import Stacks
from ._step import NO_STEP_SCOPE, Step
from ._texts import Texts, split_texts
from ._values import PLAIN, NotANumber, NotFetched, fetch as _fetch, to_float
from .config import Config, flatten, to_text

class _Plan(NamedTuple):
    """How a dictionary with certain keys is recorded."""

    pack: Callable[..., bytes]
    address: int  # The address of the C array of metrics.
    count: int  # The length of the array.
    handles: Any  # Keeps the array alive.


# A trainer that makes up new sets of keys all the time must not fill the memory.
_MAX_PLANS = 1024


def _text(value: Optional[str]) -> bytes:
    return (value or "").encode("utf-8", "replace").replace(b"\0", b" ")


class Run:
    """What init() returns. Every method may be called from any thread, and none raises.

    In a child of fork() (a worker of a data loader) every method does nothing, and a copy that was
    pickled into another process is a run that records nothing.
    """

    def __init__(self, library: Any, handle: Optional[int], error: str):
        import ctypes

        # A mutable cell instead of a number: finish() empties it. So a call that another thread or
        # a signal handler interrupted never uses a library object that no longer exists.
        self._handle = ctypes.c_void_p(handle)
        self._open = [] if handle is None else [handle]
        self._library = library
        self._reason = error
        self._plans: Dict[Tuple[Any, ...], _Plan] = {}
        self._metrics: Dict[str, int] = {}
        self._histograms: Dict[str, int] = {}
        self._phases: Dict[str, int] = {}
        self._collectives: Dict[Tuple[str, Optional[int]], int] = {}
        self._scope: Optional[Step] = None
        self._next_step = 0
        self._inputs: Dict[str, Any] = {}  # InputProfile by name.
        self._stacks: Optional[Stacks] = None
        self._texts = Texts(self)
        self._log = library.tacho_log if library is not None else None
        self._set_values = library.tacho_set_values if library is not None else None
        self._path = "" if handle is None else library.tacho_path(self._handle).decode()
        self.config = Config(self._set_attribute)

    # ---- What it is

    @property
    def recording(self) -> bool:
        """Whether this process records."""
        return bool(self._handle) and bool(self._library.tacho_recording(self._handle))

    @property
    def path(self) -> str:
        """The ring's file, or ""."""
        return self._path

    @property
    def error(self) -> str:
        """Why nothing is recorded, else why something was refused last, else ""."""
        if not self._handle:
            return self._reason
        return self._library.tacho_error(self._handle).decode("utf-8", "replace")

    @property
    def refused(self) -> int:
        """How many values, metrics, rows, events and attributes the library refused."""
        return self._library.tacho_refused(self._handle) if self._handle else 0

    def __repr__(self) -> str:
        if not self._handle:
            return f"<tacho.Run that records nothing: {self.error}>"
        return f"<tacho.Run {self._path}>"

    # ---- Values

    def log(
        self,
        data: Mapping[str, Any],
        step: Optional[int] = None,
        commit: Optional[bool] = None,
        fetch: bool = False,
    ) -> None:
        """Records numbers by name: `run.log({"loss": 0.5}, step=7)`.

        Each call is one row, written at once: nothing waits in the process for it to die. Several
        calls for the same step are several rows with that step, and come together when they are read
        by step. Without `step` it is the one after the last. Within `with run.step(n)` values belong
        to that step's row, which is written at its end (those of another step to a row of their own
        behind it); `commit=False` likewise leaves them for the row to come.

        Names are declared as gauges when they are first used (see define_metric). Values are numbers
        of Python, NumPy, PyTorch or JAX; a nested dictionary gives names such as "train.loss". What
        lies on a device is left out, with one warning, unless fetch=True, which waits for it.

        A string with `step`, or within `with run.step(n)`, is an event of the kind "text" at that
        step, unless the name has the same string as before: at most 1,024 bytes, and 1,000 a run. A
        string without a step is an attribute of the attempt: at most 4,096 bytes, 64 names,
        and 32 KiB together, replaced ones included.
        """
        # The common case: known names and plain numbers.
        try:
            if commit is None:
                plan = self._plans.get(tuple(data))
                if plan is not None:
                    values = data.values()
                    if {*map(type, values)} <= PLAIN:
                        packed = plan.pack(*values)
                        scope = self._scope
                        if scope is None:
                            if step is None:
                                step = self._next_step
                            if self._inputs:
                                self._take_inputs()
                            self._log(self._handle, step, plan.address, packed, plan.count)
                            self._next_step = step + 1
                            return
                        if step is None:
                            self._set_values(self._handle, plan.address, packed, plan.count)
                            scope.logged = True
                            return
        except Exception:
            pass  # The long way finds out what is wrong.
        self._log_slowly(data, step, commit, fetch)

    @guarded
    def _log_slowly(self, data: Any, step: Any, commit: Optional[bool], fetch: bool) -> None:
        if not self._handle:
            return
        if any(isinstance(value, dict) for value in data.values()):
            data = flatten(data)
        texts = split_texts(data)
        if texts:
            data = {name: value for name, value in data.items() if not isinstance(value, str)}
        values = self._numbers(data, fetch)
        if step is not None:
            step = operator.index(step.item() if hasattr(step, "item") else step)
        scope = self._scope
        if texts:
            within = None if scope is None else scope.number
            self._texts.log(texts, within if step is None else step)
        if scope is not None and step is not None and step != scope.number:
            scope.later.append((values, step))
            return
        plan = self._plan_of(tuple(values))
        self._set_values(self._handle, plan.address, plan.pack(*values.values()), plan.count)
        if scope is not None:
            scope.logged = scope.logged or bool(values)
        elif commit is not False and values:
            self._commit(self._next_step if step is None else step)

    def _commit(self, step: Optional[int], time_unix_ns: Optional[int] = None) -> None:
        """Writes the row to come; without a step it belongs to none."""
        if self._inputs:
            self._take_inputs()
        if step is None:
            self._library.tacho_commit(self._handle)
            return
        if time_unix_ns is None:
            self._library.tacho_commit_step(self._handle, step)
        else:
            self._library.tacho_commit_step_at(self._handle, step, time_unix_ns)
        self._next_step = step + 1

    @guarded
    def _take_inputs(self) -> None:
        """Sets in the row to come what its inputs have measured since the last one."""
        for profile in list(self._inputs.values()):
            values = profile.take()
            if values and self._handle:
                plan = self._plan_of(tuple(values))
                packed = plan.pack(*values.values())
                self._set_values(self._handle, plan.address, packed, plan.count)

    def _set(self, name: str, value: Any, fetch: bool = False) -> bool:
        """Sets one value of the row to come. False if it was left out."""
        values = self._numbers({name: value}, fetch)
        if values:
            plan = self._plan_of(tuple(values))
            packed = plan.pack(*values.values())
            self._set_values(self._handle, plan.address, packed, plan.count)
        return bool(values)

    def _numbers(self, data: Any, fetch: bool) -> Dict[str, float]:
        """Those entries that can be recorded, as numbers."""
        if fetch:
            data = _fetch(dict(data))
        numbers = {}
        for name, value in data.items():
            try:
                numbers[str(name)] = to_float(value, fetch)
            except NotFetched as what:
                say_once(
                    f'"{name}" is {what}, and reading it waits for the device: it is left out. '
                    "Log tacho.fetch(value), or log(..., fetch=True), where waiting is all right"
                )
            except NotANumber as what:
                say_once(f'"{name}" is left out: it is {what}')
            except Exception as error:
                say_once(f'"{name}" is left out: {type(error).__name__}: {error}')
        return numbers

    def _plan_of(self, names: Tuple[str, ...]) -> _Plan:
        plan = self._plans.get(names)
        if plan is None:
            import ctypes

            handles = (ctypes.c_int32 * len(names))(*[self._metric(name) for name in names])
            pack = struct.Struct(f"{len(names)}d").pack
            plan = _Plan(pack, ctypes.addressof(handles), len(names), handles)
            if len(self._plans) < _MAX_PLANS:
                self._plans[names] = plan
        return plan

    def _metric(self, name: str) -> int:
        known = self._metrics.get(name)
        if known is not None:
            return known
        return self._declare(self._library.tacho_gauge, name, "", "")

    def _declare(self, function: Any, name: str, unit: str, help: str) -> int:
        handle = function(self._handle, _text(name), _text(unit), _text(help))
        if handle == NO_METRIC and self._handle:
            say_once(self.error)
        self._metrics[name] = handle
        return handle

    @guarded
    def define_metric(self, name: str, unit: str = "", help: str = "", kind: str = "gauge") -> None:
        """Says what a metric is, before it is first logged; else it is a gauge without a unit.

        A "gauge" is a level. A "counter" is a running total (tokens, examples): it is logged as the
        total so far, and keeps its value in rows that do not mention it.
        """
        if kind not in ("gauge", "counter"):
            return say_once(f'"{name}" is neither a gauge nor a counter but "{kind}": not declared')
        if self._handle:
            library = self._library
            function = library.tacho_gauge if kind == "gauge" else library.tacho_counter
            self._declare(function, str(name), unit, help)

    @guarded
    def define_histogram(
        self,
        name: str,
        unit: str = "",
        help: str = "",
        first: float = 0.0,
        factor: float = 0.0,
        count: int = 0,
    ) -> None:
        """Says which buckets a histogram has, before it is first observed.

        Their upper bounds are first, first * factor, … (`count` of them); 0 is the library's default,
        0.0001 to 838.9 in factors of 2.
        """
        if not self._handle:
            return
        handle = self._library.tacho_declare_histogram(
            self._handle, _text(name), _text(unit), _text(help), first, factor, count
        )
        if handle == NO_METRIC and self._handle:
            say_once(self.error)
        self._histograms[name] = handle

    @guarded
    def observe(self, name: str, values: Any, fetch: bool = False) -> None:
        """Counts a number, or each of an array or sequence of numbers, in a histogram.

        The histogram is recorded with the next row, at most once a second. Every bucket is a series
        at the collector, so histograms are for few things: gradient norms, latencies.
        """
        if not self._handle:
            return
        if name not in self._histograms:
            self.define_histogram(name)
        packed, count = self._doubles(name, values, fetch)
        if count:
            self._library.tacho_observe(self._handle, self._histograms[name], packed, count)

    def _doubles(self, name: str, values: Any, fetch: bool) -> Tuple[bytes, int]:
        kind = type(values)
        if kind in PLAIN:
            return struct.pack("d", values), 1
        if fetch:
            values = _fetch(values)
        if hasattr(values, "device") and not hasattr(values, "__array_interface__"):
            try:
                return struct.pack("d", to_float(values, fetch)), 1
            except NotANumber:  # An array, which may be looked at.
                values = _fetch(values)
            except NotFetched as what:
                say_once(f'"{name}" is {what}, and reading it waits for the device: it is left out')
                return b"", 0
        if hasattr(values, "__array_interface__"):
            import numpy

            array = numpy.ascontiguousarray(values, dtype=numpy.float64)
            return array.tobytes(), array.size
        if not hasattr(values, "__len__"):
            values = [values]
        numbers = [to_float(value, fetch) for value in values]
        return struct.pack(f"{len(numbers)}d", *numbers), len(numbers)

    # ---- Steps, events, attributes

    def step(self, number: int) -> Step:
        """One step of the training: `with run.step(n) as s:`. See Step."""
        try:
            return Step(self, operator.index(number))
        except Exception as error:
            say_once(f"step({number!r}) is not recorded: {error}")
            return NO_STEP_SCOPE

    @guarded
    def event(self, kind: str, message: str = "", **fields: Any) -> None:
        """Something that happened now, at the step of the last row.

        docs/notation.md lists the kinds that mean something to the collector, such as
        "checkpoint_saved"; any other is kept and shown.
        """
        self._event_at(None, kind, message, **fields)

    def _event_at(
        self, step: Optional[int], kind: str, message: str, /, **fields: Any
    ) -> None:  # fmt: skip
        """event() at a step; None is that of the last row."""
        if not self._handle:
            return
        array = (_library.Field * len(fields))()
        texts = [(_text(name), _text(to_text(value))) for name, value in fields.items()]
        for i, (name, value) in enumerate(texts):
            array[i].name, array[i].value = name, value
        event = (_text(kind), _text(message), array, len(fields))
        if step is None:
            result = self._library.tacho_event(self._handle, *event)
        else:
            result = self._library.tacho_event_at_step(self._handle, step, *event)
        if result != OK and self._handle:
            say_once(self.error)

    def _set_attribute(self, key: str, value: str) -> None:
        if self._handle and self._library.tacho_set_attribute(
            self._handle, _text(key), _text(value)
        ):
            say_once(self.error)

    @guarded
    def _mark(self, tags: Any, note: Any) -> None:
        for tag in (tags,) if isinstance(tags, str) else tags:
            self._set_attribute(f"tag.{tag}", "1")
        if note:
            self._set_attribute("note", str(note))

    # ---- The end

    @guarded
    def finish(self, exit_code: Optional[int] = None) -> None:
        """Ends the run, and nothing is recorded afterwards: the event "ended", or "exited" if it failed.

        It failed if the exit code says so, or without one if an exception is being handled. At the end of
        a process this is done by itself: it failed by an exception that nobody caught, and by sys.exit(n)
        where n is not 0.
        """
        self._finish(exit_code, sys.exc_info()[1])

    @guarded
    def _finish(self, exit_code: Optional[int], error: Optional[BaseException]) -> None:
        if exit_code is None:
            exit_code = _exit_code_of(error)
        fields = {"status": "succeeded" if exit_code == 0 else "failed", "exit_code": exit_code}
        if exit_code != 0 and error is not None and not isinstance(error, SystemExit):
            fields["exception"] = type(error).__name__
        self._leave_step()
        if self._handle:
            self.event("ended" if exit_code == 0 else "exited", "", **fields)
        self._close("the run has ended")

    def _leave_step(self) -> None:
        if self._scope is not None:
            self._scope.leave()

    @guarded
    def _leave_to_exit(self) -> None:
        """The process ends: the library records its end, because it alone learns the exit status."""
        self._leave_step()
        if self._handle:
            self._library.tacho_leave_to_exit(self._handle)
        self._handle.value = None
        self._open.clear()
        self._reason = "the process ends"

    def _close(self, reason: str) -> None:
        self._reason = reason
        self._handle.value = None
        try:
            handle = self._open.pop()  # Once only, whoever else finishes at the same time.
        except IndexError:
            return
        if self._stacks is not None:
            self._stacks.close()
        self._library.tacho_close(handle)

    def _forget(self) -> None:
        """In a child of fork(): the ring is the parent's."""
        self._reason = "a child of fork() records nothing"
        self._handle.value = None
        self._open.clear()
        self._scope = None

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._finish(None, error)

    def __deepcopy__(self, memo: Any) -> "Run":
        return self

    def __reduce__(self) -> Any:
        return _run_elsewhere, ()


def _exit_code_of(error: Optional[BaseException]) -> int:
    """What Python returns for it: sys.exit() without a code is a good end, and with a text a bad one."""
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else 1


def _run_elsewhere() -> Run:
    return Run(None, None, "a copy of a run in another process records nothing")
