"""Langgraph."""
