"""Finds libtacho.so.1 and says what its functions take. See client/c/tacho.h."""
import ctypes
import logging
import os
import pathlib
from typing import Any, List, Optional, Tuple

_LOG = logging.getLogger("tacho")
_SONAME = "libtacho.so.1"

OK = 0
REFUSED = 1
NO_METRIC = -1


class Options(ctypes.Structure):
    """tacho_options. Zeros mean what TACHO_OPTIONS_INIT means, but for those that it sets."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("directory", ctypes.c_char_p),
        ("job", ctypes.c_char_p),
        ("task", ctypes.c_int64),
        ("attempt", ctypes.c_int64),
        ("ring_bytes", ctypes.c_uint64),
        ("now_unix_ns", ctypes.c_void_p),
        ("now_monotonic_ns", ctypes.c_void_p),
        ("histogram_interval_ns", ctypes.c_int64),
        ("ring_mode", ctypes.c_uint32),
        ("group", ctypes.c_char_p),
    ]


class Field(ctypes.Structure):
    """tacho_field."""

    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


_HANDLE = ctypes.c_void_p
_TEXT = ctypes.c_char_p
_METRIC = ctypes.c_int32
_STEP = ctypes.c_int64
_SIZE = ctypes.c_size_t
_ARRAY = ctypes.c_void_p
_BYTES = ctypes.c_char_p  # Doubles, packed into a bytes object.
_INT = ctypes.c_int

# name -> (result, arguments)
_FUNCTIONS = {
    "tacho_version": (_TEXT, []),
    "tacho_open": (_HANDLE, [ctypes.POINTER(Options)]),
    "tacho_close": (None, [_HANDLE]),
    "tacho_leave_to_exit": (None, [_HANDLE]),
    "tacho_recording": (_INT, [_HANDLE]),
    "tacho_error": (_TEXT, [_HANDLE]),
    "tacho_path": (_TEXT, [_HANDLE]),
    "tacho_refused": (ctypes.c_uint64, [_HANDLE]),
    "tacho_gauge": (_METRIC, [_HANDLE, _TEXT, _TEXT, _TEXT]),
    "tacho_counter": (_METRIC, [_HANDLE, _TEXT, _TEXT, _TEXT]),
    "tacho_set_values": (_INT, [_HANDLE, _ARRAY, _BYTES, _SIZE]),
    "tacho_commit_step": (_INT, [_HANDLE, _STEP]),
    "tacho_commit_step_at": (_INT, [_HANDLE, _STEP, ctypes.c_int64]),
    "tacho_commit": (_INT, [_HANDLE]),
    "tacho_log": (_INT, [_HANDLE, _STEP, _ARRAY, _BYTES, _SIZE]),
    "tacho_event": (_INT, [_HANDLE, _TEXT, _TEXT, ctypes.POINTER(Field), _SIZE]),
    "tacho_event_at_step": (
        _INT, [_HANDLE, _STEP, _TEXT, _TEXT, ctypes.POINTER(Field), _SIZE],
    ),
    "tacho_set_attribute": (_INT, [_HANDLE, _TEXT, _TEXT]),
    "tacho_begin_step": (_INT, [_HANDLE, _STEP]),
    "tacho_declare_phase": (_METRIC, [_HANDLE, _TEXT]),
    "tacho_enter_phase": (_INT, [_HANDLE, _METRIC]),
    "tacho_leave_phase": (_INT, [_HANDLE]),
    "tacho_declare_collective": (ctypes.c_int32, [_HANDLE, _TEXT, ctypes.c_int64]),
    "tacho_begin_collective": (_INT, [_HANDLE, ctypes.c_int32, ctypes.c_uint64]),
    "tacho_end_collective": (_INT, [_HANDLE]),
    "tacho_end_step": (_INT, [_HANDLE]),
    "tacho_abandon_step": (_INT, [_HANDLE]),
    "tacho_declare_histogram": (
        ctypes.c_int32,
        [_HANDLE, _TEXT, _TEXT, _TEXT, ctypes.c_double, ctypes.c_double, ctypes.c_uint32],
    ),
    "tacho_observe": (_INT, [_HANDLE, ctypes.c_int32, _ARRAY, _SIZE]),
}


def _candidates() -> List[str]:
    """Where the library may be, best first."""
    named = os.environ.get("TACHO_LIBRARY")
    if named:
        return [named]
    here = pathlib.Path(__file__).resolve().parent
    found = [here / _SONAME]  # In a wheel.
    root = here.parents[2]
    if (root / "client/c/tacho.h").exists():  # In a checkout.
        built = [root / "build" / preset / "client/c" / _SONAME for preset in ("release", "dev")]
        found += [path for path in built if path.exists()]
    return [str(path) for path in found if path.exists()] + [_SONAME]


def _declare(library: ctypes.PyDLL) -> None:
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments


def load() -> Tuple[Optional[Any], str]:
    """The library, or None and why not."""
    troubles = []
    for path in _candidates():
        try:
            # PyDLL keeps the interpreter's lock: a call takes less time than releasing it, and the
            # library requires that calls of several threads exclude each other.
            library = ctypes.PyDLL(path)
            _declare(library)
            return library, ""
        except (OSError, AttributeError) as error:
            troubles.append(f"{path}: {error}")
    return None, (
        "libtacho.so.1 cannot be loaded (" + "; ".join(troubles) + "). A wheel of tacho has it; "
        "else build the target tacho_shared of Tachograph and set TACHO_LIBRARY to the file"
    )


_said = set()
# A caller that gets here reports something different each time.
_MAX_SAID = 256


def say_once(text: str) -> None:
    """Warns through the logger "tacho", which prints to standard error if nobody else takes it."""
    if text not in _said and len(_said) < _MAX_SAID:
        _said.add(text)
        _LOG.warning("tacho: %s", text)
