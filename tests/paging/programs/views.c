/* Pages of a mapped file that the kernel does not page out for this process, since another one maps them
 * too (as those of files that the user neither owns nor may write). Arguments: MiB of the file, MiB of
 * managed memory, MiB of the budget of each process, a folder, seconds.
 * The mapping may not be written; a thread changes that for a page at a time, writes the page, and takes
 * it back, all the time. Meanwhile managed memory is used again and again. In the end the process must be
 * within its budget and a tenth, and every page must hold what was written to it, or what is in the file.
 */
#include "check.h"
#include <fcntl.h>
#include <signal.h>

static size_t file_pages, array_pages;
static char *view;
static uint64_t *versions; /* of each page of the view; 1 is the file's */
static atomic_int stop;
static long written;

static void *writes(void *unused) {
    uint64_t state = 7;
    for (; !stop; written++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        size_t page = (state >> 33) % file_pages;
        if (page % 16) page = page / 256 * 256; /* most pages stay as they are in the file */
        char *at = view + page * PAGE;
        need(mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
        holds(at, page, versions[page]);
        fill(at, page, ++versions[page]);
        need(mprotect(at, PAGE, PROT_READ | PROT_EXEC) == 0, "mprotect");
        if (written % 64 == 0) usleep(500);
    }
    return unused;
}

int main(int arguments, char **argument) {
    if (arguments < 6) return 2;
    file_pages = (size_t)atoi(argument[1]) * 256;
    array_pages = (size_t)atoi(argument[2]) * 256;
    long limit = atol(argument[3]) * 1126;
    char path[4096];
    snprintf(path, sizeof path, "%s/viewed", argument[4]);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    need(file >= 0, path);
    static char page_bytes[PAGE];
    for (size_t at = 0; at < file_pages; at++) {
        fill(page_bytes, at, 1);
        need(write(file, page_bytes, PAGE) == PAGE, "write");
    }
    need(fsync(file) == 0, "fsync");
    view = mmap(NULL, file_pages * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    need(view != MAP_FAILED, "mmap");
    versions = calloc(file_pages, sizeof *versions);
    int ready[2];
    need(versions && pipe(ready) == 0, "pipe");
    pid_t other = fork();
    if (other == 0) {
        for (size_t page = 0; page < file_pages; page++) holds(view + page * PAGE, page, 1);
        need(write(ready[1], "", 1) == 1, "write");
        for (;;) pause();
    }
    need(other > 0 && read(ready[0], page_bytes, 1) == 1, "another process");
    for (size_t page = 0; page < file_pages; page++) {
        holds(view + page * PAGE, page, 1);
        versions[page] = 1;
    }

    char *array = map(array_pages * PAGE);
    for (size_t page = 0; page < array_pages; page++) fill(array + page * PAGE, page, 1);
    pthread_t writer;
    need(pthread_create(&writer, NULL, writes, NULL) == 0, "pthread_create");
    double began = now(), most = atof(argument[5]);
    for (uint64_t version = 2; now() - began < most || version < 4; version++)
        for (size_t page = 0; page < array_pages; page++) {
            holds(array + page * PAGE, page, version - 1);
            fill(array + page * PAGE, page, version);
        }
    long resident = status_kib("VmRSS:"), of_files = status_kib("RssFile:");
    stop = 1;
    pthread_join(writer, NULL);
    printf("%ld KiB resident (%ld of files), %ld pages written\n", resident, of_files, written);
    need(resident > 0 && resident <= limit, "the process is within the budget and a tenth");
    for (size_t page = 0; page < file_pages; page++) holds(view + page * PAGE, page, versions[page]);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    return verdict("views");
}
