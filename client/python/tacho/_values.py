"""Turns what trainers hold into numbers, without waiting for a device unless asked to.

A framework runs ahead of its device: a loss is a promise until somebody looks at it, and looking
waits for everything before it. So an array that lies on a device, or that JAX may still be computing
(also on the host), is only looked at when the caller says fetch.
"""
import numbers
from typing import Any, Callable, Dict

# Types of which struct.pack makes a double without running anybody's code.
PLAIN = {float, int, bool}

_CPU = 1  # kDLCPU of DLPack.


class NotFetched(Exception):
    """The value lies on a device, and nobody said that it may be waited for."""


class NotANumber(Exception):
    """The value is no single number."""


def _one(count: int, value: Any) -> None:
    if count != 1:
        raise NotANumber(f"an array of {count} elements; log its mean, or observe() it")


def _numpy(value: Any, fetch: bool) -> float:
    _one(value.size, value)
    return float(value.item())


def _torch(value: Any, fetch: bool) -> float:
    if value.device.type != "cpu" and not fetch:
        raise NotFetched(f"a tensor on {value.device}")
    _one(value.numel(), value)
    return float(value.item())


def _jax(value: Any, fetch: bool) -> float:
    # JAX is asynchronous on the CPU too: to read the value is to wait for it.
    if not fetch:
        raise NotFetched("a JAX array")
    _one(value.size, value)
    return float(value.item())


def _other_array(value: Any, fetch: bool) -> float:
    if not fetch and value.__dlpack_device__()[0] != _CPU:
        raise NotFetched(f"a {type(value).__name__} on a device")
    return float(value)


def _tensorflow(value: Any, fetch: bool) -> float:
    if not fetch and "CPU" not in str(getattr(value, "device", "")):
        raise NotFetched("a TensorFlow tensor on a device")
    return float(value)


def _number(value: Any, fetch: bool) -> float:
    return float(value)


def _nothing(value: Any, fetch: bool) -> float:
    raise NotANumber(f"a {type(value).__name__}")


def _reader_of(kind: type) -> Callable[[Any, bool], float]:
    """How values of the type are read. No framework is imported for it."""
    modules = {base.__module__.partition(".")[0] for base in kind.__mro__}
    # First the scalar types of NumPy that are numbers of Python too.
    for module, reader in (
        ("numpy", _numpy), ("torch", _torch), ("jaxlib", _jax), ("jax", _jax),
        ("tensorflow", _tensorflow),
    ):  # fmt: skip
        if module in modules:
            return reader
    if issubclass(kind, numbers.Number) and not issubclass(kind, numbers.Complex):
        return _number  # decimal.Decimal
    if issubclass(kind, numbers.Real):
        return _number
    if hasattr(kind, "__dlpack_device__"):
        return _other_array
    if hasattr(kind, "__float__") and not hasattr(kind, "device"):
        return _number
    return _nothing


_readers: Dict[type, Callable[[Any, bool], float]] = {}


def to_float(value: Any, fetch: bool) -> float:
    """The number. NotFetched, NotANumber, or whatever the value's own conversion raises."""
    kind = type(value)
    reader = _readers.get(kind)
    if reader is None:
        reader = _readers[kind] = _reader_of(kind)
        # NumPy's scalars lie in memory and convert by themselves.
        if reader is _numpy and kind.__name__ in ("float64", "float32", "float16"):
            PLAIN.add(kind)
    return reader(value, fetch)


def is_leaf_on_device(value: Any) -> bool:
    """Whether reading the value would have to wait, or might."""
    try:
        to_float(value, False)
    except NotFetched:
        return True
    except Exception:  # It is something else, which costs nothing to look at.
        return False
    return False


def _start_copies(tree: Any) -> None:
    if isinstance(tree, dict):
        for value in tree.values():
            _start_copies(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            _start_copies(value)
    elif hasattr(tree, "copy_to_host_async"):
        tree.copy_to_host_async()


def _fetched(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _fetched(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_fetched(value) for value in tree]
    try:
        return to_float(tree, True)
    except NotANumber:
        pass
    if hasattr(tree, "detach"):  # A tensor of PyTorch; NumPy has no bfloat16.
        return tree.detach().float().cpu().numpy()
    if hasattr(tree, "__array__"):
        import numpy

        return numpy.asarray(tree)
    return tree


def fetch(tree: Any) -> Any:
    """Waits for the device and brings values to the host: scalars become floats, arrays NumPy's.

    Takes one value or any nesting of dictionaries, lists and tuples. All copies are started before
    the first is waited for. This is the one function of the package that waits for a device (and
    what is called with fetch=True, which calls it).
    """
    _start_copies(tree)
    return _fetched(tree)
