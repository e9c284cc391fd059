"""Asynchronous reinforcement learning of language models, small and exact (docs/design.md)."""

__version__ = "0.1.0"
