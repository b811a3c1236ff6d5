"""The Retry-Safety Index: entries that a person owns, built into a static site."""
