"""The page as the real collector serves it: every file, packed and plain, kept and asked for again."""
import gzip
import http.client
import os
import pathlib
import re

import harness

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
FIRST_BYTES = 60 << 10  # What a browser loads before it shows the fleet, packed.
ALL_BYTES = 110 << 10
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


class WebAssetsTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.collector = self.started(harness.Collector(self.directory))

    def get(self, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.collector.http, timeout=10)
        self.addCleanup(connection.close)
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers=fields)
        response = connection.getresponse()
        return response, response.read()

    def test_each_file_of_the_build_is_served_as_it_is(self):
        files = {p.name: p for p in (REPOSITORY / "client/web/dist").iterdir()}
        files |= {f"runbooks/{p.name}": p for p in (REPOSITORY / "docs/runbooks").glob("Tacho*.md")}
        self.assertIn("index.html", files)
        self.assertGreater(len(files), 70)
        first = (REPOSITORY / "client/web/dist/index.html").read_text()
        sizes = {}
        for name, file in files.items():
            with self.subTest(name=name):
                plain, body = self.get(f"/ui/{name}", Accept_Encoding="identity")
                self.assertEqual((plain.status, body), (200, file.read_bytes()))
                packed, packed_body = self.get(f"/ui/{name}", Accept_Encoding="gzip")
                self.assertEqual(packed.getheader("Content-Encoding"), "gzip")
                self.assertEqual(gzip.decompress(packed_body), body)
                self.assertEqual(packed.getheader("ETag"), plain.getheader("ETag"))
                again, nothing = self.get(f"/ui/{name}", If_None_Match=plain.getheader("ETag"))
                self.assertEqual((again.status, nothing), (304, b""))
                hashed = re.search(r"-[A-Z0-9]{8}\.", name) is not None
                self.assertEqual("immutable" in plain.getheader("Cache-Control"), hashed)
                if name.endswith((".js", ".css")):
                    sizes[name] = len(packed_body)
        self.assertLess(sum(size for name, size in sizes.items() if name in first), FIRST_BYTES)
        self.assertLess(sum(sizes.values()), ALL_BYTES)

    def test_a_browser_may_run_nothing_but_the_page_and_frame_it_nowhere(self):
        response, _ = self.get("/ui/", Accept=BROWSER)
        self.assertEqual(response.status, 200)
        self.assertEqual(response.getheader("Content-Security-Policy"), POLICY)
        self.assertEqual(response.getheader("X-Content-Type-Options"), "nosniff")
        self.assertEqual(response.getheader("Cross-Origin-Opener-Policy"), "same-origin")

    def test_the_root_leads_browsers_to_the_page_and_tells_others_what_there_is(self):
        response, _ = self.get("/", Accept=BROWSER)
        self.assertEqual((response.status, response.getheader("Location")), (303, "ui/"))
        for accept in ({}, {"Accept": "*/*"}):
            response, body = self.get("/", **accept)
            self.assertEqual(response.status, 200)
            self.assertIn(b"/metrics", body)
            self.assertIn(b"/ui/", body)

    def test_what_is_not_there_is_404(self):
        for path in ("/ui/app.js", "/ui/../metrics", "/ui/%2e%2e/metrics", "/ui/runbooks/README.md"):
            with self.subTest(path=path):
                response, _ = self.get(path)
                self.assertEqual(response.status, 404)


class WebDirectoryTest(harness.TestCase):
    def collector_with(self, http, config=""):
        collector = harness.Collector(self.directory, config)
        page = os.path.join(self.directory, "page")
        os.makedirs(page, exist_ok=True)
        with open(os.path.join(page, "index.html"), "w") as file:
            file.write("<p>mine")
        arguments = collector.arguments

        def with_directory(port_file):
            return [*arguments(port_file), "--web-directory", page, *http]

        collector.arguments = with_directory
        return collector

    def test_the_page_of_a_directory_is_for_loopback_only(self):
        collector = self.started(self.collector_with([]))
        self.assertEqual(harness.http_get(collector.url("/ui/"))[2], b"<p>mine")
        collector.stop()
        config = "auth: {allow_anonymous: true}\n"
        with self.assertRaisesRegex(AssertionError, "--web-directory .* loopback"):
            self.collector_with(["--http", "0.0.0.0:0"], config).start()


if __name__ == "__main__":
    harness.main()
