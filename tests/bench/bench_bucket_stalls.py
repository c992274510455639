#!/usr/bin/python3
"""What agents notice when the bucket fails, with `cluster.ack: shared`: an OSD of the Ceph is killed, another one
hangs, the gateway is away for a long time. Many agents send a row a second; printed is how long acknowledgements
stop, whether rows are seen meanwhile, how soon all is caught up, and whether each row is stored once.

It needs Ceph's packages and a Release build with the targets tacho-collector, tacho-bench-takeover and tachoctl.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import servers
from buckets import CollectorWithBucket, ceph

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Agents:
    """tacho-bench-takeover, with one member."""

    def __init__(self, build, address, count):
        self.process = subprocess.Popen(
            [build / "tests/bench/tacho-bench-takeover", address, "", str(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()  # It is ready.

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def acknowledged(self):
        """Seconds until each agent has an acknowledgement of a row that it makes from now on."""
        return self.say("0")

    def longest(self, seconds):
        """The longest of them, one after the other, and whether any had none."""
        end, longest, never = time.monotonic() + seconds, 0, 0
        while time.monotonic() < end:
            one = self.acknowledged()
            longest, never = max(longest, one["max_s"]), never + one["never"]
        return longest, never


class Stalls:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="tacho-stalls-")
        self.ceph = self.folder + "/ceph"
        environment = ceph.start(self.ceph, 3)
        os.environ.update(environment)
        ceph.put(environment, "/tests")
        self.collector = CollectorWithBucket(
            f"{self.folder}/collector", options.build, environment["TACHO_TEST_CEPH"], "stalls", "shared", "1s")
        self.collector.start()
        self.address = f"127.0.0.1:{self.collector.grpc_port}"
        self.agents = Agents(options.build, self.address, options.agents)

    def stop(self):
        self.collector.kill()
        subprocess.run([ceph.CEPH, "stop", self.ceph, "--purge"], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def daemon(self, verb, name):
        subprocess.run([ceph.CEPH, verb, self.ceph, name], check=True, stdout=subprocess.DEVNULL)

    def figure(self, name, part=""):
        return sum(value for line, value in self.collector.metrics().items() if line.startswith(name) and part in line)

    def refused(self):
        """Streams and messages that agents were refused."""
        return self.figure("tacho_ingest_messages_refused_total")

    def requests(self, minutes):
        """What the bucket is asked while nothing is wrong."""
        def counts():
            # Such as put_new and get_range.
            return {operation: self.figure("tacho_bucket_requests_total", f'operation="{operation}')
                    for operation in ("put", "get", "list", "delete")}

        before = counts()
        time.sleep(minutes * 60)
        print(json.dumps({"what": f"requests in {minutes} min"} |
                         {name: count - before[name] for name, count in counts().items()}), flush=True)

    def query(self, *arguments):
        done = subprocess.run(
            [self.options.build / "client/ctl/tachoctl", "query", "takeover-0", "m0", "--points", "1", "-o", "json",
             "-a", self.address, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return []
        return [sample for one in json.loads(done.stdout)["series"] for sample in one["samples"]]

    def seen_behind(self):
        """Seconds between now and the newest row that a query shows."""
        newest = max((sample["last_time_unix_ns"] for sample in self.query("--since", "5m")), default=0)
        return time.time() - int(newest) / 1e9

    def disturb(self, what, begin, end):
        """`end` comes 20 s after `begin`."""
        before = self.agents.longest(15)[0]
        refused = self.refused()
        begin()
        first = self.agents.longest(20)
        end()
        then = self.agents.longest(30)
        print(json.dumps({"what": what, "usual_s": round(before, 2), "longest_s": round(max(first[0], then[0]), 2),
                          "never": first[1] + then[1], "refused": self.refused() - refused}), flush=True)

    def away(self, minutes):
        self.daemon("pause", "rgw.0")
        began, seen_until = time.monotonic(), 0
        while (passed := time.monotonic() - began) < minutes * 60:
            time.sleep(min(20, max(0.1, minutes * 60 - passed)))
            behind = self.seen_behind()
            if behind < 10:
                seen_until = time.monotonic() - began
            print(json.dumps({
                "away_s": round(passed), "seen_behind_s": round(behind, 1),
                "unshipped_s": round(self.figure("tacho_shard_unshipped_seconds")),
                "unshipped_mib": round(self.figure("tacho_shard_unshipped_bytes") / 2**20),
                "resident_mib": self.collector.resident_bytes() >> 20}), flush=True)
        self.daemon("resume", "rgw.0")
        began = time.monotonic()
        caught_up = self.agents.acknowledged()
        print(json.dumps({"what": f"bucket away for {minutes} min", "rows_seen_until_s": round(seen_until),
                          "caught_up_s": round(time.monotonic() - began), "never": caught_up["never"]}), flush=True)

    def check(self):
        rows = self.agents.say("end")
        self.agents.process.wait()
        stored = sum(sample["count"] for sample in self.query())
        print(json.dumps(rows | {"stored": stored}), flush=True)
        # A row may be stored whose acknowledgement came too late for the end.
        assert rows["rows"] - rows["not_acknowledged"] <= stored <= rows["rows"], "rows were lost or doubled"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/bench", help="a Release build")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=3, help="how often an OSD is killed, and hangs")
    parser.add_argument("--quiet", type=int, default=11, help="minutes in which requests are counted")
    parser.add_argument("--away", type=int, default=60, help="minutes without the bucket")
    options = parser.parse_args()
    if ceph.missing():
        raise SystemExit(f"not installed: {', '.join(ceph.missing())}")
    stalls = Stalls(options)
    try:
        for _ in range(options.turns):
            stalls.disturb("an OSD is killed", lambda: stalls.daemon("kill", "osd.1"),
                           lambda: stalls.daemon("revive", "osd.1"))
        for _ in range(options.turns):
            stalls.disturb("an OSD hangs for 20 s", lambda: stalls.daemon("pause", "osd.2"),
                           lambda: stalls.daemon("resume", "osd.2"))
        if options.quiet:
            stalls.requests(options.quiet)
        if options.away:
            stalls.away(options.away)
        stalls.check()
    finally:
        stalls.stop()


if __name__ == "__main__":
    main()
