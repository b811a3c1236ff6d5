"""The vocabulary of evidence, and one renderer per format."""
