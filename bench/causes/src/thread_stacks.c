/* Starts a thread per task, each of which uses 6 MiB of its stack: the C library releases the pages
 * of a stack at each thread's end. */
#include <pthread.h>
#include <stdlib.h>

static int deep(int depth) {
    volatile char local[4000];
    local[0] = (char)depth;
    return depth == 0 ? local[0] : deep(depth - 1) + local[0];
}

static void *task(void *arg) { return (void *)((long)deep(1500) + (long)arg); }

int main(int argc, char **argv) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16u << 20);
    for (int round = argc > 1 ? atoi(argv[1]) : 400; round > 0; round--) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, task, NULL) != 0) return 1;
        pthread_join(thread, NULL);
    }
    return 0;
}
