"""LangGraph checkpoints over the tree."""
