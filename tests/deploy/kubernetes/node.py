"""A node without Kubernetes: runs containers of pods as a kubelet would, from unpacked images.

It takes from the pod: images, commands, users, groups, capabilities, the read-only root, volumes, mounts and
environment. The network is one of its own, in which services' names lead to its loopback.
"""
import fcntl
import json
import os
import pathlib
import socket
import struct
import subprocess
import tarfile
import unittest

import rendered
from rendered import harness

IN_CONTAINER = str(pathlib.Path(__file__).with_name("in_container.py"))
NAME = "node-a"


def unpack(layout, folder):
    """The files of an image's layers, with their owners. Returns the image's configuration."""

    def blob(descriptor):
        return layout / "blobs" / descriptor["digest"].replace(":", "/")

    (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(entry).read_text())
    for layer in manifest["layers"]:
        with tarfile.open(blob(layer)) as archive:
            archive.extractall(folder, numeric_owner=True)
    return json.loads(blob(manifest["config"]).read_text())["config"]


def lo_up():
    """Raises the loopback device of the network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        up = struct.pack("16sh14x", b"lo", 1)
        fcntl.ioctl(control, 0x8914, up)  # SIOCSIFFLAGS


class Node:
    def __init__(self, test, images, services):
        """`images` are {name: root}. Removes everything at the end of the test."""
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root can run containers: run this test as root")
        self.folder = os.path.join(test.directory, "node")
        self.images = images
        self.secrets = {}  # {name: {key: bytes}}
        os.makedirs(self.folder)
        self.network = self.folder + "/network"
        open(self.network, "w").close()
        made = subprocess.run(
            ["unshare", f"--net={self.network}", "/usr/bin/python3", "-c", "import node; node.lo_up()"],
            capture_output=True, text=True, cwd=os.path.dirname(__file__),
            env={**os.environ, "TACHO_TOOLS": str(rendered.TOOLS)},
        )  # fmt: skip
        test.addCleanup(subprocess.run, ["umount", self.network], check=False, capture_output=True)
        if made.returncode != 0:
            raise unittest.SkipTest(f"may not make a network namespace: {made.stderr.strip()[-200:]}")
        self.hosts = self._file("hosts", f"127.0.0.1 localhost {' '.join(services)}\n".encode(), 0o644)

    def _file(self, name, content, mode, group=0):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        os.chown(path, 0, group)
        os.chmod(path, mode)
        return path

    def host_path(self, path):
        """Where the node's `path` is on this machine; made if it is missing."""
        if path == "/dev":
            return path
        here = self.folder + "/root" + path
        os.makedirs(here, exist_ok=True)
        return here

    def _volume(self, volume, pod, objects):
        group = pod.get("securityContext", {}).get("fsGroup", 0)
        folder = os.path.join(self.folder, "volumes", pod["serviceAccountName"], volume["name"])
        if "hostPath" in volume:
            return self.host_path(volume["hostPath"]["path"])
        if not os.path.exists(folder):
            os.makedirs(folder)
            os.chown(folder, 0, group)
            os.chmod(folder, 0o2777 if "emptyDir" in volume else 0o2775)
        if "configMap" in volume:
            for name, text in objects["ConfigMap/" + volume["configMap"]["name"]]["data"].items():
                self._file(os.path.join(folder, name), text.encode(), 0o644)
        for source in volume.get("projected", {}).get("sources", []):
            for item in source["secret"]["items"]:
                content = self.secrets[source["secret"]["name"]][item["key"]]
                self._file(os.path.join(folder, item["path"]), content, volume["projected"]["defaultMode"], group)
        return folder

    def _environment(self, container):
        given = {}
        for one in container.get("env", []):
            field = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            given[one["name"]] = {"spec.nodeName": NAME}[field] if field else one["value"]
        return given

    def command(self, objects, workload, container, command=None, more_mounts=()):
        """The command line that runs a container of a pod, or another command in it."""
        template = objects[workload]["spec"]
        pod = template["template"]["spec"]
        (spec,) = [c for c in pod["containers"] + pod.get("initContainers", []) if c["name"] == container]
        context = {**pod.get("securityContext", {}), **spec["securityContext"]}
        claims = [{"name": one["metadata"]["name"]} for one in template.get("volumeClaimTemplates", [])]
        volumes = {one["name"]: one for one in pod["volumes"] + claims}
        root = self.images[spec["image"]]
        mounts = [[self.hosts, "/etc/hosts", True], *more_mounts]
        for one in spec["volumeMounts"]:
            source = self._volume(volumes[one["name"]], pod, objects)
            mounts.append([source, one["mountPath"], one.get("readOnly", False)])
        for source, target, _ in mounts:
            make = (lambda path: open(path, "a").close()) if os.path.isfile(source) else os.makedirs
            if not os.path.exists(root + target):
                make(root + target)
        groups = [context[name] for name in ("fsGroup",) if name in context]
        described = {
            "root": root,
            "mounts": [one for one in mounts if one[1] != "/dev"],
            "uid": context["runAsUser"],
            "gid": context["runAsGroup"],
            "groups": groups + context.get("supplementalGroups", []),
            "capabilities": context["capabilities"].get("add", []),
            "writable": not context["readOnlyRootFilesystem"],
            "env": self._environment(spec),
            "command": command or spec["command"] + spec.get("args", []),
        }
        return self.in_network("unshare", "--mount", "--propagation", "private",
                               "/usr/bin/python3", "-B", IN_CONTAINER, json.dumps(described))  # fmt: skip

    def in_network(self, *command):
        return ["nsenter", f"--net={self.network}", *command]

    def run(self, *arguments, **options):
        """Runs a container, or a command in it, to its end."""
        command = self.command(*arguments, **options)
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=harness.PATIENCE_S)  # fmt: skip
