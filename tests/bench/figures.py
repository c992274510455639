"""Figures of several repetitions: medians, a table in Markdown, and lines of JSON."""

import json
import statistics

OURS = "tacho-collector"
TITLES = {"victoriametrics": "VictoriaMetrics", "prometheus": "Prometheus"}
SHORT = {"victoriametrics": "VM", "prometheus": "Prom."}


class Figures:
    """Values by figure and server."""

    def __init__(self):
        self.about = {}  # id -> (title, unit, the bar or "")
        self.values = {}  # (id, server) -> one value a repetition
        self.notes = []

    def add(self, figure, unit, server, value, title="", bar=""):
        self.about.setdefault(figure, (title or figure, unit, bar))
        self.values.setdefault((figure, server), []).append(value)

    def note(self, text):
        """A sentence below the table."""
        if text not in self.notes:
            self.notes.append(text)

    def median(self, figure, server):
        values = self.values.get((figure, server))
        return statistics.median(values) if values else None

    def peers(self):
        """In the order in which they were first measured."""
        return list(dict.fromkeys(server for _, server in self.values if server != OURS))

    def rows(self):
        for figure, (title, unit, bar) in self.about.items():
            peers = {peer: self.median(figure, peer) for peer in self.peers()}
            yield figure, title, unit, self.median(figure, OURS), peers, bar

    def markdown(self):
        peers = self.peers()
        titles = ["", "unit", "ours", *(TITLES[p] for p in peers),
                  *(f"ours / {SHORT[p]}" for p in peers), "bar"]
        lines = ["| " + " | ".join(titles) + " |",
                 "|---|---" + "|--:" * (1 + 2 * len(peers)) + "|---|"]
        for _, title, unit, ours, theirs, bar in self.rows():
            ratios = (f"{ours / theirs[p]:.2f}" if ours is not None and theirs[p] else ""
                      for p in peers)
            cells = [title, unit, number(ours), *(number(theirs[p]) for p in peers), *ratios, bar]
            lines.append("| " + " | ".join(cells) + " |")
        lines += [""] + [f"- {note}" for note in self.notes]
        return "\n".join(lines)

    def write_json(self, path, header=None):
        """One object a line for each figure; `header`, if any, before them."""
        with open(path, "w", encoding="utf-8") as file:
            if header is not None:
                file.write(json.dumps(header) + "\n")
            for figure, _, unit, ours, theirs, bar in self.rows():
                peers = {peer: value for peer, value in theirs.items() if value is not None}
                line = {"id": figure, "unit": unit, "ours": ours, "peers": peers}
                file.write(json.dumps({**line, "bar": bar} if bar else line) + "\n")


def number(value):
    if value is None:
        return ""
    return f"{value:.3g}" if 0 < abs(value) < 1000 else f"{value:,.0f}"
