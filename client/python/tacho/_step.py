"""One step of a training, with its phases."""
from typing import Any, List, Mapping, Optional, Tuple

from ._library import OK, say_once

# In the C interface: the collective was refused, or it has no peer.
_NONE = -1
# Names are remembered, also those that were refused.
_MAX_KNOWN = 1024


class Collective:
    """`with step.collective(name):` times one collective. step.collective() makes it."""

    __slots__ = ("_run", "_handle", "_bytes", "_active")

    def __init__(self, run: Any, handle: int, moved: int):
        self._run = run
        self._handle = handle
        self._bytes = moved
        self._active = False

    def __enter__(self) -> "Collective":
        if self._handle == _NONE:
            return self
        run = self._run
        try:
            result = run._library.tacho_begin_collective(run._handle, self._handle, self._bytes)
            self._active = result == OK
            if not self._active:
                say_once("a collective outside its step or within another one is not recorded")
        except Exception as error:
            say_once(f"a collective is not recorded: {error}")
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        active, self._active = self._active, False
        if active:
            self._run._library.tacho_end_collective(self._run._handle)


_NO_COLLECTIVE = Collective(None, _NONE, 0)


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

    def collective(self, name: str, bytes: int = 0, peer: Optional[int] = None) -> Collective:
        """`with step.collective("dp-allreduce", gradient_bytes):` times a collective of this step.

        The row gets collective_dp_allreduce_seconds and, unless bytes is 0, collective_dp_allreduce_bytes:
        what this task contributes or moves. `peer` is the task at the other end of an exchange between
        two: collective("pp-send", bytes, peer=3) is collective_pp_send_peer_3_seconds. Several of one
        name in a step add up. The time counts as the phase "comm", and not as the phase around it. At
        most 16 collectives a run, each peer counted; client/collective_scope.h says more.
        """
        if not self._active:
            return _NO_COLLECTIVE
        run = self._run
        try:
            handle = run._collectives.get((name, peer))
            if handle is None:
                handle = run._library.tacho_declare_collective(
                    run._handle, name.encode(), _NONE if peer is None else peer
                )
                if handle == _NONE:
                    say_once(f"collective({name!r}) is not recorded: {run.error}")
                if len(run._collectives) < _MAX_KNOWN:
                    run._collectives[(name, peer)] = handle
            return Collective(run, handle, max(0, int(bytes)))
        except Exception as error:
            say_once(f"collective({name!r}) is not recorded: {error}")
            return _NO_COLLECTIVE

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
