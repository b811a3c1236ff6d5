"""The Retry-Safety Index: a public register made from entry files that a person owns.

`entry` reads and validates one file, `rules` says what may be published (pure), `register` reads a
whole directory, `site` turns it into the bytes of a static site. Other parts of fencekit meet it
only in their versioned documents.
"""
