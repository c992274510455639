"""An agent with collector.members: every row is stored by the member that keeps its job, once, and by no other."""
import hashlib
import json
import os
import re
import time

import client
import grpc
import harness
import ring_files

from tacho.v1 import query_pb2, view_pb2, view_pb2_grpc

MEMBERS = 3
# A member answers from what it has itself.
ONLY_OWN = [("tacho-forwarded", "1")]


def shard_of(job):
    return harness.shard_of(job, MEMBERS)


def jobs_of_all_shards():
    """Five jobs; each shard has one at least."""
    names = [f"run-{i}" for i in range(100)]
    firsts = [next(n for n in names if shard_of(n) == shard) for shard in range(MEMBERS)]
    return firsts + [n for n in names if n not in firsts][:2]


class ClusterAgentsTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        print(f"seed {self.seed}")
        self.rings = os.path.join(self.directory, "rings")
        os.mkdir(self.rings)
        ports = [harness.free_port() for _ in range(MEMBERS)]
        self.addresses = [f"127.0.0.1:{port}" for port in ports]
        self.members = [self.member(i, port) for i, port in enumerate(ports)]
        self.jobs = jobs_of_all_shards()
        self.kept = {}  # A link to each job's ring, which the agent deletes.

    def collector(self, name, config):
        directory = os.path.join(self.directory, name)
        os.mkdir(directory)
        collector = harness.Collector(directory, config)
        collector.log = os.path.join(self.directory, f"{name}.log")
        return collector

    def member(self, shard, port):
        collector = self.collector(
            f"member-{shard}",
            "storage: {seal_rows: 64, seal_age: 1s}\nlog: {level: warn}\n"
            f"cluster: {{members: {self.addresses}, member: '{self.addresses[shard]}'}}\n",
        )
        collector.grpc = port
        return collector

    def start_members(self, *shards):
        for shard in shards or range(MEMBERS):
            self.started(self.members[shard])

    def agent(self, collector, host="{enabled: false}", more_sources=""):
        """`collector` is the configuration's part on where to send, as YAML."""
        sources = (
            f"  host: {host}\n"
            f"  rings: {{directory: {self.rings}, poll_interval: 20ms}}\n{more_sources}"
        )
        agent = harness.Agent(self.directory, self.members[0], sources, hasty=True)
        with open(agent.config) as file:
            text = file.read()
        text = re.sub(r"address: '[^']*'", lambda _: collector, text)
        with open(agent.config, "w") as file:
            file.write(text)
        return self.started(agent)

    def cluster_agent(self):
        return self.agent(f"members: {self.addresses}")

    def train(self, job, steps, delay_ms=3):
        arguments = [
            os.environ["TACHO_TRAIN"], "--job", job, "--task", "0", "--tasks", "1",
            "--steps", str(steps), "--ring-dir", self.rings, "--step-delay-ms", str(delay_ms),
        ]  # fmt: skip
        trainer = harness.Program(arguments, os.path.join(self.directory, f"train-{job}.log"))
        self.addCleanup(trainer.kill)
        ring = os.path.join(self.rings, f"{job}.0.{trainer.process.pid}.ring")
        harness.wait_until(lambda: os.path.exists(ring), "ring made", pause_s=0.01)
        self.kept[job] = os.path.join(self.directory, f"kept.{job}")
        os.link(ring, self.kept[job])
        return trainer

    def stored(self, address, job):
        """{metric: [(time, step, bits)]} of what this collector has itself; {} if the job is unknown to it."""
        query = client.Query(address)
        found = {}
        try:
            request = query_pb2.RangeRequest(selector=query_pb2.Selector(job=job))
            for piece in query.stub.Range(
                request, timeout=harness.PATIENCE_S, metadata=ONLY_OWN
            ):
                if piece.HasField("series"):
                    samples = found.setdefault(piece.series.metric.name, [])
                samples.extend((t, s, b) for t, s, _, b in client.points_of(piece.points))
        except grpc.RpcError as error:
            if error.code() not in (
                grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION
            ):  # fmt: skip
                raise
        finally:
            query.close()
        return found

    def recorded(self, job):
        """The same, from the trainer's ring."""
        metrics, rows = ring_files.read(self.kept[job])
        return {
            metric: [
                (row.time_ns, row.step, row.patterns[column])
                for row in rows
                if column < len(row.patterns) and row.patterns[column] is not None
            ]
            for column, metric in enumerate(metrics)
        }

    def has_all(self, address, job):
        stored = self.stored(address, job)
        recorded = self.recorded(job)
        return all(len(stored.get(m, ())) == len(rows) for m, rows in recorded.items())

    def wait_for(self, job, address=None):
        address = address or self.addresses[shard_of(job)]
        harness.wait_until(lambda: self.has_all(address, job), f"all of {job} at {address}")

    def expect_once(self, *jobs):
        for job in jobs:
            self.wait_for(job)
            for shard, address in enumerate(self.addresses):
                stored = self.stored(address, job)
                if shard != shard_of(job):
                    self.assertEqual(stored, {}, f"{job} at {address}, which does not keep it")
                    continue
                for metric, samples in self.recorded(job).items():
                    self.assertEqual(sorted(stored[metric]), sorted(samples), (job, metric))
                query = client.Query(address)
                answers = query.stub.ListEvents(
                    query_pb2.ListEventsRequest(job=job), metadata=ONLY_OWN
                )
                kinds = [event.kind for answer in answers for event in answer.events]
                query.close()
                self.assertEqual(sorted(kinds), ["attempt_started", "ended"], job)

    def test_every_row_is_at_its_jobs_member_once_over_kills(self):
        self.start_members()
        agent = self.cluster_agent()
        trainers = [self.train(job, steps=1500) for job in self.jobs]
        victims = [agent, self.members[1]]
        kills = 0
        while any(trainer.alive() for trainer in trainers):
            time.sleep(self.random.uniform(0.2, 0.8))
            victim = victims[kills % 2]
            victim.kill()
            time.sleep(self.random.uniform(0, 0.5))
            victim.start()
            kills += 1
        print(f"{kills} kills")
        self.assertGreater(kills, 2)
        self.assertEqual({trainer.wait() for trainer in trainers}, {0})
        harness.wait_until(lambda: not os.listdir(self.rings), "rings delivered and deleted")
        self.expect_once(*self.jobs)
        self.assertEqual(agent.stop(), 0)

    def test_a_member_that_is_away_holds_up_its_own_jobs_alone(self):
        self.start_members(0, 2)
        self.cluster_agent()
        trainers = [self.train(job, steps=300) for job in self.jobs]
        self.assertEqual({trainer.wait() for trainer in trainers}, {0})
        for job in self.jobs:
            if shard_of(job) != 1:
                self.wait_for(job)
        self.start_members(1)
        self.expect_once(*self.jobs)

    def test_a_push_to_any_member_is_stored_by_the_one_that_keeps_the_job(self):
        self.start_members()
        for job in self.jobs:
            told = harness.tachoctl(self.addresses[0], "push", f"job={job}", "accuracy=0.5")
            self.assertEqual(told.returncode, 0, told.stderr)
            for shard, address in enumerate(self.addresses):
                stored = self.stored(address, job).get("accuracy", [])
                self.assertEqual(len(stored), shard == shard_of(job), (job, address))

    def test_each_member_has_the_hosts_of_its_jobs(self):
        """Energy, chips and host conditions need them; lists and metrics show them at one member."""
        self.start_members()
        text = os.path.join(self.directory, "chips.prom")
        with open(text, "w") as file:
            file.write('# TYPE chip_power_watts gauge\nchip_power_watts{chip="0"} 250\n')
        self.agent(
            f"members: {self.addresses}", "{interval: 200ms}",
            f"  textfiles: {{directory: {self.directory}, interval: 200ms}}\n",
        )  # fmt: skip
        hosts_owner = shard_of("hosts")
        jobs = {shard_of(job): job for job in self.jobs}
        for job in jobs.values():
            self.train(job, steps=100_000, delay_ms=20)
        for shard, address in enumerate(self.addresses):
            harness.wait_until(
                lambda: len(self.stored(address, "hosts").get("chip_power_watts", [])) > 10,
                f"rows of the host at member {shard}",
            )
        owned = self.stored(self.addresses[hosts_owner], "hosts")["chip_power_watts"]
        for address in self.addresses:
            copied = self.stored(address, "hosts")["chip_power_watts"]
            last = min(owned[-1][0], copied[-1][0])
            copied = [sample for sample in copied if sample[0] <= last]
            self.assertEqual(copied, [s for s in owned if copied[0][0] <= s[0] <= last])
        for shard, member in enumerate(self.members):
            harness.wait_until(
                lambda: self.energy(member, jobs[shard]) > 0, f"the energy of {jobs[shard]}"
            )
            page = self.page(member)
            self.assertIn(f'tacho_job_chip_power_watts{{job="{jobs[shard]}",stat="sum"}} 250', page)
            self.assertEqual('{job="hosts"' in page, shard == hosts_owner, member.address)
            told = harness.tachoctl(member.address, "jobs", "-o", "json")
            self.assertEqual(told.returncode, 0, told.stderr)
            names = [job["job"] for job in json.loads(told.stdout)["jobs"]]
            self.assertEqual(sorted(names), sorted([*jobs.values(), "hosts"]))
            channel = client.connect(member.address)
            fleet = view_pb2_grpc.ViewStub(channel).Fleet(view_pb2.FleetRequest())
            channel.close()
            self.assertEqual(fleet.totals.jobs, len(names))

    def test_a_split_job_has_each_hosts_rows_at_the_hosts_member(self):
        """The agent waits first for members that do not split it, and so has rows to move."""
        text = os.path.join(self.directory, "chips.prom")
        with open(text, "w") as file:
            file.write('# TYPE chip_power_watts gauge\nchip_power_watts{chip="0"} 250\n')
        sources = f"  textfiles: {{directory: {self.directory}, interval: 200ms}}\n"
        agent = self.agent(f"members: {self.addresses}", "{interval: 200ms}", sources)
        time.sleep(2)
        agent.stop()
        for member in self.members:
            with open(member.config) as file:
                text = file.read()
            with open(member.config, "w") as file:
                file.write(text.replace("cluster: {", "cluster: {split_jobs: [hosts], "))
        self.start_members()
        self.agent(
            f"members: {self.addresses}, split_jobs: [hosts]", "{interval: 200ms}", sources
        )
        jobs = {shard_of(job): job for job in self.jobs}
        for job in jobs.values():
            self.train(job, steps=100_000, delay_ms=20)
        digest = hashlib.sha256(b"hosts\0host-1").digest()
        keeper = int.from_bytes(digest[:8], "big") % MEMBERS
        for shard, address in enumerate(self.addresses):
            harness.wait_until(
                lambda: len(self.stored(address, "hosts").get("chip_power_watts", [])) > 10,
                f"rows of the host at member {shard}",
            )
        owned = self.stored(self.addresses[keeper], "hosts")["chip_power_watts"]
        for shard, member in enumerate(self.members):
            copied = self.stored(member.address, "hosts")["chip_power_watts"]
            if shard != keeper:  # What waited was moved to the keeper; copies begin with the jobs.
                self.assertLess(owned[0][0], copied[0][0])
            query = client.Query(member.address)
            whole = query.series("hosts", "chip_power_watts")
            query.close()
            self.assertEqual(len(whole), 1, "one series, whoever is asked")
            harness.wait_until(
                lambda: self.energy(member, jobs[shard]) > 0, f"the energy of {jobs[shard]}"
            )
            page = self.page(member)
            self.assertIn(f'tacho_job_chip_power_watts{{job="{jobs[shard]}",stat="sum"}} 250', page)
            self.assertEqual('tacho_job_hosts{job="hosts"}' in page, shard == keeper, member.address)
            told = harness.tachoctl(member.address, "jobs", "-o", "json")
            self.assertEqual(told.returncode, 0, told.stderr)
            listed = {job["job"]: job for job in json.loads(told.stdout)["jobs"]}
            self.assertEqual(sorted(listed), sorted([*jobs.values(), "hosts"]))
            self.assertEqual(listed["hosts"]["hosts"], 1)

    def energy(self, member, job):
        told = harness.tachoctl(member.address, "cost", job, "-o", "json")
        self.assertEqual(told.returncode, 0, told.stderr)
        return json.loads(told.stdout).get("energy", {}).get("joules", 0)

    def page(self, member):
        return harness.http_get(member.url("/metrics"))[2].decode()

    def test_what_waited_without_members_goes_to_the_right_ones(self):
        nobody = f"127.0.0.1:{harness.free_port()}"
        agent = self.agent(f"address: '{nobody}'")
        trainers = [self.train(job, steps=300) for job in self.jobs]
        self.assertEqual({trainer.wait() for trainer in trainers}, {0})
        harness.wait_until(lambda: not os.listdir(self.rings), "all of it is in the spool")
        agent.kill()
        self.start_members()
        agent = self.cluster_agent()
        # Kills at any moment of the move, and after it.
        for _ in range(3):
            time.sleep(self.random.uniform(0, 0.15))
            agent.kill()
            agent.start()
        self.expect_once(*self.jobs)

    def test_what_waited_for_members_goes_to_the_one_collector_that_is_left(self):
        agent = self.cluster_agent()
        trainers = [self.train(job, steps=300) for job in self.jobs]
        self.assertEqual({trainer.wait() for trainer in trainers}, {0})
        harness.wait_until(lambda: not os.listdir(self.rings), "all of it is in spools")
        agent.kill()
        single = self.started(self.collector("single", "log: {level: warn}\n"))
        self.agent(f"address: '{single.address}'")
        for job in self.jobs:
            self.wait_for(job, single.address)
            for metric, samples in self.recorded(job).items():
                stored = self.stored(single.address, job)[metric]
                self.assertEqual(sorted(stored), sorted(samples), (job, metric))


if __name__ == "__main__":
    harness.main()
