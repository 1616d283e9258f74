"""Compresses messages with bz2: its tables come and go, but sorting costs far more."""
import bz2

message = b"".join(b"%d %d\n" % (i, i * i % 9973) for i in range(12000))
print(sum(len(bz2.compress(message)) for _ in range(160)))
