"""Node power of a real run goes in through the public gRPC API and gives the published energy.

The folder holds one log a node (watts, about every 2 s), one for the switch, and the submitter's
total in total_power.txt. How that total comes about is not documented; what reproduces it is

    sum over nodes of the trapezoid integral of power over the node's own interval   10.2742 kWh
  + interconnect_power_est of the switch, 59570, read as joules                       0.0165 kWh
  = 10.2907 kWh, against "10.30 kWh": 0.1 % less.

As watts the estimate would add 1.94 kWh in the run's 117 s and miss the total by 18 %.
"""
import glob
import os
import re

import client
import harness
import mllog

JOB = "llama2-70b-lora"
ROWS = 16  # Of a batch.
JOULES_PER_KWH = 3.6e6


def read_nodes(folder):
    """{file's stem: [(time ns, watts)]} in the order of the files, switch included."""
    nodes = {}
    for path in sorted(glob.glob(os.path.join(folder, "*_[0-9]*.txt"))):
        name = os.path.basename(path)[: -len(".txt")]
        nodes[name] = [
            (line.time_ms * 1_000_000, float(line.value))
            for line in mllog.lines(path)
            if line.key in ("power_reading", "interconnect_power_est")
        ]
    return nodes


def trapezoid_joules(samples):
    pairs = zip(samples, samples[1:])
    return sum((b[0] - a[0]) / 1e9 * (a[1] + b[1]) / 2 for a, b in pairs)


class PowerTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = glob.glob(os.path.join(harness.shared_data("mlperf-power"), "result_*"))[0]
        # Partitions are days: the switch's estimate lies two years before the rest.
        config = "storage: {retention: 0s, seal_rows: 16}\n"
        self.collector = self.started(harness.Collector(self.directory, config))
        self.query = client.Query(self.collector.address)
        self.addCleanup(self.query.close)

    def disturbed(self, samples):
        """What an untidy sender sends: out of order, and wrong values that it corrects later.

        The later write of a time wins, so the corrections all come after what they correct.
        """
        shuffled = samples[:]
        self.random.shuffle(shuffled)
        wrong = [(t, -1.0) for t, _ in shuffled[::7]]
        again = shuffled[1::11]  # The same value twice.
        return wrong + shuffled + again

    def feed(self, nodes):
        """Sends everything and waits until it is durable; returns the number of rows sent."""
        stream = client.Stream(self.collector.address, "power-importer", 1, 1)
        self.addCleanup(stream.close)
        self.assertTrue(stream.welcomed(), stream.error)
        sequence = rows = 0
        for number, (node, samples) in enumerate(nodes.items()):
            metric = "interconnect_power" if node.startswith("sw") else "power"
            unit = "W" if metric == "power" else ""
            stream.send(client.layout(number, JOB, node, [(metric, unit)]))
            sent = self.disturbed(samples)
            rows += len(sent)
            for begin in range(0, len(sent), ROWS):
                times, values = zip(*sent[begin : begin + ROWS])
                sequence += 1
                stream.send(client.batch(sequence, number, times, values))
        self.assertTrue(stream.wait_durable(sequence), stream.error)
        self.assertEqual(stream.rejects, [])
        return rows

    def stored(self):
        """{host: [(time, watts)]}"""
        answer = self.query.range(JOB)
        return {
            host: [(t, client.double(pattern)) for t, _, _, pattern in samples]
            for (_, _, host), samples in answer.items()
        }

    def test_readings_come_back_and_give_the_published_energy(self):
        nodes = read_nodes(self.folder)
        self.assertEqual(len(nodes), 65)
        readings = sum(map(len, nodes.values()))
        latest = {node: dict(samples) for node, samples in nodes.items()}
        distinct = sum(map(len, latest.values()))
        sent = self.feed(nodes)
        print(
            f"{readings} readings of {len(nodes)} files, {readings - distinct} of them duplicates; "
            f"{sent} rows sent, {sent - distinct} of them duplicates"
        )

        for _ in range(2):  # From memory and journal, then after a clean restart.
            stored = self.stored()
            self.assertEqual(set(stored), set(nodes))
            for node, values in latest.items():
                self.assertEqual(stored[node], sorted(values.items()), node)
            self.expect_published_energy(stored)
            self.assertEqual(self.collector.stop(), 0)
            self.collector.start()

    def expect_published_energy(self, stored):
        joules = sum(
            samples[0][1] if node.startswith("sw") else trapezoid_joules(samples)
            for node, samples in stored.items()
        )
        with open(os.path.join(self.folder, "total_power.txt")) as file:
            published = float(re.search(r"([0-9.]+) kWh", file.read()).group(1))
        print(f"{joules / JOULES_PER_KWH:.4f} kWh, published {published} kWh")
        self.assertAlmostEqual(joules / JOULES_PER_KWH, published, delta=0.01 * published)


if __name__ == "__main__":
    harness.main()
