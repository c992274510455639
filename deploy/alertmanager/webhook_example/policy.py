"""Which alerts end which Jobs. Nothing here touches the network."""
import dataclasses
import datetime
import re

ALERT = "TachoJobDiverged"
# The alert for which a Job was suspended. It makes a repeated alert harmless: a Job that somebody has
# resumed is not suspended again.
ANNOTATION = "tachograph.dev/suspended-for"
# RFC 1123: Kubernetes requires it of the names of namespaces and Jobs.
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclasses.dataclass(frozen=True)
class Alert:
    name: str
    status: str
    job: str
    host: str
    step: str
    key: str  # Identifies this occurrence of the alert.
    started: datetime.datetime


@dataclasses.dataclass(frozen=True)
class Target:
    namespace: str
    name: str


def alerts_of(document):
    """[Alert] of a webhook's body; ValueError says what is wrong with it."""
    if not isinstance(document, dict) or document.get("version") != "4":
        raise ValueError('"version" is not "4"')
    alerts = document.get("alerts")
    if not isinstance(alerts, list):
        raise ValueError('"alerts" is no list')
    return [alert_of(entry) for entry in alerts]


def alert_of(entry):
    if not isinstance(entry, dict):
        raise ValueError("an alert is no object")
    labels, annotations = texts(entry, "labels"), texts(entry, "annotations")
    status, started = entry.get("status"), entry.get("startsAt")
    if status not in ("firing", "resolved"):
        raise ValueError('"status" is neither "firing" nor "resolved"')
    fingerprint = entry.get("fingerprint")
    if not isinstance(fingerprint, str) or not re.fullmatch("[0-9a-f]{1,64}", fingerprint):
        raise ValueError('"fingerprint" is no hexadecimal number')
    return Alert(
        name=labels.get("alertname", ""),
        status=status,
        job=labels.get("job", ""),
        host=annotations.get("hosts", ""),
        step=annotations.get("step", ""),
        key=f"{fingerprint}@{started}",
        started=time_of(started),
    )


def texts(entry, key):
    found = entry.get(key, {})
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise ValueError(f'"{key}" is no object of texts')
    return found


def time_of(text):
    """RFC 3339, with as many digits of a second as Go writes."""
    if not isinstance(text, str):
        raise ValueError("a time is no text")
    shortened = re.sub(r"(\.\d{1,6})\d*", r"\1", text)
    time = datetime.datetime.fromisoformat(shortened)
    if time.tzinfo is None:
        raise ValueError(f"a time without a zone: {text}")
    return time


def is_about_divergence(alert):
    return alert.name == ALERT and alert.status == "firing"


def target_of(alert, rules):
    """The Job of the first rule that fits; None if none does, or what it names is no name."""
    for rule in rules:
        match = rule.pattern.fullmatch(alert.job)
        if match is None:
            continue
        target = Target(match.expand(rule.namespace), match.expand(rule.name))
        valid = NAME.fullmatch(target.namespace) and NAME.fullmatch(target.name)
        return target if valid else None
    return None


def why_not(job, alert):
    """Why the Job is left alone; empty if it is to be suspended."""
    metadata, spec = job["metadata"], job.get("spec", {})
    if (metadata.get("annotations") or {}).get(ANNOTATION) == alert.key:
        return "it was suspended for this alert before"
    if spec.get("suspend"):
        return "it is suspended already"
    for condition in (job.get("status") or {}).get("conditions") or []:
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return "it has ended"
    if time_of(metadata["creationTimestamp"]) > alert.started:
        return "it was created after the alert began"
    return ""


def suspension(job, alert):
    """A merge patch. With the version that was looked at: a change in between is a conflict."""
    return {
        "metadata": {
            "resourceVersion": job["metadata"]["resourceVersion"],
            "annotations": {ANNOTATION: alert.key},
        },
        "spec": {"suspend": True},
    }
