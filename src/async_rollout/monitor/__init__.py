"""The monitor: what the cells of a results directory are doing, for people and for programs.

It imports only `config` and `records`, reads only regular files below the results directory,
and writes nothing there. Files are read incrementally, never their whole history again.
"""

from async_rollout.monitor.collect import collect_metrics

__all__ = ["collect_metrics"]
