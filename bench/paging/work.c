/* A fixed amount of work on one large mapping, for elapsed times that can be compared.
 *
 * usage: work random|sequential|skewed|phases read|write MIB TOUCHES NANOSECONDS
 *
 * After filling the memory in order, touches pages TOUCHES times and computes for so many nanoseconds
 * at each: without order, in order, nine in ten within a tenth of the memory (skewed), or without order
 * within a quarter that moves on (phases). Each page contains its number, which is checked; exits 1 on
 * a wrong byte. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, WORDS = PAGE / 8 };

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* About a nanosecond for each turn. */
static uint64_t compute(uint64_t turns, uint64_t value) {
    for (uint64_t turn = 0; turn < turns; turn++) value = value * 6364136223846793005u + 1;
    return value;
}

int main(int count, char **words) {
    if (count < 6) return 2;
    const char *order = words[1];
    int writes = !strcmp(words[2], "write");
    uint64_t pages = strtoull(words[3], NULL, 10) << 8, touches = strtoull(words[4], NULL, 10);
    uint64_t turns = strtoull(words[5], NULL, 10), seed = 88172645463325252u, sum = 0, wrong = 0;
    uint64_t *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 3;
    for (uint64_t page = 0; page < pages; page++) {
        uint64_t state = page + 1;
        for (int word = 0; word < WORDS; word++) memory[page * WORDS + word] = next(&state);
        memory[page * WORDS] = page;
    }
    for (uint64_t touch = 0; touch < touches; touch++) {
        uint64_t random = next(&seed) >> 11, page;
        switch (order[1]) {
        case 'e': page = touch % pages; break;
        case 'k': page = random % 10 ? random / 10 % (pages / 10) : random / 10 % pages; break;
        case 'h': page = (touch * 4 / touches * (pages / 4) + random % (pages / 4)) % pages; break;
        default: page = random % pages;
        }
        wrong += memory[page * WORDS] != page;
        if (writes) memory[page * WORDS + 1 + touch % (WORDS - 1)] = touch;
        sum += compute(turns, page);
    }
    printf("%llu wrong, %llx\n", (unsigned long long)wrong, (unsigned long long)sum);
    return wrong != 0;
}
