#!/usr/bin/env python3
"""Compresses batches of small messages, as a web server does with its answers.

Each message gets a compressor of its own (zlib.compressobj, about 268 KiB in blocks that are
each smaller than 128 KiB). When a batch is done, its compressors are freed together at the top
of the heap. GNU libc then gives the heap's top back to the kernel, and the next batch has to
fault every page in again: most of the CPU time goes to page faults.

    pagewise doctor --prove -- python3 examples/zlib_churn.py

Usage: zlib_churn.py [BATCHES]      (default 1500; about one second)
"""

import sys
import zlib

MESSAGES_PER_BATCH = 16
MESSAGE = b"".join(b'{"id": %d, "name": "item %d", "price": %d}\n' % (i, i, i * 7) for i in range(50))


def compress_batch():
    """Compresses one batch and returns the number of bytes that came out."""
    compressors = [zlib.compressobj() for _ in range(MESSAGES_PER_BATCH)]
    return sum(len(c.compress(MESSAGE)) + len(c.flush()) for c in compressors)


def main():
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    compressed = sum(compress_batch() for _ in range(batches))
    raw = batches * MESSAGES_PER_BATCH * len(MESSAGE)
    print(f"{batches * MESSAGES_PER_BATCH} messages, {raw:,} bytes in, {compressed:,} bytes out")


if __name__ == "__main__":
    main()
