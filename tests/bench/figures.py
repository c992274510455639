"""Figures of several repetitions: medians, a table, and lines of JSON."""

import json
import statistics


class Figures:
    """Values by figure and server. A figure has a unit, and whether less of it is better."""

    def __init__(self):
        self.units = {}  # id -> (unit, design §10's bar or "")
        self.values = {}  # (id, server) -> one value a repetition

    def add(self, figure, unit, server, value, bar=""):
        self.units.setdefault(figure, (unit, bar))
        self.values.setdefault((figure, server), []).append(value)

    def median(self, figure, server):
        values = self.values.get((figure, server))
        return statistics.median(values) if values else None

    def spread(self, figure, server):
        """Largest distance from the median, as a share of it."""
        values = self.values[(figure, server)]
        middle = statistics.median(values)
        return max(abs(v - middle) for v in values) / middle if middle else 0

    def rows(self, peer):
        for figure, (unit, bar) in self.units.items():
            ours, theirs = self.median(figure, "tacho-collector"), self.median(figure, peer)
            yield figure, unit, ours, theirs, bar

    def print_table(self, peer):
        print(f"{'figure':44} {'unit':10} {'ours':>12} {peer:>16} {'ours/peer':>10}  bar")
        for figure, unit, ours, theirs, bar in self.rows(peer):
            ratio = f"{ours / theirs:.3f}" if ours is not None and theirs else ""
            print(f"{figure:44} {unit:10} {number(ours):>12} {number(theirs):>16} {ratio:>10}  {bar}")

    def write_json(self, path, peer):
        with open(path, "w", encoding="utf-8") as file:
            for figure, unit, ours, theirs, _ in self.rows(peer):
                peers = {} if theirs is None else {peer: theirs}
                line = {"id": figure, "unit": unit, "ours": ours, "peers": peers}
                file.write(json.dumps(line) + "\n")


def number(value):
    return "" if value is None else f"{value:.4g}" if abs(value) < 1e5 else f"{value:,.0f}"
