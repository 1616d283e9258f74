/* A large heap that stands still: blocks of random sizes, of which every third is freed again.
 * Arguments: blocks, smallest and largest size. Says "ready" and waits until its input ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words)
{
	unsigned long seed = 88172645463325252UL;
	long blocks, smallest, largest, i;
	char **held;

	if (count != 4)
		return 2;
	blocks = atol(words[1]);
	smallest = atol(words[2]);
	largest = atol(words[3]);
	held = calloc(blocks, sizeof *held);
	for (i = 0; i < blocks; i++) {
		size_t size;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		size = smallest + seed % (largest - smallest + 1);
		held[i] = malloc(size);
		memset(held[i], 1, size);
	}
	for (i = 0; i < blocks; i += 3)
		free(held[i]);
	puts("ready");
	fflush(stdout);
	getchar();
	return held[1][0] != 1;
}
