"""What Kustomize and Helm make of deploy/kubernetes and deploy/helm."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import yaml

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
KUBERNETES = REPOSITORY / "deploy/kubernetes"
CHART = REPOSITORY / "deploy/helm/tachograph"
sys.path.insert(0, str(REPOSITORY / "tests/integration"))
import harness  # noqa: E402

TOOLS = pathlib.Path(os.environ.get("TACHO_TOOLS") or REPOSITORY / "build/tools/usr/bin")
SCRATCH = pathlib.Path(os.environ.get("TACHO_SCRATCH") or REPOSITORY / "build/deploy-tests")


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=4 * harness.PATIENCE_S, **options)  # fmt: skip
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def key(one):
    return f"{one['kind']}/{one['metadata']['name']}"


def objects(text):
    """{kind/name: object} of a stream of YAML."""
    found = {}
    for one in yaml.safe_load_all(text):
        if one is not None:
            assert key(one) not in found, f"{key(one)} is there twice"
            found[key(one)] = one
    return found


def _in_old_words(folder):
    """Debian 12's kubectl has Kustomize 2.0, which knows two fields by older names."""
    for path in folder.rglob("kustomization.yaml"):
        content = yaml.safe_load(path.read_text())
        resources = content.pop("resources", [])
        content["bases"] = [one for one in resources if (path.parent / one).is_dir()]
        content["resources"] = [one for one in resources if not (path.parent / one).is_dir()]
        content["patchesStrategicMerge"] = [one["path"] for one in content.pop("patches", [])]
        path.write_text(yaml.safe_dump({name: value for name, value in content.items() if value}))


def kustomize(name, directory, own=None):
    """Objects of a folder of deploy/kubernetes; `own` is the text of a kustomization.yaml that becomes this
    folder in a copy. Skips the test where there is no kubectl."""
    kubectl = harness.tool("kubectl")
    told = json.loads(run(kubectl, "version", "--client", "-o", "json"))
    folder = pathlib.Path(directory) / "kubernetes"
    if not folder.exists():
        shutil.copytree(KUBERNETES, folder)
        if own is not None:
            (folder / name).mkdir()
            (folder / name / "kustomization.yaml").write_text(own)
        if int(told["clientVersion"]["minor"].rstrip("+")) < 21:
            _in_old_words(folder)
    return objects(run(kubectl, "kustomize", str(folder / name)))


def renderer():
    """Our program that renders charts. Skips the test where there is no Go, or no sprig."""
    go = harness.tool("go")
    packages = TOOLS.parent / "share/gocode"
    if not (packages / "src/github.com/Masterminds/sprig").exists():
        packages = pathlib.Path("/usr/share/gocode")
    if not (packages / "src/github.com/Masterminds/sprig").exists():
        raise unittest.SkipTest("no sprig for Go: deploy/packages.sh test provides it")
    SCRATCH.mkdir(parents=True, exist_ok=True)
    program = SCRATCH / "render_chart"
    source = pathlib.Path(__file__).with_name("render_chart.go")
    run(go, "build", "-o", str(program), str(source),
        env={**os.environ, "GO111MODULE": "off", "GOPATH": str(packages), "GOFLAGS": "",
             "GOCACHE": str(SCRATCH / "go")})  # fmt: skip
    return str(program)


class Chart:
    """The chart with some values: `values`, `notes` and `objects`."""

    def __init__(self, program, directory, values=None, namespace="tacho"):
        path = os.path.join(directory, "values.yaml")
        with open(path, "w") as file:
            yaml.safe_dump(values or {}, file)
        told = json.loads(run(program, str(CHART), "tachograph", namespace, path))
        self.values = told["values"]
        self.notes = told["files"].pop("NOTES.txt")
        self.objects = objects("\n---\n".join(told["files"].values()))
