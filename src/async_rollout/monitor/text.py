"""Words for a terminal and for findings."""


def duration(seconds: float) -> str:
    """Whole units of the largest kind, rounded down."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


def one_line(text: str) -> str:
    """No control character of a hostile name or message reaches the terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)
