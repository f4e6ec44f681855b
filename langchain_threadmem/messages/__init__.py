"""LangChain messages as values, without storage or tree."""
