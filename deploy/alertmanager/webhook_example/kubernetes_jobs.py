"""The two calls of Kubernetes' API (batch/v1) that early stopping makes: get and patch a Job."""
import http.client
import json
import ssl
import urllib.error
import urllib.request

import configuration


class Rejected(Exception):
    """The API server refuses: the same request would get the same answer."""


class Unavailable(Exception):
    """No answer, or one that another try may change."""


# 409: the Job changed in between. 429: there were too many requests.
TRY_AGAIN = {408, 409, 429}
MAX_ANSWER_BYTES = 4 << 20


class Cluster:
    """Threads may share one. Reads token and authority for each call: both are renewed on disk."""

    def __init__(self, settings):
        self.settings = settings

    def get_job(self, target):
        job = self.call("GET", target)
        try:
            metadata = job["metadata"]
            texts = [metadata["resourceVersion"], metadata["creationTimestamp"]]
        except (KeyError, TypeError) as error:
            raise Unavailable(f"the API server's answer is no Job: {error!r}") from error
        if not all(isinstance(text, str) for text in texts):
            raise Unavailable("the API server's answer is no Job")
        return job

    def patch_job(self, target, patch):
        return self.call("PATCH", target, patch)

    def call(self, method, target, document=None):
        url = (
            f"{self.settings.api.rstrip('/')}/apis/batch/v1"
            f"/namespaces/{target.namespace}/jobs/{target.name}"
        )
        headers = {"Accept": "application/json"}
        body = None
        if document is not None:
            headers["Content-Type"] = "application/merge-patch+json"
            body = json.dumps(document).encode()
        try:
            token = configuration.read_secret(self.settings.token_file)
            headers["Authorization"] = "Bearer " + token
            request = urllib.request.Request(url, body, headers, method=method)
            opener = urllib.request.build_opener(NoRedirect, *self.tls(url))
            with opener.open(request, timeout=self.settings.timeout_seconds) as answer:
                return json.loads(answer.read(MAX_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            raise self.error(error, f"{method} {url}") from error
        except (OSError, ValueError, http.client.HTTPException, configuration.Mistake) as error:
            raise Unavailable(f"{method} {url}: {error}") from error

    def tls(self, url):
        if not url.startswith("https:"):
            return []
        context = ssl.create_default_context(cafile=self.settings.ca_file)
        return [urllib.request.HTTPSHandler(context=context)]

    @staticmethod
    def error(error, what):
        kind = Unavailable if error.code >= 500 or error.code in TRY_AGAIN else Rejected
        try:
            message = json.loads(error.read(1 << 16)).get("message", "")
        except (OSError, ValueError, AttributeError):
            message = ""
        return kind(f"{what}: {error.code} {message}".rstrip())


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token goes nowhere else."""

    def redirect_request(self, *_):
        return None
