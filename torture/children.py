"""Child processes: forks of a process that has imported everything, so that a child costs milliseconds."""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any

Report = Callable[..., None]
"""Sends a line, a JSON list, to the parent. A line is shorter than a pipe's buffer, so no kill cuts it."""
LONGEST = 900


class Child:
    """A forked process that reports lines to its parent.

    Args:
        work: What the child does; it is given a `Report`. An exception is reported as a raw error.
    """

    def __init__(self, work: Callable[[Report], None]) -> None:
        self._pipe, write = os.pipe()
        self.lines: list[list[Any]] = []
        self._rest = b""
        self._open = True
        self.running = True
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._pipe)
            _work(work, write)
        os.close(write)

    def listen(self, seconds: float, until: str | None = None, times: int = 1) -> bool:
        """Read lines for some seconds, or until so many begin with a word; whether the pipe is still open."""
        end = time.monotonic() + seconds
        while self._open:
            ready, _, _ = select.select([self._pipe], [], [], max(end - time.monotonic(), 0))
            if not ready:
                return True
            *lines, self._rest = (self._rest + self._read()).split(b"\n")
            self.lines += map(json.loads, lines)
            if until is not None and sum(line[0] == until for line in self.lines) >= times:
                return self._open
        return False

    def _read(self) -> bytes:
        data = os.read(self._pipe, 1 << 16)
        self._open = bool(data)
        return data

    def kill(self) -> list[list[Any]]:
        """Kill the process with SIGKILL, and return all its lines."""
        os.kill(self.pid, signal.SIGKILL)
        return self.end()

    def end(self, seconds: float = 120.0) -> list[list[Any]]:
        """Wait for the end of the process, and return all its lines; it is killed if it takes too long."""
        if self.listen(seconds):
            os.kill(self.pid, signal.SIGKILL)
            self.lines.append(["problem", "raw errors", f"a process did not end within {seconds:.0f} s"])
            self.listen(seconds)
        os.close(self._pipe)
        status = os.waitpid(self.pid, 0)[1]
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
            self.lines.append(["problem", "raw errors", f"a process died of signal {os.WTERMSIG(status)}"])
        self.running = False
        return self.lines


def _work(work: Callable[[Report], None], pipe: int) -> None:
    def report(*line: Any) -> None:
        os.write(pipe, json.dumps(line).encode() + b"\n")

    try:
        work(report)
    except BaseException:
        report("problem", "raw errors", traceback.format_exc()[-LONGEST:])
    finally:
        os._exit(0)  # Neither the exit functions nor the tests of the parent run here.
