"""Loops that kill, starve, fork and damage memories, and count what is lost: `python -m torture`."""
