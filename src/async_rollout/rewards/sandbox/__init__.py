"""A process for programs that nobody has read: what it can reach, use up and leave behind is bounded.

`client` starts a small `server`, which forks one `child` per evaluation. The server runs on the
standard library alone, holds no answers and no files, and has entered its `namespaces`; the
child is further held by resource limits, `landlock` and `seccomp` (docs/sandbox.md).
"""
