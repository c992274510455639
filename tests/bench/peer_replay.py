"""Real data on disk: what TensorBoard logs, CI runs and hosts recorded, value by value.

The values are those of tests/bench/real_columns.py. Most of their files keep no times, so rows get
times 15 s apart, the same for every server. Columns of equal length that follow each other come
from one table or log and are sampled together.
"""

import math
import pathlib
import time

import real_columns
import servers

INTERVAL_S = 15


def measure_all(makers, figures, options, directory):
    corpora = real_columns.read_corpora(options.data)
    if not corpora:
        figures.note(f"No real data was there ({options.data}).")
    files = {}
    for name, columns in corpora.items():
        if options.corpora and name not in options.corpora:
            continue
        files[name] = (columns, pathlib.Path(directory) / f"{name}.columns")
        real_columns.write_columns(*files[name])
    empty = {}
    servers.take_turns(makers, lambda s: empty.update({s.name: empty_bytes(s)}), figures.note)
    sums = {}
    for name, (columns, file) in files.items():
        servers.take_turns(makers, lambda s, n=name, c=columns, f=file: measure(
            s, figures, n, c, f, empty[s.name], sums), figures.note)
    for server, (size, values) in sums.items():  # Of a peer that failed at one, of the others.
        figures.add("replay.all.disk", "B/value", server, size / values,
                    "real data, all of them: disk, settled")
    figures.note("Real data: bytes beyond those of an empty store and of settings, a finite value."
                 " Ours and Prometheus keep the NaN among them, which VictoriaMetrics drops.")


def empty_bytes(server):
    server.start()
    return data_bytes(server)


def data_bytes(server):
    return server.settle()[1] - server.settings_bytes()


def measure(server, figures, name, columns, file, empty, sums):
    start_s = int(time.time()) - INTERVAL_S * (max(map(len, columns)) + 40)
    server.start()
    flags = {"hosts": 1, "agents": 1, "columns": file, "job": name, "start_unix_s": start_s}
    report = server.load(**flags)
    values = sum(math.isfinite(value) for column in columns for value in column)
    assert report["samples"] == sum(map(len, columns)), "not everything was sent"
    size = data_bytes(server) - empty
    figures.add(f"replay.{name}.disk", "B/value", server.name, size / values,
                f"real data, {name} ({len(columns)} series, {values:,} values): disk, settled")
    before = sums.get(server.name, (0, 0))
    sums[server.name] = (before[0] + size, before[1] + values)
