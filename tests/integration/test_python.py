"""The Python package `tacho` against a real collector, and a wheel of it in a place of its own."""
import array
import math
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time
import unittest
import unittest.mock
import zipfile

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../client/python")
PROTOS = os.path.join(PACKAGE, "../../proto")
sys.path.insert(0, PACKAGE)

import certificates
import client
import harness
from grpc_reflection import ReflectedClient
from tacho.v1 import ingest_pb2, types_pb2
from security_case import SecurityCase

import tacho
from tacho.columns import NO_STEP

QUIET_NAN = 0x7FF8000000000123  # With a payload.
BITS = [client.bits(0.1), QUIET_NAN, client.bits(math.inf), client.bits(-0.0), client.bits(5e-324)]


def bits_of(values):
    return [client.bits(value) for value in values]


class Case(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))
        self.address = self.collector.address
        self.begin_ns = time.time_ns() - 3600 * 10**9
        self.sequence = self.layouts = 0
        self.stream = client.Stream(self.address, "recorder", 1, 1)
        self.addCleanup(self.stream.close)

    def record(self, job, metrics, rows, task=0, attempt=0, steps=None, later_s=0):
        """Rows a second apart; the steps are those given, or there are none."""
        self.layouts += 1
        self.sequence += 1
        self.stream.send(
            client.layout(
                self.layouts, job, f"host-{task}", [(name, "nats") for name in metrics], task,
                attempt, steps is not None,
            )
        )  # fmt: skip
        times = [self.begin_ns + (later_s + row) * 10**9 for row in range(len(rows))]
        values = [value for row in rows for value in row]
        self.stream.send(client.batch(self.sequence, self.layouts, times, values, steps or ()))
        self.assertTrue(self.stream.wait_durable(self.sequence), self.stream.error)
        return times

    def tell(self, **fields):
        self.sequence += 1
        for name, message in fields.items():
            message.sequence = self.sequence
            self.stream.send(ingest_pb2.ClientMessage(**{name: message}))
        self.assertTrue(self.stream.wait_durable(self.sequence), self.stream.error)


class QueryTest(Case):
    def test_by_time_every_bit_is_kept(self):
        times = self.record("j", ["loss"], [[client.double(b)] for b in BITS])
        (series,) = tacho.query(self.address, "j", "loss")
        self.assertEqual(bits_of(series.values), BITS)
        self.assertEqual(list(series.times), times)
        self.assertEqual(list(series.attempts), [0] * len(BITS))
        self.assertEqual(len(series.steps), 0)
        self.assertIsInstance(series.values, array.array)
        self.assertEqual(str(series.name), "loss{task=0,host=host-0}")
        self.assertEqual((series.name.unit, series.name.type), ("nats", "gauge"))
        (part,) = tacho.query(self.address, "j", "loss", begin=times[1], end=times[3])
        self.assertEqual(bits_of(part.values), BITS[1:3])
        (lists,) = tacho.query(self.address, "j", ["loss"], output="lists")
        self.assertIsInstance(lists.values, list)
        self.assertEqual(bits_of(lists.values), BITS)

    def test_by_step_with_attempts(self):
        self.record("j", ["loss"], [[float(s)] for s in range(5)], steps=[0, 1, 2, 3, 4])
        self.record("j", ["loss"], [[30.0], [40.0], [50.0]], attempt=1, steps=[3, 4, 5], later_s=60)

        def points(**how):
            (series,) = tacho.query(self.address, "j", "loss", by="step", **how)
            return list(zip(series.steps, series.attempts, series.values))

        first = [(s, 0, float(s)) for s in range(5)]
        second = [(3, 1, 30.0), (4, 1, 40.0), (5, 1, 50.0)]
        self.assertEqual(points(), sorted(first + second))
        self.assertEqual(points(attempts=0), first)
        self.assertEqual(points(attempts="latest"), second)
        self.assertEqual(points(attempts="effective"), first[:3] + second)
        self.assertEqual(points(begin=4, end=5, attempts=1), second[1:])
        detail = tacho.job(self.address, "j")
        self.assertEqual(detail.timeline, [(0, 2, 0), (3, 5, 1)])
        self.assertEqual([a.state for a in detail.attempts][0], "replaced")
        (mixed,) = tacho.query(self.address, "j", "loss", aggregate="max", by="step")
        self.assertEqual(list(mixed.values), [0.0, 1.0, 2.0, 30.0, 40.0, 50.0])

    def test_reduced_and_aggregated(self):
        generator = random.Random(7)
        for task in range(3):
            rows = [[generator.random()] for _ in range(1000)]
            if task == 1:
                rows[500], rows[700] = [99.0], [math.nan]
            self.record("j", ["loss"], rows, task=task, steps=list(range(1000)))
        series = tacho.query(self.address, "j", "loss", max_points=10, matchers={"task": 1})[0]
        self.assertTrue(series.reduced)
        self.assertEqual(len(series), 10)
        self.assertEqual(max(series.columns["max"]), 99.0)
        self.assertEqual(sum(series.columns["non_finite"]), 1)
        self.assertEqual(sum(series.columns["counts"]), 1000)
        found = tacho.query(
            self.address, "j", "loss", by="step", aggregate="p75", keep="host", begin=0, end=9,
            matchers=["task=~[01]"],
        )  # fmt: skip
        self.assertEqual([one.name.host for one in found], ["host-0", "host-1"])
        self.assertEqual([len(one) for one in found], [10, 10])

    def test_steps_that_are_missing(self):
        self.record("j", ["loss"], [[1.0], [2.0]], steps=[7, NO_STEP])
        (series,) = tacho.query(self.address, "j", "loss")
        self.assertEqual(list(series.steps), [7, NO_STEP])
        self.assertIsNone(tacho.latest(self.address, "j")[0].step)

    def test_jobs_and_what_they_have(self):
        self.record("resnet", ["loss", "accuracy"], [[1.0, 2.0]], steps=[3])
        self.record("gpt", ["loss"], [[4.0]], task=2)
        source = types_pb2.Source(job="resnet", task=0, host="host-0")
        for kind, when in (("compiled", 1), ("ended", 2)):
            event = ingest_pb2.Event(
                source=source, time_unix_ns=self.begin_ns + when, kind=kind, message=kind + "!",
                fields={"a": "b"},
            )  # fmt: skip
            self.tell(event=event)
        self.tell(attributes=ingest_pb2.Attributes(job="resnet", values={"model": "ResNet-50"}))
        self.assertEqual({job.name for job in tacho.jobs(self.address)}, {"resnet", "gpt"})
        (job,) = tacho.jobs(self.address, "res.*")
        self.assertEqual((job.last_step, job.tasks, job.series), (3, 1, 2))
        self.assertEqual(job.first_seen_ns, self.begin_ns)
        (there,) = tacho.jobs(self.address, matchers={"host": "host-2"})
        self.assertEqual(there.name, "gpt")
        self.assertEqual(tacho.jobs(self.address, states=["silent"], matchers={"model": "x"}), [])
        detail = tacho.job(self.address, "resnet")
        self.assertEqual(detail.job.metrics, 2)
        self.assertEqual([metric.name for metric in detail.metrics], ["accuracy", "loss"])
        self.assertEqual(detail.attempts[0].attributes, {"model": "ResNet-50"})
        self.assertEqual(detail.tasks[0].host, "host-0")
        newest = {s.series.metric: s.value for s in tacho.latest(self.address, "resnet")}
        self.assertEqual(newest, {"accuracy": 2.0, "loss": 1.0})
        events = tacho.events(self.address, "resnet")
        self.assertEqual([event.kind for event in events], ["compiled", "ended"])
        self.assertEqual((events[0].fields, events[0].step), ({"a": "b"}, None))

    def test_errors_carry_the_collectors_text(self):
        self.record("resnet", ["loss"], [[1.0]])
        with self.assertRaisesRegex(tacho.NotFound, 'did you mean "resnet"') as caught:
            tacho.query(self.address, "resmet", "loss")
        self.assertEqual(caught.exception.code, "NOT_FOUND")
        with self.assertRaisesRegex(tacho.InvalidArgument, "selector.matchers.value"):
            tacho.query(self.address, "resnet", matchers=["host=~("])
        with self.assertRaisesRegex(tacho.Unavailable, "no collector answers at 127.0.0.1:1"):
            tacho.jobs("127.0.0.1:1", timeout=5)
        with self.assertRaisesRegex(ValueError, "neither 'time' nor 'step'"):
            tacho.query(self.address, "resnet", by="epoch")
        with self.assertRaisesRegex(ValueError, "none of all, effective, latest"):
            tacho.query(self.address, "resnet", attempts="best")
        with self.assertRaisesRegex(TypeError, "begin: by='step' takes a step"):
            tacho.query(self.address, "resnet", by="step", begin=1.5)
        with self.assertRaisesRegex(TypeError, "begin: a datetime, or integer nanoseconds"):
            tacho.query(self.address, "resnet", begin=1.5)

    def test_many_samples_come_in_pieces(self):
        count = 60_000
        rows = [[float(row)] for row in range(count)]
        for begin in range(0, count, 20_000):
            self.record("j", ["loss"], rows[begin : begin + 20_000], later_s=begin - count)
        (series,) = tacho.query(self.address, "j", "loss")
        self.assertEqual(list(series.values), [float(row) for row in range(count)])


class LiveAndComparedTest(Case):
    def test_watch_joins_history_and_what_is_new(self):
        self.record("j", ["loss"], [[1.0], [2.0]], steps=[1, 2])
        watch = tacho.watch(self.address, "j", "loss", begin=self.begin_ns)
        self.addCleanup(watch.close)
        seen = []
        update = next(watch)
        while not isinstance(update, tacho.Live):
            seen.extend(zip(update.steps, update.values))
            update = next(watch)
        self.assertEqual(seen, [(1, 1.0), (2, 2.0)])
        self.record("j", ["loss"], [[3.0]], steps=[3], later_s=60)
        update = next(watch)
        self.assertEqual((update.steps, update.values, update.series.metric), ([3], [3.0], "loss"))

    def test_compare_measures_against_the_first(self):
        self.record("a", ["loss"], [[1.0], [2.0]], steps=[1, 2])
        self.record("b", ["loss"], [[1.5], [4.0]], steps=[1, 2])
        comparison = tacho.compare(self.address, ["a", ("b", 0)], "loss")
        self.assertEqual([subject.job for subject in comparison.subjects], ["a", "b"])
        (loss,) = comparison.metrics
        self.assertEqual(loss.positions, [1, 2])
        self.assertEqual(loss.avg, [[1.0, 2.0], [1.5, 4.0]])
        self.assertEqual(loss.difference[1], [0.5, 2.0])

    def test_figures_of_a_comparison_are_of_the_samples_at_any_resolution(self):
        self.record("a", ["loss"], [[float(v * v)] for v in range(10)], steps=list(range(10)))
        for points in (1, 3, 0):
            comparison = tacho.compare(self.address, ["a"], "loss", max_points=points)
            (summary,) = comparison.metrics[0].summary
            self.assertEqual((summary["first"], summary["last"], summary["avg"]), (0, 81, 28.5))
            self.assertEqual((summary["last_position"], summary["count"]), (9, 10))
            self.assertIsNone(summary["rate"])

    def test_integrate_adds_up_time(self):
        self.record("j", ["power"], [[2.0], [4.0], [6.0]], steps=[1, 2, 3])
        (power,) = tacho.query(self.address, "j", "power")
        seconds = [(b - a) / 1e9 for a, b in zip(power.times, power.times[1:])]
        (integral,) = tacho.integrate(self.address, "j", "power")
        self.assertAlmostEqual(integral.value, 3 * seconds[0] + 5 * seconds[1])
        self.assertEqual(integral.series.metric, "power")
        self.assertEqual((integral.gaps, integral.not_covered_ns), (0, 0))
        self.assertEqual((integral.first_ns, integral.last_ns), (power.times[0], power.times[-1]))
        (total,) = tacho.integrate(self.address, "j", total=True, max_gap=1e-9)
        self.assertEqual((total.value, total.gaps, total.series_count), (0, 2, 1))


class ReflectionTest(Case):
    def test_a_client_without_generated_code_learns_the_api_and_asks(self):
        rows = [[client.double(b)] for b in BITS]
        self.record("j", ["loss"], rows, steps=list(range(len(BITS))))
        reflected = ReflectedClient(self.address)
        self.addCleanup(reflected.close)
        self.assertLessEqual(
            {"tacho.v1.Query", "tacho.v1.Ingest", "tensorboard.data.TensorBoardDataProvider"},
            set(reflected.services()),
        )
        (jobs,) = reflected.call("tacho.v1.Query", "ListJobs", {"page_size": 10})
        self.assertEqual([job.name for job in jobs.jobs], ["j"])
        pieces = reflected.call(
            "tacho.v1.Query", "Range", {"selector": {"job": "j", "metrics": ["loss"]}, "axis": 2}
        )
        self.assertEqual([v for p in pieces for v in bits_of(p.points.values)], BITS)
        self.assertEqual([s for p in pieces for s in p.points.steps], list(range(len(BITS))))
        runs = reflected.call("tensorboard.data.TensorBoardDataProvider", "ListRuns", {})
        self.assertEqual([run.name for run in runs[0].runs], ["j/0"])


class SecuredTest(SecurityCase):
    def test_tls_and_token_from_arguments_and_from_the_environment(self):
        token_file = self.token("reader", "read", "mine.*")
        authority = certificates.Authority(self.directory)
        certificate, key = authority.sign("collector")
        collector = self.start(f"listen: {{tls: {{certificate: {certificate}, key: {key}}}}}\n")
        address = f"localhost:{collector.grpc}"
        tls = {"tls_ca": authority.certificate}
        self.assertEqual(tacho.jobs(address, token_file=token_file, **tls), [])
        self.assertEqual(tacho.jobs(address, token=self.secret("reader"), **tls), [])
        with self.assertRaises(tacho.PermissionDenied):
            tacho.job(address, "theirs", token_file=token_file, **tls)
        with self.assertRaises(tacho.Unauthenticated):
            tacho.jobs(address, **tls)
        with unittest.mock.patch.dict(
            os.environ,
            TACHO_ADDRESS=address, TACHO_TLS_CA=authority.certificate, TACHO_TOKEN_FILE=token_file,
        ):  # fmt: skip
            self.assertEqual(tacho.jobs(), [])

    def test_what_would_be_unsafe_is_refused_before_anything_is_sent(self):
        open_to_all = self.file("open.token", "secret\n", mode=0o644)
        with self.assertRaisesRegex(tacho.ConfigurationError, "chmod 600"):
            tacho.jobs("127.0.0.1:1", token_file=open_to_all)
        with self.assertRaisesRegex(tacho.ConfigurationError, "without TLS"):
            tacho.jobs("collector.example:7411", token="secret")
        with self.assertRaisesRegex(tacho.ConfigurationError, "tls_key is missing"):
            tacho.jobs("127.0.0.1:1", tls_cert=open_to_all)
        with self.assertRaisesRegex(tacho.ConfigurationError, "nothing.crt: No such file"):
            tacho.jobs("127.0.0.1:1", tls_ca="nothing.crt")
        with self.assertRaisesRegex(tacho.ConfigurationError, "HOST:PORT"):
            tacho.jobs("http://127.0.0.1:7412")


class PackageTest(Case):
    def run_python(self, code, path, **environment):
        """Standard output of a fresh interpreter that sees the package at `path` alone."""
        done = subprocess.run(
            [sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=120,
            cwd=self.directory, env={**os.environ, "PYTHONPATH": path, **environment},
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def build(self, what):
        """The file that setuptools makes of a copy of the sources, without network."""
        sources = os.path.join(self.directory, "sources")
        shutil.copytree(PACKAGE, sources, ignore=shutil.ignore_patterns("build", "*.egg-info"))
        out = os.path.join(self.directory, "dist")
        os.mkdir(out)
        code = f"import setuptools.build_meta as b; print(b.{what}({out!r}))"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=sources, capture_output=True, text=True, timeout=240
        )
        if "No module named" in done.stderr:
            self.skipTest("no python3-setuptools or python3-wheel: deploy/packages.sh test")
        self.assertEqual(done.returncode, 0, done.stderr)
        return os.path.join(out, done.stdout.strip().splitlines()[-1])

    def test_a_wheel_installs_and_asks(self):
        self.record("j", ["loss"], [[1.0], [2.5]], steps=[0, 1])
        wheel = self.build("build_wheel")
        target = os.path.join(self.directory, "site")
        with zipfile.ZipFile(wheel) as archive:
            self.assertIn("tacho/tacho_v1.binpb", archive.namelist())
        pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet"]
        done = subprocess.run(
            pip + ["--target", target, wheel], capture_output=True, text=True, timeout=240
        )
        if "No module named pip" in done.stderr:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(target)
        else:
            self.assertEqual(done.returncode, 0, done.stderr)
        code = (
            "import tacho; (s,) = tacho.query(None, 'j', 'loss', by='step', output='lists');"
            "print(tacho.__file__, s.steps, s.values)"
        )
        said = self.run_python(code, target, TACHO_ADDRESS=self.address)
        self.assertEqual(said, f"{target}/tacho/__init__.py [0, 1] [1.0, 2.5]\n")

    def test_a_source_distribution_is_complete(self):
        with tarfile.open(self.build("build_sdist")) as archive:
            names = {name.split("/", 1)[-1] for name in archive.getnames()}
            (descriptors,) = [m for m in archive.getmembers() if m.name.endswith(".binpb")]
        self.assertLessEqual({"pyproject.toml", "README.md", "tacho/py.typed"}, names)
        self.assertTrue(descriptors.isfile())
        self.assertGreater(descriptors.size, 10_000)

    def test_grpc_is_imported_by_the_first_query_and_not_before(self):
        code = "import sys, tacho; tacho.NotFound; print('grpc' in sys.modules)"
        self.assertEqual(self.run_python(code, PACKAGE), "False\n")

    def test_without_grpc_or_numpy_it_says_what_to_install(self):
        code = (
            "import sys; sys.modules['{0}'] = None; import tacho\n"
            "try: tacho.query('127.0.0.1:1', 'j', output='numpy')\n"
            "except tacho.MissingDependency as error: print(error)"
        )
        said = self.run_python(code.format("grpc"), PACKAGE)
        self.assertIn("need grpcio: pip install 'tacho[query]'", said)
        said = self.run_python(code.format("google.protobuf"), PACKAGE)
        self.assertIn("need protobuf: pip install 'tacho[query]'", said)
        said = self.run_python(code.format("numpy"), PACKAGE)
        self.assertIn("needs NumPy: pip install 'tacho[numpy]'", said)

    def test_numpy_and_pandas_where_they_are_installed(self):
        self.record("j", ["loss"], [[client.double(b)] for b in BITS], steps=list(range(5)))
        for library in ("numpy", "pandas"):
            try:
                __import__(library)
            except ImportError:
                self.skipTest(f"no python3-{library}")
        (series,) = tacho.query(self.address, "j", "loss", output="numpy")
        self.assertEqual(series.values.dtype.name, "float64")
        self.assertEqual(bits_of(series.values.tolist()), BITS)
        frame = tacho.query(self.address, "j", "loss", output="pandas")
        self.assertEqual(list(frame["steps"]), list(range(5)))
        self.assertEqual(list(frame["metric"].unique()), ["loss"])

    def test_the_descriptor_set_is_that_of_the_protos(self):
        from google.protobuf import descriptor_pb2

        protoc = shutil.which("protoc")
        if protoc is None:
            self.skipTest("no protoc")
        made = os.path.join(self.directory, "made.binpb")
        files = [f"tacho/v1/{name}" for name in os.listdir(os.path.join(PROTOS, "tacho/v1"))]
        subprocess.run(
            [protoc, "-I", ".", "--include_imports", f"--descriptor_set_out={made}", *files],
            cwd=PROTOS, check=True,
        )  # fmt: skip

        def files_of(path):
            with open(path, "rb") as file:
                files = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file
            return {one.name: one for one in files}

        shipped = files_of(os.path.join(PACKAGE, "tacho/tacho_v1.binpb"))
        self.assertEqual(
            shipped, files_of(made), "run the command at the end of proto/README.md and commit"
        )


if __name__ == "__main__":
    harness.main()
