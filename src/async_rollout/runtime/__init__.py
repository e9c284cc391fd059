"""The asynchronous machine, one noun a file (docs/design.md, section 4)."""
