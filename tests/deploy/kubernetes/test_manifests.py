"""deploy/kubernetes and deploy/helm: both say the same, in Kubernetes' own types, of images that exist."""
import copy
import json
import os
import re
import runpy
import subprocess
import sys
import unittest

import rendered
import yaml
from rendered import harness

import certificates
import security_case

try:
    import jsonschema
    import strict_types
except ImportError as missing:
    print(f"skipped: {missing}: deploy/packages.sh test provides it")
    raise SystemExit(harness.SKIPPED)

# An overlay, and the values with which the chart says the same.
SAME = {
    "base": {},
    "overlays/cpu": {"agent": {"chips": False}},
    "overlays/gpu": {"agent": {"gpu": {"enabled": True}}},
    "overlays/gke-tpu": {"agent": {"tpu": {"enabled": True}}},
    "overlays/standby": {"collector": {"standby": True}},
    "overlays/cluster": {"collector": {"members": 3}},
}
# Everything that the chart can add.
ALL = {
    "image": {"registry": "registry.example/ml", "tag": "1.2.3", "pullPolicy": "Always", "pullSecrets": ["pull"]},
    "collector": {
        "standby": True,
        "config": {"storage": {"retention": "30d"}, "ingest": {"max_streams": 1000000}},
        "tls": {"certManager": {"enabled": True, "dnsNames": ["collector.example"]}},
        "storage": {"size": "1Ti", "className": "fast"},
        "service": {"type": "LoadBalancer", "annotations": {"a.example/b": "true"}},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "priorityClassName": "high",
    },
    "agent": {
        "addresses": ["collector.example:7411"],
        "config": {"log": {"level": "warn"}, "sources": {"host": {"interval": "30s"}}},
        "gpu": {"enabled": True},
        "tpu": {"enabled": True},
        "nodeSelector": {"pool": "train"},
        "tolerations": [{"key": "train", "operator": "Equal", "value": "yes", "effect": "NoExecute"}],
        "priorityClassName": "system-node-critical",
    },
}  # fmt: skip
# What Helm says of itself.
HELMS_OWN = ("app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/version",
             "helm.sh/chart", "checksum/config")  # fmt: skip


def plain(value):
    """Without what Helm says of itself and the cluster's defaults; lists of named things in their order."""
    if isinstance(value, dict):
        result = {}
        for name, one in value.items():
            if name in HELMS_OWN or (name, one) == ("imagePullPolicy", "IfNotPresent"):
                continue
            one = yaml.safe_load(one) if name in ("collector.yaml", "agent.yaml") else plain(one)
            if one != {}:
                result[name] = one
        return result
    if isinstance(value, list):
        return sorted((plain(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def pods(objects):
    """(name, pod template) of everything that runs."""
    for name, one in objects.items():
        if one["kind"] in ("StatefulSet", "DaemonSet"):
            yield name, one["spec"]["template"]


class ManifestsTest(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = rendered.renderer()

    def chart(self, values=None, **options):
        return rendered.Chart(self.program, self.directory, values, **options)

    def test_chart_and_kustomize_say_the_same(self):
        for overlay, values in SAME.items():
            with self.subTest(overlay):
                made, wanted = self.chart(values).objects, rendered.kustomize(overlay, self.directory)
                self.assertEqual(sorted(made), sorted(wanted))
                for name in wanted:
                    self.assertEqual(plain(made[name]), plain(wanted[name]), name)

    def test_every_object_has_kubernetes_types(self):
        every = [self.chart(values).objects for values in [*SAME.values(), ALL]]
        every += [rendered.kustomize(overlay, self.directory) for overlay in SAME]
        for objects in every:
            for one in objects.values():
                self.assertEqual(list(strict_types.of_object(one)), [])

    def test_what_is_named_exists(self):
        for values in [*SAME.values(), {**ALL, "agent": {**ALL["agent"], "addresses": []}}]:
            objects = self.chart(values).objects
            for name, template in pods(objects):
                with self.subTest(name):
                    self.check_references(objects, objects[name], template)

    def check_references(self, objects, workload, template):
        pod, labels = template["spec"], template["metadata"]["labels"]
        self.assertEqual(workload["spec"]["selector"]["matchLabels"], labels)
        self.assertIn("ServiceAccount/" + pod["serviceAccountName"], objects)
        volumes = {volume["name"] for volume in pod["volumes"]}
        volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
        containers = pod["containers"] + pod.get("initContainers", [])
        self.assertEqual({m["name"] for c in containers for m in c["volumeMounts"]}, volumes)
        for volume in pod["volumes"]:
            if "configMap" in volume:
                self.assertIn("ConfigMap/" + volume["configMap"]["name"], objects)
        if workload["kind"] == "StatefulSet":
            self.assertIn("Service/" + workload["spec"]["serviceName"], objects)
            return
        (config,) = objects["ConfigMap/" + workload["metadata"]["name"]]["data"].values()
        collector = yaml.safe_load(config)["collector"]
        for address in collector.get("addresses", []):
            self.assertIn("Service/" + address.split(".")[0], objects)
        members = collector.get("members", [])
        for address in members:
            pod, service = address.split(".")[:2]
            self.assertIn("Service/" + service, objects)
            self.assertLess(int(pod.rpartition("-")[2]), objects["StatefulSet/tacho-collector"]["spec"]["replicas"])
        told = yaml.safe_load(objects["ConfigMap/tacho-collector"]["data"]["collector.yaml"])
        self.assertEqual(told.get("cluster", {}).get("members", []), members)

    def test_no_two_agents_share_a_node_or_a_selector(self):
        objects = self.chart(ALL).objects
        agents = [one for one in objects.values() if one["kind"] == "DaemonSet"]
        self.assertEqual(len(agents), 3)
        components = {one["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] for one in agents}
        self.assertEqual(len(components), 3)
        opposite = {"In": "NotIn", "Exists": "DoesNotExist"}
        wanted, other = [], None
        for one in agents:
            affinity = one["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
            (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            if one["metadata"]["name"] == "tacho-agent":
                other = term["matchExpressions"]
            else:
                wanted += term["matchExpressions"]
        self.assertEqual(other, [{**one, "operator": opposite[one["operator"]]} for one in wanted])

    def test_images_are_those_that_are_built(self):
        sys.path.insert(0, str(rendered.REPOSITORY / "deploy/oci"))
        build = runpy.run_path(str(rendered.REPOSITORY / "deploy/oci/build"))
        built = {f"tachograph-{kind}:{build['version']()}" for kind in build["IMAGES"]}
        every = [self.chart(values).objects for values in SAME.values()]
        every += [rendered.kustomize(overlay, self.directory) for overlay in SAME]
        for objects in every:
            named = {c["image"] for _, t in pods(objects)
                     for c in t["spec"]["containers"] + t["spec"].get("initContainers", [])}  # fmt: skip
            self.assertEqual(named, built)
        named = {c["image"] for _, t in pods(self.chart(ALL).objects) for c in t["spec"]["containers"]}
        self.assertEqual(named, {f"registry.example/ml/tachograph-{k}:1.2.3" for k in build["IMAGES"]})

    def test_nobody_has_more_rights_than_it_uses(self):
        for values in [*SAME.values(), ALL]:
            objects = self.chart(values).objects
            self.check_roles(objects)
            for name, template in pods(objects):
                self.check_rights(name, template["spec"], values.get("agent", {}).get("chips", True))

    def check_roles(self, objects):
        """Agents may get nodes. Nobody else has a role, and only agents have a token."""
        agents = {name for name, _ in pods(objects) if name.startswith("DaemonSet/")}
        bound = set()
        for name, one in objects.items():
            if one["kind"] == "ServiceAccount":
                self.assertIs(one["automountServiceAccountToken"], False)
            if one["kind"] == "ClusterRole":
                self.assertEqual(one["rules"], [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}])
            if one["kind"] == "ClusterRoleBinding":
                self.assertIn("ClusterRole/" + one["roleRef"]["name"], objects)
                (subject,) = one["subjects"]
                account = objects["ServiceAccount/" + subject["name"]]
                self.assertEqual(subject["namespace"], account["metadata"]["namespace"], name)
                bound.add("DaemonSet/" + subject["name"])
            self.assertNotIn(one["kind"], ("Role", "RoleBinding"))
        self.assertEqual(bound, agents)
        for name, template in pods(objects):
            self.assertIs(template["spec"]["automountServiceAccountToken"], name in agents, name)

    def test_agents_that_watch_no_node_have_neither_role_nor_token(self):
        objects = self.chart({"agent": {"node": {"enabled": False}, "gpu": {"enabled": True}}}).objects
        self.assertFalse({name for name in objects if "Role" in name})
        for name, template in pods(objects):
            self.assertIs(template["spec"]["automountServiceAccountToken"], False, name)
            if name.startswith("DaemonSet/"):
                text = objects["ConfigMap/" + name.partition("/")[2]]["data"]["agent.yaml"]
                self.assertIs(yaml.safe_load(text)["sources"]["node"]["enabled"], False)

    def test_every_agent_of_an_overlay_is_bound_to_its_own_role(self):
        for overlay in SAME:
            with self.subTest(overlay):
                self.check_roles(rendered.kustomize(overlay, self.directory))

    def check_rights(self, name, pod, chips):
        for container in pod["containers"] + pod.get("initContainers", []):
            context = container["securityContext"]
            self.assertIs(context["readOnlyRootFilesystem"], True)
            self.assertIs(context["allowPrivilegeEscalation"], False)
            self.assertNotEqual(context.get("privileged"), True)
            self.assertEqual(context["capabilities"]["drop"], ["ALL"])
            self.assertIn("memory", container["resources"]["limits"])
        (main,) = pod["containers"]
        rights = main["securityContext"]["capabilities"].get("add", [])
        if name.startswith("DaemonSet/") and chips:
            self.assertEqual(rights, ["DAC_READ_SEARCH", "SYS_PTRACE"])
        else:
            self.assertEqual(rights, [])
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)

    def test_certificate_is_for_every_name_that_agents_use(self):
        values = {"collector": {"standby": True, "tls": {"certManager": {"enabled": True}}}}
        objects = self.chart(values, namespace="ml").objects
        certificate = objects["Certificate/tacho-collector"]["spec"]
        config = yaml.safe_load(objects["ConfigMap/tacho-agent"]["data"]["agent.yaml"])
        names = [address.rpartition(":")[0] for address in config["collector"]["addresses"]]
        self.assertEqual(names, ["tacho-collector.ml.svc", "tacho-collector-standby.ml.svc"])
        self.assertLessEqual(set(names), set(certificate["dnsNames"]))
        secrets = [source["secret"]["name"] for _, template in pods(objects)
                   for volume in template["spec"]["volumes"]
                   for source in volume.get("projected", {}).get("sources", [])
                   for item in source["secret"]["items"] if item["key"] in ("ca.crt", "tls.crt")]  # fmt: skip
        self.assertEqual(set(secrets), {certificate["secretName"]})

    def test_certificate_is_for_every_member(self):
        values = {"collector": {"members": 2, "tls": {"certManager": {"enabled": True}}}}
        objects = self.chart(values, namespace="ml").objects
        names = objects["Certificate/tacho-collector"]["spec"]["dnsNames"]
        config = yaml.safe_load(objects["ConfigMap/tacho-agent"]["data"]["agent.yaml"])
        for address in config["collector"]["members"]:
            self.assertIn("*." + address.rpartition(":")[0].partition(".")[2], names)

    def test_a_changed_configuration_restarts_the_pods(self):
        def checksums(values):
            return {name: template["metadata"]["annotations"]["checksum/config"]
                    for name, template in pods(self.chart(values).objects)}  # fmt: skip

        before = checksums({})
        after = checksums({"agent": {"config": {"log": {"level": "debug"}}}})
        self.assertEqual(before["StatefulSet/tacho-collector"], after["StatefulSet/tacho-collector"])
        self.assertNotEqual(before["DaemonSet/tacho-agent"], after["DaemonSet/tacho-agent"])

    def test_values_that_contradict_are_refused(self):
        for values, word in (
            ({"agent": {"chips": False, "gpu": {"enabled": True}}}, "agent.chips"),
            ({"collector": {"enabled": False}}, "agent.addresses"),
            ({"collector": {"standby": True, "members": 3}}, "collector.standby"),
        ):
            with self.assertRaisesRegex(AssertionError, re.escape(word)):
                self.chart(values)


class ConfigurationTest(security_case.SecurityCase):
    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.directory, "credentials")
        os.mkdir(self.folder)
        authority = certificates.Authority(self.directory)
        certificate, key = authority.sign("collector")
        token = self.token("agents", "write")
        self.write_tokens()
        for name, file in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", authority.certificate),
                           ("token", token), ("tokens.yaml", self.tokens_file)):  # fmt: skip
            os.symlink(file, os.path.join(self.folder, name))

    def test_configurations_are_those_of_the_programs(self):
        program = rendered.renderer()
        for values in [*SAME.values(), ALL]:
            objects = rendered.Chart(program, self.directory, values).objects
            maps = [one["data"] for one in objects.values() if one["kind"] == "ConfigMap"]
            for name, text in (item for data in maps for item in data.items()):
                with self.subTest(name=name, values=values):
                    self.check(name, text)
        text = objects["ConfigMap/tacho-collector"]["data"]["collector.yaml"]
        self.assertEqual(yaml.safe_load(text)["storage"]["retention"], "30d")

    def check(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            config = yaml.safe_load(text.replace("/etc/tacho-credentials", self.folder))
            if "cluster" in config:  # In a pod the host's name says it.
                config["cluster"]["member"] = "tacho-collector-1"
            yaml.safe_dump(config, file)
        program = os.environ["TACHO_" + name.split(".")[0].upper()]
        told = subprocess.run([program, "--config", path, "--check-config"], capture_output=True, text=True)
        self.assertEqual((told.returncode, told.stderr), (0, ""), text)


class DocumentedTest(harness.TestCase):
    """What docs/kubernetes.md tells people to type and to write."""

    def setUp(self):
        super().setUp()
        text = (rendered.REPOSITORY / "docs/kubernetes.md").read_text()
        self.blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```$", text)

    def block(self, word):
        (found,) = [block for block in self.blocks if word in block]
        return found

    def test_overlay_of_your_own_renames_every_image(self):
        own = self.block("kustomization.yaml").replace("tachograph/deploy/kubernetes", "..")
        objects = rendered.kustomize("own", self.directory, own)
        self.assertEqual(sorted(objects), sorted(rendered.kustomize("overlays/gpu", self.directory)))
        for name, template in pods(objects):
            for container in template["spec"]["containers"] + template["spec"].get("initContainers", []):
                self.assertRegex(container["image"], r"^registry\.example/ml/tachograph-\w+:[0-9.]+$", name)

    def test_secrets_hold_what_the_pods_take_from_them(self):
        kubectl = harness.tool("kubectl")
        authority = certificates.Authority(self.directory, "ca")
        certificate, key = authority.sign("server")
        for name, source in (("server.crt", certificate), ("server.key", key)):
            os.symlink(source, os.path.join(self.directory, name))
        for name in ("tokens.yaml", "agents.token"):
            with open(os.path.join(self.directory, name), "w") as file:
                file.write("secret")
        made = {}
        for command in self.block("create secret").splitlines():
            if "create secret" in command:
                words = command.split()
                told = rendered.run(kubectl, *words[1:], "--dry-run=client", "-o", "yaml", cwd=self.directory)
                secret = yaml.safe_load(told)
                made[secret["metadata"]["name"]] = set(secret["data"])
        for overlay in SAME:
            taken = {}
            for _, template in pods(rendered.kustomize(overlay, self.directory)):
                for volume in template["spec"]["volumes"]:
                    for source in volume.get("projected", {}).get("sources", []):
                        keys = {item["key"] for item in source["secret"]["items"]}
                        taken.setdefault(source["secret"]["name"], set()).update(keys)
            self.assertEqual(taken, made, overlay)


class SchemaTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        with open(rendered.CHART / "values.schema.json") as file:
            self.schema = json.load(file)
        jsonschema.Draft7Validator.check_schema(self.schema)
        with open(rendered.CHART / "values.yaml") as file:
            self.defaults = yaml.safe_load(file)

    def mistakes(self, values):
        return [error.message for error in jsonschema.Draft7Validator(self.schema).iter_errors(values)]

    def test_schema_knows_every_value_and_no_other(self):
        self.assertEqual(self.mistakes(self.defaults), [])
        self.assertEqual(self.mistakes(ALL), [])

        def inner(schema):
            return self.schema["definitions"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

        def compare(schema, values, path):
            schema = inner(schema)
            if "properties" not in schema:
                return
            self.assertIs(schema["additionalProperties"], False, path)
            optional = {"global", "group", "requests", "limits"}
            self.assertEqual(set(schema["properties"]) - optional, set(values) - optional, path)
            for name, value in values.items():
                if isinstance(value, dict):
                    compare(schema["properties"][name], value, f"{path}.{name}")

        compare(self.schema, self.defaults, "")

    def test_mistakes_are_refused(self):
        for path, wrong in (
            ("agent.chip", True), ("agent.chips", "yes"), ("agent.addresses", ["collector"]),
            ("image.pullPolicy", "Sometimes"), ("image.tag", "a b"), ("collector.storage.size", "many"),
            ("collector.tls.secret", ""), ("collector.podDisruptionBudget.maxUnavailable", "1"),
            ("collector.tolerations", [{"key": "a", "effect": "Never"}]), ("collector.config", "text"),
        ):  # fmt: skip
            values = copy.deepcopy(self.defaults)
            *folders, name = path.split(".")
            inner = values
            for folder in folders:
                inner = inner[folder]
            inner[name] = wrong
            self.assertEqual(len(self.mistakes(values)), 1, path)


class StrictTypesTest(unittest.TestCase):
    """The checker finds what Kubernetes would silently ignore or refuse."""

    POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
           "spec": {"containers": [{"name": "a", "image": "a"}]}}  # fmt: skip

    def changed(self, **container):
        pod = copy.deepcopy(self.POD)
        pod["spec"]["containers"][0].update(container)
        return list(strict_types.of_object(pod))

    def test_mistakes_are_found(self):
        self.assertEqual(self.changed(), [])
        (found,) = self.changed(imagePolicy="Always")
        self.assertIn("imagePolicy: V1Container has no such field", found)
        (found,) = self.changed(command="sh")
        self.assertIn("is no list", found)
        (found,) = self.changed(tty="yes")
        self.assertIn("is no bool", found)
        (found,) = self.changed(ports=[{"containerPort": "80"}])
        self.assertIn("is no int", found)
        (found,) = self.changed(ports=[{"name": "a"}])
        self.assertIn("V1ContainerPort needs containerPort", found)
        (found,) = self.changed(resources={"limits": {"cpu": 1}})
        self.assertIn("is no str", found)
        (found,) = self.changed(livenessProbe={"httpGet": {"port": 1.5}})
        self.assertIn("neither a number nor a name", found)
        self.assertEqual(len(list(strict_types.of_object({**self.POD, "apiVersion": "apps/v1beta1"}))), 1)


if __name__ == "__main__":
    harness.main()
