"""Checks objects field by field against Kubernetes' types, as python3-kubernetes has them (1.22): unknown
fields, missing required ones and wrong types are mistakes. Kubernetes itself ignores unknown fields."""
import re

import kubernetes.client as types

# python3-kubernetes has no type for these fields. They take a number or a text.
INT_OR_STRING = {"targetPort", "port", "maxUnavailable", "maxSurge", "minAvailable"}
# Kinds of others: (apiVersion, kind) and where in them Kubernetes' own types are.
EMBEDDED = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): {"spec.replicatedJobs[].template": "V1JobTemplateSpec"},
    ("kubeflow.org/v1", "PyTorchJob"): {"spec.pytorchReplicaSpecs.*.template": "V1PodTemplateSpec"},
    ("kubeflow.org/v1", "TFJob"): {"spec.tfReplicaSpecs.*.template": "V1PodTemplateSpec"},
    ("ray.io/v1", "RayJob"): {
        "spec.rayClusterSpec.headGroupSpec.template": "V1PodTemplateSpec",
        "spec.rayClusterSpec.workerGroupSpecs[].template": "V1PodTemplateSpec",
    },
    ("argoproj.io/v1alpha1", "Workflow"): {
        "spec.templates[].container": "V1Container",
        "spec.volumes[]": "V1Volume",
        "spec.securityContext": "V1PodSecurityContext",
    },
    ("monitoring.coreos.com/v1", "ServiceMonitor"): {"spec.selector": "V1LabelSelector"},
    ("cert-manager.io/v1", "Certificate"): {},
}


def _required(cls):
    """Names that the type's constructor does not let be absent."""
    model = cls.__new__(cls)
    model.local_vars_configuration = types.Configuration()
    model.local_vars_configuration.client_side_validation = True
    for name in cls.openapi_types:
        try:
            setattr(model, name, None)
        except ValueError:
            yield name


def _scalar(value, kind, path):
    wanted = {"str": str, "int": int, "bool": bool, "float": (int, float), "datetime": str}[kind]
    if not isinstance(value, wanted) or (kind in ("int", "float") and isinstance(value, bool)):
        yield f"{path}: {value!r} is no {kind}"


def mistakes(value, kind, path=""):
    """What is wrong with a value of the type `kind` ("V1Pod", "list[str]", …), each as a line."""
    if kind == "object":
        name = re.split(r"[.\[]", path)[-1]
        if name in INT_OR_STRING and (isinstance(value, bool) or not isinstance(value, (int, str))):
            yield f"{path}: {value!r} is neither a number nor a name"
    elif kind.startswith("list["):
        if not isinstance(value, list):
            yield f"{path}: {value!r} is no list"
            return
        for number, one in enumerate(value):
            yield from mistakes(one, kind[5:-1], f"{path}[{number}]")
    elif kind.startswith("dict("):
        if not isinstance(value, dict):
            yield f"{path}: {value!r} is no map"
            return
        for key, one in value.items():
            yield from mistakes(key, "str", path)
            yield from mistakes(one, kind[5:-1].split(", ", 1)[1], f"{path}.{key}")
    elif kind in ("str", "int", "bool", "float", "datetime"):
        yield from _scalar(value, kind, path)
    else:
        yield from _model(value, getattr(types, kind), path)


def _model(value, cls, path):
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is no {cls.__name__}"
        return
    names = {json: name for name, json in cls.attribute_map.items()}
    for key, one in value.items():
        if key not in names:
            yield f"{path}.{key}: {cls.__name__} has no such field"
        elif one is None:
            yield f"{path}.{key}: it is empty"
        else:
            yield from mistakes(one, cls.openapi_types[names[key]], f"{path}.{key}")
    for name in _required(cls):
        if cls.attribute_map[name] not in value:
            yield f"{path}: {cls.__name__} needs {cls.attribute_map[name]}"


def _parts(value, steps, path):
    """(value, path) of what the steps lead to: a key, "*" for all keys, "[]" for all items."""
    if not steps:
        yield value, path
        return
    step, rest = steps[0], steps[1:]
    if step == "[]":
        for number, one in enumerate(value):
            yield from _parts(one, rest, f"{path}[{number}]")
    elif step == "*":
        for key, one in value.items():
            yield from _parts(one, rest, f"{path}.{key}")
    elif step in value:
        yield from _parts(value[step], rest, f"{path}.{step}")


def of_object(one):
    """What is wrong with an object of any kind that we use."""
    version, kind = one.get("apiVersion", ""), one.get("kind", "")
    path = f"{kind}/{one.get('metadata', {}).get('name', '?')}"
    if (version, kind) in EMBEDDED:
        yield from mistakes(one["metadata"], "V1ObjectMeta", path + ".metadata")
        for place, inner in EMBEDDED[version, kind].items():
            found = list(_parts(one, re.findall(r"\[\]|[^.\[]+", place), path))
            if not found and inner.endswith(("TemplateSpec", "Container")):
                yield f"{path}: nothing at {place}"
            for part, where in found:
                if kind == "Workflow" and inner == "V1Container":
                    part = {"name": "main", **part}  # Argo names it.
                yield from mistakes(part, inner, where)
        return
    group, _, number = version.rpartition("/")
    known = group in ("", "apps", "batch", "policy", "networking.k8s.io", "rbac.authorization.k8s.io")
    if not known or number != "v1" or not hasattr(types, "V1" + kind):
        yield f"{path}: no type for {version} {kind}"
        return
    yield from mistakes(one, "V1" + kind, path)
