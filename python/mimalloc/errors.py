"""What goes wrong, in sentences for people.  The command prints them and ends with status 2."""


class ToolError(Exception):
    """The text is shown as it is."""
