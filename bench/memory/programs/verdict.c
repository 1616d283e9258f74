/* Memory whose account is known. The first argument says what is done, the second how many MiB it takes; then it
 * prints a line, and goes on after each line that it reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MIB = 1 << 20, HUGE = 2 << 20 };

struct node {
	struct node *next;
	char rest[504];
};

static struct node *kept;

static void grow(long mib)
{
	for (long i = 0; i < mib * MIB / (long)sizeof *kept; i++) {
		struct node *new = malloc(sizeof *new);

		memset(new, 1, sizeof *new);
		new->next = kept;
		kept = new;
	}
}

/* One byte in each huge page. */
static void sparse(char *memory, long mib)
{
	madvise(memory, mib * MIB, MADV_HUGEPAGE);
	for (long at = 0; at < mib * MIB; at += HUGE)
		memory[at] = 1;
}

int main(int count, char **words)
{
	long mib = count == 3 ? atol(words[2]) : 0;
	char line[16];

	if (count != 3)
		return 2;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (strcmp(words[1], "sparse") == 0) {
		char *memory = mmap(NULL, mib * MIB + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		sparse((char *)(((unsigned long)memory + HUGE - 1) / HUGE * HUGE), mib);
	} else if (strcmp(words[1], "sparse-block") == 0) {
		sparse(aligned_alloc(HUGE, mib * MIB), mib);
	} else if (strcmp(words[1], "half-empty") == 0) {
		/* Every other page of tables that are filled from both ends. */
		char *memory = aligned_alloc(HUGE, mib * MIB);

		madvise(memory, mib * MIB, MADV_HUGEPAGE);
		for (long at = 0; at < mib * MIB; at += 16384)
			memset(memory + at, 1, 4096);
	} else {
		grow(mib);
	}
	do {
		puts("ready");
		fflush(stdout);
		if (strcmp(words[1], "grow") == 0)
			grow(mib);
	} while (fgets(line, sizeof line, stdin));
	return kept && kept->rest[0] == 2;
}
