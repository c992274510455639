"""Questions to a collector: tacho.v1.Query."""
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple, TypeVar, Union

from . import _requests, columns, records
from ._connection import Connection, Security
from ._messages import enum_value, enum_word, messages
from ._requests import Matchers, Moment, Names

# Longer than a collector lets a query run by default.
DEFAULT_TIMEOUT_S = 150.0

Attempts = Union[str, int, None]
SubjectArgument = Union[str, Tuple[str, Union[str, int]]]
Watched = Union[records.Samples, records.Event, records.Live]


def _metric(message: Any) -> records.Metric:
    word = enum_word("MetricType", "METRIC_TYPE_", message.type)
    return records.Metric(message.name, word, message.unit, message.help)


def _name(message: Any) -> records.SeriesName:
    return records.SeriesName(
        metric=message.metric.name,
        job=message.job,
        task=records.value_of(message, "task"),
        host=message.host,
        labels={label.name: label.value for label in message.labels},
        type=enum_word("MetricType", "METRIC_TYPE_", message.metric.type),
        unit=message.metric.unit,
    )


def _job(message: Any) -> records.Job:
    state = enum_word("JobState", "JOB_STATE_", message.state)
    return records.make(records.Job, message, state=state, marks=_marks(message.marks))


def _marks(message: Any) -> records.Marks:
    return records.Marks(tuple(message.tags), message.group, message.note)


def _event(message: Any) -> records.Event:
    source = message.source
    return records.make(
        records.Event,
        message,
        job=source.job,
        task=records.value_of(source, "task"),
        attempt=source.attempt,
        host=source.host,
    )


def _sample(message: Any) -> records.Sample:
    return records.make(records.Sample, message, series=_name(message.series))


def _integral(message: Any) -> records.Integral:
    return records.make(records.Integral, message, series=_name(message.series))


def _samples(series: records.SeriesName, points: Any) -> records.Samples:
    values = list(points.values)
    steps = None
    if points.steps:
        steps = [None if step == columns.NO_STEP else step for step in points.steps]
    return records.Samples(
        series, list(points.times_unix_ns), steps, values,
        list(points.attempts) or [0] * len(values),
    )  # fmt: skip


class Client:
    """A connection to one collector, for several questions. May be used by several threads.

    `address` is HOST:PORT or unix:PATH; None takes TACHO_ADDRESS, else 127.0.0.1:7411. The others
    are tachoctl's flags of the same names, and None takes tachoctl's variables: tls, tls_ca,
    tls_cert, tls_key, tls_server_name, token_file; token is one that is in no file.
    """

    def __init__(
        self,
        address: Optional[str] = None,
        *,
        timeout: float = DEFAULT_TIMEOUT_S,
        tls: Optional[bool] = None,
        tls_ca: Optional[str] = None,
        tls_cert: Optional[str] = None,
        tls_key: Optional[str] = None,
        tls_server_name: Optional[str] = None,
        token_file: Optional[str] = None,
        token: Optional[str] = None,
        allow_plaintext_token: bool = False,
    ):
        security = Security(
            tls, tls_ca, tls_cert, tls_key, tls_server_name, token_file, token,
            allow_plaintext_token,
        )  # fmt: skip
        self._connection = Connection(address, security)
        self._timeout = timeout

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def query(
        self,
        job: str,
        metrics: Names = None,
        *,
        by: str = "time",
        begin: Any = None,
        end: Any = None,
        attempts: Attempts = None,
        max_points: int = 0,
        aggregate: Optional[str] = None,
        keep: Names = None,
        counter: Optional[str] = None,
        matchers: Matchers = None,
        output: str = "arrays",
    ) -> Any:
        """The samples of a job's metrics: a list of Series, or a DataFrame.

        metrics     one name or several; None is all.
        by          "time" or "step": the axis of order, of buckets and of begin and end.
        begin, end  by time: datetimes with a zone or ns since the epoch, the end left out; by step:
                    steps, the end included. None is open.
        attempts    "all" (the default), "effective" (of each step the latest that reached it),
                    "latest", or a number.
        max_points  reduces each series to so many buckets at most, which keep min, max, first, last
                    and what is not finite; 0 returns every sample.
        aggregate   "sum", "avg", "min", "max", "stddev", "count" or a quantile such as "p99" across
                    tasks, hosts and labels; `keep` names those that stay apart.
        counter     "rate" or "increase" of counters.
        matchers    {"task": 3}, or ["task=3", "host=~host-1.*"].
        output      "arrays" (array.array), "lists", "numpy" or "pandas".
        """
        columns.check_output(output)
        if by not in ("time", "step"):
            raise ValueError(f"by: {by!r} is neither 'time' nor 'step'")
        request = messages.RangeRequest(
            selector=_requests.selector(job, metrics, matchers),
            axis=enum_value("Axis", "AXIS_", by, "by"),
            max_points=max_points,
        )
        if by == "step":
            _requests.set_steps(request, begin, end)
        else:
            _requests.set_times(request, begin, end)
        _requests.set_attempts(request, attempts)
        _requests.set_aggregation(request, aggregate, keep)
        if counter is not None:
            request.counter = enum_value(
                "CounterFunction", "COUNTER_FUNCTION_", counter, "counter"
            )
        found = self._range(request, "numpy" if output == "pandas" else output)
        return columns.to_pandas(found) if output == "pandas" else found

    def _range(self, request: Any, output: str) -> List[columns.Series]:
        found: List[columns.Series] = []
        builder: Optional[columns.Builder] = None
        for piece in self._pieces(request):
            kind = piece.WhichOneof("data")
            if piece.HasField("series"):
                if builder is not None:
                    found.append(builder.done(output))
                builder = columns.Builder(_name(piece.series), kind == "buckets")
            if builder is not None and kind is not None:
                builder.add(getattr(piece, kind))
        if builder is not None:
            found.append(builder.done(output))
        return found

    def _pieces(self, request: Any) -> Iterator[Any]:
        # A collector may be older than the field.
        if "packed" in request.DESCRIPTOR.fields_by_name:
            request.packed = True
        for message in self._connection.stream("Range", request, self._timeout):
            yield message
            yield from getattr(message, "more", ())

    def jobs(
        self,
        pattern: str = "",
        *,
        states: Names = None,
        matchers: Matchers = None,
        tags: Names = None,
        group: str = "",
    ) -> List[records.Job]:
        """Jobs whose whole name matches (RE2); those seen in the last minutes first.

        states are of "running", "silent", "ended"; matchers are on "host" and on attributes. A job
        must have all of the tags, and be of the group.
        """
        request = messages.ListJobsRequest(
            name_pattern=pattern, page_size=1000, tags=_requests.names(tags), group=group
        )
        for state in _requests.names(states):
            request.states.append(enum_value("JobState", "JOB_STATE_", state, "states"))
        _requests.add_matchers(request.matchers, matchers)
        found: List[records.Job] = []
        while True:
            answer = self._connection.unary("ListJobs", request, self._timeout)
            found.extend(_job(job) for job in answer.jobs)
            if not answer.next_page_token:
                return found
            request.page_token = answer.next_page_token

    def mark(
        self,
        job: str,
        *,
        add_tags: Names = None,
        remove_tags: Names = None,
        group: Optional[str] = None,
        note: Optional[str] = None,
    ) -> Optional[records.Marks]:
        """Changes the tags, the group or the note of a job; "" removes a group or a note.

        Needs the role write. Returns what the job has now; None to a caller who may not read.
        """
        request = messages.ChangeMarksRequest(
            job=job,
            add_tags=_requests.names(add_tags),
            remove_tags=_requests.names(remove_tags),
            group=group,
            note=note,
        )
        answer = self._connection.unary("ChangeMarks", request, self._timeout, "Marks")
        return _marks(answer.marks) if answer.HasField("marks") else None

    def job(self, name: str) -> records.JobDetail:
        """One job with its attempts, tasks and metrics."""
        answer = self._connection.unary("GetJob", messages.GetJobRequest(job=name), self._timeout)
        attempts = [
            records.make(
                records.Attempt, one, state=enum_word("JobState", "JOB_STATE_", one.state)
            )
            for one in answer.attempts
        ]
        return records.JobDetail(
            job=_job(answer.job),
            attempts=attempts,
            tasks=[records.make(records.Task, task) for task in answer.tasks],
            metrics=[_metric(metric) for metric in answer.metrics],
            timeline=[(s.first_step, s.last_step, s.attempt) for s in answer.timeline],
        )

    def latest(
        self, job: str, metrics: Names = None, *, matchers: Matchers = None
    ) -> List[records.Sample]:
        """The newest sample of each series."""
        request = messages.LatestRequest(selector=_requests.selector(job, metrics, matchers))
        answers = self._connection.stream("Latest", request, self._timeout)
        return [_sample(sample) for answer in answers for sample in answer.samples]

    def integrate(
        self,
        job: str,
        metrics: Names = None,
        *,
        begin: Moment = None,
        end: Moment = None,
        attempts: Attempts = None,
        max_gap: float = 0,
        total: bool = False,
        keep: Names = None,
        matchers: Matchers = None,
    ) -> List[records.Integral]:
        """The integrals of series over time, such as the energy of a power in watts, in joules.

        max_gap  seconds: a longer time without a finite sample is not bridged, and counts as not
                 covered; 0 is the collector's default, a minute.
        total    adds up the series of each metric; `keep` names labels that stay apart.
        The others are those of query().
        """
        request = messages.IntegrateRequest(
            selector=_requests.selector(job, metrics, matchers),
            max_gap_ns=round(max_gap * 1e9),
            sum=total,
            by=_requests.names(keep),
        )
        _requests.set_times(request, begin, end)
        _requests.set_attempts(request, attempts)
        answers = self._connection.stream("Integrate", request, self._timeout)
        return [_integral(one) for answer in answers for one in answer.integrals]

    def events(
        self,
        job: str,
        kinds: Names = None,
        *,
        begin: Moment = None,
        end: Moment = None,
        newest: int = 0,
    ) -> List[records.Event]:
        """Events in ascending time; `newest` keeps so many of the newest, 0 all."""
        request = messages.ListEventsRequest(job=job, kinds=_requests.names(kinds), newest=newest)
        _requests.set_times(request, begin, end)
        answers = self._connection.stream("ListEvents", request, self._timeout)
        return [_event(event) for answer in answers for event in answer.events]

    def compare(
        self,
        subjects: Iterable[SubjectArgument],
        metrics: Names = None,
        *,
        by: str = "step",
        begin: Optional[int] = None,
        end: Optional[int] = None,
        max_points: int = 0,
        aggregate: Optional[str] = None,
        matchers: Matchers = None,
    ) -> records.Comparison:
        """Several jobs or attempts side by side, measured against the first.

        A subject is a job's name, or (name, attempt) with a number, "effective", "latest" or "all".
        `by` is "step", or "elapsed": time since each began.
        """
        request = messages.CompareRequest(
            metrics=_requests.names(metrics),
            alignment=enum_value("Alignment", "ALIGNMENT_", by, "by"),
            max_points=max_points,
        )
        for subject in subjects:
            job, attempt = (subject, None) if isinstance(subject, str) else subject
            added = request.subjects.add(job=job)
            if isinstance(attempt, int):
                added.attempt = attempt
            elif attempt is not None:
                added.attempts = enum_value("Attempts", "ATTEMPTS_", attempt, "subjects")
        _requests.set_steps(request, begin, end)
        _requests.set_aggregation(request, aggregate, None)
        _requests.add_matchers(request.matchers, matchers)
        return _comparison(self._connection.stream("Compare", request, self._timeout))

    def watch(
        self,
        job: str,
        metrics: Names = None,
        *,
        begin: Moment = None,
        events: bool = False,
        matchers: Matchers = None,
    ) -> Iterator[Watched]:
        """Samples (and events) as they become durable, for ever; close() the iterator to stop.

        With `begin`, what is stored since then comes first; one Live separates it from what is new.
        """
        request = messages.WatchRequest(
            selector=_requests.selector(job, metrics, matchers), events=events
        )
        if begin is not None:
            request.begin_unix_ns = _requests.nanoseconds(begin, "begin")
        names = {}
        for message in self._connection.stream("Watch", request, None):
            kind = message.WhichOneof("message")
            if kind == "series":
                names[message.series.index] = _name(message.series.series)
            elif kind == "samples":
                yield _samples(names[message.samples.index], message.samples.points)
            elif kind == "event":
                yield _event(message.event)
            elif kind == "live":
                yield records.Live(message.live.clock_unix_ns)


def _comparison(messages_of_answer: Iterable[Any]) -> records.Comparison:
    comparison = records.Comparison([], {}, [])
    for message in messages_of_answer:
        kind = message.WhichOneof("message")
        if kind == "subjects":
            for one in message.subjects.subjects:
                subject = records.make(records.Subject, one, attempts=list(one.attempts))
                comparison.subjects.append(subject)
            for difference in message.subjects.attributes:
                comparison.attributes[difference.name] = list(difference.values)
        elif kind == "metric":
            comparison.metrics.append(_compared(message.metric))
    return comparison


def _compared(message: Any) -> records.ComparedMetric:
    def each(column: str) -> List[Any]:
        return [list(getattr(one, column)) for one in message.columns]

    def summary_of(one: Any) -> Any:
        names = one.summary.DESCRIPTOR.fields_by_name
        return {name: records.value_of(one.summary, name) for name in names}

    return records.ComparedMetric(
        metric=_metric(message.metric), positions=list(message.positions), avg=each("avg"),
        min=each("min"), max=each("max"), counts=each("counts"), difference=each("difference"),
        summary=[summary_of(one) for one in message.columns],
    )  # fmt: skip


# The same calls as functions, each with a connection of its own.

_CLIENT_ARGUMENTS = (
    "timeout", "tls", "tls_ca", "tls_cert", "tls_key", "tls_server_name", "token_file", "token",
    "allow_plaintext_token",
)  # fmt: skip


def _client(address: Optional[str], arguments: Any) -> Client:
    return Client(
        address, **{name: arguments.pop(name) for name in _CLIENT_ARGUMENTS if name in arguments}
    )


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _documented_as(method: Callable[..., Any]) -> Callable[[_Function], _Function]:
    def document(function: _Function) -> _Function:
        function.__doc__ = (
            f"{(method.__doc__ or '').rstrip()}\n\n        Besides, what Client() takes. A connection"
            " is made for this call alone.\n        "
        )
        return function

    return document


@_documented_as(Client.query)
def query(address: Optional[str], job: str, metrics: Names = None, **arguments: Any) -> Any:
    with _client(address, arguments) as client:
        return client.query(job, metrics, **arguments)


@_documented_as(Client.jobs)
def jobs(address: Optional[str] = None, pattern: str = "", **arguments: Any) -> List[records.Job]:
    with _client(address, arguments) as client:
        return client.jobs(pattern, **arguments)


@_documented_as(Client.mark)
def mark(address: Optional[str], job: str, **arguments: Any) -> Optional[records.Marks]:
    with _client(address, arguments) as client:
        return client.mark(job, **arguments)


@_documented_as(Client.job)
def job(address: Optional[str], name: str, **arguments: Any) -> records.JobDetail:
    with _client(address, arguments) as client:
        return client.job(name, **arguments)


@_documented_as(Client.latest)
def latest(
    address: Optional[str], job: str, metrics: Names = None, **arguments: Any
) -> List[records.Sample]:
    with _client(address, arguments) as client:
        return client.latest(job, metrics, **arguments)


@_documented_as(Client.integrate)
def integrate(
    address: Optional[str], job: str, metrics: Names = None, **arguments: Any
) -> List[records.Integral]:
    with _client(address, arguments) as client:
        return client.integrate(job, metrics, **arguments)


@_documented_as(Client.events)
def events(
    address: Optional[str], job: str, kinds: Names = None, **arguments: Any
) -> List[records.Event]:
    with _client(address, arguments) as client:
        return client.events(job, kinds, **arguments)


@_documented_as(Client.compare)
def compare(
    address: Optional[str],
    subjects: Iterable[SubjectArgument],
    metrics: Names = None,
    **arguments: Any,
) -> records.Comparison:
    with _client(address, arguments) as client:
        return client.compare(subjects, metrics, **arguments)


@_documented_as(Client.watch)
def watch(
    address: Optional[str], job: str, metrics: Names = None, **arguments: Any
) -> Iterator[Watched]:
    with _client(address, arguments) as client:
        yield from client.watch(job, metrics, **arguments)
