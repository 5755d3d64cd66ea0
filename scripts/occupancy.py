"""How many programs of a kernel fit a multiprocessor at a time, from its registers, shared memory and warps.

    python scripts/occupancy.py 90 --registers 158 --shared 230432 --warps 8

Source: CUDA C++ Programming Guide, "Compute Capabilities", table of technical specifications.
"""

import argparse
from typing import NamedTuple


class Limits(NamedTuple):
    """What a multiprocessor has: resident programs and warps, bytes of shared memory."""

    programs: int
    warps: int
    shared: int


REGISTERS = 65536  # of 32 bits, in every one of these
LIMITS = {
    80: Limits(32, 64, 164 << 10),
    86: Limits(16, 48, 100 << 10),
    87: Limits(16, 48, 164 << 10),
    89: Limits(24, 48, 100 << 10),
    90: Limits(32, 64, 228 << 10),
    100: Limits(32, 64, 228 << 10),
    120: Limits(24, 48, 100 << 10),
}
RESERVED = 1 << 10  # bytes of shared memory that the system takes of every program


def occupancy(arch: int, registers: int, shared: int, warps: int) -> int:
    """Programs that a multiprocessor holds at a time.

    Args:
        arch: compute capability, such as 90. registers: of a thread. shared: bytes of a program, without the 1 KB that
            the system takes. warps: of a program.

    Returns:
        0 if not even one fits.

    Example:
        >>> occupancy(90, 158, 229408, 8), occupancy(90, 111, 98304, 8), occupancy(80, 250, 49152, 4)
        (1, 2, 2)
    """
    limits = LIMITS[arch]
    of_a_warp = -(-registers * 32 // 256) * 256  # registers are handed out in lots of 256 to a warp
    by_registers = REGISTERS // (of_a_warp * warps)
    by_shared = limits.shared // (shared + RESERVED)
    return min(limits.programs, limits.warps // warps, by_registers, by_shared)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arch", type=int, choices=sorted(LIMITS))
    for name in ("registers", "shared", "warps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    print(occupancy(options.arch, options.registers, options.shared, options.warps))


if __name__ == "__main__":
    main()
