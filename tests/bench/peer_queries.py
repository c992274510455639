"""Times of a fixed list of queries over a day of history.

Ours are asked through tacho.v1.Query, the peers through Prometheus' HTTP API, by one program on one
connection (tests/bench/query_load.cc). For every query the server is started anew: "cold" is the
first time it is asked, with the operating system's cache warm. VictoriaMetrics' cache of results is
left out, since a dashboard's range moves on.
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
METRIC = "chip_power_watts"
ROWS_A_MESSAGE = 48
NS = 1_000_000_000


@dataclasses.dataclass
class Query:
    name: str
    title: str
    ours: tuple  # ("range" or "latest", request in protobuf's text format)
    theirs: tuple  # (end point, PromQL, other parameters)
    samples: float  # How many should come back.


def queries(hosts, interval_s, end_s):
    series = f'job="{JOB}",task="{hosts // 2}",chip="3"'
    one = (f'selector {{ job: "{JOB}" metrics: "{METRIC}" matchers {{ label: "task" op: OP_EQUAL'
           f' value: "{hosts // 2}" }} matchers {{ label: "chip" op: OP_EQUAL value: "3" }} }}')
    every = f'selector {{ job: "{JOB}" metrics: "{METRIC}" }}'

    def ours(selector, span_s, rest=""):
        span = f"time {{ begin_unix_ns: {(end_s - span_s) * NS} end_unix_ns: {end_s * NS} }}"
        return ("range", f"{selector} {span} {rest}")

    def reduced(promql, span_s, points):
        step = span_s / points
        # A point stands for the step before it.
        return ("query_range", promql, {"start": end_s - span_s + step, "end": end_s, "step": step})

    step_ms = DAY_S * 1000 // 500
    rows = HOUR_S / interval_s
    all_series = hosts * CHIPS
    return [
        Query("series_hour", "one series, an hour, raw", ours(one, HOUR_S),
              ("query", f"{METRIC}{{{series}}}[1h]", {"time": end_s}), rows),
        Query("metric_hour", "one metric of all tasks, an hour, raw", ours(every, HOUR_S),
              ("query", f'{METRIC}{{job="{JOB}"}}[1h]', {"time": end_s}), rows * all_series),
        Query("metric_hour_avg", "... averaged over the tasks, 60 points",
              ours(every, HOUR_S,
                   "max_points: 60 aggregation { function: AGGREGATE_FUNCTION_AVG }"),
              reduced(f'avg(avg_over_time({METRIC}{{job="{JOB}"}}[1m]))', HOUR_S, 60),
              60 if interval_s <= 60 else rows),
        Query("latest", "last values of everything", ("latest", f'selector {{ job: "{JOB}" }}'),
              ("query", f'{{job="{JOB}"}}', {"time": end_s}), hosts * SERIES_PER_HOST),
        Query("series_day", "one series, a day reduced to 500 points",
              ours(one, DAY_S, "max_points: 500"),
              reduced(f"max_over_time({METRIC}{{{series}}}[{step_ms}ms])", DAY_S, 500),
              min(500, DAY_S / interval_s)),
        Query("metric_day", "one metric of all tasks, a day reduced to 500 points each",
              ours(every, DAY_S, "max_points: 500"),
              reduced(f'max_over_time({METRIC}{{job="{JOB}"}}[{step_ms}ms])', DAY_S, 500),
              min(500, DAY_S / interval_s) * all_series),
    ]


def fleet_jobs(hosts):
    return [f"fleet-{i:03}" for i in range((hosts + HOSTS_PER_JOB - 1) // HOSTS_PER_JOB)]


def run_query(server, ours, theirs, **flags):
    """Asks the server for the list of requests that is its own; they count as one query."""
    if isinstance(server, servers.Collector):
        (kind,) = {kind for kind, _ in ours}
        flags[kind] = "\n".join(text for _, text in ours)
        flags["address"] = f"127.0.0.1:{server.grpc_port}"
    else:
        flags["http_path"] = "\n".join(
            f"/api/v1/{point}?" + urllib.parse.urlencode({"query": promql, "nocache": 1, **rest})
            for point, promql, rest in theirs)
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


def measure(server, figures, options):
    hosts, interval_s = options.history_hosts, options.history_interval_s
    rows = DAY_S // interval_s
    # A little in the past: the peers answer with some delay for the newest moments.
    end_s = int(time.time()) - 300
    server.start()
    # All on one connection, so that hosts keep pace: Prometheus takes nothing an hour late.
    report = server.load(agents=1, hosts=hosts, rows=ROWS_A_MESSAGE, batches=rows // ROWS_A_MESSAGE,
                         interval_ms=1000 * interval_s, start_unix_s=end_s - DAY_S)
    figures.note(f"Queries: {hosts} hosts of one job, a row every {interval_s} s for a day, "
                 f"{report['samples'] / 1e6:.1f} million samples.")
    wait_until_idle(server)
    for query in queries(hosts, interval_s, end_s):
        server.stop()
        server.start()
        wait_until_idle(server, 20)
        measure_query(server, figures, query, options)
    disk = server.settle()[1]
    figures.add("query.disk", "B/sample", server.name, disk / report["samples"],
                "queries' day: disk, settled", "<= 0.75 x VM")


def measure_query(server, figures, query, options):
    cpu = server.cpu_seconds()
    report = run_query(server, [query.ours], [query.theirs], runs=options.query_runs,
                       min_seconds=options.query_seconds)
    cpu = server.cpu_seconds() - cpu

    def add(name, unit, value, title):
        figures.add(f"query.{query.name}.{name}", unit, server.name, value, title)

    add("p50", "ms", report["p50_ms"], query.title)
    add("cold", "ms", report["first_ms"], "... cold")
    add("cpu", "ms", 1e3 * cpu / (report["runs"] + 1), "... server's CPU")
    add("samples", "1", report["samples"], "... samples")
    if abs(report["samples"] - query.samples) > 2 + 0.02 * query.samples:
        problem = (f"{query.title}: {server.name} returned {report['samples']:,} samples, expected "
                   f"{query.samples:,.0f}.")
        if options.strict:
            raise RuntimeError(problem)
        figures.note(problem)
