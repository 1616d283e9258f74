// Eight threads churn through the allocator: objects of all sizes, containers, and blocks that one
// thread creates and another gives back. Each object's contents are known; the sums printed do not
// depend on how the threads interleave.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

static std::atomic<long> wrong;

static uint64_t mix(uint64_t x) {
    x ^= x >> 33; x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

struct Block {
    uint64_t seed;
    std::vector<uint64_t> words;
    explicit Block(uint64_t seed) : seed(seed), words(1 + mix(seed) % 900) {
        for (size_t i = 0; i < words.size(); i++) words[i] = mix(seed + i);
    }
    uint64_t sum() const {
        uint64_t sum = 0;
        for (size_t i = 0; i < words.size(); i++) {
            wrong += words[i] != mix(seed + i);
            sum += words[i];
        }
        return sum;
    }
};

static const int threads = 8, rounds = 3;
static int blocks; // of each thread
static std::mutex gate;
static std::deque<std::unique_ptr<Block>> passed; // made by one thread, given back by another
static uint64_t totals[threads], passed_total;

static void work(int me) {
    std::vector<std::unique_ptr<Block>> own(blocks);
    std::map<std::string, uint64_t> tree;
    std::unordered_map<uint64_t, std::string> table;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < blocks; i++) {
            uint64_t seed = mix(me * 1000003u + round * 7919u + i);
            if (own[i]) totals[me] += own[i]->sum();
            own[i] = std::make_unique<Block>(seed);
            if (i % 5 == 0) {
                tree["key " + std::to_string(seed % 5000) + std::string(seed % 200, '-')] = seed;
                table[seed % 5000] = std::string(seed % 2000, (char)('a' + seed % 26));
            }
            if (i % 7 == 0) {
                auto made = std::make_unique<Block>(seed ^ 1);
                std::unique_ptr<Block> taken;
                {
                    std::lock_guard<std::mutex> hold(gate);
                    passed.push_back(std::move(made));
                    if (passed.size() > 400) {
                        taken = std::move(passed.front());
                        passed.pop_front();
                    }
                }
                if (taken) {
                    uint64_t sum = taken->sum();
                    std::lock_guard<std::mutex> hold(gate);
                    passed_total += sum;
                }
            }
        }
    }
    for (auto &block : own) totals[me] += block->sum();
    for (auto &[key, value] : tree) totals[me] += mix(value + key.size());
    for (auto &[key, text] : table)
        for (char letter : text) totals[me] += (unsigned char)letter * (key + 1);
}

int main(int count, char **arguments) {
    blocks = count > 1 ? std::stoi(arguments[1]) : 2700;
    std::vector<std::thread> running;
    for (int i = 0; i < threads; i++) running.emplace_back(work, i);
    for (auto &thread : running) thread.join();
    for (auto &block : passed) passed_total += block->sum();
    for (int i = 0; i < threads; i++) printf("thread %d: %016lx\n", i, (unsigned long)totals[i]);
    printf("passed on: %016lx\nwrong: %ld\n", (unsigned long)passed_total, wrong.load());
    return wrong != 0;
}
