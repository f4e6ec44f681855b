"""Units of memory: messages and summaries."""
