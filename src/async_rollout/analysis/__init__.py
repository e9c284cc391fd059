"""From the records of finished cells to tables, figures and a report. Imports no torch.

The same records give the same bytes: no clock, no random number, no order of a directory.
"""
