"""A wall clock that a test sets while the programs under it run."""
import mmap
import os
import struct


class SteppedClock:
    """The clock of each program that is started with `env`; everybody else keeps the machine's."""

    def __init__(self, directory, name="clock"):
        self._path = os.path.join(directory, name)
        with open(self._path, "wb") as file:
            file.write(struct.pack("=q", 0))
        with open(self._path, "r+b") as file:
            self._page = mmap.mmap(file.fileno(), 8)

    @property
    def env(self):
        return {
            "LD_PRELOAD": os.environ["TACHO_STEPPED_CLOCK"],
            "TACHO_CLOCK_STEP_FILE": self._path,
        }

    def set(self, seconds):
        """From now on the clock is this much ahead of the machine's, or behind it."""
        self._page[:8] = struct.pack("=q", int(seconds * 1e9))
