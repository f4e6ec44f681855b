"""Fitted weights of recall's scores.

Each part has two weights: with embeddings, and by words alone. The weights were fitted on nine conversations,
three between people and six with an assistant, and validated by leaving out one conversation at a time. Parts
without a measurable benefit for these conversations were left out.
"""

from __future__ import annotations

PEOPLE: dict[str, tuple[float, float]] = {
    "own": (2.62, 3.84),
    "window": (1.68, 2.86),
    "person": (1.85, 1.37),
    "self": (1.05, 1.07),
    "reply": (1.35, 2.56),
    "when": (1.71, 1.66),
    "amount": (1.24, 1.38),
    "date": (3.12, 3.31),
    "times": (0.77, 0.62),
    "asks": (-0.46, -0.48),
    "meaning": (0.8, 0.0),
    "meaning around": (0.71, 0.0),
    "reply meaning": (0.35, 0.0),
}
"""Parts of a message, in a chat between people."""

ASSISTANT: dict[str, tuple[float, float]] = {
    "human own": (1.27, 2.25),
    "human lead": (2.11, 2.98),
    "answer own": (0.06, 1.03),
    "answer lead": (0.08, 0.95),
    "window": (0.17, 0.12),
    "numbers": (1.03, 1.17),
    "length": (-0.63, -0.82),
    "self": (1.07, 1.21),
    "when": (0.49, 0.73),
    "date": (0.21, 0.33),
    "human meaning": (0.68, 0.0),
    "answer meaning": (0.28, 0.0),
    "meaning around": (-0.36, 0.0),  # negative: see `scoring`
}
"""Parts of a turn, in a chat with an assistant."""
