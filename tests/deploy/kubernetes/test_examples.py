"""deploy/examples: their pods have Kubernetes' types, reach the agent, and say which task they are."""
import os
import re
import struct
import subprocess

import rendered
import yaml
from rendered import harness

try:
    import strict_types
except ImportError as missing:
    print(f"skipped: {missing}: deploy/packages.sh test provides it")
    raise SystemExit(harness.SKIPPED)

EXAMPLES = rendered.REPOSITORY / "deploy/examples"
KUBEFLOW = "training.kubeflow.org/"
JOBSET = "jobset.sigs.k8s.io/"
# What the controllers give to a pod, and the (job, task, attempt) that follow.
GIVEN = {
    "jobset.yml": (
        {"labels": {JOBSET + "jobset-name": "bert", JOBSET + "job-index": "1", JOBSET + "restart-attempt": "2"},
         "env": {"JOB_COMPLETION_INDEX": "3"}},
        ("bert", 7, 2),
    ),
    "pytorchjob.yml": (
        {"labels": {KUBEFLOW + "job-name": "resnet-1"},
         "env": {"RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "resnet-1-master-0"}},
        ("resnet-1", 2, 0),
    ),
    "tfjob.yml": (
        {"labels": {KUBEFLOW + "job-name": "mnist-1", KUBEFLOW + "replica-index": "3"},
         "env": {"TF_CONFIG": '{"task": {"type": "worker", "index": 3}}'}},
        ("mnist-1", 3, 0),
    ),
    "argo_workflow.yml": (
        {"variables": {"workflow.name": "tune-x7k2p", "inputs.parameters.task": "1", "retries": "2"}},
        ("tune-x7k2p", 1, 2),
    ),
    "ray_job.yml": ({"env": {"RANK": "3", "WORLD_SIZE": "4"}}, ("llama-1", 3, 0)),
}  # fmt: skip


def load(name):
    with open(EXAMPLES / name) as file:
        return yaml.safe_load(file)


def pods(value):
    """All pod specs in an object that mount rings; a Workflow's own spec is one, with its templates' containers."""
    if isinstance(value, dict):
        if value.get("kind") == "Workflow":
            spec = value["spec"]
            yield {**spec, "containers": [one["container"] for one in spec["templates"] if "container" in one]}
            return
        if "containers" in value and "volumes" in value:
            yield value
        for one in value.values():
            yield from pods(one)
    elif isinstance(value, list):
        for one in value:
            yield from pods(one)


def environment(container, given):
    """The container's environment as Kubernetes makes it."""
    result = dict(given.get("env", {}))
    for one in container.get("env", []):
        if "value" in one:
            value = re.sub(r"\{\{([\w.]+)\}\}", lambda found: given["variables"][found[1]], one["value"])
        else:
            path = one["valueFrom"]["fieldRef"]["fieldPath"]
            value = given["labels"][re.fullmatch(r"metadata\.labels\['(.+)'\]", path)[1]]
        result[one["name"]] = value
    return result


class ExampleTest(harness.TestCase):
    def recorded(self, command, variables):
        """(job, task, attempt) in the ring of a real trainer with this environment alone."""
        rings = os.path.join(self.directory, "rings")
        os.makedirs(rings, exist_ok=True)
        subprocess.run([*command, "--steps", "1"], env={"TACHO_RING_DIR": rings, "PATH": os.environ["PATH"],
                       **variables}, capture_output=True, timeout=harness.PATIENCE_S)  # fmt: skip
        (name,) = os.listdir(rings)
        with open(os.path.join(rings, name), "rb") as file:
            head = file.read(64)
        os.remove(os.path.join(rings, name))
        # docs/ring_format.md
        (task,), (attempt,) = struct.unpack_from("<I", head, 36), struct.unpack_from("<I", head, 56)
        return name.split(".")[0], task, attempt

    def test_every_example_is_here(self):
        self.assertEqual({path.name for path in EXAMPLES.iterdir()}, {*GIVEN, "slurm.sh"})

    def test_kubernetes_own_parts_have_its_types(self):
        for name in GIVEN:
            self.assertEqual(list(strict_types.of_object(load(name))), [], name)

    def test_pods_share_the_directory_of_the_agent(self):
        agent = next(one for one in yaml.safe_load_all((rendered.KUBERNETES / "base/agent/agent.yml").read_text())
                     if one["kind"] == "DaemonSet")["spec"]["template"]["spec"]  # fmt: skip
        (rings,) = [one["hostPath"] for one in agent["volumes"] if one["name"] == "rings"]
        (group,) = agent["securityContext"]["supplementalGroups"]
        for name in GIVEN:
            found = list(pods(load(name)))
            self.assertTrue(found, name)
            for pod in found:
                self.assertIn(group, pod["securityContext"]["supplementalGroups"], name)
                (volume,) = pod["volumes"]
                self.assertEqual(volume["hostPath"], rings, name)
                for container in pod["containers"]:
                    self.assertIn({"name": volume["name"], "mountPath": rings["path"]}, container["volumeMounts"])

    def test_trainers_know_which_task_they_are(self):
        for name, (given, wanted) in GIVEN.items():
            for pod in pods(load(name)):
                variables = environment(pod["containers"][0], given)
                self.assertEqual(self.recorded([os.environ["TACHO_TRAIN"]], variables), wanted, name)

    def test_slurms_variables_become_job_task_and_attempt(self):
        # This program stands in for srun. It gives the trainer the number of a task.
        srun = os.path.join(self.directory, "srun")
        with open(srun, "w") as file:
            file.write('#!/bin/sh\nSLURM_PROCID=5 exec "$@" --steps 1\n')
        os.chmod(srun, 0o755)
        variables = {"PATH": self.directory + ":" + os.environ["PATH"], "TRAINER": os.environ["TACHO_TRAIN"],
                     "SLURM_JOB_NAME": "gpt", "SLURM_JOB_ID": "4711", "SLURM_RESTART_COUNT": "1"}  # fmt: skip
        self.assertEqual(self.recorded([str(EXAMPLES / "slurm.sh")], variables), ("gpt-4711", 5, 1))

    def test_replicas_in_the_jobset_are_counted_right(self):
        job = load("jobset.yml")["spec"]["replicatedJobs"][0]["template"]["spec"]
        env = {one["name"]: one.get("value") for one in job["template"]["spec"]["containers"][0]["env"]}
        self.assertEqual(int(env["PROCESSES_IN_JOB"]), job["parallelism"])


if __name__ == "__main__":
    harness.main()
