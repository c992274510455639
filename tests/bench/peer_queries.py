"""Times of a fixed list of queries over a day of history.

Ours are asked through tacho.v1.Query, the peers through Prometheus' HTTP API, by one program on one
connection (tests/bench/query_load.cc), which stops the clock at the last byte of an answer and, for
a second figure, once it lies in columns of times and values. For every query the server is started
anew: "cold" is the first time it is asked, with the operating system's cache warm. VictoriaMetrics'
cache of results is left out, since a dashboard's range moves on.
"""

import dataclasses
import time
import urllib.parse

import servers
from servers import SERIES_PER_HOST

HOSTS_PER_JOB = 50  # As tests/bench/fleet_generator.h has it.
CHIPS = 8
DAY_S = 86_400
HOUR_S = 3600
JOB = "fleet-000"
RUNS = "run-"  # Two jobs of one task.
METRIC = "chip_power_watts"
ROWS_A_MESSAGE = 48
NS = 1_000_000_000


@dataclasses.dataclass
class Query:
    name: str
    title: str
    ours: tuple  # ("range", "latest", "compare" or "health", request in protobuf's text format)
    victoriametrics: tuple  # (end point of the API, its parameters), or a path and None
    prometheus: tuple
    samples: float  # How many should come back; 0: some. None: none, it is a call for nothing.


def selector(metrics, **labels):
    matchers = "".join(f' matchers {{ label: "{label}" op: OP_EQUAL value: "{value}" }}'
                       for label, value in labels.items())
    names = "".join(f' metrics: "{name}"' for name in metrics)
    return f'selector {{ job: "{JOB}"{names}{matchers} }}'


def promql(metric="", **labels):
    return metric + "{" + ",".join(f'{k}="{v}"' for k, v in {"job": JOB, **labels}.items()) + "}"


def raw(name, title, ours, theirs, span_s, end_s, samples):
    """Every sample of a span, as it was recorded: VictoriaMetrics' own way out is its export."""
    time = f"time {{ begin_unix_ns: {(end_s - span_s) * NS} end_unix_ns: {end_s * NS} }}"
    return Query(name, title, ("range", f"{ours} {time} packed: true"),
                 ("export", {"match[]": theirs, "start": end_s - span_s, "end": end_s - 0.001}),
                 ("query", {"query": f"{theirs}[{span_s}s]", "time": end_s}), samples)


def reduced(name, title, ours, theirs, span_s, points, end_s, samples):
    """`theirs` has a %s for the length of a step. A point stands for the step before it."""
    step = span_s / points
    parameters = {"query": theirs % f"{round(step * 1000)}ms", "start": end_s - span_s + step,
                  "end": end_s, "step": step, "nocache": 1}
    time = f"time {{ begin_unix_ns: {(end_s - span_s) * NS} end_unix_ns: {end_s * NS} }}"
    asked = ("query_range", parameters)
    return Query(name, title, ("range", f"{ours} {time} max_points: {points} packed: true"),
                 asked, asked, samples)


def queries(hosts, interval_s, end_s, run_steps):
    one = {"task": hosts // 2, "chip": 3}
    rows = HOUR_S / interval_s
    chips = hosts * CHIPS
    every = selector([METRIC])
    most = "bucket_values: BUCKET_VALUE_MAX"
    job = {"query": promql(), "time": end_s, "nocache": 1}
    return [
        # What any answer costs, whatever is asked.
        Query("floor", "nothing: a call that only asks for health", ("health", "check"),
              ("/health", None), ("/-/healthy", None), None),
        raw("series_hour", "one series, an hour, raw", selector([METRIC], **one),
            promql(METRIC, **one), HOUR_S, end_s, rows),
        raw("metric_hour", "one metric of all tasks, an hour, raw", every, promql(METRIC), HOUR_S,
            end_s, rows * chips),
        raw("task_hour", "all metrics of a task, an hour, raw", selector([], task=hosts // 2),
            promql(task=hosts // 2), HOUR_S, end_s, rows * SERIES_PER_HOST),
        reduced("metric_hour_avg", "one metric, averaged over all tasks, an hour in 60 points",
                every + " aggregation { function: AGGREGATE_FUNCTION_AVG }",
                f"avg(avg_over_time({promql(METRIC)}[%s]))", HOUR_S, 60, end_s,
                60 if interval_s <= 60 else rows),
        Query("latest", "last values of everything in a job",
              ("latest", f'selector {{ job: "{JOB}" }}'), ("query", job), ("query", job),
              hosts * SERIES_PER_HOST),
        reduced("series_day", "one series, a day reduced to 500 points",
                f"{selector([METRIC], **one)} {most}",
                f"max_over_time({promql(METRIC, **one)}[%s])", DAY_S, 500, end_s,
                min(500, DAY_S / interval_s)),
        reduced("metric_day", f"{chips} chip series, a day reduced to 500 points each",
                f"{every} {most}", f"max_over_time({promql(METRIC)}[%s])", DAY_S, 500, end_s,
                min(500, DAY_S / interval_s) * chips),
        compare(end_s, run_steps),
    ]


def compare(end_s, run_steps):
    """Two runs that were recorded side by side, a step a second: the peers know time alone."""
    points = min(500, run_steps)
    step = run_steps / points
    asked = ("query_range", {"query": f'avg_over_time(train_loss{{job=~"{RUNS}.*"}}[{step:g}s])',
                             "start": end_s - run_steps + step, "end": end_s, "step": step,
                             "nocache": 1})
    subjects = "".join(f' subjects {{ job: "{RUNS}{i:03}" }}' for i in range(2))
    return Query("compare", f"two runs of {run_steps:,} steps compared at {points} points",
                 ("compare", f'{subjects} metrics: "train_loss" alignment: ALIGNMENT_STEP packed: true '
                             f"max_points: {points} compared_values: COMPARED_VALUE_AVG "
                             "compared_values: COMPARED_VALUE_DIFFERENCE"), asked, asked, 0)


def fleet_jobs(hosts):
    return [f"fleet-{i:03}" for i in range((hosts + HOSTS_PER_JOB - 1) // HOSTS_PER_JOB)]


def http_path(point, parameters):
    return point if parameters is None else f"/api/v1/{point}?" + urllib.parse.urlencode(parameters)


def run_query(server, ours, theirs, **flags):
    """Asks the server for the list of requests that is its own; they count as one query."""
    if isinstance(server, servers.Collector):
        (kind,) = {kind for kind, _ in ours}
        flags[kind] = "\n".join(text for _, text in ours)
        flags["address"] = f"127.0.0.1:{server.grpc_port}"
    else:
        flags["http_path"] = "\n".join(http_path(*asked) for asked in theirs)
        flags["address"] = f"127.0.0.1:{server.http_port}"
    return servers.run_program(server.build / "tests/bench/tacho-bench-query", **flags)


def wait_until_idle(server, patience_s=60):
    """Until what it does in the background is done: less than 5 % of a core for a second."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        before = server.cpu_seconds()
        time.sleep(1)
        if server.cpu_seconds() - before < 0.05:
            return


@dataclasses.dataclass
class Store:
    """A job that is asked about, with a day of rows, among hosts of other jobs that are not."""
    hosts: int
    interval_s: int
    other_hosts: int = 0
    other_rows: int = 0  # Of each of them, the last of the day.
    other_interval_s: int = 1

    def series(self):
        return (self.hosts + self.other_hosts) * SERIES_PER_HOST

    def rows(self):
        return DAY_S // self.interval_s


def load_store(server, store, end_s, run_steps):
    """Returns how many samples the store has."""
    rows = store.rows()
    message = max(n for n in range(1, ROWS_A_MESSAGE + 1) if rows % n == 0)
    # All on one connection, so that hosts keep pace: Prometheus takes nothing an hour late.
    report = server.load(agents=1, hosts=store.hosts, rows=message, batches=rows // message,
                         interval_ms=1000 * store.interval_s, start_unix_s=end_s - DAY_S)
    samples = report["samples"]
    if store.other_hosts > 0:
        report = server.load(agents=min(200, store.other_hosts), hosts=store.other_hosts, rows=1,
                             batches=store.other_rows, interval_ms=1000 * store.other_interval_s,
                             start_unix_s=end_s - store.other_rows * store.other_interval_s,
                             job_prefix="other-")
        samples += report["samples"]
    wait_until_idle(server)
    # Two runs side by side that end with the day.
    report = server.load(agents=1, hosts=2, hosts_per_job=1, job_prefix=RUNS, rows=ROWS_A_MESSAGE,
                         batches=-(-run_steps // ROWS_A_MESSAGE), interval_ms=1000,
                         start_unix_s=end_s - run_steps)
    wait_until_idle(server)
    return samples, report["samples"]


def measure(server, figures, options, store, prefix="query", title=""):
    # A little in the past: the peers answer with some delay for the newest moments.
    end_s = int(time.time()) - 300
    server.start()
    samples, run_samples = load_store(server, store, end_s, options.run_steps)
    rest = f", {store.other_hosts:,} hosts of other jobs" if store.other_hosts > 0 else ""
    figures.note(f"Queries: {title}{store.hosts} hosts of one job, a row every {store.interval_s} s "
                 f"for a day{rest}, {samples / 1e6:.1f} million samples, and the two runs with "
                 f"{run_samples / 1e6:.1f} million.")
    for query in queries(store.hosts, store.interval_s, end_s, options.run_steps):
        server.stop()
        server.start()
        wait_until_idle(server, 20)
        measure_query(server, figures, query, options, prefix, title)
    disk = server.settle()[1]
    figures.add(f"{prefix}.disk", "B/sample", server.name, disk / (samples + run_samples),
                f"{title or 'queries: '}disk, settled", "<= 0.75 x VM")


def measure_in_other_stores(each, figures, options):
    """The same questions about a job in stores of other sizes; each(measurement) takes turns."""
    for store in (Store(*numbers) for numbers in options.stores):
        series = store.series()

        def measure_one(server, store=store, series=series):
            if server.name == "prometheus":
                return  # It takes no rows that are older than those of another job by hours.
            measure(server, figures, options, store, f"query.{series}_series",
                    f"{series:,} series: ")

        each(measure_one)


def measure_query(server, figures, query, options, prefix, title):
    theirs = query.prometheus if server.name == "prometheus" else query.victoriametrics
    resident = server.resident_bytes()
    server.forget_peak()
    cpu = server.cpu_seconds()
    report = run_query(server, [query.ours], [theirs], runs=options.query_runs,
                       min_seconds=options.query_seconds)
    cpu = server.cpu_seconds() - cpu

    def add(name, unit, value, what, bar=""):
        figures.add(f"{prefix}.{query.name}.{name}", unit, server.name, value, what, bar)

    bar = "" if query.samples is None else "<= 0.33 x VM"
    add("p50", "ms", report["p50_ms"], title + query.title, bar)
    if query.samples is not None:
        add("decoded", "ms", report["decoded_p50_ms"], "... until in columns")
        add("cold", "ms", report["first_ms"], "... cold", bar)
    add("cpu", "ms", 1e3 * cpu / (report["runs"] + 1), "... server's CPU")
    if query.samples is None:
        return
    add("bytes", "KB", report["bytes"] / 1e3, "... bytes of the answer")
    add("resident", "MB", resident / 1e6, "... resident before")
    add("peak", "MB", server.peak_resident_bytes() / 1e6, "... peak meanwhile")
    add("samples", "1", report["samples"], "... samples")
    off = abs(report["samples"] - query.samples) > 2 + 0.02 * query.samples
    if off if query.samples > 0 else report["samples"] == 0:
        problem = (f"{query.title}: {server.name} returned {report['samples']:,} samples, expected "
                   f"{query.samples or 'some'}.")
        if options.strict:
            raise RuntimeError(problem)
        figures.note(problem)
