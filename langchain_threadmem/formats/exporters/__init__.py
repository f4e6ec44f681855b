"""Export of conversations as documents and drawings."""
