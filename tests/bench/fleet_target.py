"""The collector under tests/bench/fleet: one that is started for it, or one that runs already."""

import os
import socket
import time
import urllib.request

import servers


class Usage:
    """What a collector has used so far; None where that cannot be known."""

    def __init__(self, cpu_s=None, resident_bytes=None):
        self.t = time.monotonic()
        self.cpu_s = cpu_s
        self.resident_bytes = resident_bytes


class OwnCollector(servers.Collector):
    """Keeps its ports when it is killed and started again."""

    def __init__(self, options, directory):
        super().__init__(directory, options.build)
        self.config = options.config
        self.cpus = options.collector_cpus
        self.cpu_of_dead_s = 0.0
        self.peak_bytes = 0

    @property
    def address(self):
        return f"127.0.0.1:{self.grpc_port}"

    def command(self):
        command = [str(part) for part in super().command()]
        command[command.index("--grpc") + 1] = f"127.0.0.1:{self.grpc_port}"
        command[command.index("--http") + 1] = f"127.0.0.1:{self.http_port}"
        if self.config:
            command += ["--config", str(self.config)]
        return (["taskset", "-c", self.cpus] if self.cpus else []) + command

    def usage(self):
        return Usage(self.cpu_of_dead_s + self.cpu_seconds(), self.resident_bytes())

    def kill(self):
        """SIGKILL, if it runs."""
        if self.process is None or self.process.returncode is not None:
            return
        self.peak_bytes = max(self.peak_bytes, self.peak_resident_bytes())
        self.process.kill()
        _, status, spent = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_of_dead_s += spent.ru_utime + spent.ru_stime

    def stop(self):
        self.peak_bytes = max(self.peak_bytes, self.peak_resident_bytes())
        self.cpu_of_dead_s += super().stop()

    def peak(self):
        return max(self.peak_bytes, self.peak_resident_bytes())

    def disk(self):
        return servers.disk_bytes(self.data)

    def end(self):
        self.kill()


class RunningCollector:
    """At --address; what it uses is known if --http is."""

    def __init__(self, options):
        self.address = options.address
        self.http = options.http

    def start(self):
        """Fails now rather than after the load."""
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except (OSError, ValueError) as error:
            raise RuntimeError(f"--address {self.address}: no collector there: {error}") from error
        if self.http:
            self.usage()

    def usage(self):
        if not self.http:
            return Usage()
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=30) as answer:
            lines = (line.rpartition(" ") for line in answer.read().decode().splitlines())
            values = {name: value for name, _, value in lines}
        try:
            return Usage(float(values["process_cpu_seconds_total"]),
                         float(values["process_resident_memory_bytes"]))
        except KeyError as missing:
            raise RuntimeError(f"--http {self.http}: its /metrics has no {missing}") from missing

    def peak(self):
        return None

    def disk(self):
        return None

    def end(self):
        pass
