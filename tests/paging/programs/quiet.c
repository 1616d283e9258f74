/* Nothing is allocated while a fault is handled. This program's malloc and related functions come
 * before all others; it counts calls from threads that the program did not create (the pager's
 * own), and from a thread of the program while it only touches memory (a signal handler of the
 * pager runs there). Arguments: MiB. */
#include "check.h"
#include <sys/syscall.h>

#define KNOWN 16
static atomic_int known[KNOWN], touching[KNOWN];
static atomic_long strange, all;
static char room[32 << 20] __attribute__((aligned(64)));
static atomic_size_t used;

static int thread_id(void) { return (int)syscall(SYS_gettid); }

static void count_call(void) {
    int me = thread_id(), mine = -1;
    all++;
    for (int i = 0; i < KNOWN; i++) if (known[i] == me) mine = i;
    if (mine < 0 || touching[mine]) strange++;
}

static void *take(size_t bytes, size_t align) {
    size_t wanted = bytes + align + 16, at = atomic_fetch_add(&used, wanted);
    if (at + wanted > sizeof room) return NULL;
    uintptr_t place = ((uintptr_t)room + at + 16 + align - 1) / align * align;
    ((size_t *)place)[-1] = bytes;
    return (void *)place;
}
void *malloc(size_t bytes) { count_call(); return take(bytes, 16); }
void *calloc(size_t many, size_t bytes) { count_call(); return take(many * bytes, 16); }
void free(void *at) { (void)at; count_call(); }
void *realloc(void *at, size_t bytes) {
    count_call();
    void *to = take(bytes, 16);
    if (at && to) memcpy(to, at, ((size_t *)at)[-1] < bytes ? ((size_t *)at)[-1] : bytes);
    return to;
}
void *memalign(size_t align, size_t bytes) { count_call(); return take(bytes, align < 16 ? 16 : align); }
void *aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }
int posix_memalign(void **to, size_t align, size_t bytes) { *to = memalign(align, bytes); return *to ? 0 : ENOMEM; }

static char *base;
static size_t pages;

static void *touch(void *argument) {
    int slot = (int)(size_t)argument;
    unsigned seed = slot + 1;
    known[slot] = thread_id();
    touching[slot] = 1;
    for (int i = 0; i < 6000; i++) {
        size_t at = rand_r(&seed) % pages;
        uint64_t *words = (uint64_t *)(base + at * PAGE);
        checks++;
        wrong += words[at % 500] != at;
        if (i % 3 == 0) ((volatile uint64_t *)words)[at % 500] = at;
    }
    touching[slot] = 0;
    return NULL;
}

static void *stranger(void *unused) { (void)unused; free(malloc(1)); return NULL; }

int main(int count, char **arguments) {
    known[0] = thread_id();
    pages = (count > 1 ? atol(arguments[1]) : 96) * 256;
    long before = strange; /* calls before main are of threads not known yet */
    /* Both ways of being counted are shown to count. */
    touching[0] = 1;
    free(malloc(1));
    touching[0] = 0;
    need(strange == before + 2, "calls while touching are counted");
    pthread_t threads[8];
    pthread_create(&threads[0], NULL, stranger, NULL);
    pthread_join(threads[0], NULL);
    need(strange >= before + 4, "calls of unknown threads are counted");
    base = map(pages * PAGE);
    before = strange;
    touching[0] = 1;
    for (size_t i = 0; i < pages; i++) ((uint64_t *)(base + i * PAGE))[i % 500] = i;
    touching[0] = 0;
    need(strange == before, "no allocation while memory is filled");
    for (size_t i = 0; i < 8; i++) pthread_create(&threads[i], NULL, touch, (void *)(i + 1));
    for (size_t i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    need(strange == before, "no allocation in handlers");
    printf("%ld calls of malloc and its kin, %ld while a fault was served\n", (long)all, (long)(strange - before));
    return verdict("quiet");
}
