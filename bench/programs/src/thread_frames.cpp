// Video-like pipeline: each thread takes a 64 MiB frame buffer from the heap for each frame, fills
// it, reduces it, frees it. A heap of a glibc thread arena has at most 64 MiB, so no glibc setting
// can keep such a block; another allocator can.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

static std::uint64_t frame(std::size_t bytes, unsigned seed) {
    std::unique_ptr<std::uint64_t[]> pixels(new std::uint64_t[bytes / 8]);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bytes / 8; i++) pixels[i] = i * 0x9E3779B97F4A7C15ull + seed;
    for (std::size_t i = 0; i < bytes / 8; i += 7) sum ^= pixels[i];
    return sum;
}

int main(int argc, char **argv) {
    const unsigned frames = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 25;
    std::vector<std::thread> threads;
    std::vector<std::uint64_t> sums(2);
    for (unsigned t = 0; t < 2; t++)
        threads.emplace_back([&, t] {
            for (unsigned f = 0; f < frames; f++) sums[t] ^= frame(64u << 20, f + t);
        });
    for (auto &thread : threads) thread.join();
    std::printf("%016llx\n", static_cast<unsigned long long>(sums[0] ^ sums[1]));
}
