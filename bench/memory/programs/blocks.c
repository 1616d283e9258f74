/* Blocks of random sizes in the main heap or in arenas of threads, most of them freed again.
 * Arguments: threads (0 for the main heap), blocks, smallest and largest size, blocks in a row with
 * one fate, one row in so many stays. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long threads, blocks, smallest, largest, row, stays;
static pthread_barrier_t all_have_started;

static void *work(void *number)
{
	char **held = calloc(blocks, sizeof *held);
	unsigned long seed = 88172645463325252UL + (unsigned long)number;
	long i;

	if (threads > 0)
		pthread_barrier_wait(&all_have_started);
	for (i = 0; i < blocks; i++) {
		size_t size;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		size = smallest + seed % (largest - smallest + 1);
		held[i] = malloc(size);
		memset(held[i], 1, size);
	}
	for (i = 0; i < blocks; i++)
		if (i / row % stays != 0)
			free(held[i]);
	return held;
}

int main(int count, char **words)
{
	pthread_t ids[64];
	long i;

	if (count != 7)
		return 2;
	threads = atol(words[1]);
	blocks = atol(words[2]);
	smallest = atol(words[3]);
	largest = atol(words[4]);
	row = atol(words[5]);
	stays = atol(words[6]);
	pthread_barrier_init(&all_have_started, NULL, threads > 0 ? threads : 1);
	if (threads == 0)
		work(NULL);
	for (i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, work, (void *)i);
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
