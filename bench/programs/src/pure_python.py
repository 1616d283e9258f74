"""Small objects in plain Python: obmalloc keeps its arenas, nothing to gain."""
def primes(limit):
    sieve = [True] * limit
    for p in range(2, int(limit**0.5) + 1):
        if sieve[p]:
            for m in range(p * p, limit, p):
                sieve[m] = False
    return sum(sieve) - 2

print(primes(6_000_000))
words = {}
for i in range(900_000):
    words[f"w{i % 50000}"] = words.get(f"w{i % 50000}", 0) + i
print(len(words))
