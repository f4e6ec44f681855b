"""Pure thinking: no SQL, no model, no clock, no randomness."""
