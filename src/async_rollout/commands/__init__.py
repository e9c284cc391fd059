"""What `async-rollout` can do: one command a file, with `configure(parser)` and `execute(args)`.

No command imports torch before it has read its configuration.
"""
