"""Recording is no reason for a training to end: what goes wrong is said, once."""
import functools
from typing import Any, Callable, Tuple, TypeVar

from ._library import say_once

_Function = TypeVar("_Function", bound=Callable[..., Any])


def guarded(function: _Function) -> _Function:
    """The same function, which says what it would have raised, and returns None."""
    name = function.__name__.strip("_").partition("_slowly")[0]

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception as error:
            say_once(f"{name}() recorded nothing: {type(error).__name__}: {error}")
            return None

    return call  # type: ignore[return-value]


def guards(*prefixes: str) -> Callable[[type], type]:
    """Guards those methods of a class whose names begin so."""

    def decorate(kind: type) -> type:
        for name, member in list(vars(kind).items()):
            if callable(member) and name.startswith(prefixes):
                setattr(kind, name, guarded(member))
        return kind

    return decorate
