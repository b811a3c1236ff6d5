"""What differs per language: grammars, node names and queries."""
