"""Debian packages and the wheel of a build, from their installation on a minimal Debian to their purge.

TACHO_BUILD is the build directory. The steps of MinimalDebianTest follow each other on one machine.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import minimal_root

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/integration"))

import harness

BUILD = os.environ["TACHO_BUILD"]
VERSION, NEXT = "0.1.0+1", "0.1.0+2"
SERVICES = ("tacho-collector", "tacho-agent")
STEPS = 1500
# What is recorded on the machine: each job's last step.
JOBS = {"spirals": STEPS - 1, "in-c": 199, "from-python": 3, "from-a-wheel": 3}
STORE = "/var/lib/tacho-collector/data"
# The services run without systemd. This notes what packages ask of it; apt runs scripts with a PATH of
# its own, in which it has to be.
SYSTEMCTL = '#!/bin/sh\necho "$@" >>/systemctl.log\ncase "$*" in *is-enabled*) echo enabled ;; esac\n'
RECORD = "import tacho; r = tacho.init(job='%s', strict=True); r.log({'loss': 0.5}, step=3); r.finish()"
ASK = (
    "import tacho; (s,) = tacho.query('%s', 'from-python', 'loss', by='step', output='lists');"
    "print(s.steps, s.values)"
)
why_not = None  # Why no minimal Debian can be made; None if it can.


def output_of(*command, **options):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, **options
    )
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def build_packages(folder):
    # Compressed as little as possible: only time is at stake here.
    quick = {"DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"}
    flags = ["--build", BUILD, "--out", folder, "--version", VERSION]
    output_of(os.path.join(ROOT, "deploy/package/build"), *flags, env={**os.environ, **quick})
    return sorted(glob.glob(f"{folder}/*.deb"))


def raise_version(packages, folder):
    """The same packages with the version NEXT."""
    raised = []
    for package in packages:
        tree = os.path.join(folder, "tree")
        output_of("dpkg-deb", "-R", package, tree)
        control = os.path.join(tree, "DEBIAN/control")
        with open(control, encoding="utf-8") as file:
            text = file.read().replace(VERSION, NEXT)
        with open(control, "w", encoding="utf-8") as file:
            file.write(text)
        raised.append(os.path.join(folder, os.path.basename(package).replace(VERSION, NEXT)))
        output_of("dpkg-deb", "-Zgzip", "-z1", "-b", tree, raised[-1])
        shutil.rmtree(tree)
    return raised


def setUpModule():
    global packages, directory
    directory = tempfile.mkdtemp(prefix="tacho-test-")
    unittest.addModuleCleanup(shutil.rmtree, directory, ignore_errors=True)
    packages = build_packages(os.path.join(directory, "packages"))


class PackagesTest(unittest.TestCase):
    def test_lintian_finds_neither_errors_nor_warnings(self):
        quiet = {**os.environ, "LC_ALL": "C.UTF-8"}
        said = output_of("lintian", "--allow-root", "--fail-on", "error,warning", *packages, env=quiet)
        self.assertEqual(said, "")

    def test_each_package_is_made_once(self):
        names = [os.path.basename(package).split("_")[0] for package in packages]
        self.assertEqual(
            names, ["libtacho-dev", "libtacho1", "python3-tacho", "tacho-agent", "tacho-collector", "tachoctl"]
        )


class MinimalDebianTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if why_not:
            raise unittest.SkipTest(why_not)
        path = os.path.join(directory, "root")
        os.mkdir(path)
        cls.root = minimal_root.MinimalRoot(path)
        cls.addClassCleanup(cls.root.close)
        cls.address = f"127.0.0.1:{harness.free_port()}"
        os.makedirs(cls.root.inside("/run/systemd/system"))
        cls.put("/usr/bin/systemctl", SYSTEMCTL, 0o755)
        cls.put("/systemctl.log", "")

    @classmethod
    def put(cls, path, text, mode=0o644):
        with open(cls.root.inside(path), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(cls.root.inside(path), mode)

    def install(self, files, *more):
        for file in files:
            shutil.copy(file, self.root.inside("/var/tmp"))
        self.root.apt("install", *[f"/var/tmp/{os.path.basename(file)}" for file in files], *more)

    def asked_of_systemd(self, word):
        """The services for which packages asked it since it was told to forget()."""
        said = self.root.read("/systemctl.log")
        return sorted(set(re.findall(rf"^(?:--\S+ )*{word} .*?(tacho-\w+)\.service", said, re.MULTILINE)))

    def forget(self):
        self.put("/systemctl.log", "")

    def start_services(self):
        for service in SERVICES:
            self.root.start(service)
        harness.wait_until(lambda: self.ctl("jobs") is not None, "the collector answers")

    def ctl(self, *arguments):
        """What tachoctl prints; None if it fails."""
        try:
            return self.root.run("tachoctl", *arguments, "--address", self.address)
        except AssertionError:
            return None

    def wait_for(self, job):
        """Until the last step of the job can be queried."""
        last = JOBS[job]
        query = ("query", job, "loss", "--steps", f"{last}:", "-o", "csv")
        harness.wait_until(
            lambda: (self.ctl(*query) or "").count("\n") > 1, f"the collector has step {last} of {job}"
        )

    def test_1_everything_installs_and_is_enabled(self):
        self.install(packages, "python3-grpcio", "python3-protobuf", "python3-venv")
        for word in ("preset", "start"):  # "preset" enables a service on its first installation.
            self.assertEqual(self.asked_of_systemd(word), sorted(SERVICES))
        for service in SERVICES:
            self.root.run(service, "--config", f"/etc/tacho/{service[6:]}.yaml", "--check-config")

    def test_2_services_run_as_their_users_and_a_training_arrives(self):
        for name, old in (("collector", "127.0.0.1:7411"), ("agent", "127.0.0.1:7411")):
            file = f"/etc/tacho/{name}.yaml"
            text = self.root.read(file).replace(old, self.address)
            self.put(file, text.replace("127.0.0.1:7412", f"127.0.0.1:{harness.free_port()}"))
        self.root.run("useradd", "--create-home", "--groups", "tacho", "alice")
        self.start_services()
        self.root.run("tacho-example-train", "--job", "spirals", "--steps", str(STEPS), user="alice")
        self.wait_for("spirals")

    def test_3_a_program_built_with_pkg_config_records(self):
        tree = os.path.join(directory, "development")
        for package in packages[:2]:  # libtacho-dev, libtacho1
            output_of("dpkg-deb", "-x", package, tree)
        (path,) = glob.glob(f"{tree}/usr/lib/*/pkgconfig")
        flags = output_of(
            "pkg-config", "--cflags", "--libs", "tacho", env={**os.environ, "PKG_CONFIG_PATH": path}
        )
        example = os.path.join(ROOT, "client/examples/train_in_c.c")
        target = self.root.inside("/usr/local/bin/train_in_c")
        output_of("cc", "-std=c99", example, "-o", target, *flags.split(), "-lm")
        self.root.run("train_in_c", user="alice", TACHO_JOB="in-c")
        self.wait_for("in-c")

    def test_4_python_records_and_asks(self):
        self.root.run("python3", "-c", RECORD % "from-python", user="alice")
        self.wait_for("from-python")
        self.assertEqual(self.root.run("python3", "-c", ASK % self.address), "[3] [0.5]\n")

    def test_5_a_wheel_records_where_no_compiler_is(self):
        self.assertFalse(any(self.root.exists(f"/usr/bin/{name}") for name in ("cc", "gcc", "c++", "clang")))
        output_of(
            os.path.join(ROOT, "deploy/package/wheel"), "--build", BUILD, "--out", self.root.inside("/var/tmp")
        )
        (wheel,) = glob.glob(self.root.inside("/var/tmp/*.whl"))
        self.root.run("python3", "-m", "venv", "/venv")
        self.root.run("/venv/bin/pip", "install", "--no-index", f"/var/tmp/{os.path.basename(wheel)}")
        where = self.root.run("/venv/bin/python", "-c", "import tacho; print(tacho.__file__)")
        self.assertTrue(where.startswith("/venv/"), where)
        self.root.run("/venv/bin/python", "-c", RECORD % "from-a-wheel", user="alice")
        self.wait_for("from-a-wheel")

    def test_6_an_upgrade_restarts_services_and_keeps_everything(self):
        configuration = self.root.read("/etc/tacho/collector.yaml")
        folder = os.path.join(directory, "raised")
        os.mkdir(folder)
        self.forget()
        self.install(raise_version(packages, folder))
        self.assertEqual(self.asked_of_systemd("restart"), sorted(SERVICES))
        self.assertIn(NEXT, self.root.run("dpkg-query", "-W", "tacho-collector"))
        self.assertEqual(self.root.read("/etc/tacho/collector.yaml"), configuration)
        for service in reversed(SERVICES):
            self.assertEqual(self.root.stop(service), 0)
        self.start_services()
        for job in JOBS:
            self.wait_for(job)

    def test_7_removed_packages_leave_configuration_and_store(self):
        for service in reversed(SERVICES):
            self.root.stop(service)
        self.forget()
        self.root.apt("remove", *SERVICES)
        self.assertEqual(self.asked_of_systemd("stop"), sorted(SERVICES))
        self.assertFalse(self.root.exists("/usr/bin/tacho-collector"))
        self.assertTrue(self.root.exists("/etc/tacho/collector.yaml"))
        self.assertTrue(self.root.exists(f"{STORE}/CURRENT"), os.listdir(self.root.inside(STORE)))

    def test_8_purged_packages_leave_the_store_alone(self):
        said = self.root.apt("purge", *SERVICES)
        self.assertIn("To delete it: rm -r /var/lib/tacho-collector", said)
        self.assertFalse(self.root.exists("/etc/tacho"))
        self.assertTrue(self.root.exists(STORE))


if __name__ == "__main__":
    missing = [program for program in ("dh", "help2man", "lintian") if shutil.which(program) is None]
    if missing:
        print(f"skipped: no {', '.join(missing)}: deploy/packages.sh build test")
        sys.exit(harness.SKIPPED)
    why_not = minimal_root.why_not()
    if not why_not:
        minimal_root.enter_namespace()
    try:
        harness.main()
    except SystemExit as end:  # Without an installation the test has not passed.
        sys.exit(harness.SKIPPED if why_not and not end.code else end.code)
