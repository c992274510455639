"""Several collectors share the jobs (docs/cluster.md): each keeps its own and says who keeps the others;
what cannot be is refused with a reason."""
import json
import os
import socket
import subprocess
import time

import client
import harness
import test_bucket

SHARDS = 3
METRICS = [("loss", "1")]


def shard_of(job):
    return harness.shard_of(job, SHARDS)


def job_of(shard, number=0):
    """A name whose job is kept there."""
    names = (f"job-{i}" for i in range(10_000))
    return [name for name, _ in zip((n for n in names if shard_of(n) == shard), range(number + 1))][-1]


class ClusterCase(harness.TestCase):
    more = ""  # Of the configuration.
    env = None

    def setUp(self):
        super().setUp()
        print(f"seed {self.seed}")
        self.ports = [harness.free_port() for _ in range(SHARDS)]
        self.members = [f"127.0.0.1:{port}" for port in self.ports]

    def machine(self, shard, name=None, members=None, more=None, cluster=""):
        """A collector that does not run yet; `name` is that of its directory."""
        name = name or f"member-{shard}"
        directory = os.path.join(self.directory, name)
        os.makedirs(directory, exist_ok=True)
        members = members or self.members
        config = (
            f"cluster: {{members: {json.dumps(members)}, member: '{members[shard]}'{cluster}}}\n"
            "log: {level: info}\n"
        )
        collector = harness.Collector(
            directory, config + (self.more if more is None else more), env=self.env
        )
        collector.log = os.path.join(self.directory, f"{name}.log")
        collector.grpc = int(members[shard].rsplit(":", 1)[1])
        return collector

    def cluster(self):
        self.collectors = [self.started(self.machine(shard)) for shard in range(SHARDS)]

    def metric(self, collector, name, labels=""):
        _, _, page = harness.http_get(collector.url("/metrics"))
        for line in page.decode().splitlines():
            if line.startswith(name + "{") or line.startswith(name + " "):
                if labels in line:
                    return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no {name}{labels} in /metrics")

    def members_of(self, address, code):
        """What 'tachoctl cluster' says, as JSON."""
        done = harness.tachoctl(address, "cluster", "-o", "json")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def jobs_of(self, shard):
        """The jobs that the member says it keeps."""
        return self.members_of(self.members[shard], 0)["members"][shard]["jobs"]

    def record(self, shard, job, address=None, sequence=1):
        """A row of the job, by a stream that takes the receiver for this shard."""
        stream = client.Stream(
            address or self.members[shard], f"agent-{shard}", 7, sequence, shards=SHARDS, shard=shard
        )
        self.assertTrue(stream.welcomed(), stream.error)
        stream.send(client.layout(1, job, "host-1", METRICS, task=0))
        stream.send(client.batch(sequence, 1, [time.time_ns()], [1.5]))
        self.assertTrue(stream.wait_durable(sequence), stream.error)
        return stream

    def refused(self, collector, *messages, **hello):
        """The status with which a stream is ended."""
        stream = client.Stream(collector.address, "stranger", 7, 1, **hello)
        for message in messages:
            stream.send(message)
        self.assertFalse(stream.wait(lambda: False, "end of the stream"))
        stream.close()
        return stream.error

    def not_started(self, collector):
        """Why the process does not run."""
        done = subprocess.run(
            collector.arguments(os.path.join(self.directory, "none")),
            env={**os.environ, **(self.env or {})}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr


class ClusterTest(ClusterCase):
    """Without a bucket: each member has its own disk."""

    def setUp(self):
        super().setUp()
        self.cluster()
        self.own, self.foreign = job_of(0), job_of(1)
        self.keeper = f"job {self.foreign} belongs to {self.members[1]} (shard 1 of 3): send it there"

    def test_streams_of_another_list_are_turned_away(self):
        first = self.collectors[0]
        for hello, reason in (
            ({}, "the sender knows no cluster"),
            ({"shards": 4, "shard": 0}, "a cluster of 4 collectors"),
            ({"shards": SHARDS, "shard": 2}, "takes it for shard 2"),
        ):
            error = self.refused(first, **hello)
            self.assertEqual(error.code().name, "FAILED_PRECONDITION")
            self.assertIn(f"this collector is {self.members[0]} (shard 0 of 3)", error.details())
            self.assertIn(reason, error.details())
        layout = client.layout(1, self.foreign, "host-1", METRICS, task=0)
        error = self.refused(first, layout, shards=SHARDS, shard=0)
        self.assertEqual(error.code().name, "FAILED_PRECONDITION")
        self.assertIn(self.keeper, error.details())
        refused = "tacho_ingest_messages_refused_total"
        self.assertEqual(self.metric(first, refused, 'reason="shard"'), 4)
        self.record(0, self.own).close()
        self.record(1, self.foreign).close()
        self.assertEqual([self.jobs_of(shard) for shard in range(SHARDS)], [1, 1, 0])

    def test_tachoctl_shows_all_members_and_who_is_away(self):
        streams = [self.record(shard, job_of(shard, n)) for shard in range(SHARDS) for n in range(1)]
        for address in self.members:
            told = self.members_of(address, 0)
            self.assertEqual(told["own_shard"], self.members.index(address))
            for shard, member in enumerate(told["members"]):
                self.assertEqual(
                    (member["shard"], member["address"], member["state"], member["jobs"],
                     member["agents"], member["shipping"]),
                    (shard, self.members[shard], "ok", 1, 1, None),
                )  # fmt: skip
        table = harness.tachoctl(self.members[0], "cluster")
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertEqual(table.stdout.count(" ok"), SHARDS, table.stdout)

        self.collectors[1].kill()
        told = self.members_of(self.members[2], 1)["members"]
        self.assertEqual([m["state"] for m in told], ["ok", "unreachable", "ok"])
        self.assertEqual(told[1]["address"], self.members[1])
        self.assertTrue(told[1]["error"])
        self.assertIsNone(told[1]["jobs"])
        table = harness.tachoctl(self.members[0], "cluster")
        self.assertEqual(table.returncode, 1, table.stderr)
        self.assertIn("unreachable", table.stdout)

        self.collectors[1].start()
        harness.wait_until(
            lambda: harness.tachoctl(self.members[2], "cluster").returncode == 0, "it is back", pause_s=0.3
        )
        self.assertEqual(self.jobs_of(1), 1)
        for shard, collector in enumerate(self.collectors):
            self.assertEqual(self.metric(collector, "tacho_cluster_members"), SHARDS)
            self.assertEqual(self.metric(collector, "tacho_cluster_shard"), shard)
        for stream in streams:
            stream.close()

    def test_a_member_that_stands_still_costs_two_seconds(self):
        self.collectors[1].program.process.send_signal(19)  # SIGSTOP
        begun = time.monotonic()
        told = self.members_of(self.members[0], 1)["members"]
        self.assertLess(time.monotonic() - begun, 20)
        self.assertEqual(told[1]["error"], "it does not answer in time")


class BucketOfAClusterTest(ClusterCase):
    """With cluster.ack: shared, and one place in a bucket for all."""

    URL = "s3://tests/cluster"

    def setUp(self):
        super().setUp()
        self.store = self.started(test_bucket.ObjectStore())
        self.env = {
            **os.environ,
            "AWS_ACCESS_KEY_ID": test_bucket.KEY_ID,
            "AWS_SECRET_ACCESS_KEY": test_bucket.SECRET,
        }
        self.more = (
            f"bucket: {{url: '{self.URL}', endpoint: '{self.store.endpoint}', path_style: true}}\n"
        )

    def machine(self, *args, **more):
        return super().machine(*args, cluster=", ack: shared, ack_interval: 100ms", **more)

    def test_members_share_a_place_and_each_survives_its_machine(self):
        self.cluster()
        jobs = [job_of(shard) for shard in range(SHARDS)]
        for shard, job in enumerate(jobs):
            self.record(shard, job).close()
        for shard, member in enumerate(self.members_of(self.members[0], 0)["members"]):
            self.assertEqual((member["jobs"], member["shipping"]["epoch"]), (1, 1), member)
            self.assertFalse(member["shipping"]["fenced"])
            name = "tacho_shard_epoch"
            self.assertEqual(self.metric(self.collectors[shard], name, f'{{shard="{shard}"}}'), 1)

        # The machine is gone; another one takes its name, and its place in the list.
        self.collectors[1].kill()
        replaced = self.started(self.machine(1, name="replaced"))
        query = client.Query(replaced.address)
        self.assertEqual(len(list(query.series(jobs[1]))), len(METRICS))
        self.assertEqual(sorted(query.jobs()), sorted(jobs), "the others answer for theirs")
        query.close()
        members = self.members_of(self.members[0], 0)["members"]
        self.assertEqual([m["shipping"]["epoch"] for m in members], [1, 2, 1])
        self.record(1, jobs[1], sequence=2).close()

    def test_of_two_that_are_the_same_member_the_older_is_fenced(self):
        self.cluster()
        job = job_of(2)
        self.record(2, job).close()
        twin = self.machine(2, name="twin")
        twin.grpc = 0  # Where nobody looks for it.
        self.started(twin)
        # The older one learns of it when it ships the next message, which it then does not acknowledge.
        stream = client.Stream(self.members[2], "agent-2", 7, 2, shards=SHARDS, shard=2)
        self.assertTrue(stream.welcomed())
        stream.send(client.layout(1, job, "host-1", METRICS, task=0))
        stream.send(client.batch(2, 1, [time.time_ns()], [2.5]))
        self.assertFalse(stream.wait(lambda: stream.durable >= 2, "end of the stream"))
        stream.close()
        harness.wait_until(
            lambda: self.members_of(self.members[0], 1)["members"][2]["state"] == "fenced", "it is fenced"
        )
        self.record(2, job, address=twin.address, sequence=2).close()
        self.assertEqual(self.metric(twin, "tacho_shard_epoch"), 2)

    def test_a_cluster_of_another_size_is_refused(self):
        self.started(self.machine(0)).stop()
        two = self.machine(1, name="two", members=self.members[:2])
        text = self.not_started(two)
        self.assertIn("a cluster of 3 collectors", text)
        self.assertIn("cluster.members names 2", text)
        alone = self.machine(0, name="alone")
        with open(alone.config, "w") as file:
            file.write(self.more + "cluster: {ack: shared}\n")
        text = self.not_started(alone)
        self.assertIn("this collector is in none", text)
        self.assertIn("another bucket.url", text)

    def test_the_bucket_of_one_collector_does_not_become_that_of_a_cluster(self):
        alone = self.machine(0, name="alone")
        with open(alone.config, "w") as file:
            file.write(self.more + "cluster: {ack: shared}\n")
        self.started(alone)
        stream = client.Stream(alone.address, "agent-0", 7, 1)
        self.assertTrue(stream.welcomed())
        stream.close()
        alone.stop()
        for shard in range(SHARDS):
            text = self.not_started(self.machine(shard))
            self.assertIn("one collector with all jobs", text)
            self.assertIn("give the cluster another bucket.url", text)


class ConfigurationTest(ClusterCase):
    def check(self, text, code):
        path = os.path.join(self.directory, "checked.yaml")
        with open(path, "w") as file:
            file.write(text)
        done = subprocess.run(
            [os.environ["TACHO_COLLECTOR"], "--config", path, "--check-config"],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def test_what_cannot_be_is_found_before_the_start(self):
        here = socket.gethostname().split(".")[0]
        many = [f"m-{i}:7411" for i in range(1001)]
        for members, member, reason in (
            (["a:1", "b:1"], "c", "cluster.member: c is none of cluster.members (a:1, b:1)"),
            (["a:1", "b:1"], "", f"the name of this machine, {here}, is none of"),
            ([f"{here}:1", f"{here}:2"], "", f"fits {here}:1 and {here}:2"),
            (["a:1", "b:1", "a:1"], "b", "names a:1 twice"),
            (["a:1"], "a", "names one collector, a:1"),
            (["a:1", "b:0"], "a", "b:0 has the port 0"),
            (many, "m-7", "names 1001 collectors; at most 1000"),
            ([], "a", "cluster.member: needs cluster.members"),
        ):
            text = f"cluster: {{members: {json.dumps(members)}, member: '{member}'}}\n"
            self.assertIn(reason, self.check(text, 2))
        self.check(f"cluster: {{members: {json.dumps(many[:1000])}, member: m-999}}\n", 0)
        self.check(f"cluster: {{members: ['{here}.tacho:1', 'b.tacho:1']}}\n", 0)

    def test_a_collector_alone_says_so(self):
        alone = self.started(harness.Collector(self.directory))
        done = harness.tachoctl(alone.address, "cluster")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("is in no cluster: it keeps every job itself", done.stdout)
        self.assertEqual(self.members_of(alone.address, 0), {"own_shard": None, "members": []})
        error = self.refused(alone, shards=3, shard=0)
        self.assertEqual(error.code().name, "FAILED_PRECONDITION")
        self.assertIn("this collector is in none", error.details())


if __name__ == "__main__":
    harness.main()
