"""The functions that users call, one per op."""
