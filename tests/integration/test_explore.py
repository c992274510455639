"""Tools list what a collector has, by the part of Prometheus' HTTP API that needs no PromQL."""
import http.client
import json
import subprocess
import time
import urllib.parse

import harness
import client
from remote_read_case import COUNTER, RemoteReadCase, TokensCase


class ExploreCase:
    """Calls of the HTTP API about names."""

    def call(self, path, parameters=(), form=False, headers=None):
        """(status, the answer), of a list of pairs."""
        text = urllib.parse.urlencode(list(parameters))
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=60)
        if form:
            connection.request(
                "POST", f"/api/v1/{path}", text,
                {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})})  # fmt: skip
        else:
            connection.request("GET", f"/api/v1/{path}?{text}", headers=headers or {})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        self.assertEqual(answer.getheader("Content-Type"), "application/json")
        connection.close()
        return answer.status, body

    def data(self, path, *parameters, **options):
        status, body = self.call(path, parameters, **options)
        self.assertEqual((status, body["status"]), (200, "success"), body)
        self.assertNotIn("warnings", body)
        return body["data"]


class ExploreTest(ExploreCase, RemoteReadCase):
    """Names that the API lists are those of the query service's series."""

    METRICS = [
        ("loss", "nats"), ("examples_total", "1", COUNTER, {}), ("train.odd", "1"),
        ("chip_power", "W", 1, {"chip": "0"}), ("chip_power", "W", 1, {"chip": "1", "attempt": 'a"b'}),
    ]  # fmt: skip

    def setUp(self):
        super().setUp()
        self.now_s = int(time.time())
        for job, age_s in (("vision-a", 0), ("vision-b", 86_400)):
            for task in range(3):
                at = (self.now_s - age_s) * 10**9
                self.feed(job, task, 0, self.METRICS, [at], [(0.5, 1, 2, 3, 4)], [1])
        query = client.Query(self.collector.address)
        self.stored = []
        for job in ("vision-a", "vision-b"):
            for info, _ in query.series(job):
                labels = {label.name: label.value for label in info.labels}
                if "attempt" in labels:
                    labels["exported_attempt"] = labels["attempt"]
                labels |= {"__name__": info.metric.name, "job": job, "task": str(info.task),
                           "host": info.host, "attempt": "0"}  # fmt: skip
                if info.metric.name == "train.odd":
                    labels |= {"__name__": "train_odd", "metric": "train.odd"}
                self.stored.append(labels)
        query.close()
        self.assertEqual(len(self.stored), 2 * 3 * 5)

    @staticmethod
    def ordered(series):
        return sorted(series, key=lambda labels: sorted(labels.items()))

    def test_names_are_those_of_the_query_service(self):
        names = sorted({name for labels in self.stored for name in labels})
        everything = ("match[]", '{__name__!=""}')
        for form in (False, True):
            self.assertEqual(self.data("labels", form=form), names)
            self.assertEqual(self.data("labels", everything, form=form), names)
            self.assertEqual(self.data("series", everything, form=form), self.ordered(self.stored))
            for name in names:
                values = sorted({labels[name] for labels in self.stored if name in labels})
                more = ["tacho_step"] if name == "__name__" else []  # Which no other selector gets.
                self.assertEqual(self.data(f"label/{name}/values", form=form), sorted(values + more))
                self.assertEqual(
                    self.data(f"label/{name}/values", ("match[]", '{job=~"vision.*"}')), values
                )
        wanted = [one for one in self.stored if one["__name__"] == "chip_power"
                  and one["task"] in "02" and one.get("exported_attempt") == 'a"b']  # fmt: skip
        selector = r'chip_power{task=~"0|2",exported_attempt="a\"b"}'
        self.assertEqual(self.data("series", ("match[]", selector)), self.ordered(wanted))
        self.assertEqual(self.data("labels", ("match[]", selector)), sorted(wanted[0]))

    def test_times_choose_jobs(self):
        jobs = "label/job/values"
        self.assertEqual(self.data(jobs, ("start", f"{self.now_s - 100}.5")), ["vision-a"])
        self.assertEqual(self.data(jobs, ("end", f"{self.now_s - 100}")), ["vision-b"])
        middle = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now_s - 100))
        self.assertEqual(self.data(jobs, ("start", middle)), ["vision-a"])
        self.assertEqual(self.data("labels", ("start", self.now_s + 100)), [])

    def test_what_the_store_knows_of_itself(self):
        metadata = self.data("metadata")
        self.assertEqual(metadata["loss"], [{"type": "gauge", "help": "", "unit": "nats"}])
        self.assertEqual(metadata["examples_total"][0]["type"], "counter")
        self.assertEqual(list(self.data("metadata", ("metric", "train_odd"))), ["train_odd"])
        self.assertRegex(self.data("status/buildinfo")["version"], r"^\d+\.\d+\.\d+")
        tsdb = self.data("status/tsdb")
        self.assertEqual(tsdb["headStats"]["numSeries"], len(self.stored))
        self.assertEqual(tsdb["seriesCountByMetricName"][0], {"name": "chip_power", "value": 12})
        self.assertIn({"name": "job=vision-a", "value": 15}, tsdb["seriesCountByLabelValuePair"])
        self.assertEqual(len(self.data("status/tsdb", ("limit", 1))["seriesCountByMetricName"]), 1)

    def test_promtool_lists_what_there_is(self):
        def promtool(*arguments):
            return subprocess.run(
                [harness.tool("promtool"), "query", *arguments],
                capture_output=True, text=True, timeout=60)  # fmt: skip

        server = self.collector.url("")
        labels = promtool("labels", server, "__name__")
        self.assertEqual(labels.returncode, 0, labels)
        self.assertEqual(labels.stdout.split(), ["chip_power", "examples_total", "loss", "tacho_step", "train_odd"])
        series = promtool("series", server, '--match=loss{job="vision-a"}', f"--start={self.now_s - 9}")
        self.assertEqual(series.returncode, 0, series)
        self.assertEqual(len(series.stdout.splitlines()), 3, series)
        self.assertIn('host="host-2"', series.stdout)
        refused = promtool("instant", server, "1+1")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("computes no PromQL", refused.stdout + refused.stderr)

    def test_bad_input_is_400_and_named(self):
        for path, parameters, words in (
            ("labels", [("start", "now")], 'start: "now" is no time'),
            ("labels", [("start", 2), ("end", 1)], "end: "),
            ("series", [], "match[]: "),
            ("series", [("match[]", "loss{")], "match[]: at character 6 of loss{: "),
            ("series", [("match[]", "{}")], "match[]: at character 1"),
            ("label/job/values", [("match[]", '{job=~"("}')], "no RE2 expression"),
            ("metadata", [("limit", "many")], "limit: "),
        ):
            for form in (False, True):
                status, body = self.call(path, parameters, form=form)
                self.assertEqual((status, body["status"], body["errorType"]), (400, "error", "bad_data"))
                self.assertIn(words, body["error"])
        for path in ("query", "query_range", "query_exemplars"):
            status, body = self.call(path, [("query", "1+1")], form=True)
            self.assertEqual((status, body["errorType"]), (422, "execution"))
            self.assertIn("docs/interop.md#prometheus-reads-history", body["error"])
        self.assertEqual(self.call("label/job/other")[0], 404)


class ExploreRightsTest(ExploreCase, TokensCase):
    """A token sees the names of its own jobs."""

    def test_an_explorer_sees_its_jobs_alone(self):
        for job in ("vision", "speech"):
            self.feed(job, 0, 0, [(f"{job}_loss", "nats", 1, {f"of_{job}": "1"})],
                      [time.time_ns()], [(0.5,)], [1], token=self.token("all"))  # fmt: skip
        for path, parameters in (
            ("labels", []), ("labels", [("match[]", '{job=~".*s.+"}')]),
            ("label/__name__/values", []), ("label/job/values", []),
            ("label/job/values", [("match[]", '{job=~".*s.+"}')]),
            ("series", [("match[]", '{__name__=~".+"}')]), ("metadata", []), ("status/tsdb", []),
        ):  # fmt: skip
            shown = {
                name: json.dumps(self.data(path, *parameters, headers=self.bearer(name)))
                for name in ("all", "some")
            }
            self.assertIn("vision", shown["some"], path)
            self.assertIn("speech", shown["all"], path)
            self.assertNotIn("speech", shown["some"], path)
            self.assertEqual(self.call(path, parameters)[0], 401, path)
            self.assertEqual(self.call(path, parameters, headers=self.bearer("writer"))[0], 403)
        speech = [("match[]", '{job="speech"}')]
        self.assertEqual(self.data("series", *speech, headers=self.bearer("some")), [])
        tsdb = self.data("status/tsdb", headers=self.bearer("some"))
        self.assertEqual(tsdb["headStats"]["numSeries"], 1)


if __name__ == "__main__":
    harness.main()
