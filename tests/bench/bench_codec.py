#!/usr/bin/python3
"""The column codec on the synthetic fleet and on real data, beside VictoriaMetrics.

Bytes are those of the values alone: the peer gets the same columns with times exactly 15 s apart,
which it stores in next to nothing. The peer's values are not always bit-exact; ours are, or the
benchmark fails.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

import real_columns
import servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
INTERVAL_MS = 15_000


def run_codec(options, corpora, directory):
    """codec_bench's figures, as objects."""
    out = pathlib.Path(directory) / "codec.json"
    command = [options.build / "tests/bench/codec_bench", "--json", out]
    if options.quick:
        command.append("--benchmark_min_time=0.1")
    for name, columns in corpora.items():
        path = pathlib.Path(directory) / f"{name}.columns"
        real_columns.write_columns(columns, path)
        command += ["--columns", f"{name}={path}"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return [json.loads(line) for line in out.read_text().splitlines()]


def import_columns(peer, columns):
    begin_ms = int(time.time() * 1000) - 90 * 86_400_000
    lines = []
    for index, column in enumerate(columns):
        # The peer cannot take NaN in this form: such values are missing there.
        rows = [(begin_ms + i * INTERVAL_MS, v) for i, v in enumerate(column) if math.isfinite(v)]
        if rows:
            lines.append(json.dumps({"metric": {"__name__": "m", "column": str(index)},
                                     "timestamps": [t for t, _ in rows],
                                     "values": [v for _, v in rows]}))
    request = urllib.request.Request(f"http://127.0.0.1:{peer.http_port}/api/v1/import",
                                     data="\n".join(lines).encode(), method="POST")
    urllib.request.urlopen(request).close()


def peer_size(binary, build, columns, directory):
    peer = servers.VictoriaMetrics(directory, build, binary)
    try:
        peer.start()
        import_columns(peer, columns)
        size, samples = peer.stored()
        return size / samples
    finally:
        peer.kill()


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench",
                        help="a Release build with the target 'benchmarks'")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "../shared/data",
                        help="where real data lies; without it only the synthetic fleet is measured")
    parser.add_argument("--json", type=pathlib.Path, help="also write one JSON object per figure")
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


def main():
    options = parse_options()
    corpora = real_columns.read_corpora(options.data)
    if not corpora:
        print(f"bench_codec: no real data under {options.data}", file=sys.stderr)
    binary = servers.find_victoriametrics(ROOT)
    with tempfile.TemporaryDirectory(prefix="tacho_bench_") as directory:
        figures = run_codec(options, corpora, directory)
        for figure in figures:
            corpus, _, kind = figure["id"].removeprefix("codec.").rpartition(".")
            if binary and kind == "size" and corpus in corpora:
                size = peer_size(binary, options.build, corpora[corpus],
                                 pathlib.Path(directory) / f"peer_{corpus}")
                figure["peers"] = {"victoriametrics": size}
    for figure in figures:
        theirs = figure["peers"].get("victoriametrics")
        ratio = f"{theirs:10.4g} {figure['ours'] / theirs:8.3f}" if theirs else ""
        print(f"{figure['id']:30} {figure['unit']:10} {figure['ours']:10.4g} {ratio}")
    if options.json:
        options.json.write_text("".join(json.dumps(f) + "\n" for f in figures))


if __name__ == "__main__":
    main()
