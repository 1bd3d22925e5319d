"""A hub of one's own on 127.0.0.1, which the real client talks to: repositories are folders."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Handler(BaseHTTPRequestHandler):
    """Serves `<root>/datasets/<owner>/<name>` and `<root>/<owner>/<name>` at one commit."""

    def __init__(self, root: Path, *arguments: object) -> None:
        self.root = root
        super().__init__(*arguments)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].strip("/")
        if path.startswith("api/models/"):
            return self._describe(*path.removeprefix("api/models/").split("/")[:3])
        repository, _, rest = path.partition("/resolve/")
        file = self.root / repository / rest.removeprefix(f"{COMMIT}/")
        if not (rest.startswith(COMMIT) and file.is_file()):
            return self._answer(404, b"")
        self._answer(200, file.read_bytes())

    do_HEAD = do_GET

    def _describe(self, owner: str, name: str, what: str) -> None:
        """Answers about a repository's commit, or its list of files."""
        files = sorted((self.root / owner / name).iterdir())
        if what == "tree":
            found = [
                {"type": "file", "path": f.name, "size": f.stat().st_size, "oid": COMMIT}
                for f in files
            ]
        else:
            siblings = [{"rfilename": file.name} for file in files]
            found = {"id": f"{owner}/{name}", "sha": COMMIT, "siblings": siblings}
        self._answer(200, json.dumps(found).encode())

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@contextmanager
def serve(root: Path) -> Iterator[str]:
    """Serve repositories until the block ends; yields the endpoint."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
