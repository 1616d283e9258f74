/* Memory of malloc, threads, a fork and realloc; every page's contents are checked. Prints "right". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 48 * 256, PAGE = 4096, SMALL = 20000, THREADS = 3 };
static char *large;

static void *sum(void *unused) {
    long found = 0;
    (void)unused;
    for (long page = 0; page < PAGES; page++) found += large[page * PAGE];
    return (void *)found;
}

int main(void) {
    long expected = 0;
    int well = 1, status;
    char *small[SMALL];
    pthread_t threads[THREADS];
    void *found;

    large = malloc((size_t)PAGES * PAGE);
    for (long page = 0; page < PAGES; page++) expected += large[page * PAGE] = (char)(page % 7);
    for (int i = 0; i < SMALL; i++) memset(small[i] = malloc(1000), i, 1000);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, sum, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &found);
        well &= (long)found == expected;
    }
    for (int i = 0; i < SMALL; i++)
        for (int j = 0; j < 1000; j += 499) well &= small[i][j] == (char)i;
    if (fork() == 0) _exit((long)sum(NULL) != expected);
    wait(&status);
    well &= status == 0;
    large = realloc(large, (size_t)(PAGES + PAGES / 3) * PAGE);
    well &= (long)sum(NULL) == expected;
    free(large);
    well &= system("true") == 0;
    puts(well ? "right" : "WRONG");
    return !well;
}
