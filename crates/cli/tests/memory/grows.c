/* Holds so many blocks of so many bytes, as many again after each line, and prints how many there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

int main(int count, char **words)
{
	long blocks, size, held = 0;
	char line[16];

	if (count != 3)
		return 2;
	blocks = atol(words[1]);
	size = atol(words[2]);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	do {
		void **last = NULL;

		for (long i = 0; i < blocks; i++) {
			void **block = malloc(size);

			memset(block, 1, size);
			*block = last;
			last = block;
		}
		*(void **)malloc(size) = last;
		held += blocks;
		printf("%ld\n", held);
		fflush(stdout);
	} while (fgets(line, sizeof line, stdin));
	return 0;
}
