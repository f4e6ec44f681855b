"""Filters of memory units and store items."""
