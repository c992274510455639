"""A client that knows nothing of tacho.v1: asks a server for its API, builds the messages, calls.

The messages of the reflection protocol itself are built from its numbers (grpc/grpc-proto,
grpc/reflection/v1alpha/reflection.proto), for Debian has no Python module of them.
"""
import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_F = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "grpc.reflection.v1alpha"


def _class_maker(pool):
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass
    return message_factory.MessageFactory(pool).GetPrototype


def _reflection_messages():
    file = descriptor_pb2.FileDescriptorProto(
        name="reflection.proto", package=_PACKAGE, syntax="proto3"
    )

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for number, field, kind, repeated in fields:
            label = _F.LABEL_REPEATED if repeated else _F.LABEL_OPTIONAL
            added = made.field.add(name=field, number=number, label=label)
            if isinstance(kind, str):
                added.type, added.type_name = _F.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                added.type = kind

    # Of a oneof each; it makes no difference on the wire.
    message(
        "Request", (4, "file_containing_symbol", _F.TYPE_STRING, False),
        (7, "list_services", _F.TYPE_STRING, False),
    )  # fmt: skip
    message("Files", (1, "file_descriptor_proto", _F.TYPE_BYTES, True))
    message("Service", (1, "name", _F.TYPE_STRING, False))
    message("Services", (1, "service", "Service", True))
    message("Error", (1, "code", _F.TYPE_INT32, False), (2, "message", _F.TYPE_STRING, False))
    message(
        "Response", (4, "files", "Files", False), (6, "services", "Services", False),
        (7, "error", "Error", False),
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    make = _class_maker(pool)
    return [make(pool.FindMessageTypeByName(f"{_PACKAGE}.{n}")) for n in ("Request", "Response")]


_Request, _Response = _reflection_messages()


class ReflectedClient:
    def __init__(self, address):
        self._channel = grpc.insecure_channel(address)
        self._pool = descriptor_pool.DescriptorPool()
        self._make = _class_maker(self._pool)
        self._known = {}  # Files by name.

    def close(self):
        self._channel.close()

    def _ask(self, **request):
        call = self._channel.stream_stream(
            f"/{_PACKAGE}.ServerReflection/ServerReflectionInfo",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=_Response.FromString,
        )
        (answer,) = call(iter([_Request(**request)]), timeout=60)
        if answer.HasField("error"):
            raise LookupError(answer.error.message)
        return answer

    def services(self):
        # The field that is set chooses the question; its text does not matter.
        return [service.name for service in self._ask(list_services="*").services.service]

    def _learn(self, symbol):
        """Files that define the symbol and all that they import, into the pool."""
        files = {}
        for content in self._ask(file_containing_symbol=symbol).files.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(content)
            files[file.name] = file

        def add(name):
            if name in self._known:
                return
            for imported in files[name].dependency:
                add(imported)
            self._pool.AddSerializedFile(files[name].SerializeToString())
            self._known[name] = files[name]

        for name in files:
            add(name)

    def call(self, service, method, fields):
        """Messages of the answer to a request, whose fields are given as a dict."""
        self._learn(service)
        described = self._pool.FindServiceByName(service).methods_by_name[method]
        request = self._make(described.input_type)(**fields)
        response = self._make(described.output_type)
        kind = "unary_stream" if self._streams(service, method) else "unary_unary"
        call = getattr(self._channel, kind)(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString,
        )
        answer = call(request, timeout=60)
        return list(answer) if kind == "unary_stream" else [answer]

    def _streams(self, service, method):
        return next(
            described.server_streaming
            for file in self._known.values()
            for one in file.service
            if f"{file.package}.{one.name}" == service
            for described in one.method
            if described.name == method
        )
