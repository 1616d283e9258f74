// churn: bursts of 64 KiB blocks. large: one block of 48 MiB again and again. touch: much memory, once.
// hold: little memory, used for long. threads: churn in four threads.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *burst(void *rounds) {
    static __thread char *block[256];
    for (long i = 0; i < (long)rounds; i++) {
        for (int j = 0; j < 256; j++) {
            block[j] = malloc(65536);
            memset(block[j], i, 65536);
        }
        for (int j = 0; j < 256; j++) free(block[j]);
    }
    return NULL;
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    unsigned long sum = 0;
    if (!strcmp(what, "churn")) {
        burst((void *)60);
    } else if (!strcmp(what, "threads")) {
        pthread_t thread[4];
        for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, burst, (void *)20);
        for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    } else if (!strcmp(what, "large")) {
        for (int i = 0; i < 20; i++) {
            char *block = malloc(48 << 20);
            memset(block, i, 48 << 20);
            sum += block[i << 20];
            free(block);
        }
    } else if (!strcmp(what, "touch")) {
        for (int i = 0; i < 70000; i++) {
            char *block = malloc(4000);
            memset(block, i, 4000);
            sum += block[100];
        }
    } else {
        unsigned *table = malloc(4 << 20);
        for (int i = 0; i < 1 << 20; i++) table[i] = i;
        for (long i = 0; i < 60000000; i++) sum = sum * 3 + table[(sum + i) & 0xfffff];
    }
    printf("%lu\n", sum);
}
