#!/usr/bin/python3
"""What recording costs a real training: client/examples/train_torch.py with and without, in turns.

One network is trained; each step is recorded in one of the ways, which take turns in an order drawn
anew for each round, so that all meet the same machine, memory and model. Told is the median time of a
step of each way. No agent runs.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "client/python"), str(ROOT / "client/examples")]

import train_torch

import tacho


def measure(rounds, run):
    """{how: [µs, one a step]}."""
    kinds = list(train_torch.KINDS)
    training = train_torch.Training(rounds * len(kinds))
    ways = {how: train_torch.train(training, rounds, how, run) for how in kinds}
    taken = {how: [] for how in kinds}
    order = random.Random(1)
    for _ in range(rounds):
        order.shuffle(kinds)
        for how in kinds:
            begin = time.perf_counter_ns()
            next(ways[how])
            taken[how].append((time.perf_counter_ns() - begin) / 1000)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench",
                        help="a Release build with the target 'tacho_shared'")
    parser.add_argument("--json", type=pathlib.Path, help="also write one JSON object per figure")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    os.environ["TACHO_LIBRARY"] = str(options.build / "client/c/libtacho.so.1")
    with tempfile.TemporaryDirectory(prefix="tacho_bench_", dir="/dev/shm") as directory:
        run = tacho.init(job="bench", directory=directory, strict=True)
        taken = measure(500 if options.quick else 6000, run)
        run.finish()
    without = statistics.median(taken["none"])
    figures = []
    for how, values in taken.items():
        median = statistics.median(values)
        figures.append({"id": f"client.training.{how}", "unit": "us", "ours": median,
                        "peers": {"without": without}})  # fmt: skip
        more = median - without
        print(f"{how:6} {median:9.1f} us a step, {more:+7.2f} us ({more / without * 100:+.2f} %)")
    if options.json:
        options.json.write_text("".join(json.dumps(f) + "\n" for f in figures))


if __name__ == "__main__":
    main()
