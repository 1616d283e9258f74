/* Pages of mapped files that stay resident beside memory that is managed: they have to make room, and
 * keep what was written to them. Arguments: MiB of the file, MiB of managed memory, MiB of the budget,
 * a folder. A file is mapped privately and read, one page in 64 of it is changed (and stays the
 * process's own); another mapping of a second file is shared and written. Then the managed memory is
 * used, again and again, with a few pages of the file. In the end the process must be within the
 * budget and a tenth, and every page must hold what it should.
 */
#include "check.h"
#include <fcntl.h>
#include <time.h>

static size_t file_pages, array_pages;

static int make(const char *folder, const char *name, uint64_t version) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    need(file >= 0, path);
    static char page[PAGE];
    for (size_t at = 0; at < file_pages; at++) {
        fill(page, at, version);
        need(write(file, page, PAGE) == PAGE, "write");
    }
    need(fsync(file) == 0, "fsync");
    return file;
}

int main(int arguments, char **argument) {
    if (arguments < 5) return 2;
    file_pages = (size_t)atoi(argument[1]) * 256;
    array_pages = (size_t)atoi(argument[2]) * 256;
    long limit = atol(argument[3]) * 1126;
    int private_file = make(argument[4], "file-private", 3), shared_file = make(argument[4], "file-shared", 4);
    char *private = mmap(NULL, file_pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, private_file, 0);
    char *shared = mmap(NULL, file_pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, shared_file, 0);
    need(private != MAP_FAILED && shared != MAP_FAILED, "mmap");
    for (size_t page = 0; page < file_pages; page++) holds(private + page * PAGE, page, 3);
    for (size_t page = 0; page < file_pages; page += 64) fill(private + page * PAGE, page, 5);
    for (size_t page = 0; page < file_pages; page++) holds(shared + page * PAGE, page, 4);
    for (size_t page = 0; page < file_pages; page += 3) fill(shared + page * PAGE, page, 6);
    need(msync(shared, file_pages * PAGE, MS_SYNC) == 0, "msync");

    char *array = map(array_pages * PAGE);
    for (size_t page = 0; page < array_pages; page++) fill(array + page * PAGE, page, 1);
    long least = 1L << 40;
    double began = now();
    for (uint64_t version = 2; now() - began < 4 || version < 4; version++)
        for (size_t page = 0; page < array_pages; page++) {
            holds(array + page * PAGE, page, version - 1);
            fill(array + page * PAGE, page, version);
            if (page % 512 == 0) {
                size_t hot = page / 512 % 16; /* in use all the time */
                holds(private + hot * PAGE, hot, hot % 64 ? 3 : 5);
                long resident = status_kib("VmRSS:");
                if (resident < least) least = resident;
            }
        }
    long resident = status_kib("VmRSS:"), of_files = status_kib("RssFile:");
    printf("%ld KiB resident (%ld of files), at least %ld\n", resident, of_files, least);
    need(resident > 0 && resident <= limit, "the process is within the budget and a tenth");

    /* A page written after its file went away from memory, and pages that only this process has. */
    for (size_t page = 0; page < file_pages; page++) holds(private + page * PAGE, page, page % 64 ? 3 : 5);
    for (size_t page = 0; page < file_pages; page++) holds(shared + page * PAGE, page, page % 3 ? 4 : 6);
    static char bytes[PAGE];
    for (size_t page = 0; page < file_pages; page++) {
        need(pread(shared_file, bytes, PAGE, page * PAGE) == PAGE, "pread");
        holds(bytes, page, page % 3 ? 4 : 6);
        need(pread(private_file, bytes, PAGE, page * PAGE) == PAGE, "pread");
        holds(bytes, page, 3);
    }
    return verdict("resident");
}
