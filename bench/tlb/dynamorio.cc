// The core of DynamoRIO's TLB simulator (drcachesim's tlb_t) on addresses in a file, timed alone: no
// tracing, no reading. bench/tlb/peer builds it against a checkout of DynamoRIO's sources.
//
//   dynamorio FILE    64-bit addresses; the first quarter warms up
#include <ctime>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "create_cache_replacement_policy.h"
#include "tlb.h"
#include "tlb_stats.h"

using namespace dynamorio::drmemtrace;

static double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: dynamorio FILE\n");
        return 2;
    }
    std::ifstream file(argv[1], std::ios::binary | std::ios::ate);
    std::vector<uint64_t> addresses(static_cast<size_t>(file.tellg()) / 8);
    file.seekg(0);
    if (!file.read(reinterpret_cast<char *>(addresses.data()), addresses.size() * 8)) {
        perror(argv[1]);
        return 1;
    }
    // Golden Cove's data TLBs for small pages, as in crates/simulate/machines/golden-cove.toml.
    const int page = 4096, first = 96, first_ways = 6, second = 2048, second_ways = 16;
    tlb_t l2("second"), l1("first");
    auto stats1 = new tlb_stats_t(page), stats2 = new tlb_stats_t(page);
    auto lru = [](int entries, int ways) { return create_cache_replacement_policy("LRU", entries / ways, ways); };
    if (!l2.init(second_ways, page, second, nullptr, stats2, lru(second, second_ways)) ||
        !l1.init(first_ways, page, first, &l2, stats1, lru(first, first_ways))) {
        fprintf(stderr, "the TLBs can't be made\n");
        return 1;
    }
    memref_t access = {};
    access.data.type = TRACE_TYPE_READ;
    access.data.pid = 1, access.data.tid = 1, access.data.size = 1;
    const size_t warm = addresses.size() / 4;
    double began = 0;
    for (size_t at = 0; at < addresses.size(); at++) {
        if (at == warm) began = cpu_seconds();
        access.data.addr = addresses[at];
        l1.request(access);
    }
    const double took = cpu_seconds() - began;
    printf("%.9f %lld\n", took, static_cast<long long>(stats2->get_metric(metric_name_t::MISSES)));
    return 0;
}
