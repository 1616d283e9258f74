/* Takes blocks of random sizes and one large one, frees most of them in rows, and prints how many are
 * left, their usable bytes, and those of the largest; then waits for a line. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { BLOCKS = 60000, HELD = 8, LARGE = 40 << 20 };

int main(void)
{
	static char *blocks[BLOCKS];
	unsigned long seed = 12345, bytes = 0, count = 0;
	char line[16], *large;
	int i;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	for (i = 0; i < BLOCKS; i++) {
		size_t size;

		seed = seed * 6364136223846793005UL + 1442695040888963407UL;
		size = 16 + (seed >> 33) % (i % 100 ? 3000 : 200000);
		blocks[i] = malloc(size);
		memset(blocks[i], 1, size);
	}
	for (i = 0; i < BLOCKS; i++)
		if (i / 512 % HELD != 0) {
			free(blocks[i]);
		} else {
			bytes += malloc_usable_size(blocks[i]);
			count++;
		}
	large = malloc(LARGE);
	memset(large, 1, LARGE);
	printf("%lu %lu %zu\n", count + 1, bytes + malloc_usable_size(large), malloc_usable_size(large));
	fflush(stdout);
	return fgets(line, sizeof line, stdin) == NULL;
}
