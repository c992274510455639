"""Lets the agent see the Python stacks of this process: a signal makes faulthandler write them to a file.

The file lies beside the ring, RING.stacks. Its first line names the signal; behind it the handler writes, and
whoever reads a dump cuts the file back (agent/requests/stacks_file.h). The handler runs no Python code and
allocates nothing, so it also works in a process that hangs in a library.
"""
import faulthandler
import os
import signal
from typing import IO, Any, Optional, Union

from ._library import say_once

SUFFIX = ".stacks"
# A real-time signal that nothing else is known to use: SIGUSR1 and SIGUSR2 belong to schedulers.
_OFFSET = 7


class Stacks:
    """The handler and its file, until close()."""

    def __init__(self, file: IO[bytes], number: int, path: str) -> None:
        self._file = file
        self._number = number
        self._path = path
        self._owner = os.getpid()

    def close(self) -> None:
        faulthandler.unregister(self._number)
        self._file.close()
        if os.getpid() == self._owner:
            try:
                os.unlink(self._path)
            except OSError:
                pass  # The agent removes it with the ring.


def _number_of(wanted: Union[bool, int]) -> int:
    return signal.SIGRTMIN + _OFFSET if wanted is True else int(wanted)


def install(ring: str, wanted: Union[bool, int]) -> Optional[Stacks]:
    """Installs the handler; None, with a warning, where that is not possible. Never raises."""
    if not wanted or not ring:
        return None
    path = ring + SUFFIX
    file: Any = None
    try:
        number = _number_of(wanted)
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            raise ValueError(f"signal {number} has a handler already")
        mode = os.stat(ring).st_mode & 0o777
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.fdopen(os.open(path, flags, mode), "wb", buffering=0)
        # The agent sends nothing before it sees the first line, which the handler must precede.
        faulthandler.register(number, file=file, all_threads=True, chain=False)
        file.write(b"tacho-stacks 1 %d\n" % number)
        return Stacks(file, number, path)
    except Exception as error:
        if file is not None:
            file.close()
        say_once(f"the agent cannot see this process' stacks: {error}")
        return None
