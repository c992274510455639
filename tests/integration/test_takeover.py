"""A cluster with a spare collector (docs/cluster.md): whatever happens to an owner, another collector goes on
with its shard by itself, nothing that was acknowledged is lost, and the old owner acknowledges nothing more."""
import json
import os
import shutil
import signal
import threading
import time

import client
import harness
import ring_files
import test_bucket
from feeder import METRICS, Feeder, expect_acknowledged, stored

from tacho.v1 import query_pb2

MEMBERS = 2
TAKEOVERS = 4
SECONDS = float(os.environ.get("TACHO_TAKEOVER_SECONDS", "0"))  # Of a campaign, which has as many as it can.
COMPARE_EVERY = 20 if SECONDS else 1  # Each comparison reads everything that there is.
TAKEOVER_AFTER_S = 2


class TakeoverCase(harness.TestCase):
    def begin(self, endpoint, url, keys, members=MEMBERS, spares=1):
        print(f"seed {self.seed}")
        self.shards = members
        self.endpoint, self.bucket, self.keys = endpoint, url, keys
        ports = [harness.free_port() for _ in range(members + spares)]
        addresses = [f"127.0.0.1:{port}" for port in ports]
        self.addresses, self.spares = addresses[:members], addresses[members:]
        self.collectors = [self.collector(port) for port in ports]

    def collector(self, port):
        directory = os.path.join(self.directory, f"at-{port}")
        os.mkdir(directory)
        collector = harness.Collector(
            directory,
            "storage: {seal_rows: 64, seal_age: 1s}\n"
            f"bucket: {{url: '{self.bucket}', endpoint: '{self.endpoint}', path_style: true}}\n"
            f"cluster: {{members: {self.addresses}, spares: {self.spares},"
            f" member: '127.0.0.1:{port}', takeover_after: {TAKEOVER_AFTER_S}s,"
            " ack: shared, ack_interval: 100ms}\n"
            "log: {level: info}\n",
            env={**os.environ, **self.keys},
        )
        collector.log = os.path.join(self.directory, f"at-{port}.log")
        collector.grpc, collector.http = port, harness.free_port()
        return collector

    def run_program(self, collector):
        """Starts it; it may wait for a shard for ever."""
        arguments = collector.arguments(os.path.join(collector.directory, "ports.json"))
        collector.program = harness.Program(arguments, collector.log, collector.env)
        self.addCleanup(self._end, collector)
        if collector not in self.programs:
            self.programs.append(collector)
        harness.wait_until(lambda: self.is_alive(collector), f"{collector.address} lives")

    def is_alive(self, collector):
        try:
            return harness.http_get(collector.url("/healthz"), timeout_s=2)[0] == 200
        except OSError:
            return False

    def ready(self, collector):
        try:
            return harness.http_get(collector.url("/readyz"), timeout_s=2)[0] == 200
        except OSError:
            return False

    def start_cluster(self):
        for collector in self.collectors:
            self.run_program(collector)
        owners = self.collectors[: self.shards]
        harness.wait_until(lambda: all(map(self.ready, owners)), "the members own their shards")
        self.owners = dict(enumerate(owners))
        self.standbys = self.collectors[self.shards :]

    def await_owner(self, shard):
        """A collector that waited owns the shard now."""
        new = harness.wait_until(
            lambda: next((one for one in self.standbys if self.ready(one)), None),
            f"somebody owns shard {shard}",
        )
        self.standbys.remove(new)
        self.owners[shard] = new
        self.assertEqual(self.metric(new, "tacho_cluster_shard"), shard)
        return new

    def lose(self, collector):
        """The machine is gone, with its disk; another one takes its place and address."""
        collector.kill()
        shutil.rmtree(collector.path)

    def metric(self, collector, name):
        _, _, page = harness.http_get(collector.url("/metrics"))
        lines = [line for line in page.decode().splitlines() if line.startswith((name + " ", name + "{"))]
        self.assertTrue(lines, f"no {name} in /metrics")
        return float(lines[0].rsplit(" ", 1)[1])

    def job_of(self, shard, prefix="run"):
        names = (f"{prefix}-{i}" for i in range(100))
        return next(name for name in names if harness.shard_of(name, self.shards) == shard)

    def expect_takeovers(self, takeovers, disturb=lambda takeover: None):
        """In turns: the machine of an owner is lost, or its process stands still and goes on later. `disturb` is
        called right after that."""
        feeders = {shard: ShardFeeder(self.random, self, shard) for shard in range(self.shards)}
        longest, takeover, begun = 0.0, 0, time.monotonic()
        while takeover < takeovers or time.monotonic() < begun + SECONDS:
            shard = self.random.randrange(self.shards)
            feeder, old = feeders[shard], self.owners[shard]
            is_zombie = takeover % 2 == 1
            sending = self.feed_half(feeder)
            ended = time.monotonic()
            if is_zombie:
                old.program.process.send_signal(signal.SIGSTOP)
            else:
                self.lose(old)
            disturb(takeover)
            new = self.await_owner(shard)
            took = time.monotonic() - ended
            longest = max(longest, took)
            print(f"takeover {takeover}: shard {shard}, {'zombie' if is_zombie else 'lost'}, {took:.1f} s")
            if is_zombie:
                old.program.process.send_signal(signal.SIGCONT)
                self.expect_zombie_acknowledges_nothing(feeder, sending)
                harness.wait_until(
                    lambda: self.is_alive(old) and not self.ready(old), "the zombie waits for a shard"
                )
            else:
                self.run_program(old)
            sending.join()
            self.standbys.append(old)
            feeder.address = new.address
            self.assertTrue(feeder.session(), feeder.error)
            if takeover % COMPARE_EVERY == 0:
                expect_acknowledged(self, feeder, new.address)
            takeover += 1
        print(f"the longest takeover took {longest:.1f} s")
        for shard, feeder in feeders.items():
            self.assertEqual(
                stored(self.owners[shard].address, feeder.JOB), feeder.expected(len(feeder.batches))
            )
        report = {
            "takeovers": takeover,
            "zombies": takeover // 2,
            "samples": sum(len(f.batches) * f.batch_rows * len(METRICS) for f in feeders.values()),
        }
        print("report " + json.dumps(report))

    def feed_half(self, feeder):
        """A thread that sends batches, and goes on when about half of them are acknowledged."""
        feeder.make(self.random.randrange(20, 60))
        target = feeder.durable + self.random.randrange(1, len(feeder.batches) - feeder.durable)
        reached = threading.Event()
        sending = threading.Thread(
            target=lambda: feeder.session(lambda durable: durable >= target and reached.set())
        )
        sending.start()
        self.assertTrue(reached.wait(harness.PATIENCE_S), feeder.error)
        time.sleep(self.random.choice([0, 0.2 * self.random.random()]))
        return sending

    def expect_zombie_acknowledges_nothing(self, feeder, sending):
        """What it had stored in the bucket before it stood still it may acknowledge; of the rest, nothing."""
        twin = ShardFeeder(self.random, self, feeder.shard, "zombie", feeder.address)
        twin.make(10)
        twin.session()
        self.assertEqual(twin.durable, 0, "a zombie has acknowledged something")
        sending.join()


class ShardFeeder(Feeder):
    """A feeder that knows the cluster."""

    def __init__(self, random, case, shard, name="run", address=None):
        super().__init__(random, address or case.owners[shard].address)
        self.agent_id, self.JOB = f"agent-{name}", case.job_of(shard, name)
        self.shards, self.shard = case.shards, shard

    def stream(self, first):
        shards = self.shards if self.shards > 1 else 0
        return client.Stream(
            self.address, self.agent_id, self.generation, first, shards=shards, shard=self.shard
        )


class TakeoverTest(TakeoverCase):
    def setUp(self):
        super().setUp()
        self.store = self.started(test_bucket.ObjectStore())
        keys = {"AWS_ACCESS_KEY_ID": test_bucket.KEY_ID, "AWS_SECRET_ACCESS_KEY": test_bucket.SECRET}
        self.keys = keys

    def test_lost_owners_and_zombies(self):
        self.begin(self.store.endpoint, "s3://tests/takeover", self.keys)
        self.start_cluster()
        self.expect_takeovers(TAKEOVERS)

    def test_a_pair(self):
        """One member and one spare."""
        self.begin(self.store.endpoint, "s3://tests/pair", self.keys, members=1)
        self.start_cluster()
        self.expect_takeovers(2)
        waiting = self.standbys[0].address
        harness.wait_until(
            lambda: f"Waiting for a shard: {waiting}" in self.told(self.owners[0], "cluster"),
            "tachoctl cluster lists the collector that waits",
        )
        (member,) = json.loads(self.told(self.owners[0], "cluster", "-o", "json"))["members"]
        bucket = member["bucket"]
        self.assertGreater(int(bucket["writes"]), 0)
        self.assertGreater(int(bucket["bytes_sent"]), 0)
        # The looks at the owners count, too: one a second at least.
        self.assertGreater(int(bucket["reads"]), bucket["seconds"] / 2)
        self.assertIn("Requests to the bucket", self.told(self.owners[0], "cluster"))

    def told(self, collector, *arguments):
        done = harness.tachoctl(collector.address, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_handover_takes_seconds(self):
        """One process after the other is stopped and started, as for a new version."""
        self.begin(self.store.endpoint, "s3://tests/handover", self.keys)
        self.start_cluster()
        feeder = ShardFeeder(self.random, self, 0)
        for _ in range(2):
            for shard in range(self.shards):
                old = self.owners[shard]
                began = time.monotonic()
                self.assertEqual(old.stop(), 0)
                ended = time.monotonic()
                self.await_owner(shard)
                print(
                    f"handover of shard {shard}: {ended - began:.2f} s to end, and"
                    f" {time.monotonic() - ended:.2f} s until the next owner was ready"
                )
                self.run_program(old)
                self.standbys.append(old)
                feeder.address = self.owners[0].address
                feeder.make(20)
                self.assertTrue(feeder.session(), feeder.error)
        self.assertEqual(stored(self.owners[0].address, feeder.JOB), feeder.expected(len(feeder.batches)))

    def test_agents_and_queries_find_the_new_owner(self):
        self.begin(self.store.endpoint, "s3://tests/agents", self.keys)
        self.start_cluster()
        rings = os.path.join(self.directory, "rings")
        os.mkdir(rings)
        agent = harness.Agent(
            self.directory, self.collectors[0],
            f"  host: {{enabled: false}}\n  rings: {{directory: {rings}, poll_interval: 20ms}}\n",
            hasty=True,
        )  # fmt: skip
        with open(agent.config) as file:
            text = file.read()
        with open(agent.config, "w") as file:
            file.write(
                text.replace(
                    f"address: '{self.collectors[0].address}'",
                    f"members: {self.addresses}, spares: {self.spares}",
                )
            )
        self.started(agent)
        self.rings, self.kept = rings, {}
        trainers = {job: self.train(job) for job in map(self.job_of, range(self.shards))}
        for shard in (0, 1, 0):
            time.sleep(self.random.uniform(0.5, 2))
            old = self.owners[shard]
            began = time.monotonic()
            self.lose(old)
            new = self.await_owner(shard)
            ready = time.monotonic() - began
            harness.wait_until(
                lambda: self.metric(new, "tacho_ingest_streams") > 0, "the agent has found the new owner"
            )
            print(f"shard {shard}: ready after {ready:.1f} s, the agent there after {time.monotonic() - began:.1f} s")
            self.run_program(old)
            self.standbys.append(old)
        for job, trainer in trainers.items():
            self.assertEqual(trainer.wait(), 0)
            names, rows = ring_files.read(self.kept[job])
            expected = {
                name: sorted((r.time_ns, r.patterns[i]) for r in rows if r.patterns[i] is not None)
                for i, name in enumerate(names)
            }
            # Any owner answers, for it asks the one that owns the job.
            for asked in self.owners.values():
                harness.wait_until(
                    lambda: self.stored_by_name(asked, job, expected) == expected, f"all of {job}"
                )

    def train(self, job):
        arguments = [
            os.environ["TACHO_TRAIN"], "--job", job, "--task", "0", "--tasks", "1",
            "--steps", "4000", "--ring-dir", self.rings, "--step-delay-ms", "4",
        ]  # fmt: skip
        trainer = harness.Program(arguments, os.path.join(self.directory, f"train-{job}.log"))
        self.addCleanup(trainer.kill)
        ring = os.path.join(self.rings, f"{job}.0.{trainer.process.pid}.ring")
        harness.wait_until(lambda: os.path.exists(ring), "ring made", pause_s=0.01)
        self.kept[job] = os.path.join(self.directory, f"kept.{job}")
        os.link(ring, self.kept[job])
        return trainer

    def stored_by_name(self, collector, job, names):
        """{metric: [(time, bits)]} of these metrics; None while it cannot be asked."""
        query = client.Query(collector.address)
        found = {}
        try:
            request = query_pb2.RangeRequest(selector=query_pb2.Selector(job=job))
            for piece in query.stub.Range(request, timeout=harness.PATIENCE_S):
                if piece.HasField("series"):
                    samples = found.setdefault(piece.series.metric.name, [])
                samples.extend((t, bits) for t, _, _, bits in client.points_of(piece.points))
            return {name: sorted(found.get(name, [])) for name in names}
        except client.grpc.RpcError:
            return None
        finally:
            query.close()


class CephTest(TakeoverCase):
    """At a real Ceph with three OSDs, some of which are killed meanwhile, as is the gateway."""

    @classmethod
    def setUpClass(cls):
        test_bucket.start_ceph(cls, osds=3)

    def test_lost_owners_zombies_and_daemons(self):
        keys = {key: value for key, value in self.ceph.items() if key.startswith("AWS_")}
        self.begin(self.ceph["TACHO_TEST_CEPH"], "s3://plain/takeover", keys)
        self.start_cluster()
        self.expect_takeovers(4, self.disturb)

    def disturb(self, takeover):
        daemon = ("osd.0", "rgw.0", "osd.1", "rgw.0")[takeover % 4]
        test_bucket.ceph.tell(self.ceph_folder, "kill", daemon)
        time.sleep(1)
        test_bucket.ceph.tell(self.ceph_folder, "revive", daemon)
        print(f"{daemon} was killed, and is back")


if __name__ == "__main__":
    harness.main()
