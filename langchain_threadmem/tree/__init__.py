"""The conversation as a tree of nodes."""
