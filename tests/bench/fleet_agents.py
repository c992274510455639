"""The load program of tests/bench/fleet, as a child process: commands in, events out."""

import json
import queue
import subprocess
import threading
import time


class AgentsFailed(RuntimeError):
    """The load program ended, and why."""


class Agents:
    def __init__(self, program, flags, cpus=None):
        command = (["taskset", "-c", cpus] if cpus else []) + [str(program)]
        for name, value in flags.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.events = queue.Queue()
        self.seen = []  # Every event, in order.
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.events.put(json.loads(line))
        self.events.put(None)

    def tell(self, *words):
        try:
            self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
            self.process.stdin.flush()
        except OSError:
            self._fail()

    def _fail(self):
        self.process.wait()
        raise AgentsFailed(self.process.stderr.read().strip() or "the load program ended")

    def take(self, until):
        """The next event; None at `until`, a time of time.monotonic()."""
        try:
            event = self.events.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None
        if event is None:
            self._fail()
        self.seen.append(event)
        return event

    def wait_for(self, name, timeout_s):
        """The next event of that name; None after `timeout_s`."""
        until = time.monotonic() + timeout_s
        while event := self.take(until):
            if event["event"] == name:
                return event
        return None

    def sleep_until(self, until):
        while self.take(until):
            pass

    def mark(self, name):
        """What was counted since the last mark."""
        self.tell("mark", name.replace(" ", "_"))
        event = self.wait_for("mark", 30)
        if event is None:
            raise AgentsFailed("the load program does not answer")
        return event

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
