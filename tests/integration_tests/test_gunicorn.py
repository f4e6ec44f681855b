"""A web server that loads the application once and forks its workers."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from langchain_threadmem import MemorySystem

TESTS = Path(__file__).parents[1]
APPLICATION = """
import asyncio, json, os, sys
sys.path.insert(0, os.environ["MEMORY_TESTS"])
from conftest import WordEmbeddings
from langchain_threadmem import MemorySystem

system = MemorySystem(os.environ["MEMORY_URL"], owner=os.environ["MEMORY_OWNER"], embeddings=WordEmbeddings())
memory = system.conversation("shared")
memory.append("How do stars burn?", "Hydrogen becomes helium.")
memory.recall("stars")

async def asked(text):
    await memory.aappend(text, "Noted.")
    return await memory.arecall(text)

def app(environ, start_response):
    text = environ["QUERY_STRING"]
    memory.append(f"sync {text}", "Noted.")
    found = asyncio.run(asked(f"async {text}"))[0].node.message.text
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps([os.getpid(), text in found]).encode()]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="gunicorn needs fork, which Windows has not")
def test_workers_that_were_forked_after_loading_all_write(url: str, owner: str, tmp_path: Path) -> None:
    pytest.importorskip("gunicorn")
    (tmp_path / "application.py").write_text(APPLICATION)
    environment = {**os.environ, "MEMORY_URL": url, "MEMORY_OWNER": owner, "MEMORY_TESTS": str(TESTS)}
    command = [sys.executable, "-W", "ignore", "-m", "gunicorn", "--preload", "--workers", "2"]
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*command, "--bind", "127.0.0.1:0", "--timeout", "60", "application:app"],
            cwd=tmp_path,
            env=environment,
            stderr=errors,
        ) as server,
    ):
        try:
            port = _port(log, server)
            answers = [_get(port, f"word{n}") for n in range(12)]
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    assert all(found for _, found in answers), log.read_text()
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert len(system.conversation("shared").history) == 2 + 12 * 4
        assert system.verify().ok


def _port(log: Path, server: subprocess.Popen[bytes]) -> int:
    for _ in range(600):
        text = log.read_text()
        if "Listening at: http://127.0.0.1:" in text and text.count("Booting worker") >= 2:
            return int(text.split("Listening at: http://127.0.0.1:")[1].split()[0])
        assert server.poll() is None, text
        time.sleep(0.1)
    raise AssertionError(f"gunicorn did not start within a minute: {log.read_text()}")


def _get(port: int, text: str) -> tuple[int, bool]:
    import json

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/?{text}")
    worker, found = json.loads(connection.getresponse().read())
    connection.close()
    return worker, found
