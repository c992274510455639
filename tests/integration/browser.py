"""Chromium over --remote-debugging-pipe: no port, no package of npm.

A page collects everything that must not happen: errors on the console, violations of the content
security policy, requests to another host. Wait for what the page shows, never for a time."""

import base64
import fcntl
import functools
import json
import os
import pathlib
import select
import subprocess
import tempfile
import time
from typing import Any

BINARIES = ("chromium", "chromium-headless-shell", "google-chrome")
ARGUMENTS = (
    "--headless",
    "--disable-gpu",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
)
WAIT_SECONDS = 30.0


class BrowserError(Exception):
    pass


class Browser:
    """One Chromium with a fresh profile. Use it in a `with`."""

    def __init__(self, binary: str) -> None:
        # Chromium may still write into its profile while it ends.
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._to = os.pipe()
        self._from, from_write = os.pipe()
        # Above 9, so that dup2() in the child cannot overwrite them.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_read, from_write)]

        def in_child() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [binary, *ARGUMENTS, f"--user-data-dir={self._profile.name}", "about:blank"]
        if os.getuid() == 0:
            command.insert(1, "--no-sandbox")
        self._process = subprocess.Popen(
            command,
            preexec_fn=in_child,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TZ": "UTC", "LANG": "C.UTF-8"},
        )
        for fd in (to_read, from_write, *high):
            os.close(fd)
        self._last = 0
        self._buffer = b""
        self._listeners: dict[str, "Page"] = {}

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.call("Browser.close")
        except (BrowserError, OSError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def _message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise BrowserError(f"the browser has not answered for {WAIT_SECONDS:.0f} s")
            got = os.read(self._from, 1 << 20)
            if not got:
                raise BrowserError("the browser has ended")
            self._buffer += got
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._last += 1
        number = self._last
        request: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            request["sessionId"] = session
        text = json.dumps(request).encode() + b"\0"
        while text:
            text = text[os.write(self._to, text) :]
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            message = self._message(deadline)
            if message.get("id") == number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._event(message)

    def _event(self, message: dict[str, Any]) -> None:
        page = self._listeners.get(message.get("sessionId", ""))
        if page:
            page.on_event(message["method"], message["params"])

    def page(self, origin: str, width: int = 1366, height: int = 900, dark: bool = False) -> "Page":
        """A new tab that may speak to `origin` only."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, origin)
        self._listeners[session] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.scheme(dark)
        return page


class Page:
    def __init__(self, browser: Browser, session: str, origin: str) -> None:
        self._browser = browser
        self._session = session
        self._origin = origin
        # What must not happen, in words.
        self.problems: list[str] = []
        self.requests: list[str] = []
        # Texts of the log that a test causes on purpose, such as an answer with 401.
        self.expected: tuple[str, ...] = ()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def on_event(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            self.requests.append(url)
            if not url.startswith((self._origin + "/", "data:", "blob:", "about:")):
                self.problems.append(f"a request to another place: {url}")
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            text = details.get("exception", {}).get("description") or details["text"]
            self.problems.append(f"an exception: {text}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            words = [str(a.get("value", a.get("description", ""))) for a in params["args"]]
            self._complain("the console says: " + " ".join(words))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            self._complain(f"the log says: {entry['text']} {entry.get('url', '')}")

    def _complain(self, text: str) -> None:
        if not any(word in text for word in self.expected):
            self.problems.append(text)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def scheme(self, dark: bool) -> None:
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        """Loads `url` afresh, even if only what follows "#" differs."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def js(self, expression: str) -> Any:
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = WAIT_SECONDS) -> Any:
        """The first value of `expression` that is true."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if value := self.js(f"((v) => v instanceof Node || v)({expression})"):
                    return value
            except BrowserError as error:
                # While a page loads, there is none to ask.
                if "context" not in str(error) and "null" not in str(error):
                    raise
            if time.monotonic() > deadline:
                raise BrowserError(f"after {seconds:.0f} s still not: {expression}\n{self.text()}")
            time.sleep(0.02)

    def text(self) -> str:
        return self.js("document.body ? document.body.innerText : ''") or ""

    def wait_text(self, text: str, seconds: float = WAIT_SECONDS) -> None:
        self.wait(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def press(self, key: str, control: bool = False, shift: bool = False) -> None:
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38}
        codes |= {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}
        code = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
        modifiers = 2 * control + 8 * shift
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        if text and not control:
            common["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **common)
        common.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Clicks with the mouse where the element is, so that what covers it would be noticed."""
        place = self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " if (!e) return null; e.scrollIntoView({block: 'center'});"
            " const r = e.getBoundingClientRect();"
            " return [r.left + Math.min(r.width / 2, 40), r.top + r.height / 2]; })()"
        )
        if place is None:
            raise BrowserError(f"the page has no {selector}")
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=place[0],
                y=place[1],
                button="left",
                clickCount=1,
            )

    def drag(self, selector: str, begin: float, end: float) -> None:
        """From one part of the element's width to another, with the mouse."""
        place = self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            " return [r.left, r.width, r.top + r.height / 2]; })()"
        )
        steps = [("mousePressed", begin)]
        steps += [("mouseMoved", begin + (end - begin) * i / 8) for i in range(1, 9)]
        for kind, part in [*steps, ("mouseReleased", end)]:
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=place[0] + place[1] * part,
                y=place[2],
                button="left",
                buttons=int(kind != "mouseReleased"),
                clickCount=int(kind != "mouseMoved"),
            )

    def hash(self) -> str:
        return self.js("location.hash")

    def axe(self, script: str) -> list[str]:
        """What axe finds: rule, and the first place of each."""
        self.js(script)
        found = self.js(
            "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']})"
            ".then(r => r.violations.map(v => `${v.id}: ${v.help}: ${v.nodes[0].html.slice(0, 200)}"
            " ${v.nodes[0].any.map(a => a.message).join(' ')}`))"
        )
        return found or []

    def screenshot(self, path: pathlib.Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))


_WEB = pathlib.Path(__file__).resolve().parents[2] / "client" / "web"


@functools.cache
def axe_script() -> str | None:
    """The source of axe-core, which npm brings; None where it cannot be had."""
    script = _WEB / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists() and subprocess.run([_WEB / "build.sh", "--install"]).returncode != 0:
        return None
    return script.read_text()
