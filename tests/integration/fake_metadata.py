"""The metadata server of Google Compute Engine, as its documentation has it: flavor headers both
ways, pages with 404, waiting for changes by ETag.
"""
import hashlib
import http.server
import threading
import time
import urllib.parse

ROOT = "/computeMetadata/v1/"
NOT_FOUND = b"<!DOCTYPE html>\n<title>Error 404 (Not Found)!!1</title>\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "Metadata Server for VM"
    sys_version = ""

    def do_GET(self):
        if self.headers.get("Metadata-Flavor") != "Google":
            return self.answer(403, b"Missing Metadata-Flavor:Google header.")
        if "X-Forwarded-For" in self.headers:
            return self.answer(403, b"X-Forwarded-For header is not allowed.")
        path, _, query = self.path.partition("?")
        if not path.startswith(ROOT):
            return self.answer(404, NOT_FOUND)
        value = self.server.metadata.read(path[len(ROOT):], dict(urllib.parse.parse_qsl(query)))
        return self.answer(404, NOT_FOUND) if value is None else self.answer(200, value.encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Metadata-Flavor", "Google")
        if status == 200:
            self.send_header("ETag", etag(body.decode()))
            self.send_header("Content-Type", "application/text")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def etag(value):
    return hashlib.sha256(value.encode()).hexdigest()[:16]


class MetadataServer:
    """Serves on loopback until stop(). `values` by path; `paths` are those that were asked for."""

    def __init__(self, values):
        self.values = dict(values)
        self.paths = []
        self.changed = threading.Condition()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.metadata = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def authority(self):
        return f"127.0.0.1:{self.server.server_address[1]}"

    def set(self, path, value):
        with self.changed:
            self.values[path] = value
            self.changed.notify_all()

    def read(self, path, query):
        """The value, None if there is none; waits if the query asks for that."""
        with self.changed:
            self.paths.append(path)
            if query.get("wait_for_change") == "true":
                before = query.get("last_etag") or etag(self.values.get(path, ""))
                deadline = time.monotonic() + float(query.get("timeout_sec", 3600))
                while etag(self.values.get(path, "")) == before and time.monotonic() < deadline:
                    self.changed.wait(deadline - time.monotonic())
            return self.values.get(path)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
