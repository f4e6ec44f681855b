"""LangGraph's store."""
