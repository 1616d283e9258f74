"""Short-lived workers that read objects of their parent: reference counting copies its pages."""
import multiprocessing

NAMES = [f"name {number}" for number in range(400_000)]


def longest(_):
    return max(len(name) for name in NAMES)


if __name__ == "__main__":
    with multiprocessing.Pool(2, maxtasksperchild=1) as pool:
        print(max(pool.imap_unordered(longest, range(16))))
