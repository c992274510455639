"""Reads the configuration of early_stopping.py, and checks all of it before anything is done."""
import dataclasses
import ipaddress
import os
import re
import stat
import tomllib

IN_CLUSTER = "/var/run/secrets/kubernetes.io/serviceaccount/"


class Mistake(Exception):
    """A mistake in the configuration."""


@dataclasses.dataclass(frozen=True)
class JobRule:
    """Training jobs that may be suspended, and the Kubernetes Job of each."""

    pattern: re.Pattern  # Matches the training job's whole name.
    namespace: str
    name: str  # With \\1, \\g<name> for groups of the pattern.


@dataclasses.dataclass(frozen=True)
class Kubernetes:
    api: str = "https://kubernetes.default.svc"
    token_file: str = IN_CLUSTER + "token"
    ca_file: str = IN_CLUSTER + "ca.crt"
    timeout_seconds: float = 10


@dataclasses.dataclass(frozen=True)
class Settings:
    listen: tuple
    token_file: str  # Holds the token that callers must show.
    enabled: bool  # False: only logs what it would do.
    jobs: tuple
    kubernetes: Kubernetes


def load(path):
    with open(path, "rb") as file:
        try:
            document = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise Mistake(error) from error
    known = {"listen": str, "token_file": str, "enabled": bool, "jobs": list, "kubernetes": dict}
    check(document, known, needed={"token_file", "jobs"})
    cluster = document.get("kubernetes", {})
    check(cluster, {"api": str, "token_file": str, "ca_file": str, "timeout_seconds": (int, float)})
    settings = Settings(
        listen=address(document.get("listen", "127.0.0.1:9099")),
        token_file=document["token_file"],
        enabled=document.get("enabled", False),
        jobs=tuple(rule(entry) for entry in document["jobs"]),
        kubernetes=Kubernetes(**cluster),
    )
    check_api(settings.kubernetes.api)
    if len(read_secret(settings.token_file)) < 16:
        raise Mistake(f"token_file: {settings.token_file} has fewer than 16 characters")
    return settings


def check(document, known, needed=frozenset()):
    for key, value in document.items():
        if key not in known:
            raise Mistake(f"unknown key '{key}'; known: {', '.join(sorted(known))}")
        if not isinstance(value, known[key]) or (known[key] != bool and isinstance(value, bool)):
            raise Mistake(f"{key}: not of the right type")
    missing = needed - set(document)
    if missing:
        raise Mistake(f"missing: {', '.join(sorted(missing))}")


def address(text):
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise Mistake(f"listen: '{text}' is no HOST:PORT")
    return host.strip("[]"), int(port)


def rule(entry):
    check(entry, {"pattern": str, "namespace": str, "name": str}, {"pattern", "namespace", "name"})
    try:
        pattern = re.compile(entry["pattern"])
    except re.error as error:
        raise Mistake(f"jobs: pattern '{entry['pattern']}': {error}") from error
    return JobRule(pattern, entry["namespace"], entry["name"])


def check_api(api):
    """A service account's token goes there: over TLS, or to this machine."""
    scheme, _, rest = api.partition("://")
    host = rest.partition("/")[0].rpartition(":")[0].strip("[]")
    if scheme == "https":
        return
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if scheme != "http" or not local:
        raise Mistake(f"kubernetes.api: '{api}' is not https://")


def read_secret(path):
    """Read each time: a new secret counts at once."""
    with open(path) as file:
        if os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
            raise Mistake(f"everybody may write {path}")
        return file.read().strip()
