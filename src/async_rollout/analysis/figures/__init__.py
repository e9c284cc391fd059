"""The figures: one function each, named in `catalog.FIGURES`. matplotlib only; no pyplot."""
