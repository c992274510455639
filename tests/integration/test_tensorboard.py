"""TensorBoard's calls, replayed against a real collector by a client made from the protocol."""
import math
import random
import struct
import time

import certificates
import client
import harness  # First: it makes the stubs importable.
import grpc
import tensorboard_client
from tacho.v1 import ingest_pb2, types_pb2
from security_case import SecurityCase

STEPS = 50_000
SPIKE, DIP, NAN = 31_337, 31_338, 44_444


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Recorder:
    """Sends rows, events and attributes, and waits until they are durable."""

    def __init__(self, address, begin_ns, **how):
        self.begin_ns = begin_ns
        self.sequence = 0
        self.layouts = 0
        self.stream = client.Stream(address, "recorder", 1, 1, **how)
        if not self.stream.welcomed():
            raise AssertionError(self.stream.error)

    def rows(self, job, metric, values, task=0, attempt=0, first_step=0):
        """One value a second; a step each."""
        self.layouts += 1
        self.stream.send(
            client.layout(
                self.layouts, job, f"host-{task}", [(metric, "nats")], task, attempt, True
            )
        )
        for begin in range(0, len(values), 10_000):
            part = values[begin : begin + 10_000]
            first = first_step + begin
            steps = list(range(first, first + len(part)))
            times = [self.begin_ns + (attempt * 10**4 + step) * 10**7 for step in steps]
            self.sequence += 1
            self.stream.send(client.batch(self.sequence, self.layouts, times, part, steps))
            self.settle()

    def message(self, **fields):
        self.sequence += 1
        for name, message in fields.items():
            message.sequence = self.sequence
            self.stream.send(ingest_pb2.ClientMessage(**{name: message}))
        self.settle()

    def settle(self):
        if not self.stream.wait_durable(self.sequence):
            raise AssertionError(self.stream.error)

    def close(self):
        self.stream.close()


class ReplayTest(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.values = [math.exp(-step / 20_000) for step in range(STEPS)]
        cls.values[SPIKE], cls.values[DIP], cls.values[NAN] = 1000.0, -1000.0, math.nan

    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))
        self.begin_ns = time.time_ns() - 3600 * 10**9
        self.recorder = Recorder(self.collector.address, self.begin_ns)
        self.addCleanup(self.recorder.close)
        self.tensorboard = tensorboard_client.Provider(
            tensorboard_client.local_channel(self.collector.address)
        )
        self.addCleanup(self.tensorboard.close)

    def refused(self, code, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        return caught.exception.details()

    def test_a_page_is_loaded(self):
        """In the order of a browser that opens TensorBoard and looks at one card."""
        self.recorder.rows("vision/resnet", "loss", self.values)
        tensorboard = self.tensorboard
        experiment = tensorboard.experiment()
        self.assertEqual(experiment.description, "1 jobs with 1 runs.")
        self.assertEqual(experiment.creation_time.seconds, self.begin_ns // 10**9)
        self.assertEqual(tensorboard.plugins(), ["scalars"])
        self.assertEqual(tensorboard.runs(), {"vision/resnet/0": self.begin_ns / 1e9})
        listed = tensorboard.list_scalars()
        self.assertEqual(list(listed), ["vision/resnet/0"])
        loss = listed["vision/resnet/0"]["loss"]
        self.assertEqual(loss.max_step, STEPS - 1)
        newest = (self.begin_ns + (STEPS - 1) * 10**7) / 1e9
        self.assertEqual(loss.max_wall_time, newest)
        self.assertEqual(loss.summary_metadata.plugin_data.plugin_name, "scalars")
        self.assertEqual(loss.summary_metadata.data_class, 1)
        self.assertEqual(loss.summary_metadata.summary_description, "Unit: nats.")

        read = tensorboard.read_scalars(1000, tags=["loss"])["vision/resnet/0"]["loss"]
        self.assertLessEqual(len(read), 1000)
        self.assertGreater(len(read), 250)
        self.assertEqual([step for step, _, _ in read], sorted({step for step, _, _ in read}))
        for step, when, value in read:
            self.assertEqual(when, (self.begin_ns + step * 10**7) / 1e9)
            if step != NAN:
                self.assertEqual(value, float32(self.values[step]))
        found = {step: value for step, _, value in read}
        self.assertEqual(found[SPIKE], 1000.0)
        self.assertEqual(found[DIP], -1000.0)
        self.assertTrue(math.isnan(found[NAN]))
        self.assertEqual(read[-1][:2], (STEPS - 1, newest))

    def test_any_number_of_points(self):
        values = [float(random.Random(1).random()) for _ in range(300)]
        self.recorder.rows("j", "loss", values)
        whole = self.tensorboard.read_scalars(300)["j/0"]["loss"]
        self.assertEqual([value for _, _, value in whole], [float32(value) for value in values])
        for points in (0, 1, 2, 3, 4, 10, 299):
            some = self.tensorboard.read_scalars(points)["j/0"]["loss"]
            self.assertLessEqual(len(some), points)
            self.assertEqual(some[-1:], whole[-1:] if points else [])
            self.assertLessEqual(set(some), set(whole))

    def test_new_rows_are_seen_at_once(self):
        self.recorder.rows("j", "loss", [1.0, 2.0])
        self.assertEqual(len(self.tensorboard.read_scalars(1000)["j/0"]["loss"]), 2)
        self.recorder.rows("j", "loss", [3.0], first_step=2)
        self.assertEqual(self.tensorboard.read_scalars(1)["j/0"]["loss"][0][::2], (2, 3.0))
        self.recorder.rows("k", "loss", [3.0], attempt=4)
        self.assertEqual(sorted(self.tensorboard.runs()), ["j/0", "k/4"])

    def test_tasks_and_attempts(self):
        self.recorder.rows("j", "loss", [1.0, 2.0, 3.0], task=0)
        self.recorder.rows("j", "loss", [3.0, 4.0], task=1)
        self.recorder.rows("j", "loss", [7.0], task=0, attempt=1, first_step=1)
        read = self.tensorboard.read_scalars(1000, "j")
        just = lambda run, tag: [(step, value) for step, _, value in read[run][tag]]
        self.assertEqual(sorted(read), ["j/0", "j/1"])
        self.assertEqual(sorted(read["j/0"]), ["loss", "loss/task0", "loss/task1"])
        self.assertEqual(just("j/0", "loss"), [(0, 2.0), (1, 3.0), (2, 3.0)])
        self.assertEqual(just("j/0", "loss/task1"), [(0, 3.0), (1, 4.0)])
        self.assertEqual(list(read["j/1"]), ["loss"])
        self.assertEqual(just("j/1", "loss"), [(1, 7.0)])

    def test_filters_that_are_absent_are_not_empty_ones(self):
        for job in ("j", "k"):
            for metric in ("loss", "accuracy"):
                self.recorder.rows(job, metric, [1.0])
        tensorboard = self.tensorboard
        everything = {"j/0": ["accuracy", "loss"], "k/0": ["accuracy", "loss"]}
        for ask in (tensorboard.list_scalars, lambda **f: tensorboard.read_scalars(10, **f)):
            tags = lambda **filters: {run: sorted(found) for run, found in ask(**filters).items()}
            self.assertEqual(tags(), everything)
            self.assertEqual(tags(runs=[]), {})
            self.assertEqual(tags(tags=[]), {})
            self.assertEqual(tags(runs=["j/0"]), {"j/0": everything["j/0"]})
            self.assertEqual(tags(tags=["loss"]), {"j/0": ["loss"], "k/0": ["loss"]})
            self.assertEqual(tags(runs=["k/0", "z/9"], tags=["loss", "z"]), {"k/0": ["loss"]})
            self.assertEqual(tags(experiment_id="k"), {"k/0": everything["k/0"]})
            self.assertEqual(tags(experiment_id="[jx]"), {"j/0": everything["j/0"]})
            self.assertEqual(tags(plugin="histograms"), {})

    def test_errors_have_a_text_that_helps(self):
        self.recorder.rows("resnet", "loss", [1.0])
        tensorboard, code = self.tensorboard, grpc.StatusCode
        text = self.refused(code.NOT_FOUND, lambda: tensorboard.runs("resmet"))
        self.assertIn('did you mean "resnet"', text)
        text = self.refused(code.INVALID_ARGUMENT, lambda: tensorboard.list_scalars("res("))
        self.assertIn("experiment_id", text)
        text = self.refused(code.INVALID_ARGUMENT, lambda: tensorboard.list_scalars(plugin=""))
        self.assertIn("plugin_filter.plugin_name", text)
        text = self.refused(code.INVALID_ARGUMENT, lambda: tensorboard.read_scalars(None))
        self.assertIn("downsample", text)
        text = self.refused(code.INVALID_ARGUMENT, lambda: tensorboard.read_scalars(-1))
        self.assertIn("downsample.num_points", text)
        self.refused(code.INVALID_ARGUMENT, lambda: tensorboard.read_tensors(None))
        self.refused(code.INVALID_ARGUMENT, lambda: tensorboard.read_blob_sequences(None))
        self.refused(code.NOT_FOUND, lambda: tensorboard.read_blob("anything"))

    def test_events_and_attributes_are_texts_and_there_are_no_blobs(self):
        self.recorder.rows("j", "loss", [1.0, 2.0])
        source = types_pb2.Source(job="j", task=0, host="host-0")
        self.recorder.message(
            attributes=ingest_pb2.Attributes(job="j", values={"model": "ResNet-50"})
        )
        for step in (0, 1):
            event = ingest_pb2.Event(
                source=source, time_unix_ns=self.begin_ns + step, step=step,
                kind="checkpoint_saved", message=f"checkpoint {step}", fields={"path": "/c"},
            )  # fmt: skip
            self.recorder.message(event=event)
        tensorboard = self.tensorboard
        self.assertEqual(tensorboard.plugins(), ["scalars", "text"])
        listed = tensorboard.list_tensors()
        self.assertEqual(sorted(listed["j/0"]), ["attributes", "events/checkpoint_saved"])
        self.assertEqual(listed["j/0"]["events/checkpoint_saved"].summary_metadata.data_class, 2)
        texts = tensorboard.read_tensors(100, runs=["j/0"], tags=["events/checkpoint_saved"])
        (first, second) = texts["j/0"]["events/checkpoint_saved"]
        self.assertEqual((first[0], second[0]), (0, 1))
        self.assertEqual(second[2].dtype, 7)
        self.assertTrue(second[2].HasField("tensor_shape"))
        self.assertIn("checkpoint 1", second[2].string_val[0].decode())
        attributes = tensorboard.read_tensors(1, tags=["attributes"])["j/0"]["attributes"]
        self.assertIn("| model | ResNet-50 |", attributes[0][2].string_val[0].decode())
        self.assertEqual(tensorboard.list_blob_sequences(), {})
        self.assertEqual(tensorboard.read_blob_sequences(10), {})
        self.assertEqual(tensorboard.list_tensors(plugin="histograms"), {})

    def test_calls_are_counted_as_queries(self):
        self.tensorboard.runs()
        counted = 'tacho_query_requests_total{code="OK",method="tensorboard.ListRuns"} 1'
        harness.wait_until(
            lambda: counted in harness.http_get(self.collector.url("/metrics"))[2].decode(),
            counted,
        )


class AccessTest(SecurityCase):
    def test_a_collector_with_tokens_says_that_tensorboard_shows_none(self):
        self.token("someone", "read")
        collector = self.start()
        tensorboard = tensorboard_client.Provider(
            tensorboard_client.local_channel(collector.address)
        )
        self.addCleanup(tensorboard.close)
        for call in (tensorboard.runs, lambda: tensorboard.read_blob("x")):
            with self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertEqual(caught.exception.code(), grpc.StatusCode.PERMISSION_DENIED)
            self.assertIn("docs/tensorboard.md", caught.exception.details())

    def test_a_token_that_a_proxy_adds_shows_the_jobs_that_it_allows(self):
        self.token("writer", "write")
        self.token("reader", "read", "mine.*")
        self.token("other", "write")
        collector = self.start()
        recorder = Recorder(
            collector.address, time.time_ns() - 10**12, token=self.secret("writer")
        )
        self.addCleanup(recorder.close)
        for job in ("mine", "theirs"):
            recorder.rows(job, "loss", [1.0])

        def provider(token):
            made = tensorboard_client.Provider(
                tensorboard_client.local_channel(collector.address), self.secret(token)
            )
            self.addCleanup(made.close)
            return made

        tensorboard = provider("reader")
        self.assertEqual(list(tensorboard.runs()), ["mine/0"])
        self.assertEqual(list(tensorboard.runs(".*")), ["mine/0"])
        self.assertEqual(tensorboard.read_scalars(10, runs=["theirs/0"]), {})
        for call in (lambda: tensorboard.runs("theirs"), provider("other").runs):
            with self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertEqual(caught.exception.code(), grpc.StatusCode.PERMISSION_DENIED)

    def test_over_tls(self):
        harness.needs_one_collector("its members would need cluster.ca_file")
        authority = certificates.Authority(self.directory)
        certificate, key = authority.sign("collector")
        collector = self.start(f"listen: {{tls: {{certificate: {certificate}, key: {key}}}}}\n")
        root = certificates.read(authority.certificate)
        tensorboard = tensorboard_client.Provider(
            tensorboard_client.tls_channel(f"localhost:{collector.grpc}", root)
        )
        self.addCleanup(tensorboard.close)
        self.assertEqual(tensorboard.runs(), {})


if __name__ == "__main__":
    harness.main()
