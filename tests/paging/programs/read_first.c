/* Memory that is read before anything is written to it, together with pages of a file: both count.
 * Memory read in this way must not be counted as resident and then turn out to be more later, when
 * it is written. Arguments: MiB, MiB of the budget; the process must stay within that plus a tenth.
 */
#include "check.h"
#include <sys/resource.h>

enum { FILE_PAGES = 12 * 256 };

int main(int arguments, char **argument) {
    if (arguments < 3) return 2;
    size_t pages = (size_t)atoi(argument[1]) * 256;
    int file = memfd_create("pages", 0);
    need(file >= 0 && ftruncate(file, FILE_PAGES * PAGE) == 0, "memfd");
    char *shared = mmap(NULL, FILE_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    need(shared != MAP_FAILED, "mmap");
    for (size_t page = 0; page < FILE_PAGES; page++) fill(shared + page * PAGE, page, 9);

    char *array = map(pages * PAGE);
    for (size_t page = 0; page < pages; page++) holds(array + page * PAGE, page, 0);
    for (size_t page = pages; page-- > 0;) fill(array + page * PAGE, page, 1);
    for (size_t page = 0; page < pages; page++) holds(array + page * PAGE, page, 1);
    for (size_t page = 0; page < FILE_PAGES; page++) holds(shared + page * PAGE, page, 9);

    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    need(use.ru_maxrss <= atol(argument[2]) * 1126, "the peak is within the budget and a tenth");
    return verdict("read_first");
}
