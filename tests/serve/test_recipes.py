"""The recipes of docs/service.md, as far as their parts are here."""

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from serving import text_records, write_lines

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service.md").read_text()
SCRIPTS = Path(sys.executable).parent


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_units_are_sound(tmp_path):
    for unit in blocks("ini"):
        name = Path(unit.splitlines()[0][2:]).name
        (tmp_path / name).write_text(unit.replace("/opt/bnpstream/bin", str(SCRIPTS)))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", tmp_path / name],
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        complaints = [line for line in done.stderr.splitlines() if name in line]
        assert complaints == [], name


def command_of(line, folder):
    """Return the arguments of a shown command as they run here."""
    words = shlex.split(line)
    assert Path(words[0]).name == "bnpstream"
    return [sys.executable, "-m", "bnpstream", *words[1:]], folder


def test_commands_of_units_are_ours(tmp_path):
    starts = re.findall(r"^ExecStart=(.*)$", PAGE, re.MULTILINE)
    assert len(starts) == 2
    for start in starts:
        command, folder = command_of(start, tmp_path)
        help = subprocess.run(
            [*command[:4], "--help"], cwd=folder, capture_output=True, text=True, timeout=300
        )
        for option in re.findall(r"--[a-z-]+", start):
            assert option in help.stdout, option


def test_cron_goes_on_where_it_ended(tmp_path):
    (line,) = blocks("sh")
    command = line.split(" && ", 1)[1]
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "bnpstream"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m bnpstream "$@"\n')
    script.chmod(0o755)
    environment = {**os.environ, "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"}
    for first, n, total in ((0, 120, 120), (120, 30, 150), (150, 0, 150)):
        write_lines(tmp_path / "feed.jsonl", text_records(first, n), "a")
        subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, check=True, timeout=300
        )
        assert json.loads((tmp_path / "last.json").read_text())["rows"] == total


def has_docker():
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, timeout=300).returncode == 0


@pytest.mark.skipif(not has_docker(), reason="there is no Docker that runs")
def test_the_image_is_built(tmp_path):
    (file,) = blocks("dockerfile")
    (tmp_path / "Dockerfile").write_text(file)
    command = ["docker", "build", "-f", tmp_path / "Dockerfile", ROOT]
    subprocess.run(command, check=True, timeout=1800)


def test_a_faststream_handler_posts_what_it_gets():
    nats = pytest.importorskip("faststream.nats", reason="faststream[nats] is missing")
    code = next(block for block in blocks("python") if "faststream" in block)
    came = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            came.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    given = {}
    exec(code.replace("localhost:8765", f"127.0.0.1:{server.server_port}"), given)

    async def publish():
        async with nats.TestNatsBroker(given["broker"]) as broker:
            await broker.publish({"id": "a1", "text": "snow"}, "articles")

    try:
        asyncio.run(publish())
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    ((path, body),) = came
    assert path == "/learn"
    assert json.loads(body) == {"records": [{"id": "a1", "text": "snow"}]}
