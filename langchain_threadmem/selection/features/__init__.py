"""Features of candidate parents."""
