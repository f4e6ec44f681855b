"""LangGraph's store: items by namespace and key, and message lists."""
