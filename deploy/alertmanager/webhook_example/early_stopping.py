#!/usr/bin/python3
"""Suspends the Kubernetes Job of a training job that has diverged.

A receiver for Alertmanager's webhooks (https://prometheus.io/docs/alerting/latest/configuration/,
webhook_config, version 4). It says what it would do and does nothing, until `enabled = true`.

    early_stopping.py CONFIG.toml

README.md beside this file explains the configuration and the rights that it needs. Python 3.11, its
standard library alone.
"""
import hmac
import http.server
import json
import logging
import sys

import configuration
import kubernetes_jobs
import policy

log = logging.getLogger("early_stopping")

# Alertmanager sends at most some hundred alerts of one group, about 2 KiB each.
MAX_BODY_BYTES = 1 << 20
READ_TIMEOUT_S = 10


class Refused(Exception):
    """The answer to a caller whose request cannot be handled."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection. `server.stopper` and `server.token` are set by make_server()."""

    timeout = READ_TIMEOUT_S
    server_version = "tacho-early-stopping"
    sys_version = ""

    def do_GET(self):
        found = self.path == "/healthz"
        self.answer(200 if found else 404, {"status": "ok"} if found else {"error": "not found"})

    def do_POST(self):
        try:
            if self.path != "/alerts":
                raise Refused(404, "post to /alerts")
            self.check_caller()
            results, again = self.server.stopper.handle(self.read_alerts())
            # Alertmanager sends it again after a 5xx, and only then.
            self.answer(503 if again else 200, {"results": results})
        except Refused as refused:
            log.warning("refused %s: %s", self.client_address[0], refused)
            self.answer(refused.status, {"error": str(refused)})

    def check_caller(self):
        given = self.headers.get("Authorization", "")
        try:
            wanted = "Bearer " + self.server.token()
        except (OSError, configuration.Mistake) as error:
            log.error("token_file: %s", error)
            raise Refused(503, "the token cannot be read here: see the log") from error
        if not hmac.compare_digest(given.encode(), wanted.encode()):
            raise Refused(401, "no token, or another one: Authorization: Bearer …")

    def read_alerts(self):
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal():
            raise Refused(411, "Content-Length is needed")
        if int(length) > MAX_BODY_BYTES:
            raise Refused(413, f"more than {MAX_BODY_BYTES} bytes")
        try:
            return policy.alerts_of(json.loads(self.rfile.read(int(length))))
        except (ValueError, RecursionError) as error:
            raise Refused(400, f"no webhook of Alertmanager, version 4: {error}") from error
        except TimeoutError as error:
            raise Refused(408, "the body did not come") from error

    def answer(self, status, document):
        body = json.dumps(document).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        # After a refusal the rest of the body may still come. It must not be read as a request.
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format, *arguments):
        log.debug(format, *arguments)


class Stopper:
    """Decides on alerts and suspends Jobs. Threads may share one."""

    def __init__(self, settings, cluster):
        self.settings = settings
        self.cluster = cluster

    def handle(self, alerts):
        """Returns ([the result for each alert about a job], whether to send them again)."""
        results, again = [], False
        for alert in alerts:
            if not policy.is_about_divergence(alert):
                continue
            result = self.stop(alert)
            log.info("%s", json.dumps(result, sort_keys=True))
            results.append(result)
            again = again or result["result"] == "failed"
        return results, again

    def stop(self, alert):
        result = {"job": alert.job, "host": alert.host, "step": alert.step}
        target = policy.target_of(alert, self.settings.jobs)
        if target is None:
            return {**result, "result": "not allowed"}
        result |= {"namespace": target.namespace, "name": target.name}
        try:
            job = self.cluster.get_job(target)
            why_not = policy.why_not(job, alert)
            if why_not:
                return {**result, "result": "left alone", "reason": why_not}
            if not self.settings.enabled:
                return {**result, "result": "would suspend"}
            self.cluster.patch_job(target, policy.suspension(job, alert))
            return {**result, "result": "suspended"}
        except kubernetes_jobs.Rejected as error:  # Sending it again would not help.
            return {**result, "result": "rejected", "reason": str(error)}
        except (kubernetes_jobs.Unavailable, ValueError) as error:
            return {**result, "result": "failed", "reason": str(error)}


def make_server(settings):
    server = http.server.ThreadingHTTPServer(settings.listen, Handler)
    server.daemon_threads = True
    server.token = lambda: configuration.read_secret(settings.token_file)
    server.stopper = Stopper(settings, kubernetes_jobs.Cluster(settings.kubernetes))
    return server


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        settings = configuration.load(sys.argv[1])
        server = make_server(settings)
    except (configuration.Mistake, OSError) as error:
        log.error("%s: %s", sys.argv[1], error)
        return 2
    host, port = server.server_address[:2]
    log.info("listening on %s:%d, %s", host, port,
             "suspending jobs" if settings.enabled else "dry run: enabled = false")  # fmt: skip
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
