"""A minimal Debian in a folder, for tests that install packages: made by mmdebstrap, entered by chroot.

enter_namespace() puts the test into a namespace of mounts and processes of its own: whatever it leaves
behind ends with it. /tmp is in memory there, because dpkg waits for the disk after every package.
"""
import configparser
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

RELEASE = "bookworm"
MARK = "TACHO_PACKAGE_NAMESPACE"
NAMESPACE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
FOLDERS = ("State", "Runtime")
PARENTS = {"State": "/var/lib", "Runtime": "/run"}
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
}  # fmt: skip


def why_not():
    """Why no minimal Debian can be made here; None if it can."""
    if os.geteuid() != 0:
        return "only root can make a minimal Debian"
    if shutil.which("mmdebstrap") is None:
        return "no mmdebstrap: deploy/packages.sh test"
    if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode != 0:
        return "this machine allows no namespace of mounts"
    try:
        urllib.request.urlopen(f"{mirror()}/dists/{RELEASE}/Release", timeout=20).close()
    except (urllib.error.URLError, TimeoutError) as error:
        return f"no mirror of Debian: {mirror()}: {error}"
    return None


def mirror():
    """Where this machine gets its own packages."""
    policy = subprocess.run(["apt-cache", "policy"], capture_output=True, text=True).stdout
    found = re.search(rf"(http\S+) {RELEASE}/main ", policy)
    return found.group(1) if found else "http://deb.debian.org/debian"


def enter_namespace():
    """Starts this program again in namespaces of its own, unless it is in them."""
    if MARK not in os.environ:
        os.environ[MARK] = "yes"
        os.execvp(NAMESPACE[0], [*NAMESPACE, sys.executable, "-B", *sys.argv])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp"], check=True)
    os.environ["TMPDIR"] = "/tmp"


class MinimalRoot:
    def __init__(self, path):
        self.path = path
        self._running = {}
        # passwd has useradd; the small program for users spares the whole of systemd.
        done = subprocess.run(
            ["mmdebstrap", "--mode=root", "--variant=apt", "--skip=cleanup/apt", "--skip=check/empty",
             "--dpkgopt=force-unsafe-io", "--include=passwd,systemd-standalone-sysusers",
             RELEASE, path, mirror()],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(f"mmdebstrap failed:\n{done.stderr[-4000:]}")
        subprocess.run(["mount", "-t", "proc", "proc", self.inside("/proc")], check=True)

    def inside(self, path):
        return os.path.join(self.path, path.lstrip("/"))

    def read(self, path):
        with open(self.inside(path), encoding="utf-8") as file:
            return file.read()

    def exists(self, path):
        return os.path.lexists(self.inside(path))

    def command(self, arguments, user=None, group=None):
        """As the user, with the user's groups; `group` replaces the first of them."""
        spec = []
        if user:
            number, first = self._ids("passwd", user)
            if group:
                first = self._ids("group", group)[0]
            lines = [line.split(":") for line in self.read("/etc/group").splitlines()]
            more = [line[2] for line in lines if user in line[3].split(",")]
            spec = [f"--userspec={number}:{first}", f"--groups={','.join(more)}"]
        return ["chroot", *spec, self.path, *arguments]

    def run(self, *arguments, user=None, timeout=240, **environment):
        """Output of the command in the root; fails the test with it where the command does."""
        done = subprocess.run(
            self.command(arguments, user), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=timeout,
            env={**ENVIRONMENT, **environment},
        )  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
        return done.stdout

    def apt(self, *arguments):
        options = ["-y", "-q", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"]
        return self.run("apt-get", *options, *arguments, timeout=600)

    def start(self, unit):
        """Runs ExecStart of the installed unit as its user, with the folders that systemd would make."""
        service = self._unit(unit)
        user, group = service["User"], service["Group"]
        owner, owners = self._ids("passwd", user)[0], self._ids("group", group)[0]
        for kind in FOLDERS:
            folder = self.inside(os.path.join(PARENTS[kind], service[f"{kind}Directory"]))
            os.makedirs(folder, exist_ok=True)
            os.chown(folder, owner, owners)
            os.chmod(folder, int(service.get(f"{kind}DirectoryMode", "0755"), 8))
        log = open(self.inside(f"/{unit}.log"), "a", encoding="utf-8")
        self._running[unit] = subprocess.Popen(
            self.command(service["ExecStart"].split(), user, group), stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, env=ENVIRONMENT,
        )  # fmt: skip
        log.close()

    def stop(self, unit):
        """The exit status after SIGTERM."""
        process = self._running.pop(unit)
        process.terminate()
        return process.wait(60)

    def close(self):
        for unit in list(self._running):
            self.stop(unit)
        subprocess.run(["umount", "--lazy", self.inside("/proc")], check=True)

    def _unit(self, unit):
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str
        parser.read_string(self.read(f"/lib/systemd/system/{unit}.service"))
        return parser["Service"]

    def _ids(self, table, name):
        """Number of a user or group of the root, and a user's group."""
        for line in self.read(f"/etc/{table}").splitlines():
            fields = line.split(":")
            if fields[0] == name:
                return int(fields[2]), int(fields[3]) if table == "passwd" else None
        raise AssertionError(f"no {name} in /etc/{table} of the root")

