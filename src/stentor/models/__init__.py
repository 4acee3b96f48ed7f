"""Model files: where they are, and whether they are what they say. Knows no engine and never loads weights."""
