"""What a compiled kernel takes of the hardware, as its binary says, and with which limits it may take less memory.

The binary is an ELF file with sections of NVIDIA's. `cuobjdump -res-usage` prints the same (tests/test_cubin.py); it
is not installed with the driver and takes 30 ms, this 0.1.
"""

import struct
from typing import NamedTuple

SECTION = struct.Struct("<II4QIIQQ")     # name, type, flags, address, offset, size, link, info, alignment, entry size
WITH_SIZE = 4                            # the form of a note of .nv.info whose payload has a length of its own
REGISTERS, FRAME = 0x2F, 0x11            # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE: (symbol, number)
MOST, BLOCK, STEP = 255, 65536, 8        # registers of a thread, of a block's threads, and their unit of allocation


class Usage(NamedTuple):
    """Registers of a thread, bytes of its stack, where what is spilled lies, and static shared memory of a block."""

    registers: int
    stack: int
    shared: int


def usage(cubin: bytes) -> Usage:
    """What the one kernel of a cubin takes.

    Raises:
        ValueError: this is no ELF file with 64 bits.
    """
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError(f"usage: wants a cubin, an ELF file with 64 bits, got {cubin[:5]!r}")
    (start,), (count, names) = struct.unpack_from("<Q", cubin, 40), struct.unpack_from("<HH", cubin, 60)
    sections = [SECTION.unpack_from(cubin, start + SECTION.size * i) for i in range(count)]
    numbers, shared = dict.fromkeys((REGISTERS, FRAME), 0), 0
    for name, _, _, _, offset, size, *_ in sections:
        at = sections[names][4] + name
        title = cubin[at:cubin.index(b"\0", at)]
        if title.startswith(b".nv.shared.") and not title.startswith(b".nv.shared.reserved."):
            shared += size
        elif title == b".nv.info":
            numbers |= notes(cubin[offset:offset + size])
    return Usage(numbers[REGISTERS], numbers[FRAME], shared)


def notes(info: bytes) -> dict[int, int]:
    """The numbers that .nv.info has of the kernel, by attribute."""
    found, at = {}, 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        if form == WITH_SIZE and attribute in (REGISTERS, FRAME):
            found[attribute] = struct.unpack_from("<I", info, at + 8)[0]
        at += 4 + (size if form == WITH_SIZE else 0)
    return found


def limits(registers: int, num_warps: int, given: int | None) -> list[int | None]:
    """Which limits of registers to try instead of the given one for a kernel that takes so many and has a stack.

    The assembler spills where it stops at a step of allocation, to fit one program more. At another number a stack
    is an array of the kernel, as in libdevice's sine, which no limit changes.
    """
    if registers % STEP and registers != MOST:
        return []
    most = min(MOST, BLOCK // (32 * num_warps))
    return [n for n in dict.fromkeys((None, registers, 128, 168, most))
            if n != given and (n is None or registers <= n <= most)]
