"""A sample conversation, for the demo and for trying things out.

`everyday.jsonl` holds thirty turns of one person with an assistant, one message a line: bread, a CSV file, a
trip, a houseplant and running, all mixed up. `topic` says which is which; no selector is shown it, but a test
can compare.
"""

from importlib.resources import files

QUESTIONS = ("How long should the dough rise in a warm kitchen?", "Why are the leaves getting brown spots?")
"""Two questions that the sample answers, in other words than its own."""


def everyday() -> str:
    """The sample as JSON Lines.

    Example:
        >>> len(everyday().splitlines())
        60
    """
    return files(__name__).joinpath("everyday.jsonl").read_text(encoding="utf-8")
