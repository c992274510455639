"""A channel to a collector, secured as tachoctl secures its own, with the same variables."""
import ipaddress
import os
import stat
from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Tuple

from . import errors
from ._messages import messages

try:
    import grpc
except ImportError as error:
    raise errors.MissingDependency(
        "queries need grpcio: pip install 'tacho[query]', or Debian's python3-grpcio"
    ) from error

DEFAULT_ADDRESS = "127.0.0.1:7411"
# A collector sends pieces far below this; it bounds what a wrong peer can make us hold.
_MAX_MESSAGE_BYTES = 64 << 20
_MAX_TOKEN_BYTES = 4096
_OFF = ("", "0", "false", "no", "off")


@dataclass
class Security:
    """How to reach a collector. Paths name files; None takes the variable of the environment."""

    tls: Optional[bool] = None  # TACHO_TLS; on if a setting of TLS is given.
    tls_ca: Optional[str] = None  # TACHO_TLS_CA; else the system's CAs.
    tls_cert: Optional[str] = None  # TACHO_TLS_CERT, with its key, TACHO_TLS_KEY.
    tls_key: Optional[str] = None
    tls_server_name: Optional[str] = None  # TACHO_TLS_SERVER_NAME; else the address' host.
    token_file: Optional[str] = None  # TACHO_TOKEN_FILE
    token: Optional[str] = None  # Instead of a file.
    allow_plaintext_token: bool = False  # To another machine, where others may read it.

    def resolved(self) -> "Security":
        """With what the environment says where nothing is given."""

        def chosen(given: Optional[str], variable: str) -> str:
            return os.environ.get(variable, "") if given is None else given

        made = Security(
            tls=self.tls,
            tls_ca=chosen(self.tls_ca, "TACHO_TLS_CA"),
            tls_cert=chosen(self.tls_cert, "TACHO_TLS_CERT"),
            tls_key=chosen(self.tls_key, "TACHO_TLS_KEY"),
            tls_server_name=chosen(self.tls_server_name, "TACHO_TLS_SERVER_NAME"),
            token_file="" if self.token else chosen(self.token_file, "TACHO_TOKEN_FILE"),
            token=self.token,
            allow_plaintext_token=self.allow_plaintext_token,
        )
        if made.tls is None:
            settings = (made.tls_ca, made.tls_cert, made.tls_key, made.tls_server_name)
            wanted = os.environ.get("TACHO_TLS", "").lower() not in _OFF
            made.tls = wanted or any(settings)
        return made


def is_this_machine(address: str) -> bool:
    if address.startswith("unix:"):
        return True
    host = address.rsplit(":", 1)[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(path: str, setting: str, secret: bool = False) -> bytes:
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read()
    except OSError as error:
        raise errors.ConfigurationError(f"{setting}: {path}: {error.strerror}") from error
    if secret and stat.S_IMODE(mode) & 0o077:
        raise errors.ConfigurationError(
            f"{setting}: {path} holds a secret and others may read it: chmod 600 {path}"
        )
    return content


def _token(security: Security) -> str:
    if security.token:
        text = security.token
    elif security.token_file:
        content = _read(security.token_file, "token_file", secret=True)
        text = content[:_MAX_TOKEN_BYTES].decode("ascii", "replace").strip()
    else:
        return ""
    if not text or not all("!" <= character <= "~" for character in text):
        where = security.token_file or "token"
        raise errors.ConfigurationError(f"{where} must hold exactly one token on one line")
    return text


def _tls_credentials(security: Security) -> Any:
    if bool(security.tls_cert) != bool(security.tls_key):
        missing, given = ("tls_key", "tls_cert") if security.tls_cert else ("tls_cert", "tls_key")
        raise errors.ConfigurationError(f"{missing} is missing beside {given}")
    own: Tuple[Optional[bytes], Optional[bytes]] = (None, None)
    if security.tls_cert and security.tls_key:
        own = (
            _read(security.tls_key, "tls_key", secret=True),
            _read(security.tls_cert, "tls_cert"),
        )
    root = _read(security.tls_ca, "tls_ca") if security.tls_ca else None
    return grpc.ssl_channel_credentials(root, *own)


class Connection:
    """Calls of tacho.v1.Query and tacho.v1.Marks. Thread-safe, as gRPC's channels are."""

    def __init__(self, address: Optional[str], security: Security):
        self.address = address or os.environ.get("TACHO_ADDRESS") or DEFAULT_ADDRESS
        if "://" in self.address:
            raise errors.ConfigurationError(
                f"{self.address}: an address is HOST:PORT, of the collector's gRPC port"
            )
        security = security.resolved()
        token = _token(security)
        options: List[Tuple[str, Any]] = [
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        ]
        if security.tls:
            if security.tls_server_name:
                options.append(("grpc.ssl_target_name_override", security.tls_server_name))
            self._channel = grpc.secure_channel(
                self.address, _tls_credentials(security), options=options
            )
        else:
            given = [security.tls_ca, security.tls_cert, security.tls_key, security.tls_server_name]
            if any(given):
                raise errors.ConfigurationError("settings of TLS have no effect with tls=False")
            if token and not security.allow_plaintext_token and not is_this_machine(self.address):
                raise errors.ConfigurationError(
                    f"the token would go to {self.address} without TLS, so others on the network"
                    " could read it: set tls=True (TACHO_TLS=1), or allow it with"
                    " allow_plaintext_token=True"
                )
            self._channel = grpc.insecure_channel(self.address, options=options)
        self._metadata = (("authorization", "Bearer " + token),) if token else None

    def close(self) -> None:
        self._channel.close()

    def _types(self, method: str, service: str = "Query") -> Tuple[str, Any]:
        descriptor = messages.service(service).methods_by_name[method]
        return f"/tacho.v1.{service}/{method}", messages.of(descriptor.output_type).FromString

    def _error(self, error: Any, method: str) -> errors.CallError:
        code, text = error.code().name, error.details() or ""
        if code == "UNIMPLEMENTED" and not text:
            text = f"the collector at {self.address} does not serve {method}: it is too old"
        if code == "UNAVAILABLE" and "collector" not in text:
            text = f"no collector answers at {self.address}: {text}"
        return errors.of_call(code, text)

    def unary(
        self, method: str, request: Any, timeout: Optional[float], service: str = "Query"
    ) -> Any:
        path, parse = self._types(method, service)
        call = self._channel.unary_unary(path, lambda m: m.SerializeToString(), parse)
        try:
            return call(request, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._error(error, method) from None

    def stream(self, method: str, request: Any, timeout: Optional[float]) -> Iterator[Any]:
        """Messages of an answer. Closing the iterator ends the call."""
        path, parse = self._types(method)
        begin = self._channel.unary_stream(path, lambda m: m.SerializeToString(), parse)
        call = begin(request, timeout=timeout, metadata=self._metadata)
        try:
            for message in call:
                yield message
        except grpc.RpcError as error:
            raise self._error(error, method) from None
        finally:
            call.cancel()
