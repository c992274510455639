"""The servers under measurement, each as a child process with a directory of its own."""

import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

SERIES_PER_HOST = 88  # As tests/bench/fleet_generator.h has it.
START_TIMEOUT_S = 120  # With a journal to read.
STOP_TIMEOUT_S = 300  # Sealing or merging what is open.
TOOLS = {"victoriametrics": "victoria-metrics", "prometheus": "prometheus"}  # Binaries of peers.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def disk_bytes(directory):
    """Bytes of all files below the directory; of a file with holes, what it takes on disk."""
    stats = [f.stat() for f in pathlib.Path(directory).rglob("*") if f.is_file()]
    return sum(min(s.st_size, s.st_blocks * 512) for s in stats)


class Server:
    """A running server. `cpu_seconds()` counts from the start of the process, children of the
    process included only after `stop()`."""

    name = ""
    loader = ""
    ready_path = "/health"

    def __init__(self, directory, build):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.build = pathlib.Path(build)
        self.data = self.directory / "data"
        self.http_port = 0
        self.process = None
        self.ready_seconds = 0  # From exec to ready, the last time.

    def command(self):
        raise NotImplementedError

    def load_address(self):
        """Flags of the load program."""
        return {"port": self.http_port}

    def start(self):
        begin = time.monotonic()
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > begin + START_TIMEOUT_S:
                raise RuntimeError(f"{self.name} did not start:\n{self.log_tail()}")
            time.sleep(0.01)
        self.ready_seconds = time.monotonic() - begin
        return self

    def is_ready(self):
        try:
            self.get(self.ready_path)
            return True
        except OSError:
            return False

    def log_tail(self):
        return (self.directory / "log").read_text(errors="replace")[-2000:]

    def get(self, path, method="GET"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.http_port}{path}", method=method)
        with urllib.request.urlopen(request, timeout=STOP_TIMEOUT_S) as answer:
            return answer.read().decode()

    def metrics(self):
        """Sample values of /metrics by name and labels, as they are written there."""
        lines = (line.rpartition(" ") for line in self.get("/metrics").splitlines())
        return {name: float(value) for name, _, value in lines if not name.startswith("#")}

    def load(self, **flags):
        """Runs the load program to its end. Returns its report."""
        return run_program(self.build / "tests/bench" / self.loader, **self.load_address(), **flags)

    def cpu_seconds(self):
        return cpu_seconds_of(pathlib.Path(f"/proc/{self.process.pid}/stat"))

    def thread_cpu_seconds(self, name):
        """Of all threads of that name that live."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(cpu_seconds_of(task / "stat") for task in tasks if (task / "comm").read_text().strip() == name)

    def resident_bytes(self, line="VmRSS"):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        found = next(entry for entry in status.splitlines() if entry.startswith(line))
        return int(found.split()[1]) * 1024

    def peak_resident_bytes(self):
        return self.resident_bytes("VmHWM")

    def forget_peak(self):
        """The peak counts from now on."""
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

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
        """SIGKILL, if it runs."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            self.process.wait()

    def settle(self):
        """Lets everything reach its final form on disk, and ends the process. Returns (CPU seconds
        of the server's life until its data are in that form, the bytes they take)."""
        raise NotImplementedError

    def settings_bytes(self):
        """Bytes on disk that hold settings and no data."""
        return 0


class Collector(Server):
    name = "tacho-collector"
    loader = "tacho-bench-fleet"
    ready_path = "/readyz"

    def __init__(self, directory, build):
        super().__init__(directory, build)
        self.ports = self.directory / "ports"
        self.grpc_port = 0

    def command(self):
        self.ports.unlink(missing_ok=True)
        return [self.build / "server/tacho-collector", "--data", self.data,
                "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--port-file", self.ports]

    def load_address(self):
        return {"address": f"127.0.0.1:{self.grpc_port}"}

    def is_ready(self):
        if not self.ports.exists():
            return False
        ports = json.loads(self.ports.read_text())
        self.grpc_port, self.http_port = ports["grpc"], ports["http"]
        return super().is_ready()

    def settle(self):
        """A clean end seals every row; the second one finds nothing in RocksDB's log."""
        cpu = self.stop()
        self.start()
        cpu += self.stop()
        return cpu, disk_bytes(self.data)

    def settings_bytes(self):
        """RocksDB's dumps of its options: some KB for each day in which there are data."""
        return sum(file.stat().st_size for file in self.data.rglob("OPTIONS-*"))


class VictoriaMetrics(Server):
    name = "victoriametrics"
    loader = "tacho-bench-remote-write"

    def __init__(self, directory, build, binary):
        super().__init__(directory, build)
        self.binary = binary

    def is_ready(self):
        return super().is_ready() and self.catches_sigterm()

    def catches_sigterm(self):
        """It answers a moment before it does, and stop() would not end it cleanly."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)

    def command(self):
        self.http_port = free_port()
        # A day of a million series may be asked for; its own default stops at 300,000.
        return [self.binary, f"-storageDataPath={self.data}",
                f"-httpListenAddr=127.0.0.1:{self.http_port}", "-retentionPeriod=100y",
                "-search.maxUniqueTimeseries=2000000", "-loggerLevel=ERROR"]

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
        """A clean end writes everything; then one merge, whose CPU is left out, since in life it
        is spread over days. Its caches, which it also saves when it ends, are not counted."""
        cpu = self.stop()
        self.start()
        self.merge()
        self.stop()
        shutil.rmtree(self.data / "cache", ignore_errors=True)
        return cpu, disk_bytes(self.data)


class Prometheus(Server):
    name = "prometheus"
    loader = "tacho-bench-remote-write"
    ready_path = "/-/ready"

    def __init__(self, directory, build, binary):
        super().__init__(directory, build)
        self.binary = binary

    def command(self):
        self.http_port = free_port()
        config = self.directory / "prometheus.yml"
        config.write_text("global: {}\n")
        return [self.binary, f"--config.file={config}", f"--storage.tsdb.path={self.data}",
                f"--web.listen-address=127.0.0.1:{self.http_port}",
                "--storage.tsdb.retention.time=100y", "--web.enable-remote-write-receiver",
                "--web.enable-admin-api", "--log.level=error"]

    def settle(self):
        """Its newest hours stay in a log and in head chunks until they become a block. A snapshot
        makes that block at once: what is counted is the snapshot, all blocks and no log, and the
        CPU until it."""
        cpu = self.cpu_seconds()
        answer = json.loads(self.get("/api/v1/admin/tsdb/snapshot", method="POST"))
        size = disk_bytes(self.data / "snapshots" / answer["data"]["name"])
        self.stop()
        return cpu, size


def find_tool(root, name):
    """A peer's binary, from PATH or where deploy/packages.sh unpacks it; None if it is absent."""
    unpacked = pathlib.Path(root) / "build/tools/usr/bin" / name
    return shutil.which(name) or (unpacked if unpacked.exists() else None)


def find_victoriametrics(root):
    return find_tool(root, "victoria-metrics")


def make_all(root, build, peers):
    """A function for each server that makes it in a directory: ours, then those of the peers
    named that are on this machine."""
    classes = {kind.name: kind for kind in (VictoriaMetrics, Prometheus)}
    makers = [lambda directory: Collector(directory, build)]
    for peer in peers:
        kind, tool = classes[peer], TOOLS[peer]
        binary = find_tool(root, tool)
        if binary is None:
            print(f"bench: no {tool}: deploy/packages.sh bench unpacks it; going on without",
                  file=sys.stderr)
            continue
        makers.append(lambda directory, kind=kind, binary=binary: kind(directory, build, binary))
    return makers


def take_turns(makers, measurement, on_failure=None):
    """Calls measurement(server) for each server, not yet started, in a directory of its own.
    A peer that fails is reported to on_failure(text), if given, and the others go on."""
    # Servers inherit it: they need a descriptor for each agent.
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    for make in makers:
        with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
            server = make(directory)
            try:
                measurement(server)
            except (RuntimeError, OSError) as error:
                if on_failure is None or isinstance(server, Collector):
                    raise
                on_failure(f"{server.name} failed: {error}")
            finally:
                server.kill()


def cpu_seconds_of(stat):
    """User and system time in a file of proc(5), /proc/PID/stat or that of a thread."""
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def run_program(program, **flags):
    """Runs a load or query program to its end and returns its report."""
    command = [program]
    for name, value in flags.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program.name}: {done.stderr.strip()}")
    return json.loads(done.stdout)
