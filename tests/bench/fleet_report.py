"""What tests/bench/fleet found: a table for people, a document for programs, and what was wrong."""

import datetime
import os

SLOWEST_SECONDS = 5  # Told in the table's text.


def per(amount, divisor):
    return amount / divisor if amount is not None and divisor else None


def recovered(name, since, events):
    """How long after `since` that was reached for good; None if it never was, or none was lost."""
    lost = [e["t"] for e in events if e["event"] == "some_lost"]
    if since is None or not lost:
        return None
    reached = [e["t"] for e in events if e["event"] == name and e["t"] > lost[-1]]
    return max(0.0, reached[-1] - since) if reached else None


class Report:
    def __init__(self, options):
        self.options = options
        self.phases = []
        self.problems = []
        self.connections = {}
        self.whole = {}
        self.load_before = os.getloadavg()[0]

    def connected(self, seconds, before, after, mark):
        """While every agent is welcomed and nothing is sent."""
        growth = None
        if after.resident_bytes is not None:
            growth = after.resident_bytes - before.resident_bytes
        self.connections = {
            "agents": self.options.agents,
            "welcomed_after_s": seconds,
            "cpu_s": None if after.cpu_s is None else after.cpu_s - before.cpu_s,
            "resident_growth_bytes": growth,
            "kib_per_connection": per(growth, 1024 * self.options.agents),
            "ends": mark["ends"],
            "agents_cpu_s": mark["cpu_s"],
        }
        self.resident_before = before.resident_bytes
        most, memory = self.options.max_kib, self.connections["kib_per_connection"]
        if most is not None and memory is not None and memory > most:
            self.problems.append(f"a connection costs {memory:.1f} KiB; --max-kib is {most:g}")

    def disconnected(self, before, after):
        """After the load: what goes when every agent goes at once, with what was free before and not
        returned."""
        if before.resident_bytes is None:
            return
        freed = before.resident_bytes - after.resident_bytes
        self.connections["kib_freed_per_connection"] = freed / 1024 / self.options.agents

    def phase(self, name, began, could_recover, before, after, mark, events):
        seconds = mark["t"] - began
        rows = mark["rows_acknowledged"]
        samples = rows * self.options.series
        cpu_s = None if after.cpu_s is None else after.cpu_s - before.cpu_s
        growth = None
        if after.resident_bytes is not None:
            growth = after.resident_bytes - self.resident_before
        self.phases.append({
            "name": name,
            "seconds": seconds,
            "rows_per_second": rows / seconds,
            "samples_per_second": samples / seconds,
            "collector_cpu_s": cpu_s,
            "collector_cores": per(cpu_s, seconds),
            "cpu_s_per_million_samples": per(cpu_s, samples / 1e6),
            "resident_growth_bytes": growth,
            "kib_per_connection": per(growth, 1024 * self.options.agents),
            "all_welcomed_after_s": recovered("all_welcomed", could_recover, events),
            "up_to_date_after_s": recovered("up_to_date", could_recover, events),
            "by_second": [{key: value for key, value in e.items() if key not in ("event", "cpu_s")}
                          for e in events if e["event"] == "second"],
            **{key: value for key, value in mark.items() if key not in ("event", "t", "name")},
        })

    def drained(self, complete):
        if not complete:
            self.problems.append("not everything was acknowledged three minutes after the load")

    def verified(self, event):
        if event is None:
            self.problems.append("not every agent came back to be asked what is durable")
            return
        self.whole["agents_right"] = event["right"]
        if event["wrong"]:
            self.problems.append(f"{event['wrong']} agents were answered wrongly: "
                                 f"{event['first_wrong']}")

    def stored(self, found):
        """What fleet_stored.look_up() found."""
        self.whole["stored"] = found
        for agent in found["wrong"]:
            self.problems.append(f"agent {agent['agent']} sent {agent['sent']} rows and the store "
                                 f"has {agent['stored']}")

    def end(self, target):
        self.whole["collector_peak_bytes"] = target.peak()
        self.whole["disk_bytes"] = target.disk()
        rejected = sum(phase["samples_rejected"] for phase in self.phases)
        if rejected:
            self.problems.append(f"{rejected} samples were refused; the collector's limits are "
                                 "below this load")
        worst = max((phase["lateness_ms"] for phase in self.phases), default=0)
        if worst > 1000:
            self.problems.append(f"the load program itself was stopped for {worst / 1000:.1f} s: "
                                 "give it a core (--agents-cpus) before believing any latency")

    def document(self):
        options = self.options
        return {
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "load": {name: getattr(options, name) for name in (
                "agents", "rate", "rows", "series", "layouts", "idle", "script", "window",
                "backlog_rate", "connect_rate", "seed")},
            "load_average_before": self.load_before,
            "load_average_after": os.getloadavg()[0],
            "connections": self.connections,
            "phases": self.phases,
            **self.whole,
            "problems": self.problems,
        }

    def table(self):
        rows = [("phase", "s", "rows/s", "cores", "CPU s / M samples", "KiB / agent", "ack p50 ms",
                 "p99", "max", "late rows", "resent", "all back s", "up to date s", "load's cores")]
        for phase in self.phases:
            rows.append((
                phase["name"], text(phase["seconds"]), text(phase["rows_per_second"]),
                text(phase["collector_cores"]), text(phase["cpu_s_per_million_samples"]),
                text(phase["kib_per_connection"]), text(phase["ack_p50_ms"]),
                text(phase["ack_p99_ms"]), text(phase["ack_max_ms"]), text(phase["rows_late"]),
                text(phase["rows_resent"]), text(phase["all_welcomed_after_s"]),
                text(phase["up_to_date_after_s"]), text(self.load_cores(phase))))
        return "\n".join([self.head(), "", *aligned(rows), "", *self.slowest_seconds(), self.foot()])

    def slowest_seconds(self):
        """A line: the seconds with the highest p99, and whether the load program was late in them."""
        seconds = [second for phase in self.phases for second in phase["by_second"]]
        seconds.sort(key=lambda second: -second["ack_p99_ms"])
        told = [f"{second['second']} (p99 {second['ack_p99_ms']:.0f} ms, load late "
                f"{second['lateness_ms']:.0f} ms)" for second in seconds[:SLOWEST_SECONDS]]
        return [f"Slowest seconds since the first row: {', '.join(told)}.", ""] if told else []

    def load_cores(self, phase):
        index = self.phases.index(phase)
        earlier = self.phases[index - 1]["cpu_s"] if index else self.connections.get("agents_cpu_s")
        return None if earlier is None else (phase["cpu_s"] - earlier) / phase["seconds"]

    def head(self):
        options, connections = self.options, self.connections
        what = "idle" if options.idle else (
            f"{options.rate} rows/s of {options.series} values x {options.layouts}, "
            f"{options.rows} a message")
        memory = connections["kib_per_connection"]
        cost = "" if memory is None else f", {memory:.1f} KiB resident each before the first row"
        return (f"{options.agents} agents, {what}. All welcomed "
                f"{connections['welcomed_after_s']:.2f} s after the first connection{cost}.")

    def foot(self):
        parts = []
        if "agents_right" in self.whole:
            parts.append(f"{self.whole['agents_right']} of {self.options.agents} agents: durable = "
                         "sent")
        if self.whole.get("stored", {}).get("right"):
            parts.append(f"{self.whole['stored']['right']} looked up: rows stored = rows sent")
        freed = self.connections.get("kib_freed_per_connection")
        if freed is not None:
            parts.append(f"at most {freed:.1f} KiB freed by each connection that closed")
        for key, title in (("collector_peak_bytes", "peak"), ("disk_bytes", "disk")):
            if self.whole.get(key) is not None:
                parts.append(f"{title} {self.whole[key] / 2**20:.0f} MiB")
        parts.append(f"load average {self.load_before:.1f} to {os.getloadavg()[0]:.1f}")
        return ", ".join(parts)


def text(value):
    if value is None:
        return "-"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def aligned(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for index, row in enumerate(rows):
        cells = [cell.ljust(width) if column == 0 else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        yield "| " + " | ".join(cells) + " |"
        if index == 0:
            yield "|" + "|".join("-" * (width + 1) + ("-" if column == 0 else ":")
                                 for column, width in enumerate(widths)) + "|"
