/* Functions that hold known numbers of bytes. The first argument says what is done. */
#define _GNU_SOURCE
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SITE __attribute__((noinline)) static void
#define BLOCKS 500000

static void *kept[BLOCKS];
static int count;

static void keep(void *block) { kept[count++] = block; }

SITE small(void) { for (int i = 0; i < 400000; i++) keep(malloc(48)); }
SITE zeroed(void) { for (int i = 0; i < 5000; i++) keep(calloc(3, 1000)); }
SITE aligned(void) {
    for (int i = 0; i < 2000; i++) {
        void *block;
        if (posix_memalign(&block, 64, 5000) == 0) keep(block);
    }
}
SITE large(void) { for (int i = 0; i < 5; i++) keep(malloc(1 << 20)); }
SITE churned(void) { for (int i = 0; i < 20000; i++) { char *volatile block = malloc(2000); free(block); } }
SITE temporary(void) {
    static void *blocks[3000];
    for (int i = 0; i < 3000; i++) blocks[i] = malloc(4000);
    for (int i = 0; i < 3000; i++) free(blocks[i]);
}

/* 8 MiB in steps of 1000 bytes, among blocks that make it move. */
SITE grown(void) {
    char *block = NULL;
    for (size_t size = 1000; size <= 8 << 20; size += 1000) {
        block = realloc(block, size);
        if (size % 64000 == 0) keep(malloc(24));
    }
    keep(block);
}
/* 8 MiB become 1000 bytes, 2000 times 4000 bytes become 400. */
SITE shrunk(void) {
    keep(realloc(malloc(8 << 20), 1000));
    for (int i = 0; i < 2000; i++) keep(realloc(malloc(4000), 400));
}

SITE threaded(void *block[]) { for (int i = 0; i < 10000; i++) block[i] = malloc(100 + i % 300); }
static void *thread(void *blocks) { threaded(blocks); return NULL; }
static void threads(void) {
    static void *blocks[4][10000];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread, blocks[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static void forked(void) {
    zeroed();
    if (fork() == 0) {
        for (int i = 0; i < 2500; i++) free(kept[i]);
        aligned();
        _exit(0);
    }
    wait(NULL);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "sites";
    if (!strcmp(what, "locale")) {
        /* The first allocation is inside, with its lock held. */
        setlocale(LC_ALL, "C.UTF-8"), setlocale(LC_ALL, "C"), setlocale(LC_ALL, "C.UTF-8"), large();
    } else if (!strcmp(what, "sites")) {
        small(), zeroed(), churned(), aligned(), large(), temporary();
    } else if (!strcmp(what, "realloc")) {
        grown(), shrunk();
    } else if (!strcmp(what, "threads")) {
        threads();
    } else if (!strcmp(what, "fork")) {
        forked();
    } else if (!strcmp(what, "kill")) {
        zeroed();
        raise(SIGKILL);
    }
    return 0;
}
