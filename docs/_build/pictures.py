"""Take the pictures of the page and of the chat, from invented data: `python docs/_build/pictures.py`.

It needs the extras `view` and `agents`, playwright and Chromium. `EXPORT` imitates a file of ChatGPT: the sample
conversation of the package as one chain of messages.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from langchain_threadmem.apps.cli.demo import everyday

IMAGES = Path(__file__).parents[1] / "images"
EXAMPLE = Path(__file__).parents[2] / "examples" / "chat"
ROOT = "client-created-root"
SIZE = {"width": 1280, "height": 680}
QUALITY = 75
TABLE = """You have two good choices:

| | `csv` | `pandas` |
|---|---|---|
| memory | one row | the whole table |
| speed | slow in loops | fast |

```python
import pandas as pd

sales = pd.read_csv("sales.csv", usecols=["city", "sum"])
print(sales.groupby("city").sum())  # one line for each city
```"""
"""An answer in Markdown."""


def export() -> list[dict[str, Any]]:
    """The conversations of an export of ChatGPT."""
    lines = [json.loads(line) for line in everyday().splitlines()]
    mapping: dict[str, Any] = {ROOT: {"id": ROOT, "message": None, "parent": None, "children": []}}
    above = ROOT
    for number, line in enumerate(lines):
        name, time = f"m{number}", 1_767_600_000 + 300 * number
        text = TABLE if line["content"].startswith("For two million rows") else line["content"]
        message = {
            "id": name,
            "author": {"role": line["role"]},
            "create_time": time,
            "content": {"content_type": "text", "parts": [text]},
        }
        mapping[above]["children"].append(name)
        mapping[name] = {"id": name, "message": message, "parent": above, "children": []}
        above = name
    first = {"title": "Everyday questions", "create_time": 1_767_600_000, "update_time": 1_767_620_000}
    return [{**first, "conversation_id": "everyday", "current_node": above, "mapping": mapping}]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        Path(folder, "conversations.json").write_text(json.dumps(export()), encoding="utf-8")
        command = [sys.executable, "-m", "langchain_threadmem"]
        subprocess.run([*command, "import", "conversations.json", "--sort"], cwd=folder, check=True)
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with served([*command, "view", "--no-browser"], folder) as url:
            take_view(browser, url)
        with served([sys.executable, str(EXAMPLE / "app.py")], folder) as url:
            take_chat(browser, url)


def take_view(browser: Browser, url: str) -> None:
    for scheme in ("light", "dark"):
        page = browser.new_page(viewport=SIZE, color_scheme=scheme)
        page.goto(f"{url}#conversation=everyday&message=24")  # Answers keep their numbers.
        page.locator("#panel table").wait_for()
        loaded = "![...document.querySelectorAll('.row .text')].some(text => text.textContent === '…')"
        page.wait_for_function(loaded)
        take(page, f"view-{scheme}")
        page.close()


def take_chat(browser: Browser, url: str) -> None:
    page = browser.new_page(viewport={**SIZE, "height": 820})
    page.goto(url)
    page.get_by_label("Your name").fill("ada")
    page.get_by_role("button", name="Sign in").click()
    for text in (
        "How do I read a CSV file in Python?",
        "My sourdough bread comes out flat. Why?",
        "And how do I skip the header row of the file?",
    ):
        field = page.get_by_label("Message", exact=True)
        expect(field).to_be_focused()
        field.fill(text)
        field.press("Enter")
        page.locator("#messages > li", has_text=text).wait_for()
        page.get_by_role("button", name="Send").wait_for()
    take(page, "chat")
    page.close()


def take(page: Page, name: str) -> None:
    page.evaluate("document.activeElement.blur()")
    # Playwright itself writes PNG, which is four times as large.
    picture = page.context.new_cdp_session(page).send(
        "Page.captureScreenshot", {"format": "webp", "quality": QUALITY}
    )
    (IMAGES / f"{name}.webp").write_bytes(b64decode(picture["data"]))


@contextmanager
def served(command: list[str], folder: str) -> Iterator[str]:
    """A server that prints its address."""
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


if __name__ == "__main__":
    main()
