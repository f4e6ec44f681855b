"""Weights of recall's parts, as `benchmarks/fit_recall.py` fitted them; described in `core.scoring`.

For each part two numbers: with embeddings, and by words alone. They are plain numbers, fitted by leaving one
conversation out at a time and then on all of them: three chats between people and six with an assistant. A
part that would need more data than that to be judged is not here.
"""

PEOPLE: dict[str, tuple[float, float]] = {
    "own": (2.6, 3.84),
    "window": (1.6, 2.86),
    "person": (1.92, 1.37),
    "self": (1.07, 1.07),
    "reply": (2.16, 2.56),
    "when": (1.71, 1.66),
    "amount": (1.24, 1.38),
    "date": (3.11, 3.31),
    "times": (0.73, 0.62),
    "asks": (-0.51, -0.48),
    "meaning": (0.69, 0.0),
    "meaning around": (1.07, 0.0),
}
"""Parts of a message, in a chat between people."""

ASSISTANT: dict[str, tuple[float, float]] = {
    "human own": (1.38, 2.27),
    "human lead": (2.11, 2.96),
    "answer own": (0.22, 1.09),
    "answer lead": (0.23, 1.0),
    "window": (0.01, 0.13),
    "numbers": (1.09, 1.23),
    "length": (-0.38, -0.56),
    "when": (0.55, 0.77),
    "date": (0.17, 0.33),
    "human meaning": (0.7, 0.0),
    "answer meaning": (0.24, 0.0),
}
"""Parts of a turn, in a chat with an assistant."""
