"""Configuration: pydantic models, the one source of defaults, schema and docs. Imports no torch."""
