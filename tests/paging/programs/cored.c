/* Fills memory, some of it with zeros, leaves some untouched, and waits while a debugger examines
 * it. Arguments: MiB, a file that it creates when it is ready (with its process id and the memory's
 * address) and for whose removal it waits. Or: "check", MiB, that file, and a core of the process:
 * each page must be in it. */
#include "check.h"
#include <elf.h>
#include <fcntl.h>

/* Of sixteen pages one holds zeros, and one was never touched. */
static uint64_t version_of(size_t page) { return page % 16 < 14 ? page + 1 : 0; }

static int check(size_t pages, const char *ready, const char *core) {
    char *start;
    int pid, file = open(core, O_RDONLY);
    FILE *told = fopen(ready, "r");
    need(told && fscanf(told, "%d %p", &pid, (void **)&start) == 2, "what it told");
    Elf64_Ehdr head;
    need(pread(file, &head, sizeof head, 0) == sizeof head, "head of the core");
    char *found = calloc(pages, 1), page[PAGE];
    for (int i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        need(pread(file, &part, sizeof part, head.e_phoff + i * sizeof part) == sizeof part, "a segment's entry");
        for (size_t at = 0; part.p_type == PT_LOAD && at < part.p_filesz; at += PAGE) {
            char *address = (char *)part.p_vaddr + at;
            if (address < start || address >= start + pages * PAGE) continue;
            size_t number = (address - start) / PAGE;
            need(pread(file, page, PAGE, part.p_offset + at) == PAGE, "a page of the core");
            found[number] = holds(page, number, version_of(number));
        }
    }
    for (size_t i = 0; i < pages; i++) need(found[i], "a page that is in the core");
    return verdict("core");
}

int main(int count, char **arguments) {
    if (count > 4 && !strcmp(arguments[1], "check")) return check(atol(arguments[2]) * 256, arguments[3], arguments[4]);
    if (count < 3) return 2;
    size_t pages = atol(arguments[1]) * 256;
    char *base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++)
        if (i % 16 != 15) fill(base + i * PAGE, i, version_of(i));
    FILE *ready = fopen(arguments[2], "w");
    fprintf(ready, "%d %p\n", getpid(), (void *)base);
    fclose(ready);
    while (access(arguments[2], F_OK) == 0) usleep(20000);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, version_of(i));
    return verdict("cored");
}
