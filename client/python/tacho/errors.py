"""What can go wrong. A CallError has the collector's own text: what is wrong and what to do."""

__all__ = [
    "TachoError", "ConfigurationError", "MissingDependency", "CallError", "InvalidArgument",
    "NotFound", "PermissionDenied", "Unauthenticated", "LimitExceeded", "Unavailable", "DataLoss",
    "Unimplemented", "DeadlineExceeded",
]  # fmt: skip


class TachoError(Exception):
    """All errors of this package but for TypeError and ValueError of wrong arguments."""


class ConfigurationError(TachoError):
    """An address, a TLS setting or a token that cannot be used; nothing was sent."""


class MissingDependency(TachoError, ImportError):
    """A library that is needed for this is not installed; the text says which, and how."""


class CallError(TachoError):
    """The collector refused, or could not be reached. `code` is gRPC's name of the status."""

    code = "UNKNOWN"

    def __init__(self, text: str, code: str = ""):
        super().__init__(text)
        if code:
            self.code = code


class InvalidArgument(CallError):
    """A request that breaks its rules; the text names the field."""

    code = "INVALID_ARGUMENT"


class NotFound(CallError):
    """No such job; the text names the nearest names."""

    code = "NOT_FOUND"


class PermissionDenied(CallError):
    """What was shown does not allow this."""

    code = "PERMISSION_DENIED"


class Unauthenticated(CallError):
    """No token or certificate was shown, or one that is not known."""

    code = "UNAUTHENTICATED"


class LimitExceeded(CallError):
    """A limit of series, samples or time; the text says which, and how to ask for less."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(CallError):
    """No collector answers there, or it is starting, draining or busy: try again."""

    code = "UNAVAILABLE"


class DeadlineExceeded(CallError):
    """The timeout of the call has passed."""

    code = "DEADLINE_EXCEEDED"


class DataLoss(CallError):
    """Stored bytes are damaged; the text names them."""

    code = "DATA_LOSS"


class Unimplemented(CallError):
    """The collector is older than what was asked of it."""

    code = "UNIMPLEMENTED"


_BY_CODE = {
    kind.code: kind
    for kind in (
        InvalidArgument, NotFound, PermissionDenied, Unauthenticated, LimitExceeded, Unavailable,
        DeadlineExceeded, DataLoss, Unimplemented,
    )
}  # fmt: skip


def of_call(code: str, text: str) -> CallError:
    """The exception of a gRPC status."""
    kind = _BY_CODE.get(code)
    return kind(text) if kind is not None else CallError(text or code, code)
