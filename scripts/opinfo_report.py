"""Adds up the JSON files of tests/yardsticks/opinfo_compare.py, and fails if anything that was promised is not there.

    python scripts/opinfo_report.py SHARD.json ... [--present 150]

Fails if a present entry does not pass, if fewer entries than --present are there, or if one of WANTED is missing.
"""
import argparse
import json
import sys
from collections import Counter

WANTED = """
add sub mul div pow neg abs sqrt rsqrt reciprocal remainder floor ceil round sign maximum minimum eq ne lt le gt ge
logical_and logical_or logical_xor logical_not isnan isinf isfinite exp exp2 expm1 log log1p log2 log10
sin cos tan asin acos atan atan2 sinh cosh tanh erf erfc sigmoid where clamp nn.functional.relu
nn.functional.leaky_relu nn.functional.elu
nn.functional.gelu nn.functional.silu nn.functional.softplus nn.functional.hardtanh nn.functional.logsigmoid
sum mean prod var std var_mean std_mean max min amax amin argmax argmin any all logsumexp cumsum
mm bmm matmul einsum nn.functional.linear addmm
nn.functional.conv1d nn.functional.conv2d nn.functional.conv_transpose1d nn.functional.conv_transpose2d
nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.avg_pool1d nn.functional.avg_pool2d
nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d nn.functional.adaptive_max_pool2d
nn.functional.batch_norm nn.functional.layer_norm nn.functional.group_norm
softmax log_softmax nn.functional.cross_entropy nn.functional.nll_loss nn.functional.mse_loss
nn.functional.binary_cross_entropy_with_logits
gather scatter_add index_select nn.functional.embedding masked_fill
view reshape permute transpose t expand squeeze unsqueeze flatten narrow cat stack split chunk unbind
nn.functional.pad
flip zeros_like ones_like full_like arange linspace eye nn.functional.dropout rand_like randn_like to clone sort
topk
""".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--present", type=int, default=150, help="fewest entries that must be there and pass")
    args = parser.parse_args()
    rows = []
    for file in args.files:
        with open(file) as f:
            rows += json.load(f)["results"]
    status = Counter(r["status"] for r in rows)
    wrong = [f"{r['name']} {r['variant']}: {r['status']}" for r in rows if r["status"] in ("fail", "timeout")]
    here = {r["name"] for r in rows if r["status"] == "pass"}
    missing = [name for name in WANTED if name not in here]
    present = status["pass"] + len(wrong)
    print(f"opinfo: {present} of {len(rows)} entries present, {status['pass']} pass; forward samples "
          f"{sum(r.get('ok', 0) for r in rows)}, gradient samples {sum(r.get('grad_ok', 0) for r in rows)}")
    for what, names in (("fail", wrong), ("wanted and missing", missing)):
        if names:
            print(f"{what}: {', '.join(names)}")
    return 1 if wrong or missing or present < args.present else 0


if __name__ == "__main__":
    sys.exit(main())
