/* A part of the memory that just fits into a small budget, used again and again in an order of its own
 * after all of it has been swept over. What the pager keeps for itself, or keeps free, is missing there:
 * with a little less room every round misses. Arguments: MiB, pages of the part, rounds.
 */
#include "check.h"

int main(int arguments, char **argument) {
    if (arguments < 4) return 2;
    size_t pages = (size_t)atoi(argument[1]) * 256, part = atoi(argument[2]);
    char *array = map(pages * PAGE);
    for (size_t page = 0; page < pages; page++) fill(array + page * PAGE, page, 1);
    for (int sweep = 0; sweep < 2; sweep++)
        for (size_t page = 0; page < pages; page++) holds(array + page * PAGE, page, 1);
    /* No two of them adjoin, and none is the next of the one before it. */
    size_t apart = pages / part;
    for (int round = 0; round < atoi(argument[3]); round++) {
        for (size_t i = 0; i < part; i++) {
            size_t page = (i * 7919 % part) * apart;
            holds(array + page * PAGE, page, 1);
        }
        /* The pager looks at what is idle from time to time. */
        usleep(2000);
    }
    return verdict("just_fits");
}
