"""The result files of a cell: what is in them, how they are written and read. No torch."""
