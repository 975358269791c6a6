#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

enum { NS_PER_MS = 1000000 };
static const int64_t STEP_NS = (int64_t)SECOND_MS * NS_PER_MS; /* less is a correction */
static const int64_t UNKNOWN = INT64_MIN;

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

static int64_t real_wall_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

int64_t clock_ticks_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t clock_ticks_ms(void)
{
    return clock_ticks_ns() / NS_PER_MS;
}

int64_t clock_boot_ms(void)
{
    return read_ns(CLOCK_BOOTTIME) / NS_PER_MS;
}

static const struct clock_source real = { real_wall_ns, clock_ticks_ns };
static _Atomic(const struct clock_source *) source = &real;
static _Atomic int64_t offset_ns = INT64_MIN; /* of the wall to the steady clock, the largest that was seen */
static _Atomic int64_t step_ns, step_at_ns;   /* of the last step forward, and when by the steady clock */

void clock_use(const struct clock_source *given)
{
    atomic_store(&source, given ? given : &real);
    atomic_store(&offset_ns, UNKNOWN);
    atomic_store(&step_ns, 0);
}

/* The wall is read first: who is stopped between the two gets an offset that is too small, which does no harm. */
static int64_t now_ns(int64_t *ret_wall_ns)
{
    const struct clock_source *clock = atomic_load(&source);
    int64_t wall = clock->wall_ns();
    int64_t steady = clock->steady_ns();
    int64_t offset = wall - steady, known = atomic_load(&offset_ns);
    while (offset > known && !atomic_compare_exchange_weak(&offset_ns, &known, offset))
        continue;
    if (known != UNKNOWN && offset > known && offset - known >= STEP_NS) {
        atomic_store(&step_at_ns, steady);
        atomic_store(&step_ns, offset - known);
    }
    *ret_wall_ns = wall;
    return steady + (offset > known ? offset : known);
}

instant clock_now(void)
{
    int64_t wall;
    return now_ns(&wall) / NS_PER_MS;
}

int64_t clock_ahead_ms(void)
{
    int64_t wall;
    int64_t now = now_ns(&wall);
    return now - wall >= STEP_NS ? (now - wall) / NS_PER_MS : 0;
}

int64_t clock_stepped_ms(int64_t within_ms)
{
    int64_t by = atomic_load(&step_ns);
    bool lately = by > 0 && atomic_load(&source)->steady_ns() - atomic_load(&step_at_ns) <= within_ms * NS_PER_MS;
    return lately ? by / NS_PER_MS : 0;
}

void clock_not_before(instant at)
{
    int64_t wall, now = now_ns(&wall), late = at * NS_PER_MS - now;
    if (late > 0)
        atomic_fetch_add(&offset_ns, late);
}
