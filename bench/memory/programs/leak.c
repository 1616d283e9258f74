/* Blocks that are lost, beside blocks that are kept. Arguments: blocks, smallest and largest size, one
 * block in so many is lost, threads (0 for none). Lost blocks point to others (at most
 * 7 in a chain) and to blocks that are kept.
 * Prints the lost bytes as malloc_usable_size() gives them, and waits for a line. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
	struct node *next, *other;
};

static long blocks, smallest, largest, part, threads;
static struct node *kept[64];
static size_t lost_bytes[64], lost_blocks[64];
static pthread_barrier_t all_are_done;

static __attribute__((noinline)) void fill(long number)
{
	unsigned long seed = 88172645463325252UL + (unsigned long)number;
	struct node *lost = NULL;
	long i;

	for (i = 0; i < blocks; i++) {
		struct node *new;
		size_t size;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		size = smallest + seed % (largest - smallest + 1);
		new = malloc(size);
		memset(new, 0, size);
		if (part > 0 && i % part == 0) {
			/* In chains: what still points to the last one keeps few others. */
			new->next = lost_blocks[number] % 8 ? lost : NULL;
			new->other = kept[number];
			lost = new;
			lost_bytes[number] += malloc_usable_size(new) + 8;
			lost_blocks[number]++;
		} else {
			new->next = kept[number];
			kept[number] = new;
		}
	}
}

/* Writes over what fill() has left on the stack. */
static __attribute__((noinline)) void forget(void)
{
	volatile char room[16384];
	size_t i;

	for (i = 0; i < sizeof room; i++)
		room[i] = 0;
}

static void *work(void *number)
{
	fill((long)number);
	forget();
	pthread_barrier_wait(&all_are_done);
	pthread_barrier_wait(&all_are_done);
	return NULL;
}

int main(int count, char **words)
{
	pthread_t ids[64];
	size_t bytes = 0, number = 0;
	long i;

	if (count != 6)
		return 2;
	blocks = atol(words[1]);
	smallest = atol(words[2]);
	largest = atol(words[3]);
	part = atol(words[4]);
	threads = atol(words[5]);
	pthread_barrier_init(&all_are_done, NULL, threads + 1);
	for (i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, work, (void *)i);
	if (threads == 0)
		fill(0);
	forget();
	pthread_barrier_wait(&all_are_done);
	for (i = 0; i < 64; i++) {
		bytes += lost_bytes[i];
		number += lost_blocks[i];
	}
	printf("%zu %zu\n", bytes, number);
	fflush(stdout);
	getchar();
	pthread_barrier_wait(&all_are_done);
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
