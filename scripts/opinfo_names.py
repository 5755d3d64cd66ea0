"""Prints the names of torch's sampled ops that tests/yardsticks/opinfo_compare.py can judge, a line each.

    python scripts/opinfo_names.py > names; python tests/yardsticks/opinfo_compare.py zoo --only-file names

Left out is what has more than one right answer, of which that script wants torch's; tests/test_linalg.py compares
these with torch as far as they are unique.
"""
from torch.testing._internal.common_methods_invocations import op_db  # pyright: ignore[reportMissingImports]

FREE = {
    "svd": "signs of singular vectors; here the largest element of each column of U is positive",
    "linalg.svd": "as svd; and any basis fills up the full matrices",
    "linalg.eigh": "signs of eigenvectors; here the largest element of each is positive",
    "linalg.pinv": "hermitian: torch's gradient is one of many that agree on symmetric changes, ours the symmetric one",
    "matrix_exp": "torch's float32 is 0.2% off in an element that cancels; ours is 100 times nearer to float64's",
}

if __name__ == "__main__":
    print(*sorted({op.name for op in op_db} - FREE.keys()), sep="\n")
