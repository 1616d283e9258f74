/* Holds memory of known kinds in glibc's main heap, in a thread's arena and in blocks with mappings
 * of their own; prints what the allocator counts, then waits for a line, calls malloc_trim and
 * prints what is resident before and after. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { BLOCKS = 60000, HELD = 8 };

static void *fill(void *kept)
{
	char **blocks = malloc(BLOCKS * sizeof *blocks);
	unsigned long seed = 12345;
	int i;

	for (i = 0; i < BLOCKS; i++) {
		size_t size;

		seed = seed * 6364136223846793005UL + 1442695040888963407UL;
		size = 16 + (seed >> 33) % 3000;
		blocks[i] = malloc(size);
		memset(blocks[i], 1, size);
	}
	for (i = 0; i < BLOCKS; i++)
		if (i / 512 % HELD != 0) {
			free(blocks[i]);
			blocks[i] = NULL;
		}
	*(char ***)kept = blocks;
	return NULL;
}

static long resident_kib(void)
{
	char line[256];
	long kib = 0;
	FILE *file = fopen("/proc/self/smaps_rollup", "r");

	while (fgets(line, sizeof line, file))
		if (sscanf(line, "Rss: %ld", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

int main(void)
{
	static char **in_main, **in_thread;
	char *mapped[3], *volatile untouched, line[16];
	struct mallinfo2 now;
	pthread_t thread;
	long before;
	int i;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	/* Only the header is ever written. */
	untouched = malloc(64 << 20);
	for (i = 0; i < 3; i++) {
		mapped[i] = malloc(1 << 20);
		memset(mapped[i], 1, 1 << 20);
	}
	fill(&in_main);
	pthread_create(&thread, NULL, fill, &in_thread);
	pthread_join(thread, NULL);
	before = resident_kib();
	now = mallinfo2();
	printf("%zu %zu %zu %zu\n", now.uordblks, now.fordblks, now.hblkhd, now.keepcost);
	fflush(stdout);
	if (fgets(line, sizeof line, stdin)) {
		before = resident_kib();
		malloc_trim(0);
		printf("%ld %ld\n", before, resident_kib());
	}
	return untouched == NULL;
}
