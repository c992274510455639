#!/usr/bin/python3
"""The page in Chromium, against the limits that it keeps: bytes, first look, repaints, memory.

    tests/bench/web/page_bench.py [--build build/bench] [--check]

A collector gets 1,000 jobs, and one job of 1,000 tasks with 500 steps. The page is opened without a
cache. A repaint is the processor time of the browser's main thread; the first look is by the clock. With --check the exit status is 1 if a limit is exceeded. Run nothing else meanwhile.
"""

import argparse
import gzip
import os
import pathlib
import statistics
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests/integration"), str(ROOT / "tests/bench")]

FLEET_JOBS, TASKS, STEPS = 1000, 1000, 500
LOADS, REPAINTS = 5, 20
# An hour of a job that makes a step in two seconds, in a minute or so.
HOUR_STEPS, HOUR_TASKS, BURST = 1800, 16, 10


class Bench:
    def __init__(self, directory, harness, client, browser):
        self.harness, self.client = harness, client
        self.collector = harness.Collector(directory, "log: {level: warn}\n").start()
        self.browser = browser.Browser(harness.tool(*browser.BINARIES))
        self.sequence = self.layouts = 0
        self.stream = client.Stream(self.collector.address, "bench", 1, 1)
        self.figures = []

    def close(self):
        self.browser.__exit__()
        self.stream.close()
        self.collector.kill()

    def add(self, name, value, unit, limit=None):
        self.figures.append((name, value, unit, limit))
        print(f"{name}: {value:.4g} {unit}", file=sys.stderr, flush=True)

    def layout(self, job, task, metrics):
        self.layouts += 1
        host = f"host-{task // 8}"
        self.stream.send(self.client.layout(self.layouts, job, host, metrics, task, 0, True))
        return self.layouts

    def rows(self, layout, times, steps, values):
        self.sequence += 1
        self.stream.send(self.client.batch(self.sequence, layout, times, values, steps))

    def durable(self):
        if not self.stream.wait_durable(self.sequence):
            raise RuntimeError(f"rows were refused: {self.stream.error}")

    def record(self):
        now = time.time_ns()
        metrics = [("loss", "1"), ("step_time_seconds", "s")]
        for i in range(FLEET_JOBS):
            layout = self.layout(f"job-{i:04}", 0, metrics)
            times = [now - (20 - k) * 10**9 for k in range(20)]
            values = [v for k in range(20) for v in (2 - k / 100, 0.4 + (i * 7 + k) % 13 / 100)]
            self.rows(layout, times, list(range(20)), values)
        self.durable()
        times = [now - (STEPS - k) * 10**9 // 4 for k in range(STEPS)]
        for task in range(TASKS):
            layout = self.layout("wide", task, [("loss", "1"), ("compute_seconds", "s")])
            slow = 1.6 if task == 417 else 1
            values = [v for k in range(STEPS)
                      for v in (2 - k / 1000 + task / 1e5, slow * (0.4 + (task * 31 + k * 17) % 29 / 900))]
            self.rows(layout, times, list(range(STEPS)), values)
        self.durable()

    def open(self, hash):
        origin = f"http://127.0.0.1:{self.collector.http}"
        page = self.browser.page(origin)
        page.call("Network.setCacheDisabled", cacheDisabled=True)
        # The time of the processor, not of the clock: other programs are no part of it.
        page.call("Performance.enable", timeDomain="threadTicks")
        page.open(f"{origin}/ui/{hash}")
        return page

    def busy_ms(self, page):
        """Processor time of the main thread."""
        metrics = page.call("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "TaskDuration") * 1e3

    def each(self, page, action, count):
        """Main thread's ms of `action`, a JavaScript of `i`, and the frame after it."""
        frames = "await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
        loop = f"(async () => {{ for (let i = 0; i < {count}; i++) {{ {action}; {frames} }} return 1 }})()"
        page.js(loop)
        before = self.busy_ms(page)
        page.js(loop)
        return (self.busy_ms(page) - before) / count

    def sizes(self):
        dist = ROOT / "client/web/dist"
        packed = {p.name: len(gzip.compress(p.read_bytes(), 9, mtime=0)) for p in dist.iterdir()}
        scripts = sum(size for name, size in packed.items() if name.endswith((".js", ".css")))
        self.add("all scripts and styles, gzip", scripts / 1000, "KB", 60)

    def first_look(self):
        paints, ready, sizes, requests = [], [], [], []
        for _ in range(LOADS):
            page = self.open("#/")
            page.wait("document.querySelectorAll('.fleet tbody tr[data-row]').length > 20")
            ready.append(page.js("performance.now()"))
            paints.append(page.js("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            entries = "[...performance.getEntriesByType('resource'), performance.getEntriesByType('navigation')[0]]"
            # What comes later is prepared for the next click.
            seen = f"{entries}.filter(e => e.startTime < {ready[-1]} && !/tacho/.test(e.name))"
            sizes.append(page.js(f"{seen}.reduce((sum, e) => sum + e.transferSize, 0)") / 1000)
            requests.append(page.js(f"{entries}.filter(e => e.startTime < {ready[-1]}).length"))
        self.add("fleet of 1,000 jobs: first contentful paint", statistics.median(paints), "ms", 600)
        self.add("… rows are there", statistics.median(ready), "ms")
        self.add("… files of the first look", statistics.median(sizes), "KB", 60)
        self.add("… requests", max(requests), "")
        self.fleet(page)

    def fleet(self, page):
        sort = "[...document.querySelectorAll('.fleet thead button')].find(b => b.innerText.startsWith('Step time')).click()"
        self.add("… sorted by another column", self.each(page, sort, REPAINTS), "ms", 50)
        page.js("document.querySelector('input[type=search]').focus()")
        key = (
            "const e = document.activeElement; e.value = 'job-0' + i % 10;"
            "e.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        self.add("… a key in the filter", self.each(page, key, REPAINTS), "ms", 50)
        page.js("history.replaceState(null, '', '#/'); window.dispatchEvent(new PopStateEvent('popstate'))")
        self.add("… scrolled by a screen", self.each(page, "scrollBy(0, i % 2 ? -400 : 700)", REPAINTS), "ms", 50)

    def charts(self):
        page = self.open("#/job/wide/tasks")
        page.wait("document.querySelectorAll('.stack canvas').length > 2", 60)
        page.wait("!document.querySelector('.loading')")
        self.add("map of 1,000 × 500: there after", page.js("performance.now()"), "ms")
        time.sleep(5)  # The hosts' part of the screen comes after the map.
        page.wait("document.querySelector('.stack')", 60)
        press = "document.querySelector('.stack')?.dispatchEvent(new KeyboardEvent('keydown', {key: NAME, bubbles: true}))"
        zoom = press.replace("NAME", "i % 2 ? 's' : 'w'")
        self.add("… repainted", self.each(page, zoom, REPAINTS), "ms", 40)
        page.js(press.replace("NAME", "'0'"))
        cursor = press.replace("NAME", "i % 2 ? 'ArrowLeft' : 'ArrowRight'")
        self.add("… cursor moved", self.each(page, cursor, REPAINTS), "ms", 8)
        for by in ("band", "task"):
            begun = time.monotonic()
            page = self.open(f"#/job/wide/metrics?full=loss&by={by}")
            page.wait("document.querySelector('.figures td')?.innerText.length > 0", 120)
            self.add(f"curves by {by}: there after", (time.monotonic() - begun) * 1e3, "ms", 3000)

    def hour(self):
        layouts = [self.layout("long", task, [("loss", "1"), ("step_time_seconds", "s")]) for task in range(HOUR_TASKS)]

        def steps(first, count):
            now = time.time_ns()
            for layout in layouts:
                times = [now - (count - k) * 1_000_000 for k in range(count)]
                values = [v for k in range(count) for v in (2 - (first + k) / 1e4, 0.4)]
                self.rows(layout, times, list(range(first, first + count)), values)
            self.durable()

        steps(0, 100)
        page = self.open("#/job/long/metrics")
        page.wait("document.querySelectorAll('[data-metric] canvas').length >= 2")

        def heap_mb():
            page.call("HeapProfiler.collectGarbage")
            metrics = page.call("Performance.getMetrics")["metrics"]
            return next(m["value"] for m in metrics if m["name"] == "JSHeapUsedSize") / 1e6

        marks = []
        busy = self.busy_ms(page)
        requests = len(page.requests)
        begun = time.monotonic()
        for first in range(100, 100 + HOUR_STEPS, BURST):
            steps(first, BURST)
            time.sleep(0.35)  # So that each burst is drawn.
            if (first // BURST) % 30 == 0:
                marks.append(heap_mb())
        page.wait(f"document.querySelector('.job-progress').innerText.includes('step {99 + HOUR_STEPS:,}')")
        took = time.monotonic() - begun
        marks.append(heap_mb())
        self.add("an hour's rows of 16 tasks: heap at first", marks[0], "MB")
        self.add("… heap in the end", marks[-1], "MB", 64)
        self.add("… main thread's share", (self.busy_ms(page) - busy) / took / 10, "%")
        self.add("… calls", len(page.requests) - requests, "")

    def table(self):
        print("| measured | is | limit |\n|---|---|---|")
        for name, value, unit, limit in self.figures:
            print(f"| {name} | {value:.3g} {unit} | {'' if limit is None else f'{limit} {unit}'} |")

    def exceeded(self):
        return [name for name, value, _, limit in self.figures if limit is not None and value > limit]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is exceeded")
    options = parser.parse_args()
    os.environ["TACHO_COLLECTOR"] = os.environ.get("TACHO_COLLECTOR") or str(options.build / "server/tacho-collector")
    os.environ.setdefault("TACHO_STUBS", str(options.build / "tests/integration/stubs"))
    import harness  # First: it makes the stubs importable.
    import browser
    import client

    try:
        harness.tool(*browser.BINARIES)
    except unittest.SkipTest:
        sys.exit("page_bench: no chromium: deploy/packages.sh test installs it")
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(directory, harness, client, browser)
        try:
            bench.record()
            for part in (bench.sizes, bench.first_look, bench.charts, bench.hour):
                part()
        finally:
            bench.close()
    bench.table()
    if options.check and bench.exceeded():
        sys.exit(f"page_bench: beyond its limit: {', '.join(bench.exceeded())}")


if __name__ == "__main__":
    main()
