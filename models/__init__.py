"""Model families: one file per family; weights as rows of data."""
