#include "cli/talk/bar.h"

#include "base/clock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { CELLS = 24, TERMINAL_EVERY_MS = 100, LINE_EVERY_MS = 5000 };

struct bar bar_begin(bool lines)
{
    return (struct bar){ .terminal = isatty(STDERR_FILENO) == 1, .lines = lines };
}

static bool is_due(const struct bar *bar, bool complete)
{
    int64_t every_ms = bar->terminal ? TERMINAL_EVERY_MS : LINE_EVERY_MS;
    return complete || bar->shown_ns == 0 || clock_ticks_ns() - bar->shown_ns >= every_ms * 1000000;
}

void bar_show(struct bar *bar, int64_t done, int64_t all, const char *text)
{
    assert(done >= 0 && all >= 0);
    char cells[CELLS + 1], of[32] = "";
    int64_t filled = all == 0 ? 0 : done < all ? done * CELLS / all : CELLS;
    if ((!bar->terminal && !bar->lines) || !is_due(bar, all > 0 && done >= all))
        return;
    bar->shown_ns = clock_ticks_ns();
    if (all > 0)
        snprintf(of, sizeof of, " of %" PRId64, all);
    if (!bar->terminal) {
        fprintf(stderr, "%" PRId64 "%s %s\n", done, of, text);
        return;
    }
    for (int64_t i = 0; i < CELLS; i++)
        cells[i] = i < filled ? '#' : '.';
    cells[CELLS] = '\0';
    if (all > 0)
        fprintf(stderr, "\r\033[K[%s] %" PRId64 "%s %s", cells, done, of, text);
    else
        fprintf(stderr, "\r\033[K%" PRId64 " %s", done, text);
    fflush(stderr);
}

void bar_end(struct bar *bar)
{
    if (bar->terminal && bar->shown_ns != 0)
        fputs("\r\033[K", stderr);
    bar->shown_ns = 0;
}
