"""Which key a query sees, and where each token stands.

Every query sees at least its own key: a row of attention without any key is NaN under some
kernels, and a NaN key poisons even the queries that do not see it.
"""

import torch


def causal(real: torch.Tensor) -> torch.Tensor:
    """(n, 1, T, T) visibility for tokens `real` (n, T): real keys up to the query, and its own."""
    width = real.shape[1]
    past = torch.ones(width, width, dtype=torch.bool, device=real.device).tril()
    own = torch.eye(width, dtype=torch.bool, device=real.device)
    return ((real[:, None, :] & past) | own)[:, None]


def positions(real: torch.Tensor) -> torch.Tensor:
    """(n, T) position of each real token, counted from 0 over the real ones; 0 on padding."""
    return (real.long().cumsum(dim=-1) - 1).clamp_(min=0)


def appended(lengths: torch.Tensor, real: torch.Tensor, width: int) -> torch.Tensor:
    """(n, 1, T, width) visibility for tokens `real` (n, T) in the last columns; `lengths` has them too."""
    columns = torch.arange(width, device=lengths.device)
    own = columns[width - real.shape[1] :]
    kept = columns >= (width - lengths)[:, None]
    seen = (kept[:, None, :] & (columns <= own[:, None])) | (columns == own[:, None])
    return seen[:, None]


def newest(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """(n, 1, 1, width) visibility for one query in the last column, after `lengths` (n,) cached keys."""
    columns = torch.arange(width, device=lengths.device)
    return (columns >= (width - 1 - lengths)[:, None])[:, None, None, :]
