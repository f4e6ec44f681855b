"""Sort the sample by meaning and draw its first half: `python examples/draw_sample.py docs/tree.svg`."""

import sys
from pathlib import Path

from langchain_threadmem import ChatMemory, samples
from langchain_threadmem.core.exchange import parse_conversation
from langchain_threadmem.demo import turns_of

TURNS = 15


def main(target: Path) -> None:
    memory = ChatMemory.semantic()
    for turn in turns_of(parse_conversation(samples.everyday()))[:TURNS]:
        memory.append(turn)
    target.write_text(memory.export("svg") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
