"""The rules of the fence: pure functions and values, no I/O, no clock, no randomness."""
