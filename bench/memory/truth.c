/* Preloaded by bench/memory/run: what glibc's malloc, or jemalloc, mimalloc or tcmalloc where that is preloaded,
 * too, counts about itself (mimalloc: the heap of the main thread), at the end of a program or when it calls pagewise_truth(). Writes one line to TRUTH,
 * waits for a byte in GO, then writes what is resident before and after malloc_trim(0), or a purge.
 * Only in the program named by TRUTH_OF. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

/* mimalloc.h */
struct area {
	void *blocks;
	size_t reserved, committed, used, block_size;
};
typedef _Bool visitor(const void *, const struct area *, void *, size_t, void *);
extern void *mi_heap_get_default(void) __attribute__((weak));
extern _Bool mi_heap_visit_blocks(const void *, _Bool, visitor *, void *) __attribute__((weak));
extern void mi_collect(_Bool) __attribute__((weak));

/* gperftools/malloc_extension_c.h */
extern int MallocExtension_GetNumericProperty(const char *, size_t *) __attribute__((weak));
extern void MallocExtension_ReleaseFreeMemory(void) __attribute__((weak));

static _Bool add(const void *heap, const struct area *area, void *block, size_t size, void *sum)
{
	(void)heap, (void)block, (void)size;
	*(size_t *)sum += area->used * area->block_size;
	return 1;
}

static size_t counter(const char *name)
{
	size_t value = 0, length = sizeof value;

	mallctl(name, &value, &length, NULL, 0);
	return value;
}

/* The counters as a line; jemalloc has none of free blocks. */
static int count(char *line, size_t room)
{
	struct mallinfo2 now;

	if (mallctl) {
		unsigned long epoch = 1;

		mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
		return snprintf(line, room, "{\"pid\": %d, \"allocator\": \"jemalloc\", \"in_use\": %zu, \"mapped\": 0}\n",
		    (int)getpid(),
		    counter("stats.allocated"));
	}
	if (mi_heap_visit_blocks) {
		size_t sum = 0;

		mi_heap_visit_blocks(mi_heap_get_default(), 0, add, &sum);
		return snprintf(line, room, "{\"pid\": %d, \"allocator\": \"mimalloc\", \"in_use\": %zu, \"mapped\": 0}\n",
		    (int)getpid(), sum);
	}
	if (MallocExtension_GetNumericProperty) {
		size_t bytes = 0;

		MallocExtension_GetNumericProperty("generic.current_allocated_bytes", &bytes);
		return snprintf(line, room, "{\"pid\": %d, \"allocator\": \"tcmalloc\", \"in_use\": %zu, \"mapped\": 0}\n",
		    (int)getpid(), bytes);
	}
	now = mallinfo2();
	return snprintf(line, room, "{\"pid\": %d, \"in_use\": %zu, \"free\": %zu, \"mapped\": %zu}\n",
	    (int)getpid(), now.uordblks, now.fordblks, now.hblkhd);
}

static void trim(void)
{
	if (mallctl)
		mallctl("arena.4096.purge", NULL, NULL, NULL, 0); /* MALLCTL_ARENAS_ALL */
	else if (mi_collect)
		mi_collect(1);
	else if (MallocExtension_ReleaseFreeMemory)
		MallocExtension_ReleaseFreeMemory();
	else
		malloc_trim(0);
}

static long resident_kib(void)
{
	static char text[4096];
	int file = open("/proc/self/smaps_rollup", O_RDONLY);
	ssize_t got = read(file, text, sizeof text - 1);
	char *line;

	close(file);
	text[got > 0 ? got : 0] = 0;
	line = strstr(text, "Rss:");
	return line ? atol(line + 4) : -1;
}

void pagewise_truth(void)
{
	static int done;
	const char *of = getenv("TRUTH_OF");
	char line[256], byte;
	int out, go, length;
	long before;

	if (done || !of || strcmp(of, program_invocation_short_name) != 0)
		return;
	done = 1;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	out = open(getenv("TRUTH"), O_WRONLY | O_APPEND);
	length = count(line, sizeof line);
	if (write(out, line, length) != length)
		_exit(9);
	go = open(getenv("GO"), O_RDONLY);
	if (read(go, &byte, 1) != 1)
		_exit(9);
	before = resident_kib();
	trim();
	length = snprintf(line, sizeof line, "{\"before\": %ld, \"after\": %ld}\n", before, resident_kib());
	if (write(out, line, length) != length)
		_exit(9);
	_exit(0);
}

__attribute__((destructor)) static void at_end(void)
{
	pagewise_truth();
}
