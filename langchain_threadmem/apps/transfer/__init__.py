"""Copies of memories between databases, folders and LangGraph's checkpointers."""
