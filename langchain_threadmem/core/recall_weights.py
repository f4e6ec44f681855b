"""Weights of recall's parts, as `benchmarks/fit_recall.py` fitted them; described in `core.scoring`.

For each part two numbers: with embeddings, and by words alone. They are plain numbers, fitted by leaving one
conversation out at a time and then on all of them: three chats between people and six with an assistant. A
part that would need more data than that to be judged is not here.
"""

PEOPLE: dict[str, tuple[float, float]] = {
    "own": (2.4, 3.73),
    "window": (1.46, 2.72),
    "person": (2.84, 2.21),
    "self": (1.05, 1.06),
    "reply": (1.81, 2.24),
    "when": (1.7, 1.65),
    "amount": (1.17, 1.29),
    "date": (3.06, 3.26),
    "times": (0.68, 0.61),
    "asks": (-0.32, -0.35),
    "meaning": (0.79, 0.0),
    "meaning around": (0.98, 0.0),
}
"""Parts of a message, in a chat between people."""

ASSISTANT: dict[str, tuple[float, float]] = {
    "human own": (1.31, 2.06),
    "human lead": (1.98, 2.92),
    "answer own": (0.17, 0.93),
    "answer lead": (0.29, 1.08),
    "window": (0.01, 0.13),
    "numbers": (1.06, 1.16),
    "length": (-0.37, -0.55),
    "when": (0.54, 0.78),
    "date": (0.17, 0.33),
    "human meaning": (0.7, 0.0),
    "answer meaning": (0.24, 0.0),
}
"""Parts of a turn, in a chat with an assistant."""
