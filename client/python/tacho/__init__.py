"""Tachograph for Python: recording a training, and asking what happened to trainings.

    import tacho

    run = tacho.init(job="resnet", config={"batch_size": 256})
    for step in range(steps):
        run.log({"loss": train_one_step()}, step=step)

    for series in tacho.query(None, "resnet", ["loss"], by="step"):
        print(series.name, series.steps[-1], series.values[-1])

Recording (client/README.md) needs libtacho.so.1, which the wheel has, and no other package; it never
raises into the training. The first argument of a query is always the collector's address; None takes
TACHO_ADDRESS from the environment, else 127.0.0.1:7411. Queries need grpcio and protobuf, which are
imported by the first of them and not before.
"""
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any, List

# Modules that others generate from our protos, such as tacho/v1/query_pb2.py, stay importable.
__path__ = pkgutil.extend_path(__path__, __name__)

# The module of each name of the package. No module is imported before it is needed.
_HOMES = {
    "tacho.errors": (
        "TachoError", "ConfigurationError", "MissingDependency", "CallError", "InvalidArgument",
        "NotFound", "PermissionDenied", "Unauthenticated", "LimitExceeded", "Unavailable",
        "DataLoss", "Unimplemented", "DeadlineExceeded",
    ),
    "tacho.history": (
        "Client", "query", "jobs", "job", "mark", "latest", "integrate", "events", "compare",
        "watch",
    ),
    "tacho.columns": ("Series", "to_pandas"),
    "tacho.recording": ("init", "log", "finish", "active_run"),
    "tacho._run": ("Run",),
    "tacho._step": ("Step",),
    "tacho._values": ("fetch",),
    "tacho._input": ("InputProfile", "input_stage", "profile_input"),
    "tacho.config": ("Config",),
    "tacho.records": (
        "Attempt", "ComparedMetric", "Comparison", "Event", "Integral", "Job", "JobDetail", "Live",
        "Marks",
        "Metric", "Sample", "Samples", "SeriesName", "Subject", "Task",
    ),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)

if TYPE_CHECKING:
    from ._input import InputProfile as InputProfile
    from ._input import input_stage as input_stage
    from ._input import profile_input as profile_input
    from ._run import Run as Run
    from ._step import Step as Step
    from ._values import fetch as fetch
    from .columns import Series as Series
    from .columns import to_pandas as to_pandas
    from .config import Config as Config
    from .errors import *  # noqa: F403
    from .history import Client as Client
    from .history import compare as compare
    from .history import events as events
    from .history import integrate as integrate
    from .history import job as job
    from .history import jobs as jobs
    from .history import latest as latest
    from .history import mark as mark
    from .history import query as query
    from .history import watch as watch
    from .recording import active_run as active_run
    from .recording import finish as finish
    from .recording import init as init
    from .recording import log as log
    from .records import *  # noqa: F403


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'tacho' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> List[str]:
    return sorted(list(globals()) + __all__)
