"""Numbers of NumPy, PyTorch and of arrays on devices, which nobody must wait for unasked."""
import decimal
import fractions
import struct
import sys
import types
import unittest

import case
import tacho
from tacho._values import to_float

try:
    import numpy
    import torch
except ImportError:
    sys.exit(77)


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


class Looked(Exception):
    """A device array was looked at."""


def fake_jax(**members):
    """A type that says it comes from jaxlib, as jax.Array's does."""
    module = types.ModuleType("jaxlib.xla_extension")
    return type("ArrayImpl", (), {"__module__": module.__name__, **members})


class ScalarTest(case.Case):
    def test_numpy(self):
        values = [
            numpy.float64(0.1), numpy.float32(0.1), numpy.float16(0.1), numpy.int64(-3),
            numpy.uint8(255), numpy.bool_(True), numpy.array(2.5), numpy.array([7.5]),
        ]  # fmt: skip
        run = self.init()
        for _ in range(2):  # The second time by the fast way.
            run.log({f"v{i}": value for i, value in enumerate(values)}, step=1)
        for row in self.read().rows:
            self.assertEqual([bits(v) for v in row.values.values()],
                             [bits(float(value.item())) for value in values])  # fmt: skip
        run.log({"many": numpy.zeros(2), "none": None, "complex": numpy.complex64(1)})
        self.assertEqual(len(self.warnings), 3, self.warnings)
        run.log({"loss": numpy.float32(1)}, step=numpy.int64(12))
        self.assertEqual(self.read().rows[-1].step, 12)

    def test_pytorch(self):
        values = [
            torch.tensor(0.1), torch.tensor(0.1, dtype=torch.float64),
            torch.tensor([0.1], dtype=torch.bfloat16), torch.tensor(3), torch.tensor(True),
            torch.tensor(0.5, requires_grad=True) * 2,
        ]  # fmt: skip
        run = self.init()
        run.log({f"v{i}": value for i, value in enumerate(values)})
        (row,) = self.read().rows
        self.assertEqual([bits(v) for v in row.values.values()],
                         [bits(float(value.item())) for value in values])  # fmt: skip
        run.log({"many": torch.zeros(3)})
        self.assertIn("3 elements", self.warnings[-1])

    def test_other_numbers(self):
        run = self.init()
        run.log({"decimal": decimal.Decimal("0.5"), "fraction": fractions.Fraction(1, 4)})
        self.assertEqual(self.read().rows[0].values, {"decimal": 0.5, "fraction": 0.25})


class DeviceTest(case.Case):
    def test_a_tensor_on_a_device_is_left_out_with_one_warning(self):
        run = self.init()
        for step in range(3):
            run.log({"loss": torch.zeros((), device="meta"), "lr": 0.1}, step=step)
        self.assertEqual([row.values for row in self.read().rows], [{"lr": 0.1}] * 3)
        (warning,) = self.warnings
        self.assertIn("fetch", warning)

    def test_a_jax_array_is_looked_at_only_when_asked(self):
        def look(array):
            if not array.allowed:
                raise Looked
            return 0.25

        jax_array = fake_jax(
            size=1, item=look, allowed=False, __float__=look, __array__=look, __str__=look,
            copy_to_host_async=lambda array: setattr(array, "copying", True), __repr__=look,
        )  # fmt: skip
        loss = jax_array()
        run = self.init()
        run.log({"loss": loss}, step=1)
        run.event("odd", loss=loss)
        run.config.update({"loss": loss, "list": [loss]})
        run.observe("losses", loss)
        run.define_histogram("other")
        self.assertFalse(any("Looked" in warning for warning in self.warnings), self.warnings)
        self.assertEqual(self.read().rows, [])
        loss.allowed = True
        run.log({"loss": loss}, step=2, fetch=True)
        run.log({"loss": tacho.fetch(loss)}, step=3)
        self.assertTrue(loss.copying)
        self.assertEqual(self.read().column("loss"), [(2, 0.25), (3, 0.25)])

    def test_other_arrays_by_where_they_lie(self):
        class OnDevice:
            def __dlpack_device__(self):
                return self.device

            def __float__(self):
                return 0.5

        here, there = OnDevice(), OnDevice()
        here.device, there.device = (1, 0), (2, 0)
        run = self.init()
        run.log({"here": here, "there": there})
        self.assertEqual(self.read().rows[0].values, {"here": 0.5})
        self.assertEqual(to_float(there, True), 0.5)

    def test_fetch_takes_trees(self):
        fetched = tacho.fetch(
            {"a": torch.tensor(1.5), "b": [numpy.float32(2), 3], "c": (torch.arange(3),)}
        )
        self.assertEqual(fetched["a"], 1.5)
        self.assertEqual(fetched["b"], [2.0, 3.0])
        self.assertEqual(fetched["c"][0].tolist(), [0, 1, 2])
        self.assertIsInstance(fetched["c"][0], numpy.ndarray)


class ObserveTest(case.Case):
    def test_arrays_count_each_element(self):
        run = self.init(histogram_interval_s=0)
        run.define_histogram("h", first=1, factor=10, count=2)
        run.observe("h", numpy.array([[0.5, 5], [50, 5]], dtype=numpy.float32))
        run.observe("h", torch.tensor([5.0, 5.0], requires_grad=True))
        run.observe("h", torch.tensor(0.5))
        run.observe("h", [numpy.float32(50), 5])
        run.observe("h", torch.zeros(3, device="meta"))
        run.log({"a": 1})
        self.assertEqual(self.read().histograms["h"], [2, 5, 2])
        self.assertIn("meta", self.warnings[-1])


if __name__ == "__main__":
    case.main()
