"""Prints the names of torch's sampled ops that tests/yardsticks/opinfo_compare.py can judge, a line each.

    python scripts/opinfo_names.py > names; python tests/yardsticks/opinfo_compare.py zoo --only-file names

Left out is what has more than one right answer, of which that script wants torch's (tests/test_linalg.py compares these
with torch as far as they are unique), and what is sampled with one of torch's modules as an argument.
"""
from torch.testing._internal.common_methods_invocations import op_db  # pyright: ignore[reportMissingImports]

LEFT_OUT = {
    "svd": "signs of singular vectors; here the largest element of each column of U is positive",
    "linalg.svd": "as svd; and any basis fills up the full matrices",
    "linalg.eigh": "signs of eigenvectors; here the largest element of each is positive",
    "linalg.pinv": "hermitian: torch's gradient is one of many that agree on symmetric changes, ours the symmetric one",
    "matrix_exp": "torch's float32 is 0.2% off in an element that cancels; ours is 100 times nearer to float64's",
    "nn.functional.triplet_margin_with_distance_loss": "its distance is torch's module, which takes no other tensors",
}

if __name__ == "__main__":
    print(*sorted({op.name for op in op_db} - LEFT_OUT.keys()), sep="\n")
