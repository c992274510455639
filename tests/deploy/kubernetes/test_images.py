"""The images of deploy/oci: the same every time, complete, readable by others, and run as the manifests say."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import node
import rendered
from rendered import harness

import certificates
import security_case

BUILD = rendered.REPOSITORY / "deploy/oci/build"
PROGRAMS = pathlib.Path(os.environ["TACHO_COLLECTOR"]).parents[1]
KINDS = ("agent", "collector")
OUT = None  # Set by setUpModule.


def build(out, **environment):
    rendered.run(str(BUILD), "--build", str(PROGRAMS), "--out", str(out), env={**os.environ, **environment})


def setUpModule():
    global OUT
    OUT = pathlib.Path(tempfile.mkdtemp(prefix="tacho-test-"))
    unittest.addModuleCleanup(shutil.rmtree, OUT, ignore_errors=True)
    build(OUT)


def read(layout, descriptor):
    """A part of an image, whose size and digest must be as described."""
    data = (layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    assert len(data) == descriptor["size"], descriptor
    assert "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"], descriptor
    return data


class Image:
    def __init__(self, kind):
        self.layout = OUT / f"tachograph-{kind}"
        (self.archive,) = OUT.glob(f"tachograph-{kind}-*.tar")
        (self.sbom,) = OUT.glob(f"tachograph-{kind}-*.spdx.json")
        (self.entry,) = json.loads((self.layout / "index.json").read_text())["manifests"]
        self.manifest = json.loads(read(self.layout, self.entry))
        self.described = json.loads(read(self.layout, self.manifest["config"]))
        self.config = self.described["config"]

    def layers(self):
        for descriptor in self.manifest["layers"]:
            yield gzip.decompress(read(self.layout, descriptor))

    def entries(self):
        """{path: (entry, content)}"""
        found = {}
        for layer in self.layers():
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                for entry in archive:
                    found[entry.name] = (entry, archive.extractfile(entry).read() if entry.isfile() else b"")
        return found


class ImageTest(harness.TestCase):
    def test_two_builds_are_the_same(self):
        again = pathlib.Path(self.directory) / "again"
        umask = os.umask(0o077)
        try:
            build(again, TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")
        finally:
            os.umask(umask)
        files = sorted(path.relative_to(OUT) for path in OUT.rglob("*") if path.is_file())
        self.assertEqual(files, sorted(p.relative_to(again) for p in again.rglob("*") if p.is_file()))
        for file in files:
            self.assertEqual((OUT / file).read_bytes(), (again / file).read_bytes(), file)

    def test_parts_fit_together(self):
        for kind in KINDS:
            image = Image(kind)
            diffs = ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in image.layers()]
            self.assertEqual(image.described["rootfs"]["diff_ids"], diffs)
            self.assertEqual(len(image.described["history"]), len(diffs))
            uid, _, gid = image.config["User"].partition(":")
            self.assertGreater(min(int(uid), int(gid)), 0)
            labels = image.config["Labels"]
            for name in ("title", "version", "revision", "created", "licenses", "description"):
                self.assertTrue(labels["org.opencontainers.image." + name])
            entries = image.entries()
            self.assertIn(image.config["Entrypoint"][0].lstrip("/"), entries)
            self.assertIn(image.config["Cmd"][1].lstrip("/"), entries)
            for path, (entry, _) in entries.items():
                self.assertFalse(entry.isfile() and entry.mode & 0o6022, f"{path}: {entry.mode:o}")
                self.assertIn(entry.uid, (0, int(uid)), path)

    def test_skopeo_reads_layout_and_archive(self):
        skopeo = harness.tool("skopeo")
        for kind in KINDS:
            image = Image(kind)
            told = json.loads(rendered.run(skopeo, "inspect", f"oci:{image.layout}"))
            self.assertEqual(told["Digest"], image.entry["digest"])
            target = os.path.join(self.directory, kind)
            os.mkdir(target)
            rendered.run(skopeo, "--insecure-policy", "copy", f"oci-archive:{image.archive}", f"dir:{target}")
            copied = pathlib.Path(target, "manifest.json").read_bytes()
            self.assertEqual("sha256:" + hashlib.sha256(copied).hexdigest(), image.entry["digest"])

    def test_list_of_contents_is_complete(self):
        for kind in KINDS:
            image = Image(kind)
            entries = image.entries()
            self.assertEqual(entries["usr/share/doc/tacho/sbom.spdx.json"][1], image.sbom.read_bytes())
            listed = json.loads(image.sbom.read_text())
            self.check_spdx(listed)
            packages = {p["name"]: p["versionInfo"] for p in listed["packages"] if p["SPDXID"].startswith("SPDXRef-deb-")}
            status = {path.rpartition("/")[2]: content.decode() for path, (entry, content) in entries.items()
                      if path.startswith("var/lib/dpkg/status.d/") and entry.isfile()}  # fmt: skip
            self.assertEqual(sorted(packages), sorted(status))
            for name, version in packages.items():
                self.assertIn(f"\nVersion: {version}\n", status[name])
            self.check_owners(entries, packages)
            own = {file["fileName"][2:]: file["checksums"] for file in listed["files"]}
            for path, checksums in own.items():
                sums = {one["algorithm"]: one["checksumValue"] for one in checksums}
                self.assertEqual(sums["SHA256"], hashlib.sha256(entries[path][1]).hexdigest())

    def check_owners(self, entries, packages):
        """Every library and program is of a package in the list, or ours."""
        paths = {"/" + path for path, (entry, _) in entries.items() if entry.isfile()
                 and path.startswith(("usr/lib/", "usr/bin/")) and "/tacho" not in path}  # fmt: skip
        # A package may list its files by the names from before /lib was a link.
        names = paths | {path.removeprefix("/usr") for path in paths}
        found = subprocess.run(["dpkg-query", "--search", *sorted(names)], capture_output=True, text=True).stdout
        owners = {line.rpartition(": ")[2]: line.split(":")[0] for line in found.splitlines()}
        for path in paths:
            owner = owners.get(path, owners.get(path.removeprefix("/usr")))
            self.assertIn(owner, packages, f"{path}: of {owner}, which is not listed")

    def check_spdx(self, document):
        self.assertEqual((document["spdxVersion"], document["dataLicense"]), ("SPDX-2.3", "CC0-1.0"))
        self.assertTrue(document["documentNamespace"].startswith("https://"))
        self.assertTrue(document["creationInfo"]["created"] and document["creationInfo"]["creators"])
        parts = document["packages"] + document["files"]
        names = [part["SPDXID"] for part in parts]
        self.assertEqual(len(set(names)), len(names))
        for name in names:
            self.assertRegex(name, r"^SPDXRef-[A-Za-z0-9.-]+$")
        self.check_verification_codes(document)
        related = {one["relatedSpdxElement"] for one in document["relationships"]}
        self.assertEqual(related, set(names))

    def check_verification_codes(self, document):
        """SPDX: a package that contains files was analyzed, and has the digest of their digests; no other has one."""
        sums = {file["SPDXID"]: one["checksumValue"] for file in document["files"] for one in file["checksums"]
                if one["algorithm"] == "SHA1"}  # fmt: skip
        for package in document["packages"]:
            inside = sorted(sums[one["relatedSpdxElement"]] for one in document["relationships"]
                            if one["spdxElementId"] == package["SPDXID"] and one["relatedSpdxElement"] in sums)  # fmt: skip
            code = hashlib.sha1("".join(inside).encode()).hexdigest() if inside else None
            told = package.get("packageVerificationCode", {}).get("packageVerificationCodeValue")
            self.assertEqual((package["filesAnalyzed"], told), (bool(inside), code), package["name"])

    def test_a_library_of_the_driver_finds_what_it_needs(self):
        """NVIDIA's runtime adds only its own libraries, which were linked with an older libc."""
        folder = os.path.dirname(os.path.realpath(subprocess.run(
            ["gcc", "-print-file-name=libc.so.6"], capture_output=True, text=True, check=True).stdout.strip()))  # fmt: skip
        needs = [os.path.join(folder, name) for name in ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6")]
        library = os.path.join(self.directory, "libnvidia-ml.so.1")
        rendered.run("gcc", "-shared", "-o", library, "-Wl,--no-as-needed", *needs, "-x", "c", "/dev/null")
        root = os.path.join(self.directory, "root")
        node.unpack(OUT / "tachograph-agent", root)
        told = rendered.run("ldd", library, env={**os.environ, "LD_LIBRARY_PATH": root + folder})
        # What the image lacks comes from this machine instead.
        found = [line.split(" => ")[1] for line in told.splitlines() if " => " in line]
        self.assertGreaterEqual(len(found), len(needs))
        for path in found:
            self.assertTrue(path.startswith(root), path)

    def test_missing_programs_are_named(self):
        told = subprocess.run([str(BUILD), "--build", self.directory, "--out", self.directory + "/out"],
                              capture_output=True, text=True)  # fmt: skip
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stderr, r"no tacho-agent in .*ninja -C build/release tacho-agent")


class PodsTest(security_case.SecurityCase):
    """The pods of deploy/kubernetes, from these images, on a node without Kubernetes."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can run containers: run this test as root")
        roots = {}
        for kind in KINDS:
            root = os.path.join(self.directory, kind)
            os.mkdir(root)
            node.unpack(OUT / f"tachograph-{kind}", root)
            roots[f"tachograph-{kind}:{Image(kind).config['Labels']['org.opencontainers.image.version']}"] = root
        self.service = "tacho-collector.tacho.svc"
        self.node = node.Node(self, roots, [self.service])
        authority = certificates.Authority(self.directory)
        certificate, key = authority.sign("collector", f"DNS:{self.service}")
        agents, people = self.token("agents", "write"), self.token("people", "read")
        self.write_tokens()
        self.node.secrets = {name: {key: certificates.read(path) for key, path in files.items()} for name, files in {
            "tacho-collector": {"tokens.yaml": self.tokens_file},
            "tacho-collector-tls": {"tls.crt": certificate, "tls.key": key},
            "tacho-agent": {"token": agents, "ca.crt": authority.certificate},
        }.items()}  # fmt: skip
        self.people = os.path.join(self.directory, "people")
        os.mkdir(self.people)
        shutil.copy(authority.certificate, self.people + "/ca.crt")
        shutil.copy(people, self.people + "/token")
        os.chown(self.people + "/token", 7411, 7411)
        os.chmod(self.directory, 0o755)

    def start(self, objects, workload, container):
        log = os.path.join(self.directory, container + ".log")
        return self.started(harness.Program(self.node.command(objects, workload, container), log))

    def tachoctl(self, objects, *arguments):
        """tachoctl of the collector's image, as `kubectl exec` runs it."""
        command = ["/usr/bin/tachoctl", "--address", self.service + ":7411", "--tls-ca", "/people/ca.crt",
                   "--token-file", "/people/token", *arguments]  # fmt: skip
        told = self.node.run(objects, "StatefulSet/tacho-collector", "collector", command,
                             more_mounts=[[self.people, "/people", True]])  # fmt: skip
        return told.stdout

    def probe(self, path):
        told = subprocess.run(self.node.in_network(
            "curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "https://127.0.0.1:7412" + path),
            capture_output=True, text=True, timeout=harness.PATIENCE_S)  # fmt: skip
        return told.stdout

    def train(self):
        """A trainer as docs/kubernetes.md describes its pod: any user, in group 7411, the node's /run/tacho."""
        program = os.path.join(self.directory, "train")
        shutil.copy(os.environ["TACHO_TRAIN"], program)
        os.chmod(program, 0o755)
        rings = self.node.host_path("/run/tacho")
        return subprocess.run(
            ["setpriv", "--reuid", "1234", "--regid", "1234", "--groups", "7411", "--", program,
             "--job", "in-a-pod", "--steps", "50"],
            capture_output=True, text=True, timeout=harness.PATIENCE_S, cwd="/",
            env={**os.environ, "TACHO_RING_DIR": rings},
        )  # fmt: skip

    def run_pods(self, overlay):
        objects = rendered.kustomize(overlay, self.directory)
        collector = self.start(objects, "StatefulSet/tacho-collector", "collector")
        harness.wait_until(lambda: self.probe("/readyz") == "200" or not collector.alive(), "collector ready")
        self.assertTrue(collector.alive(), collector.tail())
        pod = objects["StatefulSet/tacho-collector"]["spec"]["template"]["spec"]["containers"][0]
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            self.assertEqual(self.probe(pod[name]["httpGet"]["path"]), "200")
        health = Image("collector").config["Healthcheck"]["Test"]
        told = self.node.run(objects, "StatefulSet/tacho-collector", "collector", health[1:])
        self.assertEqual(told.returncode, 0, told.stderr)

        workload = "DaemonSet/tacho-agent"
        for _ in range(2):  # Again, as after a restart of the pod.
            told = self.node.run(objects, workload, "rings")
            self.assertEqual((told.returncode, told.stderr), (0, ""))
        agent = self.start(objects, workload, "agent")
        harness.wait_until(lambda: f"{node.NAME},{node.NAME}," in self.tachoctl(objects, "agents", "-o", "csv"),
                           "the agent is known by its node's name")  # fmt: skip
        probe = objects[workload]["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["exec"]["command"]
        self.assertEqual(self.node.run(objects, workload, "agent", probe).returncode, 0)
        health = Image("agent").config["Healthcheck"]["Test"]
        told = self.node.run(objects, workload, "agent", ["sh", "-c", health[1]])
        self.assertEqual(told.returncode, 0, told.stderr)

        diagnosed = self.node.run(objects, workload, "agent",
                                  ["tacho-agent", "diagnose", "--config", "/etc/tacho/agent.yaml"])  # fmt: skip
        self.assertIn("the agent can read and remove rings", diagnosed.stdout)
        self.assertIn(f"reached over TLS; the agent {node.NAME} is connected", diagnosed.stdout)

        trained = self.train()
        self.assertNotIn("tacho:", trained.stderr)  # So begin complaints of the recorder.
        harness.wait_until(lambda: "in-a-pod" in self.tachoctl(objects, "jobs", "-o", "csv"), "the job is known")
        rings = self.node.host_path("/run/tacho")
        harness.wait_until(lambda: not os.listdir(rings), "the agent removed the delivered ring")
        told = self.node.run(objects, workload, "rings")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertEqual((agent.stop(), collector.stop()), (0, 0))

    def test_agent_with_rights_to_see_chips(self):
        self.run_pods("base")

    def test_agent_without_any_rights(self):
        self.run_pods("overlays/cpu")


if __name__ == "__main__":
    harness.main()
