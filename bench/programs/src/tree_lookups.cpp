// Looks numbers up in a large std::set: each step of a lookup is on another page.
#include <cstdint>
#include <cstdio>
#include <set>

int main() {
    std::set<uint64_t> numbers;
    uint64_t state = 88172645463325252u;
    auto next = [&] {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return state % (1 << 24);
    };
    for (int i = 0; i < 700000; i++) numbers.insert(next());
    long found = 0;
    for (int i = 0; i < 1500000; i++) found += numbers.count(next());
    std::printf("%ld\n", found);
}
