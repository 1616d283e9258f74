import sys

what = sys.argv[1]
total = 0
if what == "churn":
    for _ in range(8):
        total += len([{"a": i, "b": str(i)} for i in range(60_000)])
elif what == "large":
    for i in range(20):
        total += len(bytes([65 + i]) * (40 << 20))
elif what == "touch":
    kept = [bytes([i & 255]) * 2000 for i in range(100_000)]
    total = len(kept)
else:
    table = list(range(1000))
    for i in range(3_000_000):
        total += table[i % 1000]
print(total)
