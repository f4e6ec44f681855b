"""Each notebook runs from a clean kernel, in an empty folder, without a key, and shows what it promises."""

from __future__ import annotations

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


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    notebook = read(FOLDER / "01_first_threaded_chat.ipynb")
    notebook.cells = [cell for cell in notebook.cells if "install" not in cell.metadata.get("tags", [])]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    return client.execute()


def test_the_first_notebook_runs_and_shows_the_tree_as_a_picture_with_a_text_fallback(executed: Any) -> None:
    shown = outputs(executed)
    pictures = [output["data"] for output in shown if "<svg" in output.get("data", {}).get("text/html", "")]
    printed = "".join(output["text"] for output in shown if output.output_type == "stream")
    assert not [output for output in shown if output.output_type == "error"]
    assert len(pictures) == 2
    assert all("How do I read a CSV file in Python?" in data["text/plain"] for data in pictures)
    assert "OPENAI_API_KEY is not set" in printed
    assert (
        "['How do I read a CSV file in Python?', 'And how do I skip the header row of the file?'" in printed
    )


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert outputs(notebook) == []
    assert all(cell.get("execution_count") is None for cell in notebook.cells)
