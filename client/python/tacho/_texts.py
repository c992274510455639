"""Strings among what a trainer logs: events at a step, or attributes of the attempt."""
from typing import Any, Dict, Mapping, Optional

from ._library import say_once

# Bytes of UTF-8; the library cuts there.
_MAX_EVENT_BYTES = 1024
_MAX_ATTRIBUTE_BYTES = 4096
# Events are for what people read. A trainer that logs a text at each step would fill the list.
_MAX_EVENTS = 1000
# As many as a person looks through; an attempt's other attributes come from its config.
_MAX_ATTRIBUTES = 64
# A quarter of what all values that a recorder ever sets may take (client/recorder.h).
_MAX_BYTES_OF_ATTRIBUTES = 32 * 1024


def split_texts(data: Mapping[str, Any]) -> Dict[str, str]:
    """The entries that are strings."""
    return {str(name): str(value) for name, value in data.items() if isinstance(value, str)}


class Texts:
    """Those of one run. With a step a string is an event of the kind "text", else an attribute."""

    def __init__(self, run: Any):
        self._run = run
        self._last: Dict[str, str] = {}  # The newest event of each name.
        self._events = 0
        self._attributes: Dict[str, str] = {}
        self._attribute_bytes = 0  # Of all that were ever set.

    def log(self, texts: Mapping[str, str], step: Optional[int]) -> None:
        for name, text in texts.items():
            if step is None:
                self._attribute(name, text)
            else:
                self._event(name, text, step)

    def _event(self, name: str, text: str, step: int) -> None:
        if self._last.get(name) == text:
            return  # Nothing new happened.
        if self._events >= _MAX_EVENTS:
            return say_once(
                f"a run logs at most {_MAX_EVENTS} texts with a step: further ones are left out"
            )
        if len(text.encode("utf-8", "replace")) > _MAX_EVENT_BYTES:
            say_once(f'"{name}": a text with a step is cut at {_MAX_EVENT_BYTES} bytes')
        self._last[name] = text
        self._events += 1
        self._run._event_at(step, "text", text, tag=name)

    def _attribute(self, name: str, text: str) -> None:
        if name not in self._attributes and len(self._attributes) >= _MAX_ATTRIBUTES:
            return say_once(
                f"log() without a step sets at most {_MAX_ATTRIBUTES} attributes: further names are"
                " left out; use run.config, or give a step"
            )
        if self._attributes.get(name) == text:
            return  # Nothing new happened.
        size = len(text.encode("utf-8", "replace"))
        kept = min(size, _MAX_ATTRIBUTE_BYTES)
        if self._attribute_bytes + kept > _MAX_BYTES_OF_ATTRIBUTES:
            return say_once(
                f"log() without a step sets at most {_MAX_BYTES_OF_ATTRIBUTES} bytes of attributes,"
                " replaced ones included: further texts are left out; give a step"
            )
        if size > _MAX_ATTRIBUTE_BYTES:
            say_once(f'"{name}": an attribute is cut at {_MAX_ATTRIBUTE_BYTES} bytes')
        self._attribute_bytes += kept
        self._attributes[name] = text
        self._run._set_attribute(name, text)
