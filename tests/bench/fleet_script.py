"""Failure scripts of tests/bench/fleet: what happens to the collector and its agents, and when."""

import dataclasses
import re

# Name -> (takes a share of the agents, takes a duration, what it does).
ACTIONS = {
    "cut": (True, False, "close the connections of this share of the agents; they reconnect"),
    "abandon": (True, False, "leave them open but dead, like a vanished host's; open others"),
    "pause": (True, True, "stop reading for this time"),
    "silence": (True, True, "stop sending for this time, then send what is due"),
    "trickle": (True, True, "send 16 bytes every 50 ms for this time"),
    "kill-collector": (False, True, "kill -9, and start it again after this time (default 0s)"),
    "restart-collector": (False, True, "the same with SIGTERM, so that it drains first"),
}
COLLECTOR_ACTIONS = ("kill-collector", "restart-collector")
DURATION = re.compile(r"^(\d+(?:\.\d+)?)(ms|s|m)?$")
UNIT_S = {"ms": 1e-3, "s": 1, "m": 60, None: 1}


class ScriptError(ValueError):
    """What is wrong with a script, for the person who wrote it."""


@dataclasses.dataclass(frozen=True)
class Step:
    at_s: float  # After the first row fell due.
    action: str
    share: float = 1.0  # Of the agents.
    seconds: float = 0.0

    @property
    def label(self):
        parts = [self.action]
        if ACTIONS[self.action][0]:
            parts.append(f"{100 * self.share:g}%")
        if self.seconds:
            parts.append(f"{self.seconds:g}s")
        return " ".join(parts)


def duration(text):
    """Seconds of "5s", "500ms", "2m", "1.5"."""
    match = DURATION.match(text)
    if not match:
        raise ScriptError(f'"{text}" is not a duration: write 20s, 500ms or 2m')
    return float(match[1]) * UNIT_S[match[2]]


def share(text):
    """0 to 1 of "10%" or "0.1"."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1
    if not 0 < value <= 1:
        raise ScriptError(f'"{text}" is not a share of the agents: write 10%')
    return value


def parse_step(text):
    words = text.split()
    if len(words) < 2 or words[1] not in ACTIONS:
        known = ", ".join(ACTIONS)
        raise ScriptError(f'"{text}": expected TIME ACTION ..., with an action of {known}')
    takes_share, takes_duration, _ = ACTIONS[words[1]]
    step = {"at_s": duration(words[0]), "action": words[1]}
    rest = words[2:]
    if takes_share:
        if not rest:
            raise ScriptError(f'"{text}": {words[1]} needs a share of the agents, such as 10%')
        step["share"] = share(rest.pop(0))
    if takes_duration and rest:
        step["seconds"] = duration(rest.pop(0))
    elif takes_duration and takes_share:
        raise ScriptError(f'"{text}": {words[1]} needs a duration, such as 5s')
    if rest:
        raise ScriptError(f'"{text}": "{rest[0]}" is one word too many')
    return Step(**step)


def parse(text):
    """Steps in order of time, of "TIME ACTION [SHARE] [DURATION]; ..."."""
    steps = [parse_step(part.strip()) for part in text.split(";") if part.strip()]
    return sorted(steps, key=lambda step: step.at_s)


def help_text():
    lines = []
    for name, (takes_share, takes_duration, what) in ACTIONS.items():
        form = name + (" SHARE" if takes_share else "")
        if takes_duration:
            form += " DURATION" if takes_share else " [DURATION]"
        lines.append(f"  {form:32} {what}")
    return "\n".join(lines)
