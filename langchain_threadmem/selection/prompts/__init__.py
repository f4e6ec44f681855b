"""The blocks of prompts: the turns that they quote, and the excerpts of long texts."""
