"""deploy/alertmanager/webhook_example: whom it lets in, what it suspends, what it leaves alone."""
import http.client
import json
import os
import re
import subprocess
import sys
import unittest

import harness
from certificates import Authority
from fake_kubernetes import KubernetesApi

EXAMPLE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../deploy/alertmanager/webhook_example"
)
TOKEN = "a-token-of-alertmanager"
KUBERNETES_TOKEN = "a-token-of-the-service-account"
ANNOTATION = "tachograph.dev/suspended-for"


def alert(job="sweep-a", **changes):
    return {
        "status": "firing", "startsAt": "2026-11-21T20:00:00.123456789Z",
        "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "c0ffee0123456789",
        "labels": {"alertname": "TachoJobDiverged", "job": job},
        "annotations": {"step": "4711", "hosts": "h7"}, **changes,
    }  # fmt: skip


def webhook(*alerts):
    return {"version": "4", "status": "firing", "receiver": "early-stopping",
            "alerts": list(alerts)}  # fmt: skip


class EarlyStopping:
    """The example, as an operator starts it."""

    def __init__(self, directory, api, enabled=True, ca=None):
        self.log = os.path.join(directory, "early_stopping.log")
        self.config = os.path.join(directory, "early_stopping.toml")
        self.token_file = os.path.join(directory, "alertmanager.token")
        account = os.path.join(directory, "account.token")
        for path, text in ((self.token_file, TOKEN), (account, KUBERNETES_TOKEN)):
            with open(path, "w") as file:
                file.write(text + "\n")
        with open(self.config, "w") as file:
            file.write(
                f'listen = "127.0.0.1:0"\ntoken_file = "{self.token_file}"\n'
                f"enabled = {str(enabled).lower()}\n"
                "[[jobs]]\npattern = 'sweep-(.*)'\nnamespace = 'research'\nname = 'sweep-\\1'\n"
                "[[jobs]]\npattern = 'prod'\nnamespace = 'forbidden'\nname = 'prod'\n"
                f'[kubernetes]\napi = "{api}"\ntoken_file = "{account}"\ntimeout_seconds = 5\n'
                + (f'ca_file = "{ca}"\n' if ca else "")
            )

    def start(self):
        script = os.path.join(EXAMPLE, "early_stopping.py")
        if os.path.exists(self.log):
            os.remove(self.log)
        self.program = harness.Program([sys.executable, "-B", script, self.config], self.log)
        found = harness.wait_until(
            lambda: re.search(r"listening on 127\.0\.0\.1:(\d+)", self.program.tail())
            or not self.program.alive(),
            "early stopping listens",
        )
        self.port = int(found.group(1))
        return self

    def post(self, document, token=TOKEN, path="/alerts", headers=None):
        """(status, answer)"""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", path, body, {**sent, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


class EarlyStoppingTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.api = KubernetesApi(KUBERNETES_TOKEN)
        self.addCleanup(self.api.stop)
        self.api.add("research", "sweep-a")

    def start(self, **options):
        options.setdefault("api", self.api.url)
        return self.started(EarlyStopping(self.directory, **options))

    def job(self, name="sweep-a"):
        return self.api.jobs["research", name]

    def results(self, stopping, *alerts, status=200):
        answered, document = stopping.post(webhook(*alerts))
        self.assertEqual(answered, status, document)
        return [result["result"] for result in document["results"]]

    def test_suspends_the_job_that_has_diverged(self):
        stopping = self.start()
        status, document = stopping.post(webhook(alert()))
        self.assertEqual(status, 200)
        self.assertEqual(document["results"], [
            {"job": "sweep-a", "host": "h7", "step": "4711", "namespace": "research",
             "name": "sweep-a", "result": "suspended"}])  # fmt: skip
        self.assertEqual(self.job()["spec"], {"parallelism": 4, "suspend": True})
        self.assertIn(ANNOTATION, self.job()["metadata"]["annotations"])

    def test_does_nothing_unless_it_is_enabled(self):
        stopping = self.start(enabled=False)
        self.assertEqual(self.results(stopping, alert()), ["would suspend"])
        self.assertEqual(self.job()["spec"], {"parallelism": 4})
        self.assertEqual([call[0] for call in self.api.calls], ["get"])

    def test_a_repeated_alert_changes_nothing_even_if_somebody_resumed_the_job(self):
        stopping = self.start()
        self.assertEqual(self.results(stopping, alert()), ["suspended"])
        self.assertEqual(self.results(stopping, alert()), ["left alone"])
        self.job()["spec"]["suspend"] = False
        self.assertEqual(self.results(stopping, alert()), ["left alone"])
        self.assertFalse(self.job()["spec"]["suspend"])
        later = alert(startsAt="2026-11-21T23:00:00Z")
        self.assertEqual(self.results(stopping, later), ["suspended"], "it diverged once more")

    def test_leaves_alone_what_is_not_the_job_that_diverged(self):
        self.api.add("research", "sweep-new", created="2026-11-21T20:00:01Z")
        self.api.add("research", "sweep-done",
                     status={"conditions": [{"type": "Complete", "status": "True"}]})  # fmt: skip
        self.api.add("research", "sweep-paused", spec={"suspend": True})
        stopping = self.start()
        names = ["sweep-new", "sweep-done", "sweep-paused"]
        alerts = [alert(job=name) for name in names]
        self.assertEqual(self.results(stopping, *alerts), ["left alone"] * 3)
        self.assertEqual({call[0] for call in self.api.calls}, {"get"})

    def test_other_alerts_are_none_of_its_business(self):
        stopping = self.start()
        stalled = alert(labels={"alertname": "TachoJobStalled", "job": "sweep-a"})
        self.assertEqual(self.results(stopping, stalled, alert(status="resolved")), [])
        self.assertEqual(self.api.calls, [])

    def test_only_what_the_rules_name_can_be_ended(self):
        stopping = self.start()
        names = ["other", "", "sweep-../../../x", "sweep-a/status", "sweep-A", "sweep-a\n",
                 "sweep-" + "a" * 100, "xsweep-a"]  # fmt: skip
        alerts = [alert(job=name) for name in names]
        self.assertEqual(self.results(stopping, *alerts), ["not allowed"] * len(names))
        self.assertEqual(self.api.calls, [])

    def test_what_the_api_server_forbids_is_told_and_not_tried_again(self):
        self.api.forbidden.add("forbidden")
        stopping = self.start()
        alerts = [alert(job="prod"), alert(job="sweep-none")]
        self.assertEqual(self.results(stopping, *alerts), ["rejected", "rejected"])

    def test_trouble_of_the_api_server_makes_alertmanager_try_again(self):
        stopping = self.start()
        for trouble in ((500, "etcd"), (503, "starting"), (429, "slow down"), (200, [1])):
            self.api.out_of_order = trouble
            self.assertEqual(self.results(stopping, alert(), status=503), ["failed"], trouble)
        odd = {"metadata": {"resourceVersion": "1", "creationTimestamp": "yesterday"}}
        self.api.out_of_order = (200, odd)
        self.assertEqual(self.results(stopping, alert(), status=503), ["failed"])
        self.api.out_of_order = (302, "elsewhere")
        self.assertEqual(self.results(stopping, alert()), ["rejected"])
        self.api.out_of_order = None
        self.assertEqual(self.results(stopping, alert()), ["suspended"])

    def test_a_job_that_changes_meanwhile_is_looked_at_again(self):
        stopping = self.start()
        self.api.before_patch = lambda: self.job()["metadata"].update(resourceVersion="2")
        self.assertEqual(self.results(stopping, alert(), status=503), ["failed"])
        self.assertNotIn("suspend", self.job()["spec"])
        self.api.before_patch = lambda: None
        self.assertEqual(self.results(stopping, alert()), ["suspended"])

    def test_nobody_without_the_token_is_let_in(self):
        stopping = self.start()
        for token in ("", "another", TOKEN + "x", TOKEN[:-1], "é"):
            status, _ = stopping.post(webhook(alert()), token=token)
            self.assertEqual(status, 401, token)
        with open(stopping.token_file, "w") as file:
            file.write("renewed-renewed-renewed\n")
        self.assertEqual(stopping.post(webhook(), token=TOKEN)[0], 401)
        self.assertEqual(stopping.post(webhook(), token="renewed-renewed-renewed")[0], 200)
        os.remove(stopping.token_file)
        self.assertEqual(stopping.post(webhook())[0], 503)
        self.assertEqual(self.api.calls, [])

    def test_bad_input_is_refused_and_does_no_harm(self):
        stopping = self.start()
        bad = [b"", b"{", b"[]", b"null", b"[" * 100_000, b'"\xff"', {"version": "3", "alerts": []},
               {"version": "4"}, {"version": "4", "alerts": {}}, webhook(1), webhook({}),
               webhook(alert(labels={"job": 1})), webhook(alert(startsAt="yesterday")),
               webhook(alert(startsAt="2026-11-21T20:00:00")), webhook(alert(startsAt=7)),
               webhook(alert(fingerprint="../x")), webhook(alert(status="on fire"))]  # fmt: skip
        for document in bad:
            self.assertEqual(stopping.post(document)[0], 400, document)
        long = {"Content-Length": str(1 << 30)}
        self.assertEqual(stopping.post(b"{}", headers=long)[0], 413)
        for length in ("-1", "x", "1e3"):
            self.assertEqual(stopping.post(b"", headers={"Content-Length": length})[0], 411)
        self.assertEqual(stopping.post(webhook(), path="/")[0], 404)
        self.assertEqual(self.api.calls, [])
        self.assertEqual(self.results(stopping, alert()), ["suspended"], "and it still works")

    def test_the_api_servers_certificate_is_checked(self):
        authority, other = Authority(self.directory), Authority(self.directory, "other")
        secure = KubernetesApi(KUBERNETES_TOKEN, *authority.sign("kubernetes"))
        self.addCleanup(secure.stop)
        secure.add("research", "sweep-a")
        stopping = self.start(api=secure.url, ca=other.certificate)
        self.assertEqual(self.results(stopping, alert(), status=503), ["failed"])
        self.assertEqual(secure.calls, [])
        stopping.program.kill()
        stopping = self.start(api=secure.url, ca=authority.certificate)
        self.assertEqual(self.results(stopping, alert()), ["suspended"])

    def test_a_mistake_in_the_configuration_ends_it_at_once(self):
        example = EarlyStopping(self.directory, self.api.url)
        with open(example.config) as file:
            good = file.read()
        for old, new, said in (
            ("enabled", "enable", "unknown key 'enable'"),
            ("enabled = true", "enabled = 'yes'", "enabled: not of the right type"),
            ("'sweep-(.*)'", "'sweep-('", "pattern"),
            (self.api.url, "http://kubernetes.example", "is not https"),
            ("127.0.0.1:0", "7", "no HOST:PORT"),
            ("pattern = 'prod'\n", "", "missing: pattern"),
            ("[[jobs]]", "[[jobs]", "at line 4"),
        ):
            self.assertIn(old, good)
            with open(example.config, "w") as file:
                file.write(good.replace(old, new))
            script = os.path.join(EXAMPLE, "early_stopping.py")
            done = subprocess.run([sys.executable, "-B", script, example.config],
                                  capture_output=True, text=True, timeout=60)  # fmt: skip
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    harness.main()
