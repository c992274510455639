"""One step of a training, with its phases."""
from typing import Any, List, Mapping, Optional, Tuple

from ._library import say_once


class Step:
    """`with run.step(n) as s:` writes one row at its end, with what was logged in it.

        for n, batch in enumerate(loader):
            with run.step(n) as s:
                s.phase("data")
                batch = next(batches)
                s.phase("compute")
                run.log({"loss": train(batch)})

    The row has beside that step_duration_seconds, step_time_seconds (from the end of the step before
    to the end of this one) and the seconds of each phase, by a monotonic clock. A step that is left by
    an exception writes no row. A step within another one is left out; the outer one goes on.
    """

    __slots__ = ("_run", "number", "_active", "logged", "later")

    def __init__(self, run: Any, number: int):
        self._run = run
        self.number = number
        self._active = False
        self.logged = False  # Whether something belongs to the row already.
        self.later: List[Tuple[Mapping[str, float], int]] = []  # Rows of other steps, with these.

    def __enter__(self) -> "Step":
        run = self._run
        if run is None or not run._handle:
            return self
        if run._scope is not None:
            say_once(f"step {self.number} begins within step {run._scope.number}: it is not recorded")
            return self
        try:
            run._library.tacho_begin_step(run._handle, self.number)
            run._scope = self
            self._active = True
        except Exception as error:
            say_once(f"step {self.number} is not recorded: {error}")
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            self.end()
        else:
            self.abandon()

    def phase(self, name: Optional[str]) -> None:
        """From now until the next phase or the end of the step, time belongs to this phase.

        Known to conditions and goodput are "data" (waiting for input), "compute", "comm" (waiting in
        collectives), "checkpoint" and "eval"; any other name x is recorded as x_seconds. None: time
        belongs to no phase.
        """
        if not self._active:
            return
        run = self._run
        try:
            if name is None:
                run._library.tacho_leave_phase(run._handle)
                return
            phase = run._phases.get(name)
            if phase is None:
                phase = run._library.tacho_declare_phase(run._handle, name.encode())
                run._phases[name] = phase
            run._library.tacho_enter_phase(run._handle, phase)
        except Exception as error:
            say_once(f"phase({name!r}) is not recorded: {error}")

    def log(self, data: Mapping[str, Any], fetch: bool = False) -> None:
        """The same as run.log() within this step."""
        if self._run is not None:
            self._run.log(data, fetch=fetch)

    def end(self) -> None:
        """Writes the row now, rather than at the end of the block."""
        self._finish("tacho_end_step", self.number + 1)

    def abandon(self) -> None:
        """Writes no row: what was set in it is dropped."""
        if self._run is not None:
            self._finish("tacho_abandon_step", self._run._next_step)

    def leave(self) -> None:
        """The loop was left within the step: it counts if something was logged in it."""
        if self.logged:
            self.end()
        else:
            self.abandon()

    def _finish(self, function: str, next_step: int) -> None:
        active, self._active = self._active, False
        if not active:
            return
        run = self._run
        run._scope = None
        if run._inputs and function == "tacho_end_step":
            run._take_inputs()
        getattr(run._library, function)(run._handle)
        later, self.later = self.later, []
        for values, step in later:
            run.log(values, step=step)
        run._next_step = next_step


# step() returns it when even that goes wrong.
NO_STEP_SCOPE = Step(None, 0)
