"""The base of deploy/kubernetes, held against the real programs. tests/deploy/kubernetes has the overlays, the
chart and the images."""
import os
import re
import subprocess
import time

import certificates
import harness
import security_case
import yaml

MANIFESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/kubernetes")
PROGRAMS = {"/usr/bin/tacho-agent": "TACHO_AGENT", "/usr/bin/tacho-collector": "TACHO_COLLECTOR"}


def manifest(name):
    """{kind/name: object} of a file, and its text."""
    with open(os.path.join(MANIFESTS, name)) as file:
        text = file.read()
    objects = [one for one in yaml.safe_load_all(text) if one is not None]
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in objects}, text


def run(program, *arguments, env=None):
    return subprocess.run(
        [os.environ[program], *arguments], env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE_S,
    )  # fmt: skip


class Workload:
    """A DaemonSet or StatefulSet and what it names."""

    def __init__(self, file, kind, name, container):
        self.objects, self.text = manifest(file)
        self.object = self.objects[f"{kind}/{name}"]
        self.pod = self.object["spec"]["template"]["spec"]
        (self.container,) = [c for c in self.pod["containers"] if c["name"] == container]
        self.volumes = {volume["name"]: volume for volume in self.pod.get("volumes", [])}
        for claim in self.object["spec"].get("volumeClaimTemplates", []):
            self.volumes[claim["metadata"]["name"]] = {"claim": claim["spec"]}
        self.program = PROGRAMS[self.container["command"][0]]

    def config(self):
        """(key, text) of the ConfigMap's file that --config names."""
        path = self.container["args"][self.container["args"].index("--config") + 1]
        volume = self.volumes[self.mount_of(path)["name"]]
        data = self.objects["ConfigMap/" + volume["configMap"]["name"]]["data"]
        return os.path.basename(path), data[os.path.basename(path)]

    def mount_of(self, path):
        mounts = self.container["volumeMounts"]
        holding = [m for m in mounts if (path + "/").startswith(m["mountPath"] + "/")]
        return max(holding, key=lambda m: len(m["mountPath"]))

    def credentials(self):
        """Names of the files that the configuration wants of the Secret."""
        return set(re.findall(r"/etc/tacho-credentials/([\w.]+)", self.config()[1]))

    def given(self):
        """Names of the files that the command in the manifest's head puts into the Secret."""
        files = re.findall(r"--from-file=([\w.]+)(?:=\S+)?", self.text)
        made = ["tls.crt", "tls.key"] if "secret tls tacho-collector-tls --cert" in self.text else []
        return {*files, *made}


AGENT = ("base/agent/agent.yml", "DaemonSet", "tacho-agent", "agent")
COLLECTOR = ("base/collector/collector.yml", "StatefulSet", "tacho-collector", "collector")


class ManifestTest(harness.TestCase):
    def workloads(self):
        return [Workload(*AGENT), Workload(*COLLECTOR)]

    def test_flags_are_those_of_the_programs(self):
        for workload in self.workloads():
            told = run(workload.program, "--help").stdout
            for flag in (a for a in workload.container["args"] if a.startswith("-")):
                self.assertRegex(told, rf"(?m)^ +{re.escape(flag)}\b")

    def test_what_is_mounted_exists_and_what_is_written_may_be(self):
        for workload in self.workloads():
            containers = workload.pod["containers"] + workload.pod.get("initContainers", [])
            mounted = {m["name"] for c in containers for m in c["volumeMounts"]}
            self.assertEqual(mounted, set(workload.volumes))
            self.assertEqual(workload.credentials(), workload.given())
            config = yaml.safe_load(workload.config()[1])
            store = config.get("spool", config.get("storage"))["path"]
            self.assertFalse(workload.mount_of(store).get("readOnly", False))
            self.assertNotIn("configMap", workload.volumes[workload.mount_of(store)["name"]])
            end = workload.container.get("terminationMessagePath", "/dev/termination-log")
            if any(m["mountPath"] == "/dev" for m in workload.container["volumeMounts"]):
                self.assertFalse(workload.mount_of(end).get("readOnly", False))

    def test_labels_ports_and_services_fit(self):
        for workload in self.workloads():
            labels = workload.object["spec"]["template"]["metadata"]["labels"]
            self.assertEqual(workload.object["spec"]["selector"]["matchLabels"], labels)
            ports = {port["name"] for port in workload.container.get("ports", [])}
            for name, one in workload.objects.items():
                if not name.startswith("Service/"):
                    continue
                self.assertEqual(one["spec"]["selector"], labels)
                self.assertLessEqual({port["targetPort"] for port in one["spec"]["ports"]}, ports)
            service = workload.object["spec"].get("serviceName")
            if service is not None:
                self.assertIn("Service/" + service, workload.objects)
        # The address that agents send to is a Service of the collector.
        agent, collector = Workload(*AGENT), Workload(*COLLECTOR)
        (address,) = yaml.safe_load(agent.config()[1])["collector"]["addresses"]
        name, _, port = address.partition(":")
        service = collector.objects["Service/" + name.split(".")[0]]
        self.assertIn(int(port), [p["port"] for p in service["spec"]["ports"]])

    def test_pods_have_no_more_rights_than_they_use(self):
        for workload in self.workloads():
            # An agent asks for its node; a collector asks nobody.
            is_agent = workload.object["kind"] == "DaemonSet"
            self.assertIs(workload.pod["automountServiceAccountToken"], is_agent)
            for container in workload.pod["containers"] + workload.pod.get("initContainers", []):
                context = container["securityContext"]
                self.assertIs(context["readOnlyRootFilesystem"], True)
                self.assertIs(context["allowPrivilegeEscalation"], False)
                self.assertNotEqual(context.get("privileged"), True)
                self.assertEqual(context["capabilities"]["drop"], ["ALL"])
                self.assertIn("memory", container["resources"]["limits"])
        self.assertIs(Workload(*COLLECTOR).pod["securityContext"]["runAsNonRoot"], True)
        agent = Workload(*AGENT)
        keys = {one["key"] for one in agent.pod["tolerations"]}
        self.assertLessEqual({"nvidia.com/gpu", "google.com/tpu"}, keys)

    def test_patch_for_gpus_is_of_the_agent(self):
        with open(os.path.join(MANIFESTS, "overlays/gpu/gpu_nodes/agent.yml")) as file:
            patch = yaml.safe_load(file)["spec"]["template"]["spec"]
        agent = Workload(*AGENT)
        (container,) = patch["containers"]
        self.assertEqual(container["name"], agent.container["name"])
        mounts = {mount["mountPath"] for mount in agent.container["volumeMounts"]}
        self.assertLessEqual({mount["mountPath"] for mount in container["volumeMounts"]}, mounts)


class RunningTest(security_case.SecurityCase):
    """Both programs with the manifests' configurations, in directories of the test's."""

    def setUp(self):
        super().setUp()
        self.root = os.path.join(self.directory, "root")
        self.authority = certificates.Authority(self.directory)
        names = "DNS:localhost,DNS:tacho-collector.tacho.svc"
        certificate, key = self.authority.sign("collector", names)
        self.writer = self.token("agents", "write")
        self.reader = self.token("people", "read")
        self.write_tokens()
        # A Secret's files are links into a directory beside them.
        secret = os.path.join(self.root, "etc/tacho-credentials")
        os.makedirs(os.path.join(secret, "..data"))
        files = {
            "tls.crt": certificate, "tls.key": key, "tokens.yaml": self.tokens_file,
            "ca.crt": self.authority.certificate, "token": self.writer,
        }  # fmt: skip
        for name, source in files.items():
            copy = os.path.join(secret, "..data", name)
            with open(copy, "wb") as file:
                file.write(certificates.read(source))
            os.chmod(copy, 0o400)
            os.symlink(os.path.join("..data", name), os.path.join(secret, name))
        for path in ("var/lib/tacho-agent", "var/lib/tacho-collector", "run/tacho", "etc/tacho",
                     "run/tacho-collector"):  # fmt: skip
            os.makedirs(os.path.join(self.root, path))

    def here(self, text):
        """Paths of the container, in the test's directory."""
        return re.sub(r"(?<![\w./])/(etc|var/lib|run)/tacho", rf"{self.root}/\1/tacho", text)

    def configured(self, workload):
        name, text = workload.config()
        text = self.here(text)
        path = os.path.join(self.root, "etc/tacho", name)
        with open(path, "w") as file:
            file.write(text)
        checked = run(workload.program, "--config", path, "--check-config")
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        return path

    def start_collector(self):
        workload = Workload(*COLLECTOR)
        path = self.configured(workload)
        ports = os.path.join(self.directory, "ports.json")
        arguments = [
            os.environ[workload.program], "--config", path, "--grpc", "0.0.0.0:0",
            "--http", "0.0.0.0:0", "--port-file", ports,
        ]  # fmt: skip
        log = os.path.join(self.directory, "collector.log")
        program = self.started(harness.Program(arguments, log))
        harness.wait_until(lambda: os.path.exists(ports) or not program.alive(), "ports known")
        self.assertTrue(program.alive(), program.tail())
        with open(ports) as file:
            told = yaml.safe_load(file)
        return workload, told["grpc"], told["http"]

    def test_agent_delivers_under_the_name_of_its_node_and_is_alive(self):
        workload, grpc_port, http_port = self.start_collector()
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            get = workload.container[probe]["httpGet"]
            self.assertEqual(get["scheme"], "HTTPS")
            told = subprocess.run(
                ["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}",
                 f"https://127.0.0.1:{http_port}{get['path']}"],
                capture_output=True, text=True, timeout=harness.PATIENCE_S,
            )  # fmt: skip
            self.assertEqual(told.stdout, "200", probe)

        workload = Workload(*AGENT)
        given = {
            variable["name"]: "node-a"
            for variable in workload.container["env"]
            if variable["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
        }
        path = self.configured(workload)
        with open(path) as file:
            text = file.read().replace("tacho-collector.tacho.svc:7411", f"localhost:{grpc_port}")
        with open(path, "w") as file:
            file.write(text)
        alive = [self.here(word) for word in workload.container["livenessProbe"]["exec"]["command"]]
        self.assertNotEqual(subprocess.run(alive, capture_output=True).returncode, 0)
        agent = self.started(
            harness.Program(
                [os.environ[workload.program], "--config", path],
                os.path.join(self.directory, "agent.log"), env=given,
            )
        )  # fmt: skip

        def told():
            return harness.tachoctl(
                f"localhost:{grpc_port}", "agents", "--tls-ca", self.authority.certificate,
                "--token-file", self.reader, "-o", "csv",
            ).stdout  # fmt: skip

        harness.wait_until(lambda: "node-a,node-a," in told(), "the agent told by its node's name")
        self.assertEqual(subprocess.run(alive).returncode, 0)

        # An agent that has written nothing for ten minutes, as if it hung.
        self.assertEqual(agent.stop(), 0)
        spool = os.path.join(self.root, "var/lib/tacho-agent/spool")
        for file in os.listdir(spool):
            long_ago = time.time() - 600
            os.utime(os.path.join(spool, file), (long_ago, long_ago))
        self.assertNotEqual(subprocess.run(alive).returncode, 0)


if __name__ == "__main__":
    harness.main()
