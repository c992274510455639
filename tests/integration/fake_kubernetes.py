"""The part of Kubernetes' API server that early stopping uses, as its reference documents it:
read and patch of Jobs in batch/v1, merge patches (RFC 7386), optimistic locking by resourceVersion,
errors as objects of kind Status.
"""
import copy
import http.server
import json
import re
import ssl
import threading

PATH = re.compile(r"/apis/batch/v1/namespaces/([^/]+)/jobs/([^/]+)")


def merge(document, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.serve("get")

    def do_PATCH(self):
        self.serve("patch")

    def serve(self, verb):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, document = self.server.api.ask(verb, self.path, self.headers, body)
        if status != 200:
            document = {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                        "message": document, "code": status}  # fmt: skip
        answer = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class KubernetesApi:
    """Serves on loopback until stop(). `jobs` by (namespace, name); `calls` are those that came."""

    def __init__(self, token, certificate=None, key=None):
        self.token = token
        self.jobs = {}
        self.calls = []
        self.forbidden = set()  # Namespaces in which the account has no role.
        self.out_of_order = None  # (status, message) for every call, if set.
        self.before_patch = lambda: None
        self.version = 100
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.api = self
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def add(self, namespace, name, created="2026-01-01T00:00:00Z", **more):
        self.jobs[namespace, name] = {
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"namespace": namespace, "name": name, "creationTimestamp": created,
                         "resourceVersion": "1"},
            "spec": {"parallelism": 4}, "status": {"active": 4}, **more,
        }  # fmt: skip

    def ask(self, verb, path, headers, body):
        """(status, the Job or a message)"""
        if self.out_of_order:
            return self.out_of_order
        if headers.get("Authorization") != "Bearer " + self.token:
            return 401, "Unauthorized"
        found = PATH.fullmatch(path)
        if not found:
            return 404, "the server could not find the requested resource"
        key = found.groups()
        self.calls.append((verb, *key))
        if key[0] in self.forbidden:
            return 403, f'jobs.batch "{key[1]}" is forbidden'
        if key not in self.jobs:
            return 404, f'jobs.batch "{key[1]}" not found'
        return self.patch(key, headers, body) if verb == "patch" else (200, self.jobs[key])

    def patch(self, key, headers, body):
        if headers.get("Content-Type") != "application/merge-patch+json":
            return 415, "the body of the request was in an unknown format"
        self.before_patch()
        job, patch = self.jobs[key], json.loads(body)
        wanted = patch.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != job["metadata"]["resourceVersion"]:
            return 409, "the object has been modified"
        job = merge(copy.deepcopy(job), patch)
        self.version += 1
        job["metadata"]["resourceVersion"] = str(self.version)
        self.jobs[key] = job
        return 200, job
