"""What taking samples in costs: CPU, time, acknowledgements, memory, disk.

200 agents on as many connections send 88 series each, as fast as they are acknowledged: one row a
message, then ten. The peers get the same rows by remote write, one POST a message.
"""

from servers import SERIES_PER_HOST

BARS = {1: "<= 0.30, <= 0.20 x VM", 10: "<= 0.075, <= 0.125 x VM"}
DISK_BAR = "<= 0.75 x VM"


def measure(server, figures, options, rows):
    """One load on a fresh server, until it has settled on disk."""
    server.start()
    idle_cpu, idle_bytes = server.cpu_seconds(), server.resident_bytes()
    report = server.load(agents=options.agents, rows=rows, batches=options.rows // rows)
    load_cpu = server.cpu_seconds() - idle_cpu
    loaded_bytes, peak_bytes = server.resident_bytes(), server.peak_resident_bytes()
    settled_cpu, disk = server.settle()
    millions = report["samples"] / 1e6
    series = options.agents * SERIES_PER_HOST

    def add(name, unit, value, title, bar=""):
        shape = "1 row a message" if rows == 1 else f"{rows} rows a message"
        figures.add(f"ingest.{rows}_row.{name}", unit, server.name, value, f"{shape}: {title}", bar)

    add("cpu_load", "s/Msample", load_cpu / millions, "CPU until acknowledged", BARS.get(rows, ""))
    add("cpu_all", "s/Msample", (settled_cpu - idle_cpu) / millions, "CPU until settled",
        BARS.get(rows, ""))
    add("wall", "s", report["seconds"], "wall")
    add("samples_per_second", "1/s", report["samples"] / report["seconds"], "samples a second")
    add("ack_p50", "ms", report["ack_p50_ms"], "acknowledged after, p50")
    add("ack_p99", "ms", report["ack_p99_ms"], "acknowledged after, p99")
    add("client_cpu", "s/Msample", report["client_cpu_seconds"] / millions, "load program's CPU")
    add("resident", "B/series", loaded_bytes / series, "resident at the end")
    add("resident_growth", "B/series", (loaded_bytes - idle_bytes) / series, "... growth")
    add("resident_peak", "B/series", peak_bytes / series, "... peak")
    add("disk", "B/sample", disk / report["samples"], "disk, settled", DISK_BAR)
