"""A progress for tests of what is said."""


class Notes:
    """A progress that keeps what is said."""

    def __init__(self):
        self.said = []

    def note(self, message):
        self.said.append(message)

    def update(self, *numbers):
        pass

    def close(self):
        pass
