#!/usr/bin/python3
"""What recording costs a trainer in Python, beside prometheus_client and, if it is there, TensorBoard.

Each case records ten values a step. Cases take turns, and the report has the median of the turns of each;
time goes by the process' CPU. prometheus_client keeps its values in memory; ours are in a file that
survives the process; TensorBoard's SummaryWriter hands them to a thread that writes files.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = [f"metric_{i}" for i in range(10)]


def our_cases(build, directory):
    """{name: function of a step}."""
    sys.path.insert(0, str(ROOT / "client/python"))
    import os

    os.environ["TACHO_LIBRARY"] = str(build / "client/c/libtacho.so.1")
    import tacho

    run = tacho.init(job="bench", directory=directory, strict=True)

    def log(step):
        value = step * 0.5
        run.log({"metric_0": value, "metric_1": value, "metric_2": value, "metric_3": value,
                 "metric_4": value, "metric_5": value, "metric_6": value, "metric_7": value,
                 "metric_8": value, "metric_9": value}, step=step)  # fmt: skip

    def in_a_step(step):
        with run.step(step) as scope:
            scope.phase("data")
            scope.phase("compute")
            value = step * 0.5
            run.log({"metric_0": value, "metric_1": value, "metric_2": value, "metric_3": value,
                     "metric_4": value, "metric_5": value, "metric_6": value, "metric_7": value,
                     "metric_8": value, "metric_9": value})  # fmt: skip

    cases = {"log": log, "step": in_a_step}
    try:
        import torch

        tensors = {name: torch.tensor(0.5) for name in NAMES}
        cases["log_tensors"] = lambda step: run.log(tensors, step=step)
    except ImportError:
        pass
    return cases


def peer_cases(directory):
    cases = {}
    try:
        import prometheus_client

        gauges = [prometheus_client.Gauge(name, "A metric.") for name in NAMES]

        def set_gauges(step):
            value = step * 0.5
            for gauge in gauges:
                gauge.set(value)

        cases["prometheus_client"] = set_gauges
    except ImportError:
        print("bench_python_log: no python3-prometheus-client", file=sys.stderr)
    try:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(directory)

        def add_scalars(step):
            for name in NAMES:
                writer.add_scalar(name, step * 0.5, step)

        cases["summary_writer"] = add_scalars
    except ImportError:
        print("bench_python_log: no tensorboard, so no SummaryWriter", file=sys.stderr)
    return cases


def turn(case, steps):
    begin = time.process_time()
    for step in range(steps):
        case(step)
    return (time.process_time() - begin) / steps * 1e6


def measure(cases, turns, steps):
    """{name: median µs a step}."""
    taken = {name: [] for name in cases}
    for case in cases.values():
        turn(case, 1000)
    for _ in range(turns):
        for name, case in cases.items():
            taken[name].append(turn(case, steps))
    return {name: statistics.median(values) for name, values in taken.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench",
                        help="a Release build with the target 'tacho_shared'")
    parser.add_argument("--json", type=pathlib.Path, help="also write one JSON object per figure")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tacho_bench_", dir="/dev/shm") as directory:
        ours = our_cases(options.build, directory)
        peers = peer_cases(directory)
        turns, steps = (5, 5_000) if options.quick else (15, 30_000)
        medians = measure({**ours, **peers}, turns, steps)
    for name, microseconds in medians.items():
        print(f"{name:20} {microseconds:8.2f} us a step of ten values")
    if options.json:
        lines = [
            json.dumps({"id": f"client.python.{name}", "unit": "us", "ours": medians[name],
                        "peers": {peer: medians[peer] for peer in peers}})
            for name in ours
        ]  # fmt: skip
        options.json.write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    main()
