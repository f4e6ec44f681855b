"""Caches, background threads and counters, which know nothing of memory."""
