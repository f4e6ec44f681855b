"""The cost of importing the package, compared with other packages.

Every chat memory for LangChain imports `langchain_core.chat_history`; the peer of the saver is LangGraph's
`SqliteSaver`. The figures are the processor time and
the memory of new interpreters, in which no module is imported before; the line "nothing" is the interpreter
alone. The files are compiled already, in the folder that the setting `PYTHONPYCACHEPREFIX` or a temporary one
names, whatever `PYTHONDONTWRITEBYTECODE` says.

    python -m benchmarks.import_time [--full]
"""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks._measure import Line, command, duration, ratio

PEER = "langchain_core.chat_history"
SAVER, OTHER_SAVER = "from langchain_threadmem import ThreadMemSaver", "SqliteSaver"
PROGRAMS = {
    "nothing": "",
    PEER: "import langchain_core.chat_history",
    "import langchain_threadmem": "import langchain_threadmem",
    "from langchain_threadmem import ChatMemory": "from langchain_threadmem import ChatMemory",
    "import and a first ChatMemory()": "from langchain_threadmem import ChatMemory; ChatMemory()",
    "from langchain_threadmem import MemorySystem": "from langchain_threadmem import MemorySystem",
    OTHER_SAVER: "from langgraph.checkpoint.sqlite import SqliteSaver",
    SAVER: SAVER,
}
REPORT = """
import pathlib, resource
used = resource.getrusage(resource.RUSAGE_SELF)
kilobytes = used.ru_maxrss
status = pathlib.Path("/proc/self/status")
if status.exists():  # On Linux ru_maxrss is at least that of the parent process.
    kilobytes = status.read_text().partition("VmHWM:")[2].split()[0]
print(used.ru_utime + used.ru_stime, kilobytes)
"""
MOST = {"import langchain_threadmem": 1.3, SAVER: 1.5}
"""The bars: the largest ratio of the processor time and of the memory."""


def cost(program: str, compiled: str) -> tuple[float, float]:
    """The processor time in seconds and the memory in megabytes of a new interpreter that runs a program.

    Args:
        program: The program.
        compiled: The folder of the compiled files.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = os.environ.get("PYTHONPYCACHEPREFIX", compiled)
    interpreter = [sys.executable, "-c", program + REPORT]
    done = subprocess.run(interpreter, check=True, capture_output=True, text=True, env=environment)
    answer = done.stdout.split()
    return float(answer[0]), float(answer[1]) / 1024


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    with TemporaryDirectory() as compiled:
        for round_ in range((15 if full else 9) + 1):
            for name, program in PROGRAMS.items():
                spent = cost(program, compiled)
                if round_:  # The first run reads the files from the disk and compiles them.
                    found[name].append(spent)
    seconds = {name: [one[0] for one in costs] for name, costs in found.items()}
    megabytes = {name: [one[1] for one in costs] for name, costs in found.items()}
    lines = []
    for name in PROGRAMS:
        peer = OTHER_SAVER if name == SAVER else PEER
        times, room = ratio(seconds, name, peer), ratio(megabytes, name, peer)
        most = MOST.get(name)
        lines.append(
            Line(
                name,
                f"{duration(median(seconds[name]))} CPU, {median(megabytes[name]):.0f} MB",
                "" if name == peer else f"{times:.2f} × CPU, {room:.2f} × memory of {peer}",
                f"≤ {most} ×" if most else "",
                None if most is None else max(times, room) <= most,
            )
        )
    return lines


if __name__ == "__main__":
    command(measure, __doc__, full="more interpreters")
