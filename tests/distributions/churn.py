"""Takes 30 MiB in blocks that come from glibc's heap, and frees them, 60 times: each time the heap's top returns.

Blocks stay below M_MMAP_THRESHOLD (128 KiB), and their sum is many times M_TRIM_THRESHOLD. The 4 MiB of
examples/zlib_churn.py return on Debian 12 alone, not under the Pythons of Debian 11 and 13.
"""

for _ in range(60):
    blocks = [bytearray(100_000) for _ in range(300)]
    del blocks
