"""Caches, background threads and counters, independent of memories."""
