"""From a page of metrics over the rules and routes of deploy/ to receivers, with real servers.

The page is written here: the collector makes its conditions by itself, and when it does so is
tested elsewhere. What is tested here is what becomes of them.
"""
import glob
import http.server
import json
import os
import threading
import time

import yaml

import alerting
import harness
from fake_kubernetes import KubernetesApi
from test_early_stopping import KUBERNETES_TOKEN, EarlyStopping

PROMETHEUS = os.path.join(alerting.DIRECTORY, "../prometheus")


class Exporter:
    """Serves `page` as /metrics on loopback; after stop() on the same port nothing does."""

    def __init__(self):
        exporter = self
        self.page = ""

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(exporter.page.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()
        self.server = None


def info(condition, job, severity="warning", step=4711, host="h7"):
    return (
        f'tacho_job_condition{{job="{job}",condition="{condition}",severity="{severity}"}} 1\n'
        f'tacho_job_condition_info{{job="{job}",condition="{condition}",severity="{severity}",'
        f'reason="Because",host="{host}",task="7",chip="",step="{step}",metric="loss"}} 1\n'
        f'tacho_job_condition_since_timestamp_seconds{{job="{job}",condition="{condition}"}}'
        f" {time.time() - 60}\n"
    )


def condition_names():
    with open(os.path.join(PROMETHEUS, "rules/conditions.yml")) as file:
        rules = yaml.safe_load(file)["groups"][0]["rules"]
    return [rule["alert"][len("TachoJob"):] for rule in rules]


class Prometheus:
    """The example of deploy/ with a scrape and an evaluation every second, and no patience."""

    def __init__(self, directory, target, alertmanager=None):
        self.directory = directory
        self.log = os.path.join(directory, "prometheus.log")
        self.config = os.path.join(directory, "prometheus.yml")
        with open(os.path.join(PROMETHEUS, "prometheus.yml")) as file:
            text = file.read().replace("127.0.0.1:7412", target)
        document = yaml.safe_load(text)
        document["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s",
                              "evaluation_interval": "1s"}  # fmt: skip
        targets = document["alerting"]["alertmanagers"][0]["static_configs"][0]
        targets["targets"] = [alertmanager] if alertmanager else []
        os.mkdir(os.path.join(directory, "rules"))
        for path in glob.glob(os.path.join(PROMETHEUS, "rules/*.yml")):
            with open(path) as file:
                rules = yaml.safe_load(file)
            for group in rules["groups"]:
                for rule in group["rules"]:
                    if "for" in rule:
                        rule["for"] = "1s"
            with open(os.path.join(directory, "rules", os.path.basename(path)), "w") as file:
                yaml.safe_dump(rules, file)
        with open(self.config, "w") as file:
            yaml.safe_dump(document, file)

    def start(self):
        self.port = harness.free_port()
        self.program = harness.Program(
            [harness.tool("prometheus"), f"--config.file={self.config}",
             f"--storage.tsdb.path={self.directory}/tsdb",
             f"--web.listen-address=127.0.0.1:{self.port}"], self.log)  # fmt: skip
        return self

    def targets(self):
        """{instance: scrape URL} once Prometheus has found its targets; {} before."""
        try:
            _, _, body = harness.http_get(f"http://127.0.0.1:{self.port}/api/v1/targets")
            found = json.loads(body)["data"]["activeTargets"]
        except (OSError, ValueError, KeyError):
            return {}
        return {one["labels"]["instance"]: one["scrapeUrl"] for one in found}

    def firing(self):
        """Alerts that fire; none while it starts."""
        try:
            _, _, body = harness.http_get(f"http://127.0.0.1:{self.port}/api/v1/alerts")
            alerts = json.loads(body)["data"]["alerts"]
        except (OSError, ValueError, KeyError):
            return []
        return [alert for alert in alerts if alert["state"] == "firing"]


class AlertDeliveryTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.exporter = Exporter()
        self.addCleanup(self.exporter.stop)

    def test_an_alert_says_where_and_since_when(self):
        names = condition_names()
        self.exporter.page = "".join(info(name, 'job \\"a\\"') for name in names)
        self.exporter.page += 'tacho_page_info{url="https://tacho.example/ui/"} 1\n'
        prometheus = self.started(Prometheus(self.directory, self.exporter.address))
        about_jobs = lambda: [  # noqa: E731
            alert for alert in prometheus.firing() if alert["labels"].get("condition") in names
            and alert["labels"]["alertname"] != "TachoConditionWidespread"
        ]  # fmt: skip
        harness.wait_until(lambda: len(about_jobs()) == len(names), "every condition's alert fires")
        for alert in about_jobs():
            labels, said = alert["labels"], alert["annotations"]
            self.assertEqual(labels["alertname"], "TachoJob" + labels["condition"])
            self.assertEqual(labels["job"], 'job "a"')
            self.assertFalse({"step", "host", "task", "chip", "metric"} & set(labels), labels)
            self.assertEqual((said["hosts"], said["reason"]), ("h7", "Because"))
            self.assertEqual(said["step"], "4711", labels["alertname"])
            self.assertRegex(said["since"], r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d")
            self.assertIn('job "a"', said["summary"])
            page = "https://tacho.example/ui/#/job/job%20%22a%22?v=" + labels["condition"]
            self.assertEqual(said["page"], page)
            for text in said.values():
                self.assertNotRegex(text, "<no value>|<error|{{", labels["alertname"])

    def test_annotations_of_pods_become_targets(self):
        pod = lambda name, ip, container_port="7412", **annotations: {  # noqa: E731
            "targets": [f"{ip}:{container_port}"],
            "labels": {
                "__meta_kubernetes_namespace": "monitoring",
                "__meta_kubernetes_pod_name": name,
                "__meta_kubernetes_pod_ip": ip,
                "__meta_kubernetes_pod_container_port_number": container_port,
                **{f"__meta_kubernetes_pod_annotation_prometheus_io_{key}": value
                   for key, value in annotations.items()},
            },
        }  # fmt: skip
        with open(os.path.join(PROMETHEUS, "scrape/kubernetes.yml")) as file:
            scrape = yaml.safe_load(file)["scrape_configs"][0]
        # Debian's Prometheus has no Kubernetes discovery: what it would find is written here.
        del scrape["kubernetes_sd_configs"], scrape["tls_config"], scrape["authorization"]
        scrape["static_configs"] = [
            pod("plain", "127.0.0.2", scrape="true", port="7412"),
            pod("tls", "127.0.0.3", scrape="true", port="7412", scheme="https"),
            pod("six", "::1", scrape="true", port="7412"),
            pod("grpc-port", "127.0.0.4", "7411", scrape="true", port="7412"),
            pod("not-annotated", "127.0.0.5"),
        ]
        prometheus = Prometheus(self.directory, self.exporter.address)
        with open(prometheus.config, "w") as file:
            yaml.safe_dump({"scrape_configs": [scrape]}, file)
        self.started(prometheus)
        self.assertEqual(harness.wait_until(prometheus.targets, "targets found"), {
            "plain": "http://127.0.0.2:7412/metrics", "tls": "https://127.0.0.3:7412/metrics",
            "six": "http://[::1]:7412/metrics"})  # fmt: skip

    def test_a_diverged_job_is_ended_and_a_dead_collector_resolves_nothing(self):
        api = KubernetesApi(KUBERNETES_TOKEN)
        self.addCleanup(api.stop)
        api.add("research", "sweep-a")
        stopping = self.started(EarlyStopping(self.directory, api.url))
        receiver = alerting.Receiver()
        self.addCleanup(receiver.stop)
        routes = alerting.configuration(
            receiver.url, (f"http://127.0.0.1:{stopping.port}/alerts", stopping.token_file)
        )
        manager = self.started(alerting.Alertmanager(self.directory, routes))
        address = f"127.0.0.1:{manager.port}"
        self.exporter.page = info("Diverged", "sweep-a", "critical")
        self.started(Prometheus(self.directory, self.exporter.address, address))

        harness.wait_until(lambda: api.jobs["research", "sweep-a"]["spec"].get("suspend"), "ended")
        wanted = ("page", "TachoJobDiverged", "sweep-a")
        harness.wait_until(lambda: wanted in receiver.received(), "the person on call is told")

        self.exporter.stop()
        down = ("page", "TachoCollectorDown", "tacho-collector")
        harness.wait_until(lambda: down in receiver.received(), "told that the collector is down")
        harness.wait_until(
            lambda: manager.states().get(("TachoJobDiverged", "sweep-a")), "inhibited"
        )
        resolved = [alert for _, alert in receiver.alerts if alert["status"] == "resolved"]
        self.assertEqual(resolved, [], "nobody looked, so nothing got well")


if __name__ == "__main__":
    harness.main()
