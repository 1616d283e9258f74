// What PAGEMAP_SCAN reports about memory under synchronous write protection, and its cost compared
// with a walk over four bytes per page, as kept by the pager:
//   gcc -O2 bench/paging/scan.c -o /tmp/scan && /tmp/scan 8192
// Half of this many MiB is resident, half of that protected.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// linux/fs.h of Linux 6.7, which older headers lack.
struct region { uint64_t start, end, categories; };
struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t inverted, mask, any, wanted;
};
#define SCAN _IOWR('f', 16, struct scan)
enum { WRITTEN = 2, PRESENT = 8, WP_MATCHING = 1, CHECK_WPASYNC = 2 };
enum { PAGE = 4096, STRETCH = 1 << 16 };

static int pagemap;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

// Pages of the categories; -1 when the kernel refuses.
static long scan(char *start, size_t bytes, uint64_t categories, uint64_t flags) {
    static struct region found[1 << 16];
    struct scan scan = {.size = sizeof scan, .flags = flags, .start = (uint64_t)start,
        .end = (uint64_t)start + bytes, .vec = (uint64_t)found, .vec_len = 1 << 16,
        .mask = categories, .wanted = categories};
    long pages = 0;
    for (; scan.start < scan.end; scan.start = scan.walk_end) {
        long count = ioctl(pagemap, SCAN, &scan);
        if (count < 0) return -1;
        for (long i = 0; i < count; i++) pages += (found[i].end - found[i].start) / PAGE;
    }
    return pages;
}

int main(int count, char **arguments) {
    size_t bytes = (size_t)(count > 1 ? atoi(arguments[1]) : 1024) << 20, pages = bytes / PAGE;
    int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct uffdio_register whole = {.range = {(uint64_t)memory, bytes},
        .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP};
    if (ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &whole)) {
        perror("userfaultfd");
        return 1;
    }
    static char contents[STRETCH] = {1};
    for (size_t at = 0; at < bytes; at += 2 * STRETCH) {
        struct uffdio_copy copy = {.dst = (uint64_t)memory + at, .src = (uint64_t)contents,
            .len = STRETCH, .mode = at / STRETCH & 2 ? UFFDIO_COPY_MODE_WP : 0};
        if (ioctl(uffd, UFFDIO_COPY, &copy)) {
            perror("copy");
            return 1;
        }
    }
    pagemap = open("/proc/self/pagemap", O_RDONLY);
    printf("%zu pages, about half of them resident, a quarter protected\n", pages);
    printf("written before PM_SCAN_WP_MATCHING: %ld\n", scan(memory, bytes, PRESENT | WRITTEN, 0));
    scan(memory, bytes, PRESENT | WRITTEN, WP_MATCHING);
    printf("written after PM_SCAN_WP_MATCHING: %ld\n", scan(memory, bytes, PRESENT | WRITTEN, 0));
    printf("PM_SCAN_CHECK_WPASYNC: %s\n",
        scan(memory, bytes, PRESENT, CHECK_WPASYNC) < 0 ? "refused" : "taken");
    volatile uint32_t *words = malloc(pages * 4);
    for (size_t i = 0; i < pages; i++) words[i] = (i & 16 ? 3u : i & 32 ? 2u : 1u) << 28 | (uint32_t)i;
    for (int turn = 0; turn < 5; turn++) {
        double began = now();
        scan(memory, bytes, PRESENT, 0);
        double scanned = now();
        size_t states[3] = {0};
        for (size_t i = 0; i < pages; i++) {
            uint32_t state = words[i] >> 28 & 7;
            for (uint32_t one = 0; one < 3; one++) states[one] += state == one + 1;
        }
        printf("scan %.2f ms, words %.2f ms (%zu)\n", scanned - began, now() - scanned, states[0]);
    }
}
