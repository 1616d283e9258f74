/* User-level paging: policies of your own, and hints from the program itself.
 *
 *   cc -O2 -shared -fPIC -I include -o mine.so mine.c
 *   pagewise run --memory 1G --policy ./mine.so -- PROGRAM
 *
 * Two independent parts: the policy interface (for mine.so), and the hints (for PROGRAM).
 */
#ifndef PAGEWISE_PAGER_H
#define PAGEWISE_PAGER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Policies ------------------------------------------------------------------------------ */

/* Raised when a field changes its meaning. New fields come at the end and raise `size` alone. */
#define PAGEWISE_POLICY_ABI 1

/* Pages are numbered; neighbours in memory have neighbouring numbers. */
struct pagewise_span {
    uint32_t first;
    uint32_t count;
};

enum pagewise_fault_kind { PAGEWISE_FIRST_TOUCH = 0, PAGEWISE_REFAULT = 1 };
enum pagewise_arrival { PAGEWISE_DEMAND = 0, PAGEWISE_AHEAD = 1 };
enum pagewise_use { PAGEWISE_TOUCH = 0, PAGEWISE_WRITE = 1 };

struct pagewise_fault {
    uint32_t page;
    struct pagewise_span region; /* all pages of the page's region */
    uint32_t region_id;
    uint32_t thread; /* any number that tells threads apart */
    uint32_t kind;   /* enum pagewise_fault_kind */
    uint32_t write;  /* 1 for a write */
};

/* What a policy exports, under the name pagewise_policy.
 *
 * Everything but `create` runs inside fault handlers, on several threads at once: no malloc, no
 * locks that a thread may sleep in, no stdio, no thread-local storage. victims, soon and watch are
 * called by one thread at a time. Pointers marked "may be NULL" are optional. */
struct pagewise_policy {
    uint32_t abi;  /* PAGEWISE_POLICY_ABI */
    uint32_t size; /* sizeof(struct pagewise_policy) */
    const char *name;
    /* Memory that the policy needs: so much for each page, and so much beside. It is given zeroed
     * to create, is backed by real memory only where it is written, and lives as long as the
     * process. At most 4 bytes per page keep the whole within 8. */
    uint32_t bytes_per_page;
    uint32_t bytes_fixed;
    /* Makes the policy in `memory` for `pages` managed pages of which `budget` may be resident.
     * Returns what the other functions get as `self`, or NULL if it can't be. */
    void *(*create)(void *memory, uint32_t pages, uint32_t budget);
    /* A thread waits for a page. May widen *along, a span around that page, to be read with it,
     * and put up to `room` spans into `ahead`, to be read without anyone waiting; returns how
     * many. May be NULL. */
    uint32_t (*faulted)(void *self, const struct pagewise_fault *fault, struct pagewise_span *along,
                        struct pagewise_span *ahead, uint32_t room);
    /* The page is resident now. */
    void (*mapped)(void *self, uint32_t page, uint32_t arrival);
    /* A use of a resident page was seen (most are not). May be NULL. */
    void (*used)(void *self, uint32_t page, uint32_t use);
    /* The program gave these pages back. */
    void (*removed)(void *self, struct pagewise_span pages);
    /* Chooses up to `room` pages to evict; returns how many. They have left the policy. */
    uint32_t (*victims)(void *self, uint32_t *out, uint32_t room);
    /* A chosen page stays resident after all. */
    void (*kept)(void *self, uint32_t page);
    /* Shows pages that will go soon, to be written before. May be NULL. */
    uint32_t (*soon)(void *self, uint32_t *out, uint32_t room);
    /* Chooses pages whose next use shall be seen. May be NULL. */
    uint32_t (*watch)(void *self, uint32_t *out, uint32_t room);
    /* The program declared a role (enum pagewise_role). May be NULL. */
    void (*hint)(void *self, struct pagewise_span pages, uint32_t role);
    /* This is the child of a fork; only this thread exists. May be NULL. */
    void (*forked)(void *self);
};

/* ---- Hints --------------------------------------------------------------------------------- */

enum pagewise_role {
    PAGEWISE_NORMAL = 0,
    PAGEWISE_HOT = 1,         /* used all the time: evicted last */
    PAGEWISE_STREAM = 2,      /* in order, once: read far ahead, evicted first */
    PAGEWISE_RANDOM = 3,      /* no order: reading ahead is useless */
    PAGEWISE_CSR_OFFSETS = 4, /* offsets of a sparse matrix: hot and in order */
    PAGEWISE_CSR_EDGES = 5    /* its edges: a stream that comes again */
};

/* The pager's own, there only while it is loaded. Call the functions below instead. */
extern int pagewise_hint(const void *start, size_t bytes, uint32_t role) __attribute__((weak));
extern int pagewise_prefetch(const void *start, size_t bytes) __attribute__((weak));
extern int pagewise_pin(const void *start, size_t bytes) __attribute__((weak));
extern int pagewise_unpin(const void *start, size_t bytes) __attribute__((weak));
extern int pagewise_drop(const void *start, size_t bytes) __attribute__((weak));

/* Each returns 0, or an errno value; without the pager they do nothing and return 0. Memory that is
 * not managed is passed over. */

/* Declares the role of a range. */
static inline int pagewise_declare(const void *start, size_t bytes, enum pagewise_role role) {
    return pagewise_hint ? pagewise_hint(start, bytes, (uint32_t)role) : 0;
}
/* Reads a range early, without waiting. */
static inline int pagewise_read_ahead(const void *start, size_t bytes) {
    return pagewise_prefetch ? pagewise_prefetch(start, bytes) : 0;
}
/* Brings a range in and keeps it resident. ENOMEM if it does not fit into the budget. */
static inline int pagewise_keep(const void *start, size_t bytes) {
    return pagewise_pin ? pagewise_pin(start, bytes) : 0;
}
/* Ends that. */
static inline int pagewise_let_go(const void *start, size_t bytes) {
    return pagewise_unpin ? pagewise_unpin(start, bytes) : 0;
}
/* Evicts a range now: it will not be used for long. Its contents stay. */
static inline int pagewise_send_away(const void *start, size_t bytes) {
    return pagewise_drop ? pagewise_drop(start, bytes) : 0;
}

#ifdef __cplusplus
}
#endif
#endif
