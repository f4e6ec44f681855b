"""Forgetting, purging and erasing."""
