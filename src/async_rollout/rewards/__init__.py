"""Judging answers, in processes of their own. Imports no torch."""
