// Starts a thread and waits for its end, again and again: whatever a recorder adds to the birth and
// the end of a thread is fully visible.
// Usage: thread_loop ROUNDS
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *end(void *argument) { return argument; }

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s ROUNDS\n", argv[0]);
        return 2;
    }
    for (long round = strtol(argv[1], NULL, 10); round > 0; round--) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, end, NULL) != 0) {
            fputs("no thread could be started\n", stderr);
            return 1;
        }
        pthread_join(thread, NULL);
    }
    return 0;
}
