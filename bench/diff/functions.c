/* A program of four functions with known shares; DELTA per cent more work goes into alpha.
 * Usage: functions ROUNDS [DELTA] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned long sink;
static unsigned *table;
enum { ENTRIES = 1 << 20 };

__attribute__((noinline)) static void alpha(int work) {
  unsigned long x = 1;
  for (int i = 0; i < work * 1000; i++) x = x * 6364136223846793005UL + 1;
  sink = x;
}
__attribute__((noinline)) static void beta(int work) {
  unsigned x = 1, sum = 0;
  for (int i = 0; i < work * 60; i++) {
    x = x * 1664525u + 1013904223u;
    sum += table[(x >> 8) & (ENTRIES - 1)];
  }
  sink = sum;
}
__attribute__((noinline)) static void gamma_(int work) {
  double x = 1;
  for (int i = 0; i < work * 200; i++) x = x / 1.0000001 + 1e-9;
  sink = (unsigned long)x;
}
__attribute__((noinline)) static void delta(int work) {
  static char from[1 << 16], to[1 << 16];
  for (int i = 0; i < work / 4; i++) {
    memcpy(to, from, sizeof to);
    sink += to[i & 65535];
  }
}

int main(int count, char **words) {
  int rounds = count > 1 ? atoi(words[1]) : 100;
  int more = count > 2 ? atoi(words[2]) : 0;
  table = malloc(ENTRIES * sizeof *table);
  if (!table) return 1;
  memset(table, 1, ENTRIES * sizeof *table);
  for (int round = 0; round < rounds; round++) {
    alpha(1000 + 10 * more);
    beta(1000);
    gamma_(1000);
    delta(1000);
  }
  printf("%lu\n", sink);
  return 0;
}
