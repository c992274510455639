"""Kubernetes' API server over TLS, as far as it serves one Node: bearer tokens, errors as objects of kind
Status, a resourceVersion for each change. It can also hang, or answer with anything.
"""
import copy
import http.server
import json
import ssl
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        status, body = self.server.api.ask(self.path, self.headers.get("Authorization"))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # Clients that do not trust the certificate, or do not wait.


class NodeApi:
    """Serves on loopback until stop(). `tokens` are those that came."""

    def __init__(self, name, token, certificate, key):
        self.lock = threading.Lock()
        self.token = token
        self.tokens = []
        self.forbidden = False
        self.instead = None  # Bytes that are answered whatever is asked.
        self.hanging = threading.Event()
        self.version = 100
        self.node = {
            "kind": "Node", "apiVersion": "v1",
            "metadata": {"name": name, "uid": "5a1b", "labels": {"kubernetes.io/os": "linux"}},
            "spec": {"podCIDR": "10.1.2.0/24"},
            "status": {
                "conditions": [
                    {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory",
                     "message": "kubelet has sufficient memory available"},
                    {"type": "Ready", "status": "True", "reason": "KubeletReady",
                     "message": "kubelet is posting ready status"},
                ],
                # A node has them by the hundred.
                "images": [{"names": [f"registry.example/image-{i}@sha256:{'0' * 64}"], "sizeBytes": i}
                           for i in range(3000)],
            },
        }  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.api = self
        # The handshake is the handler's: a client that stops in it holds up nobody.
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server.server_address[1]

    def change(self, taints=None, cordoned=None, **conditions):
        """`taints` as "KEY=VALUE:EFFECT"; conditions by type, "STATUS"."""
        with self.lock:
            self.version += 1
            if taints is not None:
                self.node["spec"]["taints"] = [self.taint(text) for text in taints]
            if cordoned is not None:
                self.node["spec"]["unschedulable"] = cordoned
            for type_, status in conditions.items():
                kept = [c for c in self.node["status"]["conditions"] if c["type"] != type_]
                self.node["status"]["conditions"] = kept + [
                    {"type": type_, "status": status, "reason": "Test", "message": "as the test says"}
                ]

    @staticmethod
    def taint(text):
        rest, _, effect = text.rpartition(":")
        key, _, value = rest.partition("=")
        return {"key": key, "effect": effect, **({"value": value} if value else {})}

    def ask(self, path, authorization):
        if self.hanging.is_set():
            threading.Event().wait(60)
        with self.lock:
            self.tokens.append(authorization)
            name = self.node["metadata"]["name"]
            if self.instead is not None:
                return 200, self.instead
            if authorization != f"Bearer {self.token}":
                return 401, self.failure(401, "Unauthorized")
            if self.forbidden:
                return 403, self.failure(403, f'nodes "{name}" is forbidden')
            if path != f"/api/v1/nodes/{name}":
                return 404, self.failure(404, f'"{path}" not found')
            node = copy.deepcopy(self.node)
            node["metadata"]["resourceVersion"] = str(self.version)
            return 200, json.dumps(node).encode()

    @staticmethod
    def failure(code, message):
        return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message,
                           "code": code}).encode()  # fmt: skip

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
