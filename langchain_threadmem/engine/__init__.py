"""How verbs run: flows, the runtime, models."""
