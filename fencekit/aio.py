"""The fence for asynchronous callers."""
