#!/usr/bin/python3
"""What must hold of every dashboard, read from the committed JSON: complete, readable, linked."""
import os
import re
import sys
import unittest
import urllib.parse

import boards

COLUMNS = 24
SCREEN_PX = 1366
# What Grafana leaves of it, at 24 columns with 8 px between panels; the menu is folded.
COLUMN_PX = (SCREEN_PX - 2 * 16) / COLUMNS
# Least columns and rows (of 38 px) by kind: narrower or lower ones cannot be read.
LEAST = {
    "stat": (6, 4),
    "timeseries": (8, 7),
    "table": (12, 4),
    "state-timeline": (12, 7),
    "status-history": (12, 8),
}
TITLE_PX = 8  # A character of a panel's title.
DEFAULT_NAMES = os.path.join(boards.REPOSITORY, "server/conditions/window/signal_default_names.cc")


def rectangles_overlap(a, b):
    apart = (
        a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
    )  # fmt: skip
    return not apart


def links_of(board):
    """Addresses of everything that can be clicked."""
    for link in board.get("links", []):
        yield link["url"]
    for panel in boards.panels(board):
        defaults = panel["fieldConfig"]["defaults"]
        yield from (link["url"] for link in defaults.get("links", []))
        for override in panel["fieldConfig"]["overrides"]:
            for item in override["properties"]:
                if item["id"] == "links":
                    yield from (link["url"] for link in item["value"])


class RulesTest(unittest.TestCase):
    def setUp(self):
        self.boards = boards.load()

    def of_each_panel(self, check):
        for board in self.boards:
            for panel in boards.panels(board):
                with self.subTest(board=board["uid"], panel=panel["title"]):
                    check(panel)

    def test_there_are_the_five_dashboards(self):
        uids = [board["uid"] for board in self.boards]
        self.assertEqual(uids, ["tacho-cluster", "tacho-collector", "tacho-fleet", "tacho-host", "tacho-job"])
        for board in self.boards:
            self.assertTrue(board["title"] and board["description"] and board["refresh"])

    def test_numbers_and_titles_of_panels_are_unique(self):
        for board in self.boards:
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(ids), len(set(ids)), board["uid"])
            titles = [panel["title"] for panel in boards.panels(board)]
            self.assertEqual(len(titles), len(set(titles)), board["uid"])

    def test_every_panel_says_what_it_shows_and_in_which_unit(self):
        def check(panel):
            self.assertTrue(panel["title"])
            self.assertGreaterEqual(len(panel["description"].split()), 3)
            self.assertTrue(panel["description"].endswith("."), panel["description"])
            defaults = panel["fieldConfig"]["defaults"]
            self.assertTrue(defaults["unit"])
            steps = defaults["thresholds"]["steps"]
            self.assertIsNone(steps[0]["value"], "the first threshold has no lower end")
            values = [step["value"] for step in steps[1:]]
            self.assertEqual(values, sorted(set(values)))

        self.of_each_panel(check)

    def test_every_panel_asks_the_chosen_data_source(self):
        def check(panel):
            self.assertTrue(panel["targets"])
            ids = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(ids), len(set(ids)))
            for asked in [panel] + panel["targets"]:
                wanted = {"type": "prometheus", "uid": "${datasource}"}
                self.assertEqual(asked["datasource"], wanted)
            for target in panel["targets"]:
                self.assertNotIn("  ", target["expr"])

        self.of_each_panel(check)

    def test_panels_are_readable_at_a_laptops_width(self):
        def check(panel):
            position = panel["gridPos"]
            width, height = LEAST[panel["type"]]
            self.assertGreaterEqual(position["w"], width)
            self.assertGreaterEqual(position["h"], height)
            self.assertLessEqual(len(panel["title"]) * TITLE_PX, position["w"] * COLUMN_PX - 32)
            fixed = [
                item["value"]
                for override in panel["fieldConfig"]["overrides"]
                for item in override["properties"] if item["id"] == "custom.width"
            ]  # fmt: skip
            self.assertLessEqual(sum(fixed), position["w"] * COLUMN_PX)

        self.of_each_panel(check)

    def test_panels_fill_the_width_and_none_overlaps(self):
        for board in self.boards:
            positions = [panel["gridPos"] for panel in board["panels"]]
            for index, one in enumerate(positions):
                self.assertLessEqual(one["x"] + one["w"], COLUMNS)
                for other in positions[:index]:
                    self.assertFalse(rectangles_overlap(one, other), (board["uid"], one, other))
            area = sum(position["w"] * position["h"] for position in positions)
            bottom = max(position["y"] + position["h"] for position in positions)
            self.assertEqual(area, COLUMNS * bottom, f"{board['uid']} has holes")

    def test_variables_that_are_used_exist(self):
        for board in self.boards:
            known = set(boards.variables(board))
            for panel in boards.panels(board):
                for query in boards.queries(panel):
                    self.assertLessEqual(boards.names_in(query), known, query)
            for mark in boards.marks(board):
                self.assertLessEqual(boards.names_in(mark["expr"]), known)
            for variable in boards.variables(board).values():
                used = boards.names_in(variable.get("definition", ""))
                self.assertLessEqual(used, known - {variable["name"]})

    def test_job_has_the_variables_job_attempt_and_task_and_uses_them(self):
        job = next(board for board in self.boards if board["uid"] == "tacho-job")
        used = set()
        for panel in boards.panels(job):
            used |= {name for query in boards.queries(panel) for name in boards.names_in(query)}
        self.assertLessEqual({"job", "attempt", "task", "host"}, used)

    def test_links_lead_to_dashboards_and_variables_that_exist(self):
        known = {board["uid"]: set(boards.variables(board)) for board in self.boards}
        for board in self.boards:
            reached = set()
            for url in links_of(board):
                if url.startswith("${page:raw}"):
                    continue
                address = urllib.parse.urlsplit(url)
                self.assertTrue(address.path.startswith("/d/"), url)
                uid = address.path.removeprefix("/d/")
                reached.add(uid)
                for name in re.findall(r"(?:^|&)var-(\w+)=", address.query):
                    self.assertIn(name, known[uid], url)
            self.assertEqual(reached, set(known) - {board["uid"]} | (reached & {board["uid"]}))
            for link in board["links"]:
                if link["title"] == "Page":
                    continue
                self.assertTrue(link["includeVars"] and link["keepTime"], link["title"])

    def test_links_lead_to_screens_of_the_page(self):
        pages = os.path.join(boards.REPOSITORY, "client/web/src/app/shell.tsx")
        with open(pages) as file:
            shell = file.read()
        for board in self.boards:
            self.assertIn("page", boards.variables(board))
            urls = [url for url in links_of(board) if url.startswith("${page:raw}")]
            self.assertGreaterEqual(len(urls), 1, board["uid"])
            for url in urls:
                screen = re.fullmatch(r"\$\{page:raw\}#/(\w*)(?:/\$\{\w.*)?", url)[1]
                self.assertRegex(shell, rf"\b{screen or 'fleet'}\b", url)
            (link,) = [link for link in board["links"] if link["title"] == "Page"]
            self.assertTrue(link["targetBlank"] and not link["includeVars"], link)

    def test_tables_name_each_column_after_what_a_query_returns(self):
        def check(panel):
            if panel["type"] != "table":
                return
            merge, organize = panel["transformations"]
            self.assertEqual((merge["id"], organize["id"]), ("merge", "organize"))
            options = organize["options"]
            columns = list(options["renameByName"]) + list(options["excludeByName"])
            for column in columns:
                told = column in ("Time", "Value") or any(
                    re.search(rf"\b{re.escape(column)}\b", query)
                    for query in boards.queries(panel)
                )
                refs = [f"Value #{target['refId']}" for target in panel["targets"]]
                self.assertTrue(told or column in refs, column)
            titles = set(options["renameByName"].values())
            for override in panel["fieldConfig"]["overrides"]:
                self.assertIn(override["matcher"]["options"], titles)

        self.of_each_panel(check)

    def test_names_of_signals_are_among_those_of_the_conditions(self):
        with open(os.path.join(boards.GRAFANA, "src/signals.ts")) as file:
            table = re.search(r"kSignals = \{(.*?)\} as const", file.read(), re.S)[1]
        with open(DEFAULT_NAMES) as file:
            rows = re.findall(r'\{Signal::k(\w+), [^,]+,((?:\s*"[^"]*")+)\}', file.read())
        known = {(signal, name) for signal, row in rows for name in re.findall(r"[\w*]+", row)}
        signals = re.findall(r"(\w+): \[(.*?)\]", table, re.S)
        self.assertGreaterEqual(len(signals), 6)
        for signal, names in signals:
            for name in re.findall(r"'(\w+)'", names):
                self.assertIn((signal[0].upper() + signal[1:], name), known)


class ProvisioningTest(unittest.TestCase):
    def read(self, path):
        import yaml

        with open(os.path.join(boards.GRAFANA, "provisioning", path)) as file:
            return yaml.safe_load(file)

    def test_data_source_is_a_prometheus_with_the_interval_of_the_scrapes(self):
        provisioned = self.read("datasources/tachograph.yaml")
        (source,) = provisioned["datasources"]
        self.assertEqual((provisioned["apiVersion"], source["type"]), (1, "prometheus"))
        with open(os.path.join(boards.REPOSITORY, "deploy/prometheus/prometheus.yml")) as file:
            interval = re.search(r"scrape_interval: (\w+)", file.read())[1]
        self.assertEqual(source["jsonData"]["timeInterval"], interval)

    def test_dashboards_are_read_from_the_folder_that_the_documentation_names(self):
        provisioned = self.read("dashboards/tachograph.yaml")
        (provider,) = provisioned["providers"]
        self.assertEqual((provisioned["apiVersion"], provider["type"]), (1, "file"))
        self.assertEqual(provider["folder"], "Tachograph")
        with open(os.path.join(boards.REPOSITORY, "docs/grafana.md")) as file:
            self.assertIn(f"mkdir -p {provider['options']['path']}\n", file.read())


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
