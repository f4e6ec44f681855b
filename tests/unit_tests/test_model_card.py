"""The model card of the shipped weights lies beside them and names their checksums."""

from __future__ import annotations

import hashlib
from pathlib import Path

import langchain_threadmem


def test_the_model_card_names_the_checksum_and_the_size_of_the_weights() -> None:
    [card] = Path(langchain_threadmem.__file__).parent.rglob("MODEL_CARD.md")
    text, files = card.read_text(encoding="utf-8"), sorted(card.parent.glob("*.npz"))
    assert len(files) == 2
    for weights in files:
        data = weights.read_bytes()
        assert f"sha256: `{hashlib.sha256(data).hexdigest()}`" in text
        assert f"size: {len(data):,} bytes" in text
        assert f"`{weights.name}`" in text
