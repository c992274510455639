#!/usr/bin/python3
"""Checks that docs/notation.md lists every metric of an agent, with its type and its unit, and no other.

The table is agent/sources/rows/agent_metrics.h. The page leaves out units that count things.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
METRIC = re.compile(r'= \{\s*"(tacho_agent_\w+)",\s*k(Gauge|Counter)Type,\s*"([^"]+)"')
UNITS = {"s", "By"}


def table():
    text = (ROOT / "agent/sources/rows/agent_metrics.h").read_text(encoding="utf-8")
    assert text.count('"tacho_agent_') == len(METRIC.findall(text))
    return {name: (kind.lower(), unit if unit in UNITS else "") for name, kind, unit in METRIC.findall(text)}


def page():
    text = (ROOT / "docs/notation.md").read_text(encoding="utf-8")
    section = text.split("## Metrics of an agent", 1)[1].split("\n## ", 1)[0]
    rows = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 4 or "tacho_agent_" not in cells[1]:
            continue
        kind, _, unit = cells[2].partition(", ")
        for name in re.findall(r"`(tacho_agent_\w+)`", cells[1]):
            rows[name] = (kind, unit)
    return rows


class AgentMetrics(unittest.TestCase):
    def test_page_lists_the_table(self):
        self.assertGreater(len(table()), 20)
        # Two in one cell have one unit.
        rows = page()
        for name, what in table().items():
            with self.subTest(metric=name):
                self.assertIn(name, rows)
                self.assertEqual(rows[name], what)

    def test_page_lists_nothing_else(self):
        self.assertEqual(set(page()) - set(table()), set())

    def test_every_row_is_in_all(self):
        text = (ROOT / "agent/sources/rows/agent_metrics.h").read_text(encoding="utf-8")
        constants = set(re.findall(r"constexpr Metric (k\w+)", text))
        listed = set(re.findall(r"&(k\w+)", text))
        self.assertEqual(constants, listed)


if __name__ == "__main__":
    unittest.main()
