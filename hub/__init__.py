"""Load a model in one line: registry, download, verify, checkpoint readers."""
