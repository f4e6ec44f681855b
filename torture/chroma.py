"""A Chroma server that is killed and started again under writers and searches."""

from __future__ import annotations

import http.client
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from langchain_threadmem.errors import PersistenceError
from torture.databases import Place
from torture.flips import EMBEDDINGS
from torture.kills import Memory
from torture.tally import Tally, rounds
from torture.work import Work

ROUNDS = 2
"""The number of times that a server is killed in a run."""
UP, DOWN = 0.6, 0.3
"""The mean times that the server is up and down, in seconds."""

EMPTIED = 0.1
"""The share of the turns after which a process empties the index, and fills it again."""


class ChromaServer:
    """`chroma run` on a port of 127.0.0.1 that no program uses.

    Args:
        folder: The folder of the server's data.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def program() -> str | None:
        """The path of the command `chroma`, if it is installed."""
        return shutil.which("chroma", path=str(Path(sys.executable).parent)) or shutil.which("chroma")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        program = self.program()
        assert program is not None, "the command `chroma` of chromadb is not installed"
        arguments = ["run", "--host", "127.0.0.1", "--port", str(self._port), "--path", str(self._folder)]
        self._process = subprocess.Popen(
            [program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(600):
            assert self._process.poll() is None, f"`chroma run` ended with {self._process.returncode}"
            if self._answers():
                return
            time.sleep(0.1)
        raise TimeoutError("`chroma run` did not answer within a minute")

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/api/v2/heartbeat")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def stop(self, *, kill: bool = False) -> None:
        """End the server; with `kill` by SIGKILL."""
        if self._process is not None:
            (self._process.kill if kill else self._process.terminate)()
            self._process.wait(60)
            self._process = None


def server(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """Kill and start Chroma servers until the time is over."""
    import chromadb  # noqa: F401 # children fork from a process that has imported it

    for _ in rounds(seconds):
        with tempfile.TemporaryDirectory(prefix="threadmem-torture-chroma-") as folder:
            chroma = ChromaServer(Path(folder))
            try:
                _run(place, chroma, tally, random_)
            finally:
                chroma.stop()


def _run(place: Place, chroma: ChromaServer, tally: Tally, random_: random.Random) -> None:
    memory = Memory(place, EMBEDDINGS, chroma.url)
    chroma.start()
    children = [memory.child(random_.getrandbits(64), _talk, alone=False) for _ in range(2)]
    for _ in range(ROUNDS):
        time.sleep(random_.expovariate(1 / UP))
        chroma.stop(kill=True)
        tally.add("kills")
        time.sleep(random_.expovariate(1 / DOWN))
        chroma.start()
    for child in children:
        memory.ledger.take(child.kill(), tally)
    tally.add("runs")
    memory.ledger.take(memory.child(random_.getrandbits(64), _settle).end(), tally)
    place.drop(memory.url)


def _talk(work: Work) -> None:
    """Append and search, and sometimes empty the index while the other process adds vectors."""
    while True:
        work.append()
        with suppress(PersistenceError):
            if work.random.random() < EMPTIED:
                work.system.reindex()
            work.system.conversation("new").recall("turn", scope="owner")
        time.sleep(0.01)


def _settle(work: Work) -> None:
    """Fill the index, again if the kill of the server has damaged it; it then agrees with the database."""
    work.system.flush()
    try:
        work.system.conversation("new").recall("turn", scope="owner")
    except PersistenceError:
        work.system.reindex()
        work.system.conversation("new").recall("turn", scope="owner")
    if not work.system.verify().ok:
        work.system.reindex()
    for problem in work.system.verify().problems:
        work.report("problem", "false alarms", problem[:300])
