"""Facts about an attempt: model, batch size, any hyperparameter."""
import json
from typing import Any, Callable, Dict, Iterator, Mapping, MutableMapping

from ._library import say_once
from ._values import is_leaf_on_device


def _plain(value: Any) -> Any:
    """What json has no form for, as text; what would wait for a device is not looked at."""
    if is_leaf_on_device(value):
        return "(on a device)"
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        try:
            return value.item()
        except Exception:  # An object that happens to have these names.
            return str(value)
    return str(value)


def to_text(value: Any) -> str:
    """As attributes and fields of events are written: numbers in decimal, containers as JSON."""
    if isinstance(value, str):
        return value
    if type(value) not in (bool, int, float, type(None), list, dict, tuple):
        value = _plain(value)
        if isinstance(value, str):
            return value
    return json.dumps(value, default=_plain)


def flatten(values: Any, prefix: str = "") -> Dict[str, Any]:
    """{"a": {"b": 1}} as {"a.b": 1}; of other objects their attributes (argparse.Namespace)."""
    if not isinstance(values, Mapping):
        values = vars(values)
    flat: Dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


class Config(MutableMapping):
    """run.config: a dictionary whose entries are attributes of the attempt at the collector.

    Entries can be set by key and by name (`run.config.lr = 0.1`), and changed while the run goes on.
    Those of a nested dictionary are known as "outer.inner". Deleting one removes the attribute.
    """

    def __init__(self, set_attribute: Callable[[str, str], None]):
        object.__setattr__(self, "_set", set_attribute)
        object.__setattr__(self, "_values", {})

    def update(self, *others: Any, **values: Any) -> None:  # type: ignore[override]
        """Sets the entries of mappings, of objects with attributes, and those named."""
        for other in (*others, values):
            try:
                flat = flatten(other)
            except TypeError:
                say_once(f"config.update() takes mappings and objects, no {type(other).__name__}")
                continue
            for key, value in flat.items():
                self[key] = value

    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, Mapping) and value:
            return self.update({key: value})
        self._values[str(key)] = value
        try:
            self._set(str(key), to_text(value))
        except Exception as error:
            say_once(f'"{key}" is no attribute: {type(error).__name__}: {error}')

    def __delitem__(self, key: str) -> None:
        del self._values[key]
        self._set(key, "")

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __repr__(self) -> str:
        return f"Config({self._values!r})"
