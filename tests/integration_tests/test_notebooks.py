"""Each notebook runs from a clean kernel, in an empty folder, without an API key."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
pytestmark = [
    pytest.mark.slow,
    # How the kernel's own client waits on sockets is none of our affair.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def printed(notebook: Any) -> str:
    return "".join(output["text"] for output in outputs(notebook) if output.get("name") == "stdout")


def trees(notebook: Any) -> list[str]:
    """The text fallback of each picture of a tree."""
    shown = [output.get("data", {}) for output in outputs(notebook)]
    return [data["text/plain"] for data in shown if "<svg" in data.get("text/html", "")]


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Any]:
    """Runs a notebook without an API key; an error in a cell fails the test."""

    def run(path: Path) -> Any:
        notebook = read(path)
        notebook.cells = [cell for cell in notebook.cells if "install" not in cell.metadata.get("tags", [])]
        client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
        return client.execute()

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return run


def shows_a_first_chat(executed: Any) -> None:
    text, pictures = printed(executed), trees(executed)
    assert len(pictures) == 2
    assert all("How do I read a CSV file in Python?" in tree for tree in pictures)
    assert "OPENAI_API_KEY is not set" in text
    assert "['How do I read a CSV file in Python?', 'And how do I skip the header row of the file?'" in text


def shows_a_graph_as_a_tree(executed: Any) -> None:
    text, pictures = printed(executed), trees(executed)
    linear, forked, edited, threaded = pictures
    assert "├─●" not in linear
    assert "├─●" in forked
    assert "header row of the file?" in forked
    assert "header row of the file?" not in edited
    assert "last row of the file?" in edited
    assert re.search(r"SUPERSEDED And how do I skip the header row", text)
    assert threaded.count("● ") == 3
    assert text.count(str(THREADS[0])) >= 2
    assert all(text.count(f"{thread}\n") == 2 for thread in THREADS[1:])
    # No model call has seen another topic.
    assert max(int(number) for number in re.findall(r"\[shown: (\d+)\]\n", text)) == 3
    assert "no problems" in text


def shows_an_agent_with_memory(executed: Any) -> None:
    text, (tree,) = printed(executed), trees(executed)
    calls = [
        (int(shown), int(whole)) for shown, whole in re.findall(r"^ *(\d+) of +(\d+)  ", text, re.MULTILINE)
    ]
    assert tree.count("● ") == 3
    assert len(calls) == 9
    assert calls[-1] == (sum(shown for shown, _ in calls[:-1]), sum(whole for _, whole in calls[:-1]))
    assert all(shown <= whole for shown, whole in calls)
    assert calls[-1][0] < calls[-1][1] / 2
    assert re.search(r"How do I read a CSV file in Python\?  \(shares csv, file; ", text)
    assert "I looked it up: My sourdough bread comes out flat. Why?" in text
    assert "'conversation_id': 'monday', 'node_id'" in text
    assert "no problems" in text


def shows_a_long_memory(executed: Any) -> None:
    text = printed(executed)
    assert (
        "1 of 3\n2 of 3\n3 of 3\nmonday 1 ai-summary {'action': 'summary', 'level': 2, 'messages': 6}" in text
    )
    # Each summary of Wednesday is about one of its two topics.
    csv, bread = text.index("How do I read a CSV file"), text.index("My sourdough bread")
    assert csv < text.index("And how do I skip the header row") < bread < text.index("How warm should")
    assert "ada 2 18 messages" in text
    assert "0 summaries with nothing new\n3 summaries with two more messages" in text
    unfolded = text[text.index("monday - ") :]
    assert re.search(r"wednesday - .*\n\S+ user: We travel to Lisbon in May\.", unfolded)
    assert "{'summary': Used(calls=1, " in text
    assert re.search(r"tuesday \w+: .*Lisbon.* \(1 visits\)\n", text)
    assert re.search(r"\d+ units forgotten, \d+ left\nTrue True\nstill known: True\n", text)
    assert re.search(
        r"\d+ messages and summaries gone; left: \(\)\n\['monday', 'wednesday'\] \[\]\nFalse\n", text
    )
    assert "no problems" in text


def shows_one_graph_with_two_users(executed: Any) -> None:
    text, (tree,) = printed(executed), trees(executed)
    assert "ada ['How do I feed a sourdough starter?', 'How much salt does the sourdough need?']" in text
    assert re.search(r"bob \['How do I read a CSV file in Python\?', .*header row", text)
    assert "OwnerRequiredError the run has no owner" in text
    assert "['How much salt does the sourdough need?', 'How much salt does a small loaf need?']" in text
    assert "How much salt does a small loaf need?" in tree
    assert "CSV" not in tree
    assert re.search(r"ada main - .*\(6 messages\)\nbob main - .*\(4 messages\)\nthread: ", text)
    assert "True [] ['main']" in text
    assert "no problems" in text


THREADS = [
    ["How do I read a CSV file in Python?", "And how do I skip the header row of the file?"],
    ["My sourdough bread comes out flat. Why?", "How warm should the dough be?"],
    ["Which museums in Lisbon are open on Monday?", "Is there a tram to the museums in Lisbon?"],
]
SHOWS: dict[str, Callable[[Any], None]] = {
    "01_first_threaded_chat": shows_a_first_chat,
    "02_langgraph_tree": shows_a_graph_as_a_tree,
    "03_agent_with_memory": shows_an_agent_with_memory,
    "04_long_memory": shows_a_long_memory,
    "05_many_users": shows_one_graph_with_two_users,
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_from_a_clean_kernel_and_shows_what_it_promises(
    path: Path, execute: Callable[[Path], Any]
) -> None:
    executed = execute(path)
    assert not [output for output in outputs(executed) if output.output_type == "error"]
    SHOWS[path.stem](executed)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert outputs(notebook) == []
    assert all(cell.get("execution_count") is None for cell in notebook.cells)
