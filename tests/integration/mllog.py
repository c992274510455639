"""Reads the ":::MLLOG {json}" lines that MLPerf submitters log."""
import collections
import json

Line = collections.namedtuple("Line", "key time_ms value")
_MARK = ":::MLLOG "


def lines(path):
    with open(path) as file:
        for text in file:
            at = text.find(_MARK)
            if at >= 0:
                entry = json.loads(text[at + len(_MARK) :])
                yield Line(entry["key"], entry["time_ms"], entry["value"])
