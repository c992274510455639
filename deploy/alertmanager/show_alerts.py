#!/usr/bin/python3
"""Prints the alerts that Alertmanager posts to port 9098 of this machine. For first steps."""
import http.server
import json
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = min(int(self.headers.get("Content-Length", 0)), 1 << 20)
        for alert in json.loads(self.rfile.read(length))["alerts"]:
            labels, annotations = alert["labels"], alert["annotations"]
            where = [f"job={labels['job']}"] if "job" in labels else []
            said = [k for k in ("hosts", "reason", "step") if annotations.get(k)]
            where += [f"{k}={annotations[k]}" for k in said]
            print(alert["status"].upper(), labels["alertname"], labels["severity"], *where)
            print("   ", annotations["summary"], flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9098
    http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
