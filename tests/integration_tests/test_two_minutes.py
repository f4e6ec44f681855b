"""The commands of the page "From an export to an answer" print what the page shows."""

from __future__ import annotations

import io
import json
import re
import runpy
from pathlib import Path

import pytest

from langchain_threadmem.apps.cli.main import main

pytest.importorskip("playwright.sync_api")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "two-minutes.md").read_text(encoding="utf-8")


def without_numbers(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "N", text)


@pytest.mark.slow
def test_an_export_is_imported_sorted_and_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    export = runpy.run_path(str(ROOT / "docs" / "_build" / "pictures.py"))["export"]
    Path("conversations.json").write_text(json.dumps(export()), encoding="utf-8")
    imported, asked = re.findall(r"^```text\n(.*?)^```", PAGE, re.M | re.S)
    command, question = re.search(r"threadmem (import .*?) &&", PAGE), re.search(r'echo "(.*?)"', PAGE)
    assert command is not None
    assert question is not None

    assert main(command[1].split()) == 0
    assert without_numbers(capsys.readouterr().out) == without_numbers(imported)

    monkeypatch.setattr("sys.stdin", io.StringIO(question[1] + "\n"))
    assert main(["chat", "--recall", "1"]) == 0
    shown, found = (without_numbers(text).splitlines() for text in (asked, capsys.readouterr().out))
    assert found[:5] == shown[:5]
    assert found[-2] == shown[-1]
