"""What goes wrong, in sentences for people."""


class ToolError(Exception):
    """The text is shown as it is, and the command ends with `status`."""

    def __init__(self, text, status=2):
        super().__init__(text)
        self.status = status
