"""Each notebook runs from a clean kernel in an empty folder without an API key; its outputs are current."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
pytestmark = [
    pytest.mark.slow,
    # How the kernel's own client waits on sockets is none of our affair.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def outputs(notebook: Any) -> Iterator[Any]:
    return (output for cell in notebook.cells for output in cell.get("outputs", []))


def shown(notebook: Any) -> list[tuple[str, str]]:
    """The kind and the text of each output."""
    found = []
    for output in outputs(notebook):
        data = {output["name"]: output["text"]} if "text" in output else output.get("data", {"error": output})
        found += [(kind, str(text)) for kind, text in data.items()]
    return found


def printed(notebook: Any) -> str:
    return "".join(text for kind, text in shown(notebook) if kind == "stdout")


def trees(notebook: Any) -> list[str]:
    """The text fallback of each picture of a tree."""
    found = shown(notebook)
    return [text for (_, html), (_, text) in pairwise(found) if "<svg" in html]


NUMBER = re.compile(r"\d+\.\d+|\d+(?= ?%)")
TIME = re.compile(r'(?<= time=")[\dT:+.-]+')


def parts(text: str) -> tuple[list[str], list[float]]:
    """A text without its decimal numbers and percentages, and these numbers; the times of messages differ."""
    text = TIME.sub("", text)
    return NUMBER.split(text), [float(number) for number in NUMBER.findall(text)]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_a_clean_kernel_and_its_outputs_are_current(path: Path, tmp_path: Path) -> None:
    executed = runpy.run_path(str(FOLDER / "refresh.py"))["executed"](path, tmp_path)
    kept, new = shown(read(path)), shown(executed)
    assert [kind for kind, _ in kept] == [kind for kind, _ in new]
    for (_, old), (_, text) in zip(kept, new, strict=True):
        (words, numbers), (new_words, new_numbers) = parts(old), parts(text)
        assert words == new_words, "run `python notebooks/refresh.py` and read the changes"
        # Embeddings differ a little between processors.
        assert numbers == pytest.approx(new_numbers, rel=0.1, abs=0.05)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_promises(path: Path) -> None:
    SHOWS[path.stem](printed(read(path)), trees(read(path)))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_outputs_that_any_machine_could_have(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert {kind for kind, _ in shown(notebook)} <= {"stdout", "text/plain", "text/html"}
    assert not re.search(r"(?<![\w.:<])/(home|root|tmp|usr|work|Users)/", str(list(outputs(notebook))))
    run = [cell for cell in notebook.cells if cell.cell_type == "code" and "tags" not in cell.metadata]
    assert [cell.execution_count for cell in run] == list(range(1, len(run) + 1))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_links_of_a_notebook_are_valid(path: Path) -> None:
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert targets
    assert [target for target in targets if not (FOLDER / target).is_file()] == []


def shows_a_first_chat(text: str, pictures: list[str]) -> None:
    assert len(pictures) == 2
    assert all("How do I read a CSV file in Python?" in tree for tree in pictures)
    assert "['How do I read a CSV file in Python?', 'And how do I skip the header row of the file?'" in text
    # The covered list has the right turn beside the wrong thread, and the answer moves the question.
    assert "human  Does the csv module handle commas inside quotes?\nai     Yes" in text
    assert "11 8 SUPERSEDED - What do I do if it is very large?" in text
    assert "13 10 LIVE - What do I do if it is very large?\n     moved: " in text
    assert "doubtful: []" in text
    assert "['¿Cómo leo un archivo CSV en Python?', '¿Y cómo salto la primera fila del archivo?']" in text
    assert "no problems" in text


def shows_a_graph_as_a_tree(text: str, pictures: list[str]) -> None:
    linear, forked, threaded = pictures
    assert "├─●" not in linear
    assert "├─●" in forked
    assert text.count("fork point: Use the csv module") == 1
    assert re.search(r"4 3 SUPERSEDED Call next\(reader\).*\n(.*\n)*9 3 LIVE Call next\(reader\)", text)
    assert threaded.count("● ") == 3
    assert text.count(str(THREADS[0])) >= 2
    assert all(text.count(f"{thread}\n") == 2 for thread in THREADS[1:])
    # No call of the model has received the whole conversation, which has eleven messages at the end.
    assert max(int(number) for number in re.findall(r"\[shown: (\d+)\]\n", text)) == 4
    assert "continues - this looks like another topic: 'My sourdough bread comes out flat. Why?'" in text
    assert "no problems" in text


def shows_an_agent_with_memory(text: str, pictures: list[str]) -> None:
    [tree] = pictures
    calls = [
        (int(read), int(whole)) for read, whole in re.findall(r"^ *(\d+) of +(\d+)  ", text, re.MULTILINE)
    ]
    assert tree.count("● ") == 3
    assert len(calls) == 9
    assert calls[-1] == (sum(read for read, _ in calls[:-1]), sum(whole for _, whole in calls[:-1]))
    assert all(read <= whole for read, whole in calls)
    assert calls[-1][0] < calls[-1][1] / 2
    assert re.search(r"How do I read a CSV file in Python\?  \(shares csv, file; ", text)
    assert "I looked it up: The dough probably did not ferment long enough." in text
    assert "['Ada bakes wheat bread.']\nForgotten." in text
    assert "'conversation_id': 'monday', 'node_id'" in text
    assert "no problems" in text


def shows_a_long_memory(text: str, pictures: list[str]) -> None:
    assert (
        "1 of 3\n2 of 3\n3 of 3\nmonday 1 ai-summary {'action': 'summary', 'level': 2, 'messages': 6}" in text
    )
    # Each summary of Wednesday is about one of its two topics.
    wednesday = text[text.index("[File, csv, dough, read]") :]
    csv, bread = wednesday.index("How do I read a CSV file"), wednesday.index("My sourdough bread")
    assert csv < wednesday.index("And how do I skip the header row") < bread < wednesday.index("How warm")
    assert "ada 2 18 messages" in text
    assert "0 summaries with nothing new\n3 summaries with two more messages" in text
    assert "covers 3 messages, unfolds to 3" in text
    assert "{'summary': Used(calls=1, " in text
    assert re.search(r"tuesday \w+: .*Lisbon.* \(1 visits\)\n", text)
    assert re.search(r"\d+ units forgotten, \d+ left\nTrue True\nstill known: True\n", text)
    assert re.search(
        r"\d+ messages and summaries gone; left: \(\)\n\['monday', 'wednesday'\] \[\]\nFalse\n", text
    )
    assert "no problems" in text


def shows_one_graph_with_two_users(text: str, pictures: list[str]) -> None:
    [tree] = pictures
    assert "ada ['How do I feed a sourdough starter?', 'How much salt does the sourdough need?']" in text
    assert re.search(r"bob \['How do I read a CSV file in Python\?', .*header row", text)
    assert "OwnerRequiredError the run has no owner" in text
    assert "1/2 How much salt does the sourdough need?\n2/2 How much salt does a small loaf need?" in text
    assert "CSV" not in tree
    assert re.search(r"ada main - .*\(6 messages\)\nbob main - .*\(4 messages\)\nthread: ", text)
    assert "['Sourdough']\n[]\nTrue [] ['main']" in text
    assert "no problems" in text


def shows_an_imported_export(text: str, pictures: list[str]) -> None:
    branched, threaded = pictures
    assert "3 conversations, 18 messages\nchatgpt 3 conversations, 18 messages" in text
    assert "again: 0\na month later: 2" in text
    assert "├─●" in branched
    assert "ASIDE system - The user lives in Freiburg." in text
    assert threaded.count("● ") == 2
    assert "taken back: 3 - threads: 1\nsorted again: 3 - threads: 2" in text
    assert "    k - The dough probably did not ferment long enough." in text
    assert "no problems" in text


def shows_measured_figures(text: str, pictures: list[str]) -> None:
    rows = re.findall(r"^(.+?) +right +(\d+)%   covered +(\d+)%   read +(\d+)%$", text, re.MULTILINE)
    figures = {name: (int(right), int(covered), int(read)) for name, right, covered, read in rows}
    linear, semantic, alone = figures["linear"], figures["semantic"], figures["cover=None"]
    assert linear[1:] == (100, 100)
    assert semantic[0] >= 75 > 50 > linear[0]
    assert semantic[1] > alone[1]
    assert alone[2] < semantic[2] < 60
    first = {name: int(hit) for name, hit in re.findall(r"^(words.*?) +Hit@1 (\d+)%", text, re.MULTILINE)}
    assert first["words and meaning"] > first["words"]


THREADS = [
    ["How do I read a CSV file in Python?", "And how do I skip the header row of the file?"],
    ["My sourdough bread comes out flat. Why?", "How warm should the dough be?"],
    ["Which museums in Lisbon are open on Monday?", "Is there a tram to the museums in Lisbon?"],
]
SHOWS: dict[str, Callable[[str, list[str]], None]] = {
    "01_first_threaded_chat": shows_a_first_chat,
    "02_langgraph_tree": shows_a_graph_as_a_tree,
    "03_agent_with_memory": shows_an_agent_with_memory,
    "04_long_memory": shows_a_long_memory,
    "05_many_users": shows_one_graph_with_two_users,
    "06_your_chats": shows_an_imported_export,
    "07_measure": shows_measured_figures,
}
