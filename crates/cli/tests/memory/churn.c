/* Threads that free and allocate all the time. Counts the bytes of their blocks, with headers, in a file
 * that is mapped by whoever reads it: one number for each thread. Arguments: the file, threads, blocks of
 * each, largest size. Prints a line once all blocks are there. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LINE = 64, HEADER = 8 };

static long threads, slots, largest;
static char *counts;
static pthread_barrier_t filled;

static long bytes(void *block)
{
	return block ? (long)malloc_usable_size(block) + HEADER : 0;
}

static void *work(void *number)
{
	volatile long *count = (long *)(counts + LINE * (long)number);
	unsigned long seed = 88172645463325252UL + (unsigned long)number;
	char **held = calloc(slots, sizeof *held);
	long i, at;

	*count = bytes(held);
	for (i = 0;; i++) {
		if (i == slots)
			pthread_barrier_wait(&filled);
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		at = i < slots ? i : (long)(seed >> 20) % slots;
		*count -= bytes(held[at]);
		free(held[at]);
		held[at] = malloc(16 + seed % largest);
		*count += bytes(held[at]);
		memset(held[at], (int)seed, malloc_usable_size(held[at]));
	}
	return NULL;
}

int main(int count, char **words)
{
	pthread_t thread;
	int file;
	long i;

	if (count != 5)
		return 2;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	threads = atol(words[2]);
	slots = atol(words[3]);
	largest = atol(words[4]);
	file = open(words[1], O_RDWR | O_CREAT, 0600);
	if (file < 0 || ftruncate(file, LINE * threads) != 0)
		return 3;
	counts = mmap(NULL, LINE * threads, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	pthread_barrier_init(&filled, NULL, threads + 1);
	for (i = 0; i < threads; i++)
		pthread_create(&thread, NULL, work, (void *)i);
	pthread_barrier_wait(&filled);
	puts("filled");
	fflush(stdout);
	pause();
	return 0;
}
