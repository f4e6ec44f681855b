"""Filters: what a caller wants to see, as a yes or no question."""
