"""The live page: the conversations of one owner in a browser."""
