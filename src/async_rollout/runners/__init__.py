"""Schedules over the same parts: one file a mode."""
