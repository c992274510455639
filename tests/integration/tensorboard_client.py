"""What TensorBoard's gRPC data provider client sends and reads, written down anew.

The messages are built here from the numbers of the protocol and not from proto/interop, so that a
mistake in one is not repeated in the other. (tensorflow/tensorboard,
tensorboard/data/proto/data_provider.proto, tensorboard/compat/proto/summary.proto and tensor.proto)
"""
import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_F = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "string": _F.TYPE_STRING, "bytes": _F.TYPE_BYTES, "int64": _F.TYPE_INT64,
    "int32": _F.TYPE_INT32, "double": _F.TYPE_DOUBLE, "float": _F.TYPE_FLOAT,
}  # fmt: skip
# Message: its fields as "number [*]name type", * for repeated.
_MESSAGES = {
    "Timestamp": "1 seconds int64, 2 nanos int32",
    "PluginData": "1 plugin_name string, 2 content bytes",
    "SummaryMetadata": "1 plugin_data PluginData, 2 display_name string,"
    " 3 summary_description string, 4 data_class int32",
    "Tensor": "1 dtype int32, 2 tensor_shape Shape, 8 *string_val bytes",
    "Shape": "2 *dim bytes",
    "Experiment": "1 experiment_id string",
    "ExperimentAnswer": "1 data_location string, 2 name string, 3 description string,"
    " 4 creation_time Timestamp",
    "Plugin": "1 name string",
    "Plugins": "1 *plugins Plugin",
    "Run": "2 name string, 3 start_time double",
    "Runs": "1 *runs Run",
    "PluginFilter": "1 plugin_name string",
    "Names": "1 *names string",
    "RunTagFilter": "1 runs Names, 2 tags Names",
    "Downsample": "1 num_points int64",
    "List": "1 experiment_id string, 2 plugin_filter PluginFilter, 3 run_tag_filter RunTagFilter",
    "Read": "1 experiment_id string, 2 plugin_filter PluginFilter, 3 run_tag_filter RunTagFilter,"
    " 4 downsample Downsample",
    "Metadata": "1 max_step int64, 2 max_wall_time double, 3 summary_metadata SummaryMetadata",
    "ListedTag": "1 tag_name string, 2 metadata Metadata",
    "ListedRun": "1 run_name string, 2 *tags ListedTag",
    "Listed": "1 *runs ListedRun",
    "Scalars": "1 *step int64, 2 *wall_time double, 3 *value float",
    "ScalarTag": "1 tag_name string, 2 data Scalars",
    "ScalarRun": "1 run_name string, 2 *tags ScalarTag",
    "ScalarsRead": "1 *runs ScalarRun",
    "Tensors": "1 *step int64, 2 *wall_time double, 3 *value Tensor",
    "TensorTag": "1 tag_name string, 2 data Tensors",
    "TensorRun": "1 run_name string, 2 *tags TensorTag",
    "TensorsRead": "1 *runs TensorRun",
    "Blob": "1 blob_key string",
    "BlobPiece": "1 data bytes",
}


def _make_messages():
    file = descriptor_pb2.FileDescriptorProto(
        name="replayed.proto", package="replayed", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split(","):
            number, field_name, kind = field.split()
            added = message.field.add(name=field_name.lstrip("*"), number=int(number))
            added.label = _F.LABEL_REPEATED if field_name[0] == "*" else _F.LABEL_OPTIONAL
            added.type = _TYPES.get(kind, _F.TYPE_MESSAGE)
            if added.type == _F.TYPE_MESSAGE:
                added.type_name = ".replayed." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    if hasattr(message_factory, "GetMessageClass"):
        make = message_factory.GetMessageClass
    else:
        make = message_factory.MessageFactory(pool).GetPrototype
    return {name: make(pool.FindMessageTypeByName("replayed." + name)) for name in _MESSAGES}


_M = _make_messages()
_SERVICE = "/tensorboard.data.TensorBoardDataProvider/"
# As tensorboard/data/server_ingester.py has it.
_OPTIONS = [("grpc.max_receive_message_length", 256 << 20)]


def local_channel(address):
    """With --grpc_creds_type local, the default: no TLS, and the peer must be on this machine."""
    return grpc.secure_channel(address, grpc.local_channel_credentials(), options=_OPTIONS)


def tls_channel(address, root):
    """With --grpc_creds_type ssl."""
    credentials = grpc.ssl_channel_credentials(root_certificates=root)
    return grpc.secure_channel(address, credentials, options=_OPTIONS)


class Provider:
    """The calls of tensorboard/data/grpc_provider.py. Answers are dicts and tuples as there.

    TensorBoard itself has no token: one that is given stands for a proxy that adds it.
    """

    def __init__(self, channel, token=None):
        self._channel = channel
        self._metadata = None if token is None else (("authorization", "Bearer " + token),)

    def close(self):
        self._channel.close()

    def _call(self, method, request, answer):
        call = self._channel.unary_unary(
            _SERVICE + method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=_M[answer].FromString,
        )
        return call(request, timeout=60, metadata=self._metadata)

    def experiment(self, experiment_id=""):
        return self._call(
            "GetExperiment", _M["Experiment"](experiment_id=experiment_id), "ExperimentAnswer"
        )

    def plugins(self, experiment_id=""):
        answer = self._call("ListPlugins", _M["Experiment"](experiment_id=experiment_id), "Plugins")
        return [plugin.name for plugin in answer.plugins]

    def runs(self, experiment_id=""):
        answer = self._call("ListRuns", _M["Experiment"](experiment_id=experiment_id), "Runs")
        return {run.name: run.start_time for run in answer.runs}

    @staticmethod
    def _request(kind, experiment_id, plugin, runs, tags, points):
        request = _M[kind](experiment_id=experiment_id)
        request.plugin_filter.plugin_name = plugin
        # Assigning an empty list makes the sub-message present: "none", not "all".
        if runs is not None:
            request.run_tag_filter.runs.SetInParent()
            request.run_tag_filter.runs.names[:] = sorted(runs)
        if tags is not None:
            request.run_tag_filter.tags.SetInParent()
            request.run_tag_filter.tags.names[:] = sorted(tags)
        if points is not None:
            request.downsample.SetInParent()
            request.downsample.num_points = points
        return request

    def _list(self, method, experiment_id, plugin, runs, tags):
        request = self._request("List", experiment_id, plugin, runs, tags, None)
        answer = self._call(method, request, "Listed")
        return {
            run.run_name: {tag.tag_name: tag.metadata for tag in run.tags} for run in answer.runs
        }

    def list_scalars(self, experiment_id="", plugin="scalars", runs=None, tags=None):
        return self._list("ListScalars", experiment_id, plugin, runs, tags)

    def list_tensors(self, experiment_id="", plugin="text", runs=None, tags=None):
        return self._list("ListTensors", experiment_id, plugin, runs, tags)

    def list_blob_sequences(self, experiment_id="", plugin="images", runs=None, tags=None):
        return self._list("ListBlobSequences", experiment_id, plugin, runs, tags)

    def _read(self, method, answer, experiment_id, plugin, runs, tags, points):
        request = self._request("Read", experiment_id, plugin, runs, tags, points)
        found = {}
        for run in self._call(method, request, answer).runs:
            tags_of_run = found[run.run_name] = {}
            for tag in run.tags:
                data = tag.data
                tags_of_run[tag.tag_name] = list(zip(data.step, data.wall_time, data.value))
        return found

    def read_scalars(self, points, experiment_id="", plugin="scalars", runs=None, tags=None):
        """{run: {tag: [(step, wall_time, value)]}}"""
        return self._read("ReadScalars", "ScalarsRead", experiment_id, plugin, runs, tags, points)

    def read_tensors(self, points, experiment_id="", plugin="text", runs=None, tags=None):
        return self._read("ReadTensors", "TensorsRead", experiment_id, plugin, runs, tags, points)

    def read_blob_sequences(self, points, experiment_id="", plugin="images", runs=None, tags=None):
        return self._read(
            "ReadBlobSequences", "ScalarsRead", experiment_id, plugin, runs, tags, points
        )

    def read_blob(self, key):
        call = self._channel.unary_stream(
            _SERVICE + "ReadBlob",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=_M["BlobPiece"].FromString,
        )
        pieces = call(_M["Blob"](blob_key=key), timeout=60, metadata=self._metadata)
        return b"".join(piece.data for piece in pieces)
