"""`python -m zoo.ops.tune gemm conv`: measures tile configs on the GPU at hand and writes the best into the table."""
