"""Checks of a sweep, its model and this machine, made before any hour is spent."""
