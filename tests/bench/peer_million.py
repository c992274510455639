"""A million active series: 11,364 hosts of 88 series on 200 connections, one row a message.

Memory is read when the last row is acknowledged, nothing settled, and again after a pause, in which
servers give back what a load far above a fleet's pace has taken. Then the server is killed and
started again: from exec until it says that it is ready. Some have everything back in memory then,
others load it when it is asked for: so it is asked for.
"""

import time

import servers
from peer_queries import fleet_jobs, run_query
from servers import SERIES_PER_HOST

PAUSE_SECONDS = 15


def measure(server, figures, options):
    series = options.million_hosts * SERIES_PER_HOST
    start_s = int(time.time()) - 7200
    server.start()
    rows = samples = 0

    def add(name, unit, value, title, bar=""):
        figures.add(f"million.{name}", unit, server.name, value, f"{series:,} series: {title}", bar)

    for more, max_seconds in options.million_rows:
        cpu = server.cpu_seconds()
        report = load(server, options, start_s, rows, more, max_seconds)
        cpu = server.cpu_seconds() - cpu
        samples += report["samples"]
        wanted = options.million_hosts * more * SERIES_PER_HOST
        if report["samples"] < wanted:
            figures.note(f"{series:,} series: {server.name} was stopped after "
                         f"{report['seconds']:.0f} s with {report['samples'] / wanted:.0%} of rows "
                         f"{rows + 1} to {rows + more} taken in.")
        if report["retries"] > 0:
            figures.note(f"{series:,} series: {server.name} ended {report['retries']} streams for "
                         f"overload in rows {rows + 1} to {rows + more}; they were resumed.")
        what = f"rows {rows + 1} to {rows + more}"
        rows += more
        add(f"{rows}_rows.cpu_load", "s/Msample", cpu / report["samples"] * 1e6, f"{what}, CPU")
        add(f"{rows}_rows.wall", "s", report["seconds"], f"{what}, wall")
        add(f"{rows}_rows.resident", "B/series", server.resident_bytes() / series,
            f"{what}, resident")
        add(f"{rows}_rows.resident_peak", "B/series", server.peak_resident_bytes() / series,
            f"{what}, peak so far")
        time.sleep(PAUSE_SECONDS)
        add(f"{rows}_rows.resident_paused", "B/series", server.resident_bytes() / series,
            f"{what}, resident {PAUSE_SECONDS} s later", "<= 300")
    server.kill()
    server.start()
    add("restart", "s", server.ready_seconds, "kill -9 to ready", "<= 5")
    add("restart_resident", "B/series", server.resident_bytes() / series, "... resident then")
    add("restart_peak", "B/series", server.peak_resident_bytes() / series, "... peak until then")
    measure_latest(server, add, options, start_s + rows)
    add("asked_resident", "B/series", server.resident_bytes() / series, "... resident after that")
    add("disk", "B/sample", server.settle()[1] / samples, "disk, settled")


def load(server, options, start_s, skip, rows, max_seconds):
    flags = {"agents": min(200, options.million_hosts), "hosts": options.million_hosts, "rows": 1,
             "batches": rows, "start_unix_s": start_s, "skip_rows": skip}
    if not isinstance(server, servers.Collector):
        flags["max_seconds"] = max_seconds
    return server.load(**flags)


def measure_latest(server, add, options, end_s):
    """The last values of all series, asked for job by job."""
    ours, theirs = [], []
    for job in fleet_jobs(options.million_hosts):
        ours.append(("latest", f'selector {{ job: "{job}" }}'))
        theirs.append(("query", {"query": f'{{job="{job}"}}', "time": end_s, "nocache": 1}))
    report = run_query(server, ours, theirs, runs=1, max_seconds=60)
    add("latest_cold", "ms", report["first_ms"], "last values of everything, first time")
    add("latest", "ms", report["p50_ms"], "... second time")
    add("latest_samples", "1", report["samples"], "... values")
