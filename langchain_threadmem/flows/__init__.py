"""The verbs, each written once for sync and async."""
