"""Every scalar of real event files is recorded once, bit for bit, also of files that grow."""
import collections
import os
import re
import shutil
import time
import unittest

import client
import event_files
import harness

JOBS = "tf/"


def event_file_paths(root):
    for directory, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            if "tfevents" in name:
                yield os.path.join(directory, name)


def expected_by_job(root):
    """{job: Counter of Scalar} of all files below root, and how many values have no time."""
    jobs, timeless, other_tags = {}, 0, collections.defaultdict(set)
    for path in event_file_paths(root):
        run = os.path.relpath(os.path.dirname(path), root)
        with open(path, "rb") as file:
            found = event_files.scalars(file.read(), other_tags[run])
        timed = [s for s in found if s.time_ns is not None]
        timeless += len(found) - len(timed)
        jobs.setdefault(JOBS + run, collections.Counter()).update(timed)
    return {job: scalars for job, scalars in jobs.items() if scalars}, timeless


def stored(query, job):
    found = collections.Counter()
    for (metric, _, _), samples in query.range(job).items():
        found.update(event_files.Scalar(metric, t, step, bits) for t, step, _, bits in samples)
    return found


# float32: 0, -0, the least denormal, the greatest number, infinities, a quiet and a signalling NaN.
ODD = [0, 1 << 31, 1, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0xFFC12345, 0x7F800001]


def growing_bytes(count, begin_step):
    """An event file with two tags and values of every kind, one record after the other."""
    begin = 1_700_000_000.0 + begin_step
    pieces = [event_files.first_record(begin)]
    for i in range(count // 2):
        wall, step = begin + i / 7, begin_step + i
        odd = ODD[i % 64] if i % 64 < len(ODD) else 0x3F800000 + i
        pieces.append(event_files.event(wall, step, "loss", odd))
        pieces.append(event_files.event(wall, step, "räte/lr (group 0)", 0x3DCCCCCD - i))
    return b"".join(pieces)


class TfeventsTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.logs = os.path.join(self.directory, "logs")
        os.mkdir(self.logs)
        self.collector = self.started(
            harness.Collector(self.directory, "storage: {retention: 0s, seal_rows: 256}\n")
        )
        self.query = client.Query(self.collector.address)
        self.addCleanup(self.query.close)

    def start_agent(self):
        sources = (
            "  host: {enabled: false}\n"
            "  rings: {directory: ''}\n"
            f"  tfevents:\n    poll_interval: 50ms\n    directories:\n"
            f"      - {{path: {self.logs}, run_pattern: '(?P<job>.+)', job: '{JOBS}{{job}}'}}\n"
        )
        return self.started(harness.Agent(self.directory, self.collector, sources))

    def expect_stored(self, expected):
        """Waits for as many samples as expected, then compares every one."""
        for job, scalars in expected.items():
            harness.wait_until(
                lambda: sum(stored(self.query, job).values()) >= sum(scalars.values()),
                f"{sum(scalars.values())} samples of {job}", pause_s=0.3,
            )  # fmt: skip
            got = stored(self.query, job)
            self.assertEqual(got - scalars, collections.Counter(), f"{job}: not in the files")
            self.assertEqual(scalars - got, collections.Counter(), f"{job}: lost")

    def test_all_real_files(self):
        data = harness.shared_data("tfevents")
        expected, timeless = expected_by_job(data)
        total = sum(sum(s.values()) for s in expected.values())
        print(f"{total} scalars of {len(expected)} runs, {timeless} without a time")
        self.assertGreater(total, 80_000)
        shutil.copytree(data, self.logs, dirs_exist_ok=True)
        self.start_agent()
        self.expect_stored(expected)
        self.assertEqual(set(self.query.jobs()), set(expected))

    def test_file_grows_in_torn_pieces_and_is_followed_by_another(self):
        data = growing_bytes(20_000, begin_step=0)
        path = os.path.join(self.logs, "run", "events.out.tfevents.1.a")
        os.makedirs(os.path.dirname(path))
        agent = self.start_agent()
        written = 0
        for piece in range(6):
            end = len(data)
            if piece < 5:  # Inside a record: its header, payload or checksum.
                end = written + self.random.randrange(1, (len(data) - written) // 2)
            with open(path, "ab") as file:
                file.write(data[written:end])
            written = end
            whole = collections.Counter(event_files.scalars(data[:written]))
            self.expect_stored({JOBS + "run": whole})
            if piece == 2:  # Stopped and started again, or killed: it goes on where it was.
                self.assertEqual(agent.stop(), 0)
                agent.start()
            if piece == 4:
                agent.kill()
                agent.start()
        # A trainer that starts again opens a file beside the first, and repeats the last steps.
        other = growing_bytes(5_000, begin_step=7_000)
        with open(os.path.join(self.logs, "run", "events.out.tfevents.2.a"), "wb") as file:
            file.write(other)
        whole.update(event_files.scalars(other))
        self.expect_stored({JOBS + "run": whole})
        self.assertEqual(self.query.jobs()[JOBS + "run"].attempts, 2)

    @unittest.skipUnless(os.environ.get("TACHO_LARGE_FILES"), "set TACHO_LARGE_FILES=1: 1 GiB, minutes")
    def test_gigabyte_file_holds_up_no_other_and_is_read_once_over_kills(self):
        begin = int(time.time()) - 1000
        graph = event_files.record(b"\x22" + event_files._encode_varint(1 << 17) + bytes(1 << 17))
        paths = [os.path.join(self.logs, run, "events.out.tfevents.1.a") for run in ("long", "short")]
        for path in paths:
            os.makedirs(os.path.dirname(path))
        scalars = 0
        with open(paths[0], "wb") as file:
            while file.tell() < 1 << 30:
                file.write(graph + event_files.event(begin + scalars / 100, scalars, "m", 0x3F800000))
                scalars += 1
        agent = self.start_agent()
        began = time.monotonic()
        shorts = kills = peak = 0
        while len(self.samples("long")) < scalars:
            with open(paths[1], "ab") as file:
                file.write(event_files.event(begin + shorts / 100, shorts, "m", 0x3F800000))
            shorts += 1
            harness.wait_until(
                lambda: len(self.samples("short")) == shorts, "the short run's newest row"
            )
            with open(f"/proc/{agent.program.process.pid}/status") as file:
                peak = max(peak, int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]))
            if kills < 2 and len(self.samples("long")) > (kills + 1) * scalars / 3:
                agent.kill()
                agent.start()
                kills += 1
        print(
            f"{scalars} scalars in {os.path.getsize(paths[0]) >> 20} MiB and {kills} kills in "
            f"{time.monotonic() - began:.0f} s, {shorts} rows of another run meanwhile; at most "
            f"{peak >> 10} MiB resident"
        )
        self.assertGreater(kills, 0)
        self.assertGreater(shorts, 3)
        _, _, page = harness.http_get(self.collector.url("/metrics"))
        rows = int(float(re.search(rb"^tacho_ingest_rows_total (\S+)$", page, re.M)[1]))
        self.assertEqual(rows, scalars + shorts, "each is sent once")

    def samples(self, run):
        return list(stored(self.query, JOBS + run).elements())


if __name__ == "__main__":
    harness.main()
