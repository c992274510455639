"""What queries answer besides columns: jobs, attempts, events, samples. Plain values.

Times are integers, nanoseconds since the Unix epoch: as they are stored, and exact. What there may
not be, as the task of a host's series, is None then.
"""
import dataclasses
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple, Type, TypeVar

__all__ = [
    "Attempt", "ComparedMetric", "Comparison", "Event", "Integral", "Job", "JobDetail", "Live",
    "Marks",
    "Metric", "Sample", "Samples", "SeriesName", "Subject", "Task",
]  # fmt: skip


@dataclass(frozen=True)
class Metric:
    name: str
    type: str = "gauge"  # "gauge", "counter", "histogram"
    unit: str = ""
    help: str = ""


@dataclass(frozen=True)
class SeriesName:
    """Which series: a metric of a task, or of a host, and its labels."""

    metric: str
    job: str
    task: Optional[int] = None
    host: str = ""
    labels: Dict[str, str] = field(default_factory=dict)
    type: str = "gauge"
    unit: str = ""

    def __str__(self) -> str:
        parts = [] if self.task is None else [f"task={self.task}"]
        parts += [f"host={self.host}"] if self.host else []
        parts += [f"{name}={value}" for name, value in self.labels.items()]
        return self.metric + ("{" + ",".join(parts) + "}" if parts else "")


@dataclass(frozen=True)
class Marks:
    """What people say of a job."""

    tags: Tuple[str, ...] = ()
    group: str = ""
    note: str = ""


@dataclass(frozen=True)
class Job:
    name: str
    first_seen_ns: int
    last_seen_ns: int
    last_step: Optional[int]
    attempts: int
    tasks: int
    hosts: int
    series: int
    metrics: int
    state: str  # "running", "silent", "ended", "unspecified"
    marks: Marks = Marks()


@dataclass(frozen=True)
class Attempt:
    attempt: int
    first_seen_ns: int
    last_seen_ns: int
    first_step: Optional[int]
    last_step: Optional[int]
    attributes: Dict[str, str]
    state: str  # As a job's, and "replaced".
    ended_ns: Optional[int]
    end_message: str
    end_fields: Dict[str, str]


@dataclass(frozen=True)
class Task:
    task: Optional[int]
    host: str
    attempt: int
    first_seen_ns: int
    last_seen_ns: int
    last_step: Optional[int]
    series: int


@dataclass(frozen=True)
class JobDetail:
    job: Job
    attempts: List[Attempt]
    tasks: List[Task]
    metrics: List[Metric]
    timeline: List[Tuple[int, int, int]]  # First step, last step, and whose they are.


@dataclass(frozen=True)
class Sample:
    series: SeriesName
    time_ns: int
    step: Optional[int]
    attempt: int
    value: float


@dataclass(frozen=True)
class Integral:
    """A series over time, or several that were added up: 1 kWh is 3.6e6 J."""

    series: SeriesName  # Its unit is that of the samples.
    series_count: int
    value: float
    unit: str  # "J" where the samples are in W.
    covered_ns: int
    not_covered_ns: int  # Between the first and the last sample, in gaps that are not bridged.
    gaps: int
    count: int
    non_finite: int
    first_ns: Optional[int]
    last_ns: Optional[int]


@dataclass(frozen=True)
class Event:
    job: str
    task: Optional[int]
    attempt: int
    host: str
    time_ns: int
    step: Optional[int]
    kind: str
    message: str
    fields: Dict[str, str]


@dataclass(frozen=True)
class Samples:
    """Of one series, as watch() yields them. All columns have one entry a sample."""

    series: SeriesName
    times: List[int]
    steps: Optional[List[Optional[int]]]  # None if the series has none.
    values: List[float]
    attempts: List[int]


@dataclass(frozen=True)
class Live:
    """watch() has delivered all that was stored before; what follows is new."""

    clock_ns: int  # The collector's.


@dataclass(frozen=True)
class Subject:
    """What took part in a comparison."""

    job: str
    attempts: List[int]
    first_step: Optional[int]
    last_step: Optional[int]
    first_ns: Optional[int]
    last_ns: Optional[int]


@dataclass(frozen=True)
class ComparedMetric:
    """Rows are places along the axis; each column has one list a subject, with one entry a row."""

    metric: Metric
    positions: List[int]  # Steps, or ns since each subject's beginning.
    avg: List[List[float]]
    min: List[List[float]]
    max: List[List[float]]
    counts: List[List[int]]
    difference: List[List[float]]  # From the first subject; empty for that one.
    # One a subject: "last", "avg", "min", … of its samples, the same at any max_points; "rate" and
    # "increase" of a counter. ComparedSummary in query.proto says what each is.
    summary: List[Dict[str, Any]]


@dataclass(frozen=True)
class Comparison:
    subjects: List[Subject]
    attributes: Dict[str, List[str]]  # Those that differ: one value a subject.
    metrics: List[ComparedMetric]


_Record = TypeVar("_Record")


def value_of(message: Any, name: str) -> Any:
    """A field's value; None if it is one that may be absent and is; a dict of a map."""
    descriptor = message.DESCRIPTOR.fields_by_name[name]
    if descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry:
        return dict(getattr(message, name))
    if descriptor.containing_oneof is not None and not message.HasField(name):
        return None
    return getattr(message, name)


def make(kind: Type[_Record], message: Any, **given: Any) -> _Record:
    """A record of the message's fields of the same names; times are called …_unix_ns there."""
    fields = message.DESCRIPTOR.fields_by_name
    values = dict(given)
    for one in dataclasses.fields(kind):
        if one.name in values:
            continue
        name = one.name
        if name not in fields and name.endswith("_ns"):
            name = name[: -len("ns")] + "unix_ns"
        values[one.name] = value_of(message, name)
    return kind(**values)
