#!/usr/bin/env python3
"""repeat_dat.py IN OUT TIMES: a trace.dat of version 6 with the pages of each CPU repeated TIMES
times, every copy later than the previous one: a long recording of the same work."""

import struct
import sys


def records(data):
    """Where the table of the CPUs' data stands: (place, number of CPUs)."""
    options = data.index(b"options  \0")
    cpus = struct.unpack_from("<I", data, options - 4)[0]
    table = data.index(b"flyrecord\0", options) + len(b"flyrecord\0")
    return table, cpus


def page_size(data):
    # magic of ten bytes, the version and its zero, byte order, size of a long
    at = data.index(b"\0", 10) + 1
    return struct.unpack_from("<I", data, at + 2)[0]


def main():
    source, target, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
    data = open(source, "rb").read()
    table, cpus = records(data)
    size = page_size(data)
    places = [struct.unpack_from("<QQ", data, table + 16 * cpu) for cpu in range(cpus)]
    stamps = [
        struct.unpack_from("<Q", data, at)[0]
        for begin, length in places
        for at in range(begin, begin + length, size)
    ]
    # Half as long again as all pages: the last one's records go on behind its stamp.
    later = (max(stamps) - min(stamps)) * 3 // 2
    with open(target, "wb") as out:
        out.write(data[:table])
        begin = -(-(table + 16 * cpus) // size) * size
        for _, length in places:
            out.write(struct.pack("<QQ", begin, length * times))
            begin += length * times
        out.write(b"\0" * (-out.tell() % size))
        for begin, length in places:
            pages = bytearray(data[begin : begin + length])
            for _ in range(times):
                out.write(pages)
                for at in range(0, length, size):
                    stamp = struct.unpack_from("<Q", pages, at)[0]
                    struct.pack_into("<Q", pages, at, stamp + later)


if __name__ == "__main__":
    main()
