"""Attacks on the collector's ports, while an honest agent works: memory stays, the agent goes on.

docs/security.md has the figures that this prints, of a release build on a quiet machine.
"""
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import client
import harness

_FLOODS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "floods.py")
SECONDS = float(os.environ.get("TACHO_FLOOD_SECONDS", "4"))
MIB = 1 << 20


def status(pid, key):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class HonestAgent:
    """One row every 20 ms; how long each took to be acknowledged."""

    def __init__(self, address):
        self.latencies = []
        self.ends = 0
        self._stopping = threading.Event()
        self._stream = client.Stream(address, "honest", 7, 1)
        if not self._stream.welcomed():
            raise AssertionError(f"the honest agent is refused: {self._stream.error}")
        self._stream.send(client.layout(1, "honest", "host-1", [("loss", "1")]))
        self._sequence = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stopping.wait(0.02):
            self._sequence += 1
            now = time.time_ns()
            self._stream.send(client.batch(self._sequence, 1, [now], [1.0]))
            if not self._stream.wait_durable(self._sequence):
                self.ends += 1
                return
            self.latencies.append((time.time_ns() - now) / 1e6)

    def mark(self):
        taken, self.latencies = self.latencies, []
        return sorted(taken)

    def stop(self):
        self._stopping.set()
        self._thread.join()
        self._stream.close()


def quantile(ordered, q):
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else float("nan")


class FloodCase(harness.TestCase):
    CONFIG = (
        "storage: {retention: 0s}\n"
        "quotas: {hello_timeout: 3s, max_connections: 2000, max_connections_per_address: 200}\n"
    )

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory, self.CONFIG))
        self.pid = self.collector.program.process.pid
        self.agent = HonestAgent(self.collector.address)
        self.addCleanup(self.agent.stop)

    def flood(self, attack, seconds=SECONDS, peak_mib=64):
        """Runs the attack; the honest agent must not notice more than some delay."""
        harness.wait_until(lambda: len(self.agent.latencies) >= 20, "the honest agent at work")
        time.sleep(1)
        before = self.agent.mark()
        with open(f"/proc/{self.pid}/clear_refs", "w") as file:
            file.write("5")
        resident, cpu, began = status(self.pid, "VmRSS"), cpu_seconds(self.pid), time.monotonic()
        told = subprocess.run(
            [sys.executable, "-B", _FLOODS, self.collector.address, attack, str(seconds),
             f"127.0.0.1:{self.collector.http}"],
            capture_output=True, text=True, timeout=seconds * 3 + harness.PATIENCE_S,
        )  # fmt: skip
        self.assertEqual(told.returncode, 0, told.stderr)
        took = time.monotonic() - began
        seen = json.loads(told.stdout)
        seen["peak_mib"] = round((status(self.pid, "VmHWM") - resident) / MIB, 1)
        seen["cpu"] = round((cpu_seconds(self.pid) - cpu) / took, 2)
        during = self.agent.mark()
        seen["acks"] = len(during)
        for name, acks in (("before", before), ("during", during)):
            seen[f"p50_{name}"] = round(quantile(acks, 0.5), 1)
            seen[f"p99_{name}"] = round(quantile(acks, 0.99), 1)
        print("FLOOD " + json.dumps(seen), flush=True)
        self.assertEqual(self.agent.ends, 0, "the honest agent's stream ended")
        self.assertGreater(len(during), 0, "the honest agent got no acknowledgement")
        self.assertLess(seen["peak_mib"], peak_mib)
        self.assertTrue(self.collector.program.alive())
        harness.wait_until(lambda: self.agent.latencies, "the honest agent goes on")
        return seen

    def metric(self, name):
        _, _, body = harness.http_get(self.collector.url("/metrics"))
        for line in body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        return None


class FrameFloodTest(FloodCase):
    # Lengths and compression.

    def test_declared_length(self):
        seen = self.flood("declared_length", seconds=max(SECONDS, 5))  # Longer than hello_timeout.
        # gRPC 1.51 looks at the length once the message is whole, which it never becomes.
        self.assertGreater(seen["statuses"].get("4", 0), 0, "DEADLINE_EXCEEDED: no Hello")

    def test_oversized(self):
        self.assertGreater(self.flood("oversized", peak_mib=250)["hung_up"], 0)

    def test_gzip_bomb(self):
        seen = self.flood("gzip_bomb", seconds=1)
        self.assertGreater(seen["statuses"].get("12", 0), 0, "UNIMPLEMENTED")

    # Frames.

    def test_rapid_reset(self):
        seen = self.flood("rapid_reset", peak_mib=200)
        self.assertGreater(seen["hung_up"], 0)
        self.assertGreater(self.metric('tacho_connections_closed_total{reason="calls"}'), 0)

    def test_rapid_reset_unknown_method(self):
        """What gRPC keeps of the calls that wait to be counted depends on how busy the machine is."""
        self.assertGreater(self.flood("rapid_reset_unknown_method", peak_mib=300)["hung_up"], 0)

    def test_continuation(self):
        """gRPC 1.51 keeps what comes until the connection is shut down; no more than that."""
        before = status(self.pid, "VmRSS")
        seen = self.flood("continuation", peak_mib=250)
        self.assertGreater(seen["hung_up"], 0)
        self.assertLess(seen["peak_mib"], seen["sent"] / MIB + 64)
        harness.wait_until(
            lambda: status(self.pid, "VmRSS") < before + 64 * MIB, "memory given back"
        )

    def test_empty_continuation(self):
        self.flood("empty_continuation")

    def test_large_headers(self):
        self.flood("large_headers")

    def test_hpack_bomb(self):
        self.flood("hpack_bomb")

    def test_tiny_data(self):
        self.flood("tiny_data", peak_mib=250)

    def test_empty_data(self):
        self.flood("empty_data")

    def test_pings(self):
        self.assertGreater(self.flood("pings", peak_mib=150)["hung_up"], 0)

    def test_pings_of_a_call(self):
        """It may send some megabytes, of which gRPC keeps up to 3 KB for 17 bytes until it closes."""
        self.assertGreater(self.flood("pings_of_a_call", peak_mib=700)["hung_up"], 0)

    def test_settings(self):
        self.flood("settings")

    def test_priorities(self):
        self.flood("priorities")

    def test_window_updates(self):
        self.flood("window_updates")

    def test_streams(self):
        self.flood("streams")


class ClientFloodTest(FloodCase):
    # Connections.

    def test_silent_connections(self):
        seen = self.flood("silent_connections", seconds=20)
        self.assertEqual(seen["hung_up"], seen["connections"])

    def test_many_connections(self):
        seen = self.flood("many_connections", seconds=6, peak_mib=160)
        self.assertLess(seen["held"], 200)
        refused = self.metric('tacho_connections_refused_total{reason="address"}')
        self.assertGreater(refused, 0)

    def test_half_messages(self):
        seen = self.flood("half_messages", seconds=30, peak_mib=600)
        self.assertEqual(seen["hung_up"], seen["connections"])

    # Messages.

    def test_nested_groups(self):
        self.assertGreater(self.flood("nested_groups")["statuses"].get("3", 0), 0)

    def test_nested_messages(self):
        self.flood("nested_messages")

    def test_unknown_fields(self):
        self.flood("unknown_fields")

    def test_empty_series(self):
        self.assertGreater(self.flood("empty_series")["statuses"].get("8", 0), 0)

    def test_long_strings(self):
        self.assertGreater(self.flood("long_strings")["statuses"].get("3", 0), 0)

    # HTTP.

    def test_http_bodies(self):
        answers = self.flood("http_bodies")["answers"]
        # A GET is answered without a look at its body.
        self.assertFalse([a for a in answers if a.startswith("POST") and " 200 " in a], answers)

    def flood_beside_scrapes(self, attack):
        scrapes = []
        going = threading.Event()
        going.set()

        def scrape():
            # One that begins while the attack holds its connections must end before they are let go.
            while going.is_set():
                try:
                    page = harness.http_get(self.collector.url("/metrics"), timeout_s=SECONDS / 2)
                    scrapes.append(page[0])
                except OSError as error:
                    scrapes.append(str(error))
                time.sleep(0.2)

        prometheus = threading.Thread(target=scrape, daemon=True)
        prometheus.start()
        seen = self.flood(attack)
        going.clear()
        prometheus.join()
        self.assertEqual(set(scrapes), {200}, "scrapes were kept waiting")
        return seen

    def test_http_slow(self):
        self.flood_beside_scrapes("http_slow")

    def test_http_idle(self):
        self.assertEqual(self.flood_beside_scrapes("http_idle")["refused"], 0)


class ApiFloodTest(FloodCase):
    """The API of the page: queries over HTTP."""

    def attack(self, name, **options):
        seen = self.flood(name, **options)
        self.assertNotIn("without_words", seen)
        # Afterwards a reader gets its answer.
        harness.wait_until(lambda: self.ask() == 200, "the API answers", timeout_s=20)
        return seen

    def ask(self):
        request = urllib.request.Request(
            self.collector.url("/tacho.v1.Query/ListJobs"), data=b"{}",
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status
        except urllib.error.URLError as error:
            return getattr(error, "code", None)

    def test_watches(self):
        seen = self.attack("api_watches", peak_mib=128)
        # query.max_watches; one more of them, or of the port's calls, is told so.
        self.assertLessEqual(seen["streams"].get("watching", 0), 256)
        self.assertGreater(seen["streams"].get("watching", 0), 100)
        self.assertGreater(seen["answers"].get("503", 0) + seen["streams"].get("refused", 0), 0)

    def test_posts(self):
        seen = self.attack("api_posts", peak_mib=128)
        self.assertGreater(seen["answers"].get("200", 0), 0)
        self.assertLessEqual(set(seen["answers"]), {"200", "503"})

    def test_slow_bodies(self):
        seen = self.attack("api_slow_bodies", seconds=14)
        self.assertNotIn("200", seen["answers"])
        self.assertGreater(seen["answers"].get("408", 0), 0)

    def test_wrong_bodies(self):
        cases = self.attack("api_wrong_bodies")["cases"]
        wanted = {
            "huge": "413", "too_long": "413", "no_length": "411", "packed": "501",
            "packed_stream": "501", "unknown_kind": "415", "deep": "400", "no_utf8": "400",
            "wrong_proto": "400", "many": "400", "cut_envelope": "400", "written": "404",
        }  # fmt: skip
        self.assertEqual({name: set(found) for name, found in cases.items()},
                         {name: {status} for name, status in wanted.items()})  # fmt: skip
        with open(self.collector.log) as log:
            self.assertNotIn("libprotobuf", log.read(), "anybody could fill the log")


if __name__ == "__main__":
    harness.main()
