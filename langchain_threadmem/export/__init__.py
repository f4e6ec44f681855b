"""Drawings and documents of a conversation."""
