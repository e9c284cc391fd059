"""Tasks: what they are, where they come from, in which order they are used. Imports no torch."""
