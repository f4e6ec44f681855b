"""The list of conversations of an owner and of threads of a conversation."""
