/* Preloaded by bench/memory/real: a thread that says, whenever it is asked, what glibc's malloc (or jemalloc, where the
 * program has its mallctl) counts about itself, and what malloc_trim(0) or a purge returns. For each process of a tree:
 * COUNTS is a folder; a byte written to the pipe COUNTS/PID ('c' count, 't' trim) gets a line in COUNTS/PID.out. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

static size_t counter(const char *name)
{
	size_t value = 0, length = sizeof value;

	mallctl(name, &value, &length, NULL, 0);
	return value;
}

static long resident_kib(void)
{
	char text[2048], *line;
	int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);

	if (file >= 0)
		close(file);
	text[got > 0 ? got : 0] = 0;
	line = strstr(text, "Rss:");
	return line ? atol(line + 4) : -1;
}

static int count(char *line, size_t room)
{
	struct mallinfo2 now;

	if (mallctl) {
		unsigned long epoch = 1;

		mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
		return snprintf(line, room, "{\"allocator\": \"jemalloc\", \"in_use\": %zu}\n", counter("stats.allocated"));
	}
	now = mallinfo2();
	return snprintf(line, room, "{\"allocator\": \"glibc\", \"in_use\": %zu, \"free\": %zu}\n",
	    now.uordblks + now.hblkhd, now.fordblks);
}

static int trim(char *line, size_t room)
{
	long before = resident_kib();

	if (mallctl)
		mallctl("arena.4096.purge", NULL, NULL, NULL, 0); /* MALLCTL_ARENAS_ALL */
	else
		malloc_trim(0);
	return snprintf(line, room, "{\"before\": %ld, \"after\": %ld}\n", before, resident_kib());
}

static void *answer(void *unused)
{
	char pipe[256], out[272], part[272], line[256], byte;
	int in, file, length;

	(void)unused;
	snprintf(pipe, sizeof pipe, "%s/%d", getenv("COUNTS"), (int)getpid());
	snprintf(out, sizeof out, "%s.out", pipe);
	snprintf(part, sizeof part, "%s.part", pipe);
	mkfifo(pipe, 0666);
	in = open(pipe, O_RDWR | O_CLOEXEC);
	while (in >= 0 && read(in, &byte, 1) == 1) {
		length = byte == 't' ? trim(line, sizeof line) : count(line, sizeof line);
		file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (file < 0 || write(file, line, length) != length)
			break;
		close(file);
		rename(part, out);
	}
	return NULL;
}

static void start(void)
{
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, answer, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

__attribute__((constructor)) static void begin(void)
{
	if (!getenv("COUNTS"))
		return;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	pthread_atfork(NULL, NULL, start);
	start();
}
