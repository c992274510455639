"""The messages and methods of tacho.v1, made from the descriptor set that lies beside this file.

No generated modules: what protoc generates is bound to a range of versions of the protobuf runtime,
and puts its messages into a pool that the whole process shares. A descriptor set in a pool of our
own works with any runtime, and beside whatever else the process generated from the same protos.
"""
import pathlib
from typing import Any, Dict

from .errors import MissingDependency

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as error:
    raise MissingDependency(
        "queries need protobuf: pip install 'tacho[query]', or Debian's python3-protobuf"
    ) from error

DESCRIPTORS = pathlib.Path(__file__).with_name("tacho_v1.binpb")


class _Messages:
    """Message classes by their name within tacho.v1: messages.RangeRequest."""

    def __init__(self) -> None:
        files = descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS.read_bytes())
        self._pool = descriptor_pool.DescriptorPool()
        for file in files.file:  # Imports come before what imports them.
            self._pool.AddSerializedFile(file.SerializeToString())
        if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22 and later.
            self._make = message_factory.GetMessageClass
        else:
            self._make = message_factory.MessageFactory(self._pool).GetPrototype
        self._classes: Dict[str, Any] = {}

    def of(self, descriptor: Any) -> Any:
        name = descriptor.full_name
        if name not in self._classes:
            self._classes[name] = self._make(descriptor)
        return self._classes[name]

    def __getattr__(self, name: str) -> Any:
        return self.of(self._pool.FindMessageTypeByName("tacho.v1." + name))

    def enum(self, name: str) -> Any:
        """An enum's descriptor."""
        return self._pool.FindEnumTypeByName("tacho.v1." + name)

    def service(self, name: str) -> Any:
        return self._pool.FindServiceByName("tacho.v1." + name)


messages = _Messages()


def enum_value(enum: str, prefix: str, word: str, argument: str) -> int:
    """The number of a word such as "running"; ValueError names those that there are."""
    values = messages.enum(enum).values_by_name
    found = values.get(prefix + str(word).upper())
    if found is not None and found.number != 0:
        return found.number
    known = [name[len(prefix) :].lower() for name, value in values.items() if value.number != 0]
    raise ValueError(f"{argument}: {word!r} is none of {', '.join(known)}")


def enum_word(enum: str, prefix: str, number: int) -> str:
    """The word of a number: "running"; the number itself if it is newer than this package."""
    value = messages.enum(enum).values_by_number.get(number)
    return str(number) if value is None else value.name[len(prefix) :].lower()
