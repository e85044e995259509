"""The C source and header of an exported function; c_text.py fills in the names between @."""

from __future__ import annotations

HEADER = """/* {name}: a function that glassgrad captured and exported.
 *
{rows}
 *
 * Results are written to memory of the caller. A call returns 0, or tells what is wrong:
 * 1 no memory, 2 an index out of range, 3 a size out of range; {name}_error() has words for it.
 * Calls of several threads take turns.
 */
#ifndef {guard}
#define {guard}
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{call};

const char *{name}_error(void);
void {name}_seed(uint64_t seed);        /* random numbers start anew */
void {name}_threads(int threads);       /* before the first call; else one per core */
void *{name}_state(const char *name);   /* the memory of a named tensor, or NULL */

#ifdef __cplusplus
}}
#endif
#endif
"""

INCLUDED = """__asm__(".pushsection .data\\n.balign 64\\n{name}_storage_{part}:\\n"
        ".incbin \\"{path}\\"\\n.balign 64\\n.popsection\\n");
extern char {name}_storage_{part}[] __attribute__((visibility("hidden")));
"""

SOURCE = r"""#define _GNU_SOURCE
#include "@name@.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define BOX @box_bytes@

typedef void kernel(int64_t *arguments, char *scratch, int64_t begin, int64_t end);
extern void *worker(void *box);
extern void run(void *table);
@declared@@included@
static char *bases[@bases@];
static int64_t words[@words@];
static int64_t cells[@cells@];
static uint64_t random_cells[@random@], seed, used;
static const struct { int64_t word, base, offset; } places[] = {
    @places@};
static struct {
    char *boxes;
    int64_t threads, count, unused;
    struct { kernel *function; int64_t *arguments; int64_t cores, scratch; }
        launches[@launch_count@ + 1];
} table = {0, 1, @launch_count@, 0, {
    @launches@
}};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int wanted_threads, is_ready;
static char message[256];

static void set(char *box, int at, int64_t value) { memcpy(box + at, &value, 8); }

/* One box for the caller and one per worker, as the pool's code expects them. */
static int start(void) {
    cpu_set_t cores;
    int count = 0, threads, core = 0;
    if (!sched_getaffinity(0, sizeof cores, &cores)) count = CPU_COUNT(&cores);
    threads = wanted_threads > 0 ? wanted_threads : count > 0 ? count : 1;
    if (!(table.boxes = aligned_alloc(BOX, (size_t)BOX * threads))) return 1;
    memset(table.boxes, 0, (size_t)BOX * threads);
    for (int n = 0; n < threads; n++) {
        char *box = table.boxes + n * BOX;
        char *scratch = aligned_alloc(64, (@scratch@ + 127) / 64 * 64);
        if (!scratch) return 1;
        set(box, @scratch_at@, (int64_t)scratch);
        set(box, @caller_at@, (int64_t)table.boxes);
        set(box, @pauses_inside_at@, threads <= count ? @pauses_inside@ : 1);
        set(box, @pauses_at@, threads <= count ? @pauses@ : 1);
        pthread_mutex_init((pthread_mutex_t *)(box + @mutex_at@), NULL);
        pthread_cond_init((pthread_cond_t *)(box + @condition_at@), NULL);
    }
@start@
    for (int n = 1; n < threads; n++, table.threads++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, table.boxes + n * BOX)) break;
        pthread_detach(thread);
        if (threads <= count) { /* left alone, a worker often lands on the core that woke it */
            cpu_set_t own;
            do core = (core + 1) % CPU_SETSIZE; while (!CPU_ISSET(core, &cores));
            CPU_ZERO(&own);
            CPU_SET(core, &own);
            pthread_setaffinity_np(thread, sizeof own, &own);
        }
    }
    is_ready = 1;
    return 0;
}

static void run_launches(void) {
    for (int n = 0; n < @place_count@; n++)
        words[places[n].word] = (int64_t)(bases[places[n].base] + places[n].offset);
    run(&table);
}

__attribute__((unused)) static int refuse(const char *why) {
    snprintf(message, sizeof message, "%s", why);
    return 3;
}

__attribute__((unused)) static int bad_index(
        int cell, int axis, long size, long least, const char *where) {
    long value = cells[cell] < 0 ? cells[cell] + least : cells[cell];
    memset(cells, 0, sizeof cells);
    snprintf(message, sizeof message, "index %ld is out of range for axis %d of size %ld%s",
             value, axis, size, where);
    return 2;
}

static int call(@parameters@) {
@body@
    return 0;
}

PUBLIC int @name@(@parameters@) {
    int failed;
    pthread_mutex_lock(&lock);
    message[0] = 0;
    failed = is_ready ? 0 : start();
    if (failed) snprintf(message, sizeof message, "there is no memory");
    else failed = call(@names@);
    pthread_mutex_unlock(&lock);
    return failed;
}

PUBLIC const char *@name@_error(void) { return message; }

PUBLIC void @name@_seed(uint64_t new_seed) {
    pthread_mutex_lock(&lock);
    seed = new_seed;
    used = 0;
    pthread_mutex_unlock(&lock);
}

PUBLIC void @name@_threads(int threads) { wanted_threads = threads; }

PUBLIC void *@name@_state(const char *name) {
    (void)name;
@state@    return NULL;
}
"""
