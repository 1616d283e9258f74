/* Small programs that can be made to take more: grow KIND EXTRA_FAULTS EXTRA_PEAK.
 *
 * EXTRA_FAULTS pages are touched and given back one at a time, EXTRA_PEAK pages are touched and
 * kept during the rest of the run. Kinds: churn (mappings that come and go), heap (many small
 * blocks), threads (four of them, each with its own blocks), files (a mapped file read page by
 * page), forks (eight children that write to shared memory).
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t page_size;

static volatile char *take(size_t pages) {
    volatile char *at = mmap(0, pages * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    for (size_t page = 0; page < pages; page++) at[page * page_size] = 1;
    return at;
}

__attribute__((noinline)) static void touch_more(size_t pages) {
    while (pages-- > 0) munmap((void *)take(1), page_size);
}

__attribute__((noinline)) static void hold_more(size_t pages) {
    if (pages > 0) take(pages)[0] = 2;
}

static void churn(void) {
    take(2000)[0] = 2;
    for (int round = 0; round < 60; round++) munmap((void *)take(50), 50 * page_size);
}

static void heap(void) {
    enum { COUNT = 40000 };
    static char *blocks[COUNT];
    for (int round = 0; round < 3; round++) {
        for (int at = 0; at < COUNT; at++) {
            blocks[at] = malloc(64 + (at * 37 + round) % 400);
            blocks[at][0] = 1;
        }
        for (int at = 0; at < COUNT; at++) free(blocks[at]);
    }
}

static void *of_thread(void *unused) {
    (void)unused;
    for (int round = 0; round < 20; round++) {
        char *block = malloc(400 << 10);
        memset(block, 1, 400 << 10);
        free(block);
    }
    return NULL;
}

static void threads(void) {
    pthread_t all[4];
    take(1500)[0] = 2;
    for (int at = 0; at < 4; at++) pthread_create(&all[at], NULL, of_thread, NULL);
    for (int at = 0; at < 4; at++) pthread_join(all[at], NULL);
}

static void files(void) {
    int file = open("/proc/self/exe", O_RDONLY);
    take(2500)[0] = 2;
    for (int round = 0; round < 200; round++) {
        volatile char *at = mmap(0, 4 * page_size, PROT_READ, MAP_PRIVATE, file, 0);
        for (size_t page = 0; page < 4; page++) (void)at[page * page_size];
        munmap((void *)at, 4 * page_size);
    }
    close(file);
}

static void forks(void) {
    volatile char *shared = take(1500);
    for (int child = 0; child < 8; child++) {
        if (fork() == 0) {
            for (size_t page = 0; page < 200; page++) shared[page * page_size] = 3;
            _exit(0);
        }
        wait(NULL);
    }
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
    } kinds[] = {{"churn", churn}, {"heap", heap}, {"threads", threads}, {"files", files}, {"forks", forks}};
    if (count != 4) return 2;
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    hold_more(strtoul(words[3], NULL, 10));
    touch_more(strtoul(words[2], NULL, 10));
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        if (strcmp(words[1], kinds[kind].name) == 0) {
            kinds[kind].run();
            return 0;
        }
    return 2;
}
