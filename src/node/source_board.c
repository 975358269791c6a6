#include "node/source_board.h"

#include "base/units.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source_board {
    pthread_mutex_t mutex;
    struct source_figures items[SOURCES_MAX];
    size_t count;
};

const char *source_state_name(enum source_state state)
{
    static const char *const names[SOURCE_STATE_COUNT] = { "starting", "reading", "waiting", "away" };
    assert(state < SOURCE_STATE_COUNT);
    return names[state];
}

struct source_board *source_board_new(void)
{
    struct source_board *board = calloc(1, sizeof *board);
    if (board)
        pthread_mutex_init(&board->mutex, NULL);
    return board;
}

void source_board_free(struct source_board *board)
{
    if (!board)
        return;
    pthread_mutex_destroy(&board->mutex);
    free(board);
}

/* NULL: it is not there. Under the mutex. */
static struct source_figures *find(struct source_board *board, const char *name)
{
    for (size_t i = 0; i < board->count; i++)
        if (strcmp(board->items[i].name, name) == 0)
            return &board->items[i];
    return NULL;
}

void source_board_name(struct source_board *board, const struct config *config, instant now)
{
    struct source_figures items[SOURCES_MAX];
    assert(config->source_count <= SOURCES_MAX);
    pthread_mutex_lock(&board->mutex);
    for (size_t i = 0; i < config->source_count; i++) {
        const struct source_config *source = &config->sources[i];
        const struct source_figures *before = find(board, source->name);
        items[i] = before ? *before
                          : (struct source_figures){ .since = now, .lag = -1, .last_at = INSTANT_NONE };
        snprintf(items[i].name, sizeof items[i].name, "%s", source->name);
        snprintf(items[i].destination, sizeof items[i].destination, "%s", source->destination);
    }
    board->count = config->source_count;
    if (board->count > 0)
        memcpy(board->items, items, board->count * sizeof *items);
    pthread_mutex_unlock(&board->mutex);
}

bool source_board_get(struct source_board *board, const char *name, struct source_figures *ret_figures)
{
    pthread_mutex_lock(&board->mutex);
    const struct source_figures *found = find(board, name);
    if (found)
        *ret_figures = *found;
    pthread_mutex_unlock(&board->mutex);
    return found != NULL;
}

void source_board_set(struct source_board *board, const struct source_figures *figures)
{
    pthread_mutex_lock(&board->mutex);
    struct source_figures *found = find(board, figures->name);
    if (found) {
        struct source_counts counts = found->counts;
        *found = *figures;
        found->counts = counts;
    }
    pthread_mutex_unlock(&board->mutex);
}

void source_board_count(struct source_board *board, const char *name, const struct source_counts *more)
{
    pthread_mutex_lock(&board->mutex);
    struct source_figures *found = find(board, name);
    if (found) {
        found->counts.accepted += more->accepted;
        found->counts.duplicates += more->duplicates;
        found->counts.rejected += more->rejected;
        found->counts.gone += more->gone;
        found->counts.claimed += more->claimed;
    }
    pthread_mutex_unlock(&board->mutex);
}

size_t source_board_copy(struct source_board *board, struct source_figures *ret_figures)
{
    if (!board)
        return 0;
    pthread_mutex_lock(&board->mutex);
    size_t count = board->count;
    if (count > 0)
        memcpy(ret_figures, board->items, count * sizeof *ret_figures);
    pthread_mutex_unlock(&board->mutex);
    return count;
}

/* ---- in words ---- */

static void append_since(const struct source_figures *figures, instant now, struct buffer *out)
{
    char text[UNITS_TEXT_BYTES];
    int64_t ms = now > figures->since ? now - figures->since : 0;
    duration_format(ms - ms % SECOND_MS, text);
    buffer_printf(out, " for %s", text);
}

void source_why(const struct source_figures *figures, instant now, struct buffer *out)
{
    switch (figures->state) {
    case SOURCE_STARTING:
        buffer_append_text(out, "it has not connected yet.");
        break;
    case SOURCE_READING:
        buffer_append_text(out, "it reads; what comes becomes jobs at once.");
        break;
    case SOURCE_WAITING:
        buffer_append_text(out, "it has waited");
        append_since(figures, now, out);
        buffer_printf(out, ": %s. Nothing is acknowledged meanwhile, nothing is lost; it goes on by itself.",
                      figures->reason);
        break;
    default:
        buffer_append_text(out, "it has read nothing");
        append_since(figures, now, out);
        buffer_printf(out, ": %s. It tries again every few seconds; what is in the stream waits there.", figures->reason);
    }
    if (figures->held > 0)
        buffer_printf(out, " %" PRId64 " were read and are not stored yet.", figures->held);
    if (figures->counts.rejected > 0 && figures->rejected_entry[0])
        buffer_printf(out, " %" PRId64 " could not become %s, last %s: %s.", figures->counts.rejected,
                      figures->counts.rejected == 1 ? "a job" : "jobs", figures->rejected_entry, figures->rejected_reason);
    for (int risk = 0; figures->checked && risk < REDIS_RISK_COUNT; risk++)
        if (figures->redis.risks & 1u << risk)
            buffer_printf(out, " Redis: %s.", redis_risk_text((enum redis_risk)risk));
}
