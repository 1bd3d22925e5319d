"""Headless Chromium through chromedriver: pages are opened, read and photographed."""

import base64
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from servers import Server, free_port

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--window-size=1800,1300"),
)


class Browser:
    """A browser with a fresh profile in `folder`."""

    def __init__(self, folder: Path) -> None:
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if not (chromium and driver):
            pytest.skip("chromium or chromedriver is not installed (Debian: chromium-driver)")
        self.driver = Server(free_port(), folder / "chromedriver.log")
        self.driver.start(driver, f"--port={self.driver.port}")
        options = {"binary": chromium, "args": [*FLAGS, f"--user-data-dir={folder}/profile"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        self.session = f"{self.driver.uri}/session"
        self.session += f"/{self._post('', wanted)['sessionId']}"

    def _post(self, path: str, content: dict) -> Any:
        answer = requests.post(self.session + path, json=content, timeout=180)
        answer.raise_for_status()
        return answer.json()["value"]

    def open(self, address: str) -> None:
        """Open a page afresh, also where only the part behind `#` differs."""
        for url in ("about:blank", address):
            self._post("/url", {"url": url})

    def run(self, script: str) -> Any:
        """What a script returns."""
        return self._post("/execute/sync", {"script": script, "args": []})

    def wait(self, script: str, seconds: float = 600) -> Any:
        """What a script returns once that is something."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < end, self.run("return document.body.innerText")
            time.sleep(0.5)
        return value

    def photograph(self, path: Path) -> None:
        """Keep what is seen as PNG."""
        answer = requests.get(f"{self.session}/screenshot", timeout=60)
        path.write_bytes(base64.b64decode(answer.json()["value"]))

    def close(self) -> None:
        """End browser and driver."""
        requests.delete(self.session, timeout=60)
        self.driver.kill()
