"""Samples of a series as columns, in the form that their user likes."""
import array
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence

from . import errors
from .records import SeriesName

NO_STEP = -(1 << 63)
# Columns of a reduced series: their names, their fields in the protocol, and array's type codes.
REDUCED = {
    "first_times": ("first_times_unix_ns", "q"), "last_times": ("last_times_unix_ns", "q"),
    "first_steps": ("first_steps", "q"), "last_steps": ("last_steps", "q"),
    "min": ("min", "d"), "max": ("max", "d"), "avg": ("avg", "d"), "sum": ("sum", "d"),
    "first": ("first", "d"), "last": ("last", "d"),
    "counts": ("counts", "Q"), "non_finite": ("non_finite", "Q"),
}  # fmt: skip
RAW = {
    "times": ("times_unix_ns", "q"), "steps": ("steps", "q"), "values": ("values", "d"),
    "attempts": ("attempts", "L"),
}  # fmt: skip
_NUMPY = {"q": "int64", "d": "float64", "Q": "uint64", "L": "uint32"}


@dataclass
class Series:
    """One series of an answer.

    As recorded: `times` (ns since the Unix epoch), `steps`, `values` (every bit as it was) and
    `attempts`. Reduced, `columns` has instead: first_times, last_times, first_steps, last_steps,
    min, max, avg, sum (of finite samples), first, last, counts, non_finite; `times` and `steps` are
    then those of each bucket's last sample, and `values` its average. Steps are empty if the series
    has none; a row without one among others has NO_STEP.
    """

    name: SeriesName
    reduced: bool
    columns: Dict[str, Any] = field(default_factory=dict)

    @property
    def times(self) -> Any:
        return self.columns["last_times" if self.reduced else "times"]

    @property
    def steps(self) -> Any:
        return self.columns["last_steps" if self.reduced else "steps"]

    @property
    def values(self) -> Any:
        return self.columns["avg" if self.reduced else "values"]

    @property
    def attempts(self) -> Any:
        """Of a reduced series there are none."""
        return self.columns["attempts"]

    def __len__(self) -> int:
        return len(self.times)


class Builder:
    """Collects the pieces of one series."""

    def __init__(self, name: SeriesName, reduced: bool):
        self._series = Series(name, reduced)
        self._layout = REDUCED if reduced else RAW
        for column, (_, code) in self._layout.items():
            self._series.columns[column] = array.array(code)

    def add(self, piece: Any) -> None:
        rows = len(piece.counts if self._series.reduced else piece.times_unix_ns)
        for column, (name, _) in self._layout.items():
            values = getattr(piece, name)
            if column == "attempts" and not values:
                values = [0] * rows  # Left out where all are 0.
            self._series.columns[column].extend(values)

    def done(self, output: str) -> Series:
        series = self._series
        if output == "lists":
            series.columns = {name: column.tolist() for name, column in series.columns.items()}
        elif output == "numpy":
            series.columns = {
                name: _numpy().frombuffer(column, _numpy_type(column)).copy()
                for name, column in series.columns.items()
            }
        return series


def _numpy_type(column: Any) -> str:
    return "uint64" if column.typecode == "L" and column.itemsize == 8 else _NUMPY[column.typecode]


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise errors.MissingDependency(
            "output='numpy' needs NumPy: pip install 'tacho[numpy]', or Debian's python3-numpy"
        ) from error
    return numpy


def check_output(output: str) -> None:
    """Whether an answer can be given so, before it is asked for."""
    if output not in ("arrays", "lists", "numpy", "pandas"):
        raise ValueError(f"output: {output!r} is none of arrays, lists, numpy, pandas")
    if output == "numpy":
        _numpy()
    if output == "pandas":
        _pandas()


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise errors.MissingDependency(
            "output='pandas' needs pandas: pip install 'tacho[pandas]', or Debian's python3-pandas"
        ) from error
    return pandas


def to_pandas(answer: Sequence[Series]) -> Any:
    """A DataFrame with one row a sample: metric, task, host, the labels, then the columns."""
    pandas = _pandas()
    frames: List[Any] = []
    for series in answer:
        frame = pandas.DataFrame({name: c for name, c in series.columns.items() if len(c)})
        place: Dict[str, Optional[Any]] = {
            "metric": series.name.metric, "task": series.name.task, "host": series.name.host,
            **series.name.labels,
        }  # fmt: skip
        for position, (name, value) in enumerate(place.items()):
            frame.insert(position, name, value)
        frames.append(frame)
    return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()
