"""The cost of importing the package, compared with `langchain_core.chat_history`.

Every chat memory for LangChain imports `langchain_core.chat_history`. The figures are the processor time and
the memory of new interpreters, in which no module is imported before; the line "nothing" is the interpreter
alone.

    python -m benchmarks.import_time [--full]
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median

from benchmarks._measure import Line, command, duration, ratio

PEER = "langchain_core.chat_history"
PROGRAMS = {
    "nothing": "",
    PEER: "import langchain_core.chat_history",
    "import langchain_threadmem": "import langchain_threadmem",
    "from langchain_threadmem import ChatMemory": "from langchain_threadmem import ChatMemory",
    "import and a first ChatMemory()": "from langchain_threadmem import ChatMemory; ChatMemory()",
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
MOST = 1.3


def cost(program: str) -> tuple[float, float]:
    """The processor time in seconds and the memory in megabytes of a new interpreter that runs a program."""
    interpreter = [sys.executable, "-c", program + REPORT]
    answer = subprocess.run(interpreter, check=True, capture_output=True, text=True).stdout.split()
    return float(answer[0]), float(answer[1]) / 1024


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    for round_ in range((15 if full else 5) + 1):
        for name, program in PROGRAMS.items():
            spent = cost(program)
            if round_:  # The first run reads the files from the disk and compiles them.
                found[name].append(spent)
    seconds = {name: [one[0] for one in costs] for name, costs in found.items()}
    megabytes = {name: [one[1] for one in costs] for name, costs in found.items()}
    lines = []
    for name in PROGRAMS:
        times, room = ratio(seconds, name, PEER), ratio(megabytes, name, PEER)
        barred = name == "import langchain_threadmem"
        lines.append(
            Line(
                name,
                f"{duration(median(seconds[name]))} CPU, {median(megabytes[name]):.0f} MB",
                "" if name == PEER else f"{times:.2f} × CPU, {room:.2f} × memory of {PEER}",
                f"≤ {MOST} ×" if barred else "",
                max(times, room) <= MOST if barred else None,
            )
        )
    return lines


if __name__ == "__main__":
    command(measure, __doc__, full="more interpreters")
