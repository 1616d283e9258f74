/* A policy in 60 lines: evict pages at random.
 *
 *   cc -O2 -shared -fPIC -I ../../include -o random.so random.c
 *   pagewise run --memory 1G --policy ./random.so -- PROGRAM
 *
 * Random eviction has no bad case: a loop a little larger than memory costs it a fraction of what
 * any order by age pays. Resident pages stand in an array without order; a word for each page says
 * where it stands, so that it leaves in constant time.
 */
#include <pagewise_pager.h>
#include <stdatomic.h>

struct state {
    atomic_flag busy;   /* guards the array: held for a few instructions */
    uint32_t resident;  /* pages in the array */
    uint64_t random;
    uint32_t *pages;    /* the array */
    uint32_t *place;    /* for each page its place in the array, plus one; 0: not there */
};

static void hold(struct state *state) {
    while (atomic_flag_test_and_set_explicit(&state->busy, memory_order_acquire)) {}
}
static void let_go(struct state *state) { atomic_flag_clear_explicit(&state->busy, memory_order_release); }
static void take_out(struct state *state, uint32_t page) {
    if (!state->place[page]) return;
    uint32_t last = state->pages[--state->resident];
    state->pages[state->place[page] - 1] = last;
    state->place[last] = state->place[page];
    state->place[page] = 0;
}
static void *create(void *memory, uint32_t pages, uint32_t budget __attribute__((unused))) {
    struct state *state = memory;
    state->random = 88172645463325252u;
    state->pages = (uint32_t *)(state + 1);
    state->place = state->pages + pages;
    return state;
}
static void mapped(void *self, uint32_t page, uint32_t arrival __attribute__((unused))) {
    struct state *state = self;
    hold(state);
    if (!state->place[page]) {
        state->pages[state->resident++] = page;
        state->place[page] = state->resident;
    }
    let_go(state);
}
static void removed(void *self, struct pagewise_span span) {
    hold(self);
    for (uint32_t page = span.first; page < span.first + span.count; page++) take_out(self, page);
    let_go(self);
}
static uint32_t victims(void *self, uint32_t *out, uint32_t room) {
    struct state *state = self;
    uint32_t found = 0;
    hold(state);
    for (; found < room && state->resident; found++) {
        state->random = state->random * 6364136223846793005u + 1;
        out[found] = state->pages[(state->random >> 32) % state->resident];
        take_out(state, out[found]);
    }
    let_go(state);
    return found;
}
static void kept(void *self, uint32_t page) { mapped(self, page, 0); }

const struct pagewise_policy pagewise_policy = {
    .abi = PAGEWISE_POLICY_ABI, .size = sizeof(struct pagewise_policy), .name = "random",
    .bytes_per_page = 8, .bytes_fixed = sizeof(struct state), .create = create,
    .mapped = mapped, .removed = removed, .victims = victims, .kept = kept,
};
