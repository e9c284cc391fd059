"""Judging by processes that share nothing but a file system: for reward workers on several hosts.

Answers and verdicts are files that appear whole (temporary name, fsync, rename). An answer's file
stays until its verdict's is there, so what a dead worker held is there for the one that follows it.
"""
