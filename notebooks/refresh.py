"""Run the notebooks in empty folders and store their outputs: `python notebooks/refresh.py [NAME ...]`.

A name is the beginning of a file name, such as `01`; without names, all notebooks run. The test of the
notebooks runs them in the same way and compares the outputs with the stored outputs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent


def executed(path: Path, folder: Path) -> Any:
    """A notebook with the outputs of a run in an empty folder; cells with the tag "install" do not run."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    whole = notebook.cells
    notebook.cells = [cell for cell in whole if "install" not in cell.metadata.get("tags", [])]
    metadata = dict(notebook.metadata)
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    environment |= {"PYTHONPATH": str(FOLDER.parent), "IPYTHONDIR": str(folder / ".ipython")}
    client = NotebookClient(
        notebook,
        timeout=600,
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=environment)
    notebook.cells, notebook.metadata = whole, metadata
    return notebook


def main(names: Sequence[str]) -> None:
    """Run the notebooks and write them with their outputs."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.name.startswith(tuple(names)):
            with tempfile.TemporaryDirectory() as folder:
                notebook = executed(path, Path(folder))
            nbformat.write(notebook, path)
            print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
