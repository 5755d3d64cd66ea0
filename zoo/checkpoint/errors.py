"""The one error of all file readers."""


class FileError(ValueError, RuntimeError):
    """A file that is not what it should be: truncated, corrupt, hostile, or of another format."""
