"""From judged groups to new weights. Knows policies and losses, and nothing of processes."""
