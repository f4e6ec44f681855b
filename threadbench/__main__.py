"""The command `python -m threadbench`, which plays the conversations and prints tables or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from threadbench.contestants import ROWS, language_model, named
from threadbench.data import SPLITS, Conversation, conversations, export, fingerprint, read
from threadbench.figures import Result, tables
from threadbench.protocol import run

EXAMPLES = """examples:
  python -m threadbench                                     the table of README.md
  python -m threadbench --rows always-last --selector my_module:select_parent
  python -m threadbench --rows --model openai:gpt-4o-mini --group calm
  python -m threadbench --rows semantic --data my.jsonl --json
  python -m threadbench --export build/threadbench          train.jsonl, test.jsonl, chats.jsonl
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m threadbench",
        description="Play the conversations of threadbench with selectors, and print tables or JSON.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--selector", action="append", default=[], metavar="MODULE:NAME", help="a selector or LangGraph node"
    )
    parser.add_argument("--model", action="append", default=[], metavar="PROVIDER:NAME", help="a chat model")
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS), help="the built-in rows")
    parser.add_argument("--split", choices=SPLITS, default="test", help="the split; default: test")
    parser.add_argument("--data", type=Path, help="a JSON Lines file of other conversations")
    parser.add_argument("--group", nargs="+", help="the groups to play; default: all")
    parser.add_argument("--language", nargs="+", help="the languages to play, as ISO 639-1 codes")
    parser.add_argument("--limit", type=int, help="the number of conversations of each group and language")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="write the conversations and exit")
    options = parser.parse_args(arguments)
    if options.export is not None:
        for path in export(options.export):
            print(path)
        return 0
    try:
        several = conversations(options.split) if options.data is None else read(options.data)
        contestants = [ROWS[name]() for name in options.rows]
        contestants += [*map(named, options.selector), *map(language_model, options.model)]
    except (ValueError, OSError, ImportError) as error:
        parser.error(str(error))
    several = list(_chosen(several, options.group, options.language, options.limit))
    if not several or not contestants:
        parser.error("no conversation or no selector is selected; see --group, --language, --rows")
    results = {}
    for contestant in contestants:
        print(f"{contestant.name} ...", file=sys.stderr)
        results[contestant.name] = Result(several, run(contestant, several))
    about = {
        "data": str(options.data or options.split),
        "fingerprint": fingerprint(several),
        "conversations": len(several),
    }
    if options.json:
        print(
            json.dumps(about | {"figures": {name: one.as_json() for name, one in results.items()}}, indent=1)
        )
        return 0
    print(f"{about['data']}, {len(several):,} conversations, fingerprint {about['fingerprint']}\n")
    print(tables(results))
    if options.split == "train" and options.data is None and any("semantic" in name for name in options.rows):
        print("\nThe weights of `semantic` were fitted on these conversations.")
    return 0


def _chosen(
    several: Iterable[Conversation],
    groups: Collection[str] | None,
    languages: Collection[str] | None,
    limit: int | None,
) -> Iterator[Conversation]:
    """The conversations of some groups and languages, at most `limit` of each."""
    seen: Counter[tuple[str, str]] = Counter()
    for one in several:
        key = one["group"], one["language"]
        if (groups is None or key[0] in groups) and (languages is None or key[1] in languages):
            seen[key] += 1
            if limit is None or seen[key] <= limit:
                yield one


if __name__ == "__main__":
    sys.exit(main())
