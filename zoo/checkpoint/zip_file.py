"""The directory of a zip archive, read by header offset so that stored members can be mapped.

Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT sections 4.3 and 4.5.3
"""
import struct
import zlib
from typing import NamedTuple

import numpy as np

from zoo.checkpoint.errors import FileError
from zoo.checkpoint.source import Source

STORED, DEFLATED = 0, 8
END, END64, LOCATOR64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
CENTRAL, LOCAL = struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s5H3L2H")
COMMENT = 0xFFFF              # the longest comment behind the end record
FULL16, FULL32 = 0xFFFF, 0xFFFFFFFF      # the number is in the zip64 record
MEMBER = 512                  # bytes that an entry of the directory takes in memory


class Member(NamedTuple):
    """One file of the archive; `start` is where its data begins."""
    name: str
    method: int
    crc: int
    packed: int
    size: int
    start: int


def directory(source: Source) -> dict[str, Member]:
    """All members by name; none overlap, and none are encrypted."""
    count, size, start = end_record(source)
    if size < count * CENTRAL.size:
        raise FileError(f"is corrupt: its zip directory says {count} members in {size} bytes")
    source.spend(MEMBER * count)
    data = source.read(start, size)
    members: dict[str, Member] = {}
    headers, at = [], 0
    for _ in range(count):
        header, member, at = entry(source, data, at)
        if member.name in members:
            raise FileError(f"is corrupt: its zip directory has {member.name!r:.80} twice")
        members[member.name] = member
        headers.append((header, member.start + member.packed))
    headers.sort()
    for (_, stop), (begin, _) in zip(headers, [*headers[1:], (start, 0)], strict=True):
        if stop > begin:
            raise FileError("is corrupt: members of the zip archive overlap")
    return members


def end_record(source: Source) -> tuple[int, int, int]:
    """Count of members, and size and offset of the central directory."""
    begin = max(0, source.size - END.size - COMMENT)
    tail = source.read(begin, source.size - begin)
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < END.size:
        raise FileError("is truncated or corrupt: its zip archive has no end record")
    _, _, _, _, count, size, start, _ = END.unpack_from(tail, at)
    if count == FULL16 or FULL32 in (size, start):
        magic, _, where, _ = LOCATOR64.unpack(source.read(begin + at - LOCATOR64.size, LOCATOR64.size))
        record = END64.unpack(source.read(where, END64.size))
        if magic != b"PK\6\7" or record[0] != b"PK\6\6":
            raise FileError("is corrupt: its zip archive has no zip64 end record")
        count, size, start = record[7:]
    return count, size, start


def entry(source: Source, data: bytes, at: int) -> tuple[int, Member, int]:
    """Offset of the local header, the member, and where the next entry of the directory begins."""
    if len(data) - at < CENTRAL.size:
        raise FileError("is truncated or corrupt: its zip directory ends too early")
    (magic, _, _, flags, method, _, _, crc, packed, size, name_size, extra_size, comment_size, _, _, _,
     header) = CENTRAL.unpack_from(data, at)
    at += CENTRAL.size
    text, extra = data[at : at + name_size], data[at + name_size : at + name_size + extra_size]
    name = text.decode("utf-8" if flags & 0x800 else "cp437")
    if magic != b"PK\1\2":
        raise FileError("is corrupt: its zip directory is damaged")
    if flags & 1 or method not in (STORED, DEFLATED):
        raise FileError(f"is refused: its member {name!r:.80} is encrypted or packed by method {method}")
    size, packed, header = zip64(extra, size, packed, header)
    if method == STORED and size != packed:
        raise FileError(f"is corrupt: its member {name!r:.80} has two sizes")
    local = LOCAL.unpack(source.read(header, LOCAL.size))
    start = header + LOCAL.size + local[9] + local[10]
    if local[0] != b"PK\3\4" or local[9] != name_size or source.read(header + LOCAL.size, name_size) != text:
        raise FileError(f"is corrupt: the header of its member {name!r:.80} is damaged")
    source.inside(start, packed)
    return header, Member(name, method, crc, packed, size, start), at + name_size + extra_size + comment_size


def zip64(extra: bytes, *fields: int) -> list[int]:
    """The fields, those that are full replaced by the 8-byte numbers of extra field 1."""
    at, numbers = 0, iter(())
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            wide = extra[at + 4 : at + 4 + length]
            numbers = iter(struct.unpack(f"<{len(wide) // 8}Q", wide[: len(wide) // 8 * 8]))
        at += 4 + length
    try:
        return [next(numbers) if field == FULL32 else field for field in fields]
    except StopIteration:
        raise FileError("is corrupt: a zip64 field is missing") from None


def contents(source: Source, member: Member, align: int = 1, check: bool = True) -> np.ndarray:
    """A member's bytes as a writable array, mapped where the source is and the member is stored.

    Args:
        source: the archive.
        member: one of its directory.
        align: the address is a multiple of it.
        check: compare with the CRC. A CRC of 0 is none: torch.serialization.set_crc32_options(False) writes such.
    """
    array = source.array(member.start, member.size, align) if member.method == STORED else inflated(source, member)
    if check and member.crc and zlib.crc32(array.data) != member.crc:
        raise FileError(f"is corrupt: the checksum of its member {member.name!r:.80} does not fit")
    return array


def inflated(source: Source, member: Member) -> np.ndarray:
    """The bytes of a deflated member, which must be as many as announced."""
    source.spend(2 * member.size)
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    data = unpacker.decompress(source.read(member.start, member.packed), member.size + 1)
    if len(data) != member.size or not unpacker.eof:
        raise FileError(f"is corrupt: its member {member.name!r:.80} does not unpack to {member.size} bytes")
    return np.frombuffer(bytearray(data), np.uint8)
