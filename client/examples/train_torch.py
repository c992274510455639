#!/usr/bin/env python3
"""Trains a small network with PyTorch on this processor, and records every step.

    TACHO_JOB=spirals train_torch.py [--steps N] [--record how] [--values FILE]

The network learns to tell two interleaved spirals apart, which no linear model can; points are drawn
with a fixed seed. Exits with 1 if its accuracy on points that it was not trained on stays below 95 %.
"""
import argparse
import math
import sys
import time

import torch

KINDS = ("none", "log", "step")
BATCH = 64


def spirals(count, seed):
    """Points of two interleaved spirals, with noise, and which one each is of."""
    generator = torch.Generator().manual_seed(seed)
    along = torch.sqrt(0.08 + 0.92 * torch.rand(count, generator=generator))
    labels = torch.arange(count) % 2
    angle = 3 * math.pi * along + math.pi * labels
    points = torch.stack([along * torch.cos(angle), along * torch.sin(angle)], dim=1)
    return points + 0.02 * torch.randn(count, 2, generator=generator), labels.float()


class Training:
    """A network, its optimizer and its data; take_step() is the same whoever records."""

    def __init__(self, steps, seed=1, hidden=32):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.points, self.labels = spirals(4096, seed)
        self.held_out = spirals(1024, seed + 500)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(2, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, hidden),
            torch.nn.Tanh(), torch.nn.Linear(hidden, 1),
        )  # fmt: skip
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)
        self.loss = torch.nn.BCEWithLogitsLoss()

    def next_batch(self):
        chosen = torch.randint(len(self.labels), (BATCH,))
        return self.points[chosen], self.labels[chosen]

    def take_step(self, batch):
        """The numbers of the step, by name."""
        points, labels = batch
        logits = self.model(points).squeeze(1)
        loss = self.loss(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        rate = self.optimizer.param_groups[0]["lr"]
        self.optimizer.step()
        self.schedule.step()
        right = ((logits > 0) == (labels > 0.5)).float().mean()
        return {"loss": loss.item(), "grad_norm": norm.item(), "learning_rate": rate,
                "train_accuracy": right.item()}  # fmt: skip

    def accuracy(self):
        points, labels = self.held_out
        with torch.no_grad():
            return ((self.model(points).squeeze(1) > 0) == (labels > 0.5)).float().mean().item()


def record_nothing(training, steps):
    for step in range(steps):
        yield step, training.take_step(training.next_batch())


def record_by_log(training, steps, run):
    for step in range(steps):
        values = training.take_step(training.next_batch())
        run.log(values, step=step)
        yield step, values


def record_by_steps(training, steps, run):
    for step in range(steps):
        with run.step(step) as scope:
            scope.phase("data")
            batch = training.next_batch()
            scope.phase("compute")
            values = training.take_step(batch)
            run.log(values)
            run.observe("gradient_norms", values["grad_norm"])
        yield step, values


def train(training, steps, how, run=None):
    """An iterator over the steps and their values, recorded as `how` says."""
    if how == "none":
        return record_nothing(training, steps)
    return (record_by_log if how == "log" else record_by_steps)(training, steps, run)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--record", choices=KINDS, default="step")
    parser.add_argument("--values", help="write every value, as it was, to this file too")
    options = parser.parse_args()
    run = None
    if options.record != "none":
        import tacho

        run = tacho.init(
            config={"model": "mlp-2-32-32-1", "batch_size": BATCH, "planned_steps": options.steps}
        )
    training = Training(options.steps)
    kept = []
    begin = time.perf_counter()
    for step, values in train(training, options.steps, options.record, run):
        if options.values:
            kept.append((step, values))
    taken = time.perf_counter() - begin
    accuracy = training.accuracy()
    if run is not None:
        run.log({"accuracy": accuracy}, step=options.steps - 1)
        run.finish(0 if accuracy >= 0.95 else 1)
    if options.values:
        with open(options.values, "w") as file:
            for step, values in kept:
                print(step, *(f"{name}={value.hex()}" for name, value in values.items()), file=file)
            print(options.steps - 1, f"accuracy={accuracy.hex()}", file=file)
    print(f"{taken / options.steps * 1e6:.1f} us a step, accuracy {accuracy:.3f}")
    return 0 if accuracy >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
