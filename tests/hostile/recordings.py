"""Handmade recordings: perf.data files that name any path as mapped code."""

import struct
from pathlib import Path

# Bits of perf_event_attr.sample_type.
IP, TID, TIME, CALLCHAIN, REGS_USER, STACK_USER = 1, 2, 4, 32, 1 << 12, 1 << 13
# Flags of perf_event_attr: mmap, comm, sample_id_all, mmap2.
FLAGS = 1 << 8 | 1 << 9 | 1 << 18 | 1 << 23
MISC_USER, MISC_KERNEL, MISC_MMAP_BUILD_ID = 2, 1, 1 << 14
START, LENGTH = 0x400000, 0x100000
# BP, SP and IP in the kernel's numbering of x86-64's registers.
REGISTERS = 1 << 6 | 1 << 7 | 1 << 8
STACK = bytes(range(256)) * 4


def record(kind, misc, body):
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def attr(unwinds):
    sample_type = IP | TID | TIME | CALLCHAIN | (REGS_USER | STACK_USER if unwinds else 0)
    out = bytearray(112)
    struct.pack_into("<IIQQQQQ", out, 0, 1, 112, 0, 1_000_000, sample_type, 0, FLAGS)
    if unwinds:
        struct.pack_into("<QI", out, 80, REGISTERS, len(STACK))
    return bytes(out)


def trailer(pid, time):
    return struct.pack("<IIQ", pid, pid, time)


def mapping(path, pid, identity):
    """`identity` is ("build id", bytes), ("file", major, minor, inode), or ("none",)."""
    front = struct.pack("<IIQQQ", pid, pid, START, LENGTH, 0)
    name = path + b"\0"
    name += b"\0" * (-len(name) % 8)
    if identity[0] == "none":
        return record(1, MISC_USER, front + name + trailer(pid, 1))
    misc = MISC_USER
    if identity[0] == "build id":
        misc |= MISC_MMAP_BUILD_ID
        of_file = struct.pack("<B3x20s", len(identity[1]), identity[1])
    else:
        of_file = struct.pack("<IIQQ", *identity[1:], 0)
    return record(10, misc, front + of_file + struct.pack("<II", 5, 2) + name + trailer(pid, 1))


def sample(pid, time, ip, unwinds):
    body = struct.pack("<QIIQ", ip, pid, pid, time)
    chain = [0xFFFF_FFFF_FFFF_FE00, ip, ip + 0x40]
    body += struct.pack("<Q", len(chain)) + struct.pack(f"<{len(chain)}Q", *chain)
    if unwinds:
        body += struct.pack("<QQQQ", 2, 0x7000, 0x7000, ip)
        body += struct.pack("<Q", len(STACK)) + STACK + struct.pack("<Q", len(STACK))
    return record(9, MISC_USER, body)


def string(text):
    text = text.encode() + b"\0"
    text += b"\0" * (-len(text) % 64)
    return struct.pack("<I", len(text)) + text


def recording(out, mapped, pid, unwinds=False, generated=False):
    """Writes a recording of 50 samples in each of the mapped files: (path, identity)."""
    data = record(3, 0, struct.pack("<II", pid, pid) + b"hostile\0" + trailer(pid, 1))
    for at, (path, identity) in enumerate(mapped):
        of = mapping(path, pid, identity)
        # Each at its own place.
        data += of[:16] + struct.pack("<Q", START + at * LENGTH) + of[24:]
    places = [START + at * LENGTH for at in range(len(mapped))]
    if generated:
        data += mapping(b"//anon", pid, ("none",))[:16] + struct.pack("<Q", 0x10000000) + mapping(
            b"//anon", pid, ("none",)
        )[24:]
        places.append(0x10000000)
    for turn in range(50):
        for place in places:
            data += sample(pid, 1000 + turn, place + 0x1000 + 0x100 * turn, unwinds)
    features = [(4, string("0.0.0-none")), (6, string("x86_64"))]
    event = attr(unwinds)
    attrs = event + struct.pack("<QQ", 0, 0)
    start = 104 + len(attrs)
    table = start + len(data)
    at = table + 16 * len(features)
    sections, contents = b"", b""
    bits = 0
    for bit, content in features:
        sections += struct.pack("<QQ", at, len(content))
        contents += content
        at += len(content)
        bits |= 1 << bit
    header = b"PERFILE2" + struct.pack(
        "<12Q", 104, len(event) + 16, 104, len(attrs), start, len(data), 0, 0, bits, 0, 0, 0
    )
    Path(out).write_bytes(header + attrs + data + sections + contents)
