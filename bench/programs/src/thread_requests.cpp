// Request workers: each request builds a few hundred nodes and strings of a few KiB in its thread's
// arena and drops them all at the end, so the top of the arena is given back after each request.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

static std::size_t request(unsigned seed) {
    std::vector<std::string> parts;
    std::size_t total = 0;
    for (unsigned i = 0; i < 400; i++) parts.emplace_back(8000 + (seed + i) % 512, 'x');
    for (const auto &part : parts) total += part.size();
    return total;
}

int main(int argc, char **argv) {
    const unsigned requests = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 700;
    std::vector<std::thread> workers;
    std::vector<std::size_t> totals(4);
    for (unsigned w = 0; w < totals.size(); w++)
        workers.emplace_back([&, w] {
            for (unsigned r = 0; r < requests; r++) totals[w] += request(r + w);
        });
    std::size_t total = 0;
    for (unsigned w = 0; w < totals.size(); w++) {
        workers[w].join();
        total += totals[w];
    }
    std::printf("%zu bytes\n", total);
}
