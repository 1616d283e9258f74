/* A plugin for QEMU's user-mode emulators that writes every memory access of a program, and how
 * many instructions it executed, as the compact trace that `pagewise huge simulate` reads. The
 * file's layout is described in crates/formats/src/memory_trace.
 *
 *   qemu-x86_64 -plugin memory_trace.so,fd=3,limit=1000000000 ./program
 *
 *   fd=N     where the trace goes (default 1)
 *   limit=N  accesses to write; later ones are counted as dropped (default: all)
 *   pages=1  pages of 4 KiB, not addresses: consecutive accesses to a page become one record
 *   note=T   a note for readers
 *
 * QEMU's plugin header is not packaged by all distributions, so what is used of the interface is
 * declared below, from its documentation (docs/devel/tcg-plugins.rst, versions 7.2 to 9.x).
 *
 * One thread of the program is one vCPU. Each has a buffer of its own, which only its thread
 * touches until it is full; the file is written under a lock. A forked child has the same file and
 * the same buffers: it writes nothing. */
#define _GNU_SOURCE
#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The interface. */
typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef struct qemu_info_t qemu_info_t;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

typedef void (*translated)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*executed)(unsigned vcpu, void *data);
typedef void (*accessed)(unsigned vcpu, qemu_plugin_meminfo_t, uint64_t address, void *data);
typedef void (*ended)(qemu_plugin_id_t, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, executed,
                                          enum qemu_plugin_cb_flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, accessed,
                                      enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw,
                                      void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, ended, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);

#define EXPORTED __attribute__((visibility("default")))

/* Emulators from 8.2 on refuse version 1; those before know no other. */
#ifndef API_VERSION
#define API_VERSION 1
#endif
EXPORTED int qemu_plugin_version = API_VERSION;

enum {
    MOST_THREADS = 4096,
    BLOCK = 1 << 16,           /* accesses in a block */
    STRETCH = 16,              /* blocks that follow each other where not all are written */
    LONGEST = 10,              /* bytes of a varint */
    HEAD = 1 + 5 * LONGEST,    /* kind, length, thread, instructions, count, writes */
    PAGE = 12,                 /* bits of a place within a page */
    SLOTS = 1 << 11,           /* for pages in a block */
    MOST_OF_PAGE = 16,         /* accesses in a record */
};

struct thread {
    uint8_t *at;               /* where the next delta or record goes */
    uint64_t previous;
    uint64_t count;
    uint64_t page;             /* that was accessed last */
    uint64_t run;              /* accesses to it that are not in count yet */
    uint64_t room;             /* and how many fit into the block */
    uint64_t writes;
    uint64_t instructions;
    uint64_t dropped;
    uint64_t blocks;           /* of this stretch */
    uint64_t passed_over;      /* accesses until the next stretch */
    uint64_t pages[SLOTS];
    uint8_t bytes[HEAD + BLOCK * LONGEST];
};

/* The number of no page, since canonical addresses have more equal upper bits. */
#define NO_PAGE (UINT64_MAX >> 1)

static struct thread *threads[MOST_THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int out = 1;
static pid_t owner;
static uint64_t limit = UINT64_MAX;
static uint64_t every = 1;       /* one stretch in so many is written */
static int by_page;
static _Atomic uint64_t taken;   /* accesses in blocks that were begun */
static uint64_t written, dropped;
static int broken;               /* the reader went away */

static inline uint8_t *put(uint8_t *to, uint64_t value) {
    while (value >= 0x80) {
        *to++ = (uint8_t)value | 0x80;
        value >>= 7;
    }
    *to++ = (uint8_t)value;
    return to;
}

/* Under the lock. */
static void write_all(const uint8_t *from, size_t length) {
    while (length > 0 && !broken) {
        ssize_t done = write(out, from, length);
        if (done <= 0) {
            broken = 1;
            break;
        }
        from += done;
        length -= (size_t)done;
    }
}

static void write_block(uint8_t kind, const uint8_t *payload, size_t length) {
    uint8_t head[1 + LONGEST];
    head[0] = kind;
    write_all(head, (size_t)(put(head + 1, length) - head));
    write_all(payload, length);
}

static void start(struct thread *thread) {
    thread->at = thread->bytes + HEAD;
    thread->previous = 0;
    thread->count = 0;
    thread->writes = 0;
    thread->run = 0;
    thread->page = NO_PAGE;
    for (size_t i = 0; by_page && i < SLOTS; i++) thread->pages[i] = NO_PAGE;
}

/* Writes a record for the accesses to the last page, or several. */
static inline void end_run(struct thread *thread) {
    uint64_t page = thread->page, slot = (page ^ page >> 11) % SLOTS, left = thread->run;
    thread->count += left;
    thread->run = 0;
    while (left > 0) {
        uint64_t now = left < MOST_OF_PAGE ? left : MOST_OF_PAGE;
        uint64_t record = slot << 5 | (now - 1) << 1;
        left -= now;
        if (__builtin_expect(thread->pages[slot] == page, 1)) {
            uint16_t bytes = htole16((uint16_t)record);
            memcpy(thread->at, &bytes, sizeof bytes);
            thread->at += sizeof bytes;
        } else {
            uint64_t bytes = htole64(page << 16 | record | 1);
            thread->pages[slot] = page;
            memcpy(thread->at, &bytes, sizeof bytes);
            thread->at += sizeof bytes;
        }
    }
}

static void flush(unsigned number, struct thread *thread) {
    if (by_page) end_run(thread);
    if (thread->count == 0 && thread->instructions == 0) return;
    uint8_t start_of[4 * LONGEST], head[1 + LONGEST];
    uint8_t *end = put(put(put(start_of, number), thread->instructions), thread->count);
    if (by_page) end = put(end, thread->writes);
    size_t front = (size_t)(end - start_of);
    size_t length = (size_t)(thread->at - (thread->bytes + HEAD));
    head[0] = by_page ? 4 : 1;
    size_t head_length = (size_t)(put(head + 1, front + length) - head);
    /* The head goes right before the deltas, so that a block is one write. */
    uint8_t *from = thread->bytes + HEAD - front - head_length;
    memcpy(from, head, head_length);
    memcpy(from + head_length, start_of, front);
    pthread_mutex_lock(&lock);
    if (getpid() == owner) {
        write_all(from, head_length + front + length);
        written += thread->count;
    }
    pthread_mutex_unlock(&lock);
    thread->instructions = 0;
    start(thread);
}

static struct thread *fresh(unsigned number) {
    if (number >= MOST_THREADS) return NULL;
    struct thread *thread = malloc(sizeof *thread);
    if (!thread) return NULL;
    memset(thread, 0, offsetof(struct thread, bytes));
    start(thread);
    threads[number] = thread;
    return thread;
}

static inline struct thread *of(unsigned number) {
    struct thread *thread = number < MOST_THREADS ? threads[number] : NULL;
    return __builtin_expect(thread != NULL, 1) ? thread : fresh(number);
}

/* Whether an access that would start a block is left out: stretches and the limit are looked at once
 * a block. */
static int is_left_out(struct thread *thread) {
    if (every > 1 && thread->passed_over == 0 && thread->blocks++ == STRETCH) {
        thread->blocks = 0;
        thread->passed_over = (every - 1) * STRETCH * BLOCK;
    }
    if (thread->passed_over > 0 || taken >= limit || broken) {
        thread->passed_over -= thread->passed_over > 0;
        thread->dropped++;
        return 1;
    }
    taken += BLOCK;
    return 0;
}

static inline void take(unsigned number, uint64_t address, uint64_t is_write) {
    struct thread *thread = of(number);
    if (__builtin_expect(!thread, 0)) return;
    if (__builtin_expect(thread->count == 0, 0) && is_left_out(thread)) return;
    uint64_t value = address * 2 + is_write;
    int64_t delta = (int64_t)(value - thread->previous);
    thread->previous = value;
    thread->at = put(thread->at, ((uint64_t)delta << 1) ^ (uint64_t)(delta >> 63));
    if (__builtin_expect(++thread->count == BLOCK, 0)) flush(number, thread);
}

static inline void take_page(unsigned number, uint64_t address, uint64_t is_write) {
    struct thread *thread = of(number);
    if (__builtin_expect(!thread, 0)) return;
    /* As signed as the format has it. */
    uint64_t page = (uint64_t)((int64_t)address >> PAGE);
    if (page != thread->page) {
        if (__builtin_expect(thread->run == 0, 0)) {
            if (is_left_out(thread)) return;
        } else {
            end_run(thread);
        }
        thread->page = page;
        thread->room = BLOCK - thread->count;
    }
    thread->writes += is_write;
    if (__builtin_expect(++thread->run == thread->room, 0)) flush(number, thread);
}

static void on_load(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    (void)info, (void)data;
    take(vcpu, address, 0);
}

static void on_store(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    (void)info, (void)data;
    take(vcpu, address, 1);
}

static void on_load_by_page(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address,
                            void *data) {
    (void)info, (void)data;
    take_page(vcpu, address, 0);
}

static void on_store_by_page(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address,
                             void *data) {
    (void)info, (void)data;
    take_page(vcpu, address, 1);
}

static void on_block(unsigned vcpu, void *data) {
    struct thread *thread = of(vcpu);
    if (thread) thread->instructions += (uintptr_t)data;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    accessed load = by_page ? on_load_by_page : on_load;
    accessed store = by_page ? on_store_by_page : on_store;
    size_t count = qemu_plugin_tb_n_insns(tb);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)count);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        qemu_plugin_register_vcpu_mem_cb(insn, load, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_R, NULL);
        qemu_plugin_register_vcpu_mem_cb(insn, store, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W, NULL);
    }
}

static void on_end(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    if (getpid() != owner) return;
    for (unsigned i = 0; i < MOST_THREADS; i++) {
        if (!threads[i]) continue;
        flush(i, threads[i]);
        dropped += threads[i]->dropped;
    }
    uint8_t payload[2 * LONGEST];
    uint8_t *end = put(put(payload, written), dropped);
    pthread_mutex_lock(&lock);
    write_block(127, payload, (size_t)(end - payload));
    pthread_mutex_unlock(&lock);
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                 char **argv) {
    (void)info;
    const char *note = NULL;
    for (int i = 0; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value) {
            fprintf(stderr, "memory_trace: '%s' is no name=value\n", argv[i]);
            return -1;
        }
        *value++ = 0;
        if (!strcmp(argv[i], "fd")) {
            out = atoi(value);
        } else if (!strcmp(argv[i], "limit")) {
            limit = strtoull(value, NULL, 10);
        } else if (!strcmp(argv[i], "every")) {
            every = strtoull(value, NULL, 10);
        } else if (!strcmp(argv[i], "pages")) {
            by_page = atoi(value) != 0;
        } else if (!strcmp(argv[i], "note")) {
            note = value;
        } else {
            fprintf(stderr, "memory_trace: there is no option '%s'\n", argv[i]);
            return -1;
        }
    }
    /* Out of the program's way: it may use or close what it finds at low numbers. */
    int moved = fcntl(out, F_DUPFD_CLOEXEC, 512);
    if (moved < 0) moved = fcntl(out, F_DUPFD_CLOEXEC, 64);
    if (moved >= 0) {
        if (out > 2) close(out);
        out = moved;
    }
    owner = getpid();
    write_all((const uint8_t *)(by_page ? "PWMTRACE\2" : "PWMTRACE\1"), 9);
    if (broken) {
        perror("memory_trace: cannot write the trace");
        return -1;
    }
    if (note) write_block(3, (const uint8_t *)note, strlen(note));
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_end, NULL);
    return 0;
}
