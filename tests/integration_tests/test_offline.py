"""Nothing phones out: the system calls of a program that uses every part of the package."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

PROGRAM = Path(__file__).parent / "offline_program.py"
CALLS = "connect,sendto,sendmsg,sendmmsg,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2"
_ADDRESS = re.compile(r'(?:inet_addr\(|AF_INET6, )"([^"]+)"')
_NEW_FILE = re.compile(
    r"(?:creat|mkdir|mkdirat|rename\w*|open(?:at)?(?=\(.*O_CREAT))\((?:[^,<]*<(?P<folder>[^>]*)>, )?.*?"
    r'"(?P<name>[^"]*)"(?:, [^"]*)?\) = \d'
)


class Trace(NamedTuple):
    """What a program did: the calls that leave the machine or look up a name, and the files it made."""

    calls: list[str]
    files: set[Path]


def _is_outward(call: str) -> bool:
    if "htons(53)" in call or "resolve" in call:  # a name server; systemd's resolver
        return "sa_family" in call
    return any(not ipaddress.ip_address(address).is_loopback for address in _ADDRESS.findall(call))


def _new_file(call: str, folder: Path) -> Path | None:
    found = _NEW_FILE.search(call)
    return None if found is None else Path(found["folder"] or folder, found["name"]).absolute()


def _whole(lines: Iterable[str]) -> Iterator[str]:
    """The calls of a trace, which writes a call in two lines if another thread runs meanwhile."""
    begun: dict[str, str] = {}
    for line in lines:
        process, call = line.split(maxsplit=1)
        if call.endswith("<unfinished ...>"):
            begun[process] = call.removesuffix("<unfinished ...>")
        elif call.startswith("<... "):
            yield begun.pop(process, "") + call.partition("resumed>")[2]
        else:
            yield call
    yield from begun.values()


def traced(command: Sequence[str], folder: Path, **environment: str) -> Trace:
    """Run a program in a folder, with a home and a folder for temporary files of its own."""
    if (strace := shutil.which("strace")) is None:
        pytest.skip("strace is not installed; it shows whether a program connects to anything")
    log = folder.parent / "calls.txt"
    variables = {"HOME": "home", "TMPDIR": "temporary"}
    for name in variables.values():
        (folder.parent / name).mkdir()
    own = {name: str(folder.parent / place) for name, place in variables.items()}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    tracing = [strace, "-f", "-y", "-s", "4096", "--seccomp-bpf", "-o", str(log), "-e", f"trace={CALLS}"]
    done = subprocess.run(
        [*tracing, *command],
        cwd=folder,
        env=kept | own | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if "PTRACE" in done.stderr or "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr:.200}")
    assert done.returncode == 0, done.stderr
    calls = list(_whole(log.read_text(errors="replace").splitlines()))
    files = {path for call in calls if (path := _new_file(call, folder)) is not None}
    return Trace([call for call in calls if _is_outward(call)], files)


@pytest.mark.slow
def test_no_part_of_the_package_connects_to_anything_or_leaves_files_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    trace = traced([sys.executable, str(PROGRAM), str(folder)], folder)
    assert trace.calls == []
    assert {path for path in trace.files if not path.is_relative_to(tmp_path)} == set()
    assert {path for path in trace.files if path.is_relative_to(tmp_path / "home")} == set()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert folder / "memory.db" in trace.files


def test_the_trace_shows_a_look_up_and_a_new_file(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    code = (
        "import contextlib, pathlib, socket\n"
        "pathlib.Path.home().joinpath('id').write_text('')\n"
        "with contextlib.suppress(OSError): socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
    )
    trace = traced([sys.executable, "-c", code], folder)
    assert [call for call in trace.calls if "192.0.2.1" in call] == trace.calls != []
    assert tmp_path / "home" / "id" in trace.files


@pytest.mark.parametrize(("given", "value"), [(None, "1"), ("0", "0")])
def test_a_value_of_the_user_for_the_telemetry_of_onnxruntime_stays(given: str | None, value: str) -> None:
    name = "ORT_DISABLE_TELEMETRY"
    environment = {key: text for key, text in os.environ.items() if key != name}
    if given is not None:
        environment[name] = given
    code = f"import os, langchain_threadmem; print(os.environ[{name!r}])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == value
