"""Draw the first half of the sample conversation: `python examples/draw_sample.py docs/tree.svg`."""

import sys
from pathlib import Path

from langchain_threadmem import ChatMemory
from langchain_threadmem.apps.cli import demo
from langchain_threadmem.apps.cli.demo import turns_of
from langchain_threadmem.formats.exporters.json import parse_conversation

TURNS = 15


def main(target: Path) -> None:
    memory = ChatMemory.semantic()
    for turn in turns_of(parse_conversation(demo.everyday()))[:TURNS]:
        memory.append(turn)
    target.write_text(memory.export("svg") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
