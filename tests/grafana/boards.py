"""The committed dashboards, as the tests of them see them."""
import json
import os
import re

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAFANA = os.path.join(REPOSITORY, "deploy", "grafana")
DASHBOARDS = os.path.join(GRAFANA, "dashboards")


def load():
    """[dashboard], by file name."""
    found = []
    for name in sorted(os.listdir(DASHBOARDS)):
        with open(os.path.join(DASHBOARDS, name)) as file:
            found.append(json.load(file))
    return found


def panels(board):
    """Without headings; those inside collapsed headings too."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", [])
        else:
            yield panel


def queries(panel):
    return [target["expr"] for target in panel["targets"]]


def variables(board):
    return {variable["name"]: variable for variable in board["templating"]["list"]}


def marks(board):
    return board["annotations"].get("list", [])


def names_in(text):
    """The variables that a text uses, Grafana's own (those that begin with __) left out."""
    names = re.findall(r"\$(?:\{(\w+)[^}]*\}|(\w+))", text)
    # $1 is of label_replace().
    found = {braced or plain for braced, plain in names}
    return {name for name in found if not name.startswith("__") and not name.isdigit()}
