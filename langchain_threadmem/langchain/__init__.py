"""Classes that implement interfaces of LangChain, LangGraph and LangChain4j."""
