"""The servers under measurement, each as a child process with a directory of its own."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

SERIES_PER_HOST = 88  # As tests/bench/fleet_generator.h has it.
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 300  # Sealing or merging what is open.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def disk_bytes(directory):
    """What the directory takes on disk, as du counts it."""
    files = [f for f in pathlib.Path(directory).rglob("*") if f.is_file()]
    return sum(f.stat().st_blocks * 512 for f in files)


class Server:
    """A running server. `cpu_seconds()` counts from the start of the process, children of the
    process included only after `stop()`."""

    name = ""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.process = None

    def command(self):
        raise NotImplementedError

    def start(self):
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} did not start; see {self.directory / 'log'}")
            time.sleep(0.05)
        return self

    def is_ready(self):
        try:
            self.get("/health")
            return True
        except OSError:
            return False

    def get(self, path):
        url = f"http://127.0.0.1:{self.http_port}{path}"
        with urllib.request.urlopen(url, timeout=STOP_TIMEOUT_S) as answer:
            return answer.read().decode()

    def metrics(self):
        """Sample values of /metrics by name and labels, as they are written there."""
        lines = (line.rpartition(" ") for line in self.get("/metrics").splitlines())
        return {name: float(value) for name, _, value in lines if not name.startswith("#")}

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def stop(self):
        """Ends the process cleanly. Returns the CPU seconds it has used in all its life."""
        self.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while True:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid != 0:
                break
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} does not end")
            time.sleep(0.02)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode != 0:
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}")
        return usage.ru_utime + usage.ru_stime

    def kill(self):
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            self.process.wait()


class Collector(Server):
    name = "tacho-collector"

    def __init__(self, directory, build):
        super().__init__(directory)
        self.build = pathlib.Path(build)
        self.ports = self.directory / "ports"
        self.http_port = 0

    def command(self):
        self.ports.unlink(missing_ok=True)
        return [self.build / "server/tacho-collector", "--data", self.directory / "data",
                "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--port-file", self.ports]

    def is_ready(self):
        if not self.ports.exists():
            return False
        ports = json.loads(self.ports.read_text())
        self.grpc_port, self.http_port = ports["grpc"], ports["http"]
        return True

    def load(self, **flags):
        return run_load(self.build / "tests/bench/tacho-bench-fleet",
                        address=f"127.0.0.1:{self.grpc_port}", **flags)

    def stored(self):
        """Bytes of the sealed columns, keys not counted, and the samples in them."""
        sealed, before = 0, -1
        while sealed != before or sealed == 0:
            time.sleep(1)
            before, sealed = sealed, self.metrics()["tacho_storage_rows_sealed_total"]
        samples = sealed * SERIES_PER_HOST  # Every row of the load is of one host.
        return self.metrics()["tacho_storage_column_bytes_sealed_total"], samples

    def settle(self):
        """Lets RocksDB write out what is only in its log. After stop(). Returns CPU seconds."""
        self.start()
        return self.stop()


class VictoriaMetrics(Server):
    name = "victoriametrics"

    def __init__(self, directory, build, binary):
        super().__init__(directory)
        self.build = pathlib.Path(build)
        self.binary = binary
        self.http_port = free_port()

    def command(self):
        return [self.binary, f"-storageDataPath={self.directory / 'data'}",
                f"-httpListenAddr=127.0.0.1:{self.http_port}", "-retentionPeriod=100y",
                "-loggerLevel=ERROR"]

    def load(self, window=1, **flags):
        del window  # One request at a time on a connection is all that HTTP/1.1 can.
        return run_load(self.build / "tests/bench/tacho-bench-remote-write",
                        port=self.http_port, **flags)

    def merge(self):
        """Merges all parts into one, as days of running would."""
        self.get("/internal/force_flush")
        self.get("/internal/force_merge")
        time.sleep(1)  # The merge begins in the background.
        while any(value > 0 for name, value in self.metrics().items()
                  if name.startswith("vm_active_merges{") or name == "vm_active_force_merges"):
            time.sleep(0.2)

    def stored(self):
        """Bytes of the merged parts, index not counted, and the samples in them."""
        self.merge()
        values = self.metrics()

        def total(metric):
            return sum(values[f'{metric}{{type="storage/{part}"}}'] for part in ("small", "big"))

        return total("vm_data_size_bytes"), total("vm_rows")

    def settle(self):
        """After stop()."""
        self.start()
        self.merge()
        return self.stop()


def find_victoriametrics(root):
    """The peer's binary, from PATH or where deploy/packages.sh unpacks it; None if it is absent."""
    unpacked = pathlib.Path(root) / "build/tools/usr/bin/victoria-metrics"
    return shutil.which("victoria-metrics") or (unpacked if unpacked.exists() else None)


def run_load(program, **flags):
    """Runs a load program to its end and returns its report."""
    command = [program]
    for name, value in flags.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program.name}: {done.stderr.strip()}")
    return json.loads(done.stdout)
