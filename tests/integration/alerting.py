"""A real Alertmanager with the configuration of deploy/, and a receiver that keeps what it gets."""
import http.server
import json
import os
import subprocess
import threading
import time
import unittest
import urllib.request

import yaml

import harness

DIRECTORY = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../deploy/alertmanager"
)
CONFIGURATION = os.path.join(DIRECTORY, "alertmanager.yml")


class Receiver:
    """Takes webhooks on loopback. `alerts` has each alert that came: (receiver, alert)."""

    def __init__(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                name = self.path.strip("/")
                with receiver.lock:
                    receiver.groups.append((name, body["groupLabels"], body["alerts"]))
                    receiver.alerts += [(name, alert) for alert in body["alerts"]]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.lock = threading.Lock()
        self.alerts, self.groups = [], []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def received(self):
        """{(receiver, alertname, job)} of what is firing."""
        with self.lock:
            return {
                (name, alert["labels"]["alertname"], alert["labels"].get("job", ""))
                for name, alert in self.alerts
                if alert["status"] == "firing"
            }


def configuration(receiver_url, early_stopping=None):
    """The example, with every receiver a webhook at the URL, and without its waits."""
    with open(CONFIGURATION) as file:
        text = file.read()
    if early_stopping:
        text = text.replace("    # - matchers: [alertname", "    - matchers: [alertname")
        text = text.replace("    #   ", "      ")
    document = yaml.safe_load(text)
    for receiver in document["receivers"]:
        name = receiver["name"]
        if name == "early-stopping" and early_stopping:
            url, token_file = early_stopping
            receiver["webhook_configs"][0]["url"] = url
            authorization = {"credentials_file": token_file}
            receiver["webhook_configs"][0]["http_config"] = {"authorization": authorization}
        else:
            document["receivers"][document["receivers"].index(receiver)] = {
                "name": name, "webhook_configs": [{"url": f"{receiver_url}/{name}"}]
            }  # fmt: skip
    document["global"] = {}
    document.pop("templates")
    for route in [document["route"], *document["route"]["routes"]]:
        if "group_wait" in route:
            route["group_wait"] = "1s"
        if "group_interval" in route:
            route["group_interval"] = "1s"
    return document


def alertmanager_command():
    """What starts Alertmanager; skips the test where nothing does.

    Debian's build reads a template below /usr/share, where an unpacked one is not. A mount
    namespace of its own shows it there.
    """
    program = harness.tool("prometheus-alertmanager")
    template = "share/prometheus/alertmanager/default.tmpl"
    if os.path.exists("/usr/" + template):
        return [program]
    share = os.path.join(os.path.dirname(os.path.dirname(program)), "share")
    if not os.path.exists(os.path.join(os.path.dirname(share), template)):
        raise unittest.SkipTest("no default.tmpl beside Alertmanager")
    script = 'mount --bind "$0" /usr/share && exec setpriv --pdeathsig KILL -- "$@"'
    bound = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, share]
    if subprocess.run([*bound, "true"], capture_output=True, timeout=60).returncode != 0:
        raise unittest.SkipTest("Alertmanager is not installed and no namespace can be made here")
    return [*bound, program]


class Alertmanager:
    """On loopback, alone, forgetting everything when it ends."""

    def __init__(self, directory, document):
        self.directory = directory
        self.log = os.path.join(directory, "alertmanager.log")
        self.config = os.path.join(directory, "alertmanager.yml")
        with open(self.config, "w") as file:
            yaml.safe_dump(document, file)

    def start(self):
        self.port = harness.free_port()
        self.program = harness.Program(
            [*alertmanager_command(), f"--config.file={self.config}",
             f"--storage.path={self.directory}/alertmanager", "--cluster.listen-address=",
             f"--web.listen-address=127.0.0.1:{self.port}"], self.log)  # fmt: skip
        ready = lambda: self.is_ready() or not self.program.alive()  # noqa: E731
        harness.wait_until(ready, "Alertmanager is ready")
        if not self.program.alive():
            raise AssertionError("Alertmanager did not start:\n" + self.program.tail())
        return self

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def is_ready(self):
        try:
            return harness.http_get(self.url("/-/ready"))[0] == 200
        except OSError:
            return False

    def post(self, alerts):
        """As Prometheus sends alerts that fire: [{label: value}]."""
        begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        body = [{"labels": labels, "startsAt": begun} for labels in alerts]
        request = urllib.request.Request(
            self.url("/api/v2/alerts"), json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200

    def states(self):
        """{(alertname, job): inhibited?}"""
        _, _, body = harness.http_get(self.url("/api/v2/alerts"))
        return {
            (alert["labels"]["alertname"], alert["labels"].get("job", "")):
            bool(alert["status"]["inhibitedBy"])
            for alert in json.loads(body)
            if alert["status"]["state"] != "unprocessed"
        }  # fmt: skip
