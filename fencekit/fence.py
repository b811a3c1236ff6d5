"""The fence for synchronous callers."""
