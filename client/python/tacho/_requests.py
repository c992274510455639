"""Arguments of queries as messages."""
import datetime
import re
from typing import Any, Iterable, Mapping, Optional, Tuple, Union

from ._messages import enum_value, messages

Names = Union[str, Iterable[str], None]
Matchers = Union[Mapping[str, Any], Iterable[str], None]
Moment = Union[int, datetime.datetime, None]

_OPERATORS = {"=": 1, "!=": 2, "=~": 3, "!~": 4}
_CONDITION = re.compile(r"\s*([^=!~\s]+)\s*(=~|!=|!~|=)\s*(.*)", re.DOTALL)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def names(given: Names) -> Tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def nanoseconds(moment: Moment, argument: str) -> int:
    """Of a datetime with a time zone, or of an integer that is such already."""
    if isinstance(moment, datetime.datetime):
        if moment.tzinfo is None:
            raise ValueError(f"{argument}: a datetime needs a time zone, as datetime.timezone.utc")
        return (moment - _EPOCH) // datetime.timedelta(microseconds=1) * 1000
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment
    raise TypeError(f"{argument}: a datetime, or integer nanoseconds since 1970, not {moment!r}")


def _conditions(matchers: Matchers) -> Iterable[Tuple[str, int, str]]:
    if matchers is None:
        return
    if isinstance(matchers, str):
        matchers = [matchers]
    if isinstance(matchers, Mapping):
        for label, value in matchers.items():
            yield label, _OPERATORS["="], str(value)
        return
    for text in matchers:
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise ValueError(
                f"matchers: {text!r} is none of label=value, label!=value, label=~regex,"
                " label!~regex"
            )
        yield found[1], _OPERATORS[found[2]], found[3]


def add_matchers(repeated: Any, matchers: Matchers) -> None:
    for label, op, value in _conditions(matchers):
        repeated.add(label=label, op=op, value=value)


def selector(job: str, metrics: Names, matchers: Matchers) -> Any:
    made = messages.Selector(job=job, metrics=names(metrics))
    add_matchers(made.matchers, matchers)
    return made


def set_attempts(request: Any, attempts: Union[str, int, None]) -> None:
    """A number selects one; a word is how to choose."""
    if attempts is None:
        return
    if isinstance(attempts, int) and not isinstance(attempts, bool):
        request.selector.matchers.add(label="attempt", op=_OPERATORS["="], value=str(attempts))
        return
    request.attempts = enum_value("Attempts", "ATTEMPTS_", str(attempts), "attempts")


def set_times(request: Any, begin: Moment, end: Moment) -> None:
    if begin is not None:
        request.time.begin_unix_ns = nanoseconds(begin, "begin")
    if end is not None:
        request.time.end_unix_ns = nanoseconds(end, "end")


def set_steps(request: Any, begin: Optional[int], end: Optional[int]) -> None:
    for name, step in (("begin", begin), ("end", end)):
        if step is None:
            continue
        if not isinstance(step, int) or isinstance(step, bool):
            raise TypeError(f"{name}: by='step' takes a step, an integer, not {step!r}")
        setattr(request.steps, name, step)


def set_aggregation(request: Any, aggregate: Optional[str], keep: Names) -> None:
    """"avg", …; "p50", "p99.9" and so on are quantiles."""
    if aggregate is None:
        if keep is not None:
            raise ValueError("keep: means labels that an aggregate keeps apart; give aggregate too")
        return
    percent = re.fullmatch(r"p(\d+(?:\.\d+)?)", aggregate)
    if percent is not None and aggregate not in ("p50", "p90", "p99"):
        request.aggregation.quantile = float(percent[1]) / 100
        aggregate = "quantile"
    function = enum_value("AggregateFunction", "AGGREGATE_FUNCTION_", aggregate, "aggregate")
    request.aggregation.function = function
    request.aggregation.by.extend(names(keep))
