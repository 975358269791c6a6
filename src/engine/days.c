#include "engine/days.h"

#include "engine/loop.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAY_TEXT_BYTES_MAX = 64 * 1024 };

struct ended_day {
    struct daybook book;
    char date[DAYBOOK_DATE_BYTES + 1];
    bool out; /* on its way to the store */
};

void day_of(const struct config *config, instant at, char ret_date[DAYBOOK_DATE_BYTES + 1])
{
    (void)config;
    struct civil civil = instant_civil(at);
    int year = civil.year < 0 ? 0 : civil.year > 9999 ? 9999 : civil.year;
    int len = snprintf(ret_date, DAYBOOK_DATE_BYTES + 1, "%04d%02d%02d", year, civil.month % 100, civil.day % 100);
    assert(len == DAYBOOK_DATE_BYTES);
}

static void day_saved(const struct op_result *result)
{
    struct dest *dest = result->context;
    assert(result->op->kind == OP_SAVE);
    if (!result->applied && !result->engine->stopping)
        dest->days.unsaved = true;
}

/* With the next minute it is tried again. */
static void ended_saved(const struct op_result *result)
{
    struct dest_days *days = &((struct dest *)result->context)->days;
    assert(result->op->kind == OP_SAVE && days->ended && days->ended->out);
    days->ended->out = false;
    if (!result->applied)
        return;
    free(days->ended);
    days->ended = NULL;
}

/* Without room it is tried again with the next minute. */
static bool save(struct engine *engine, struct dest *dest, const struct daybook *book, const char *date, op_done *done,
                 struct slice space, struct slice name)
{
    struct buffer text = buffer_up_to(DAY_TEXT_BYTES_MAX);
    struct json_writer json = json_writer(&text);
    daybook_write(&json, book, date);
    bool out = buffer_status(&text) == STATUS_OK && outgoing_save(engine, done, dest, space, name, buffer_slice(&text));
    if (out)
        dest_is_out(engine, dest);
    buffer_release(&text);
    return out;
}

static void save_now(struct engine *engine, struct dest *dest)
{
    const struct dest_days *days = &dest->days;
    dest->days.unsaved = !save(engine, dest, &days->today, days->date, day_saved, SPACE_DAY_NOW, slice_from(dest->name));
}

/* False: there is one, and no room for it yet. */
static bool save_ended(struct engine *engine, struct dest *dest)
{
    struct ended_day *ended = dest->days.ended;
    char name[DAYBOOK_DATE_BYTES + 1 + DESTINATION_NAME_BYTES_MAX + 1];
    if (!ended || ended->out)
        return true;
    int len = snprintf(name, sizeof name, "%s/%s", ended->date, dest->name);
    assert(len > 0 && (size_t)len < sizeof name);
    ended->out = save(engine, dest, &ended->book, ended->date, ended_saved, SPACE_DAY, (struct slice){ name, (size_t)len });
    return ended->out;
}

/* A day without a job leaves nothing. False: the one before is not in the store yet, or there is no memory. */
static bool end_day(struct engine *engine, struct dest *dest)
{
    struct dest_days *days = &dest->days;
    assert(days->date[0] != '\0');
    if (days->ended)
        return false;
    if (daybook_ended(&days->today) > 0) {
        days->ended = malloc(sizeof *days->ended);
        if (!days->ended)
            return false;
        *days->ended = (struct ended_day){ .book = days->today };
        memcpy(days->ended->date, days->date, sizeof days->date);
        (void)save_ended(engine, dest);
    }
    days->today = (struct daybook){ 0 };
    return true;
}

void days_minute_over(struct engine *engine, struct dest *dest, instant at, instant now)
{
    struct dest_days *days = &dest->days;
    char date[DAYBOOK_DATE_BYTES + 1], next[DAYBOOK_DATE_BYTES + 1];
    day_of(engine->config, at, date);
    day_of(engine->config, now, next);
    if (days->date[0] == '\0')
        memcpy(days->date, date, sizeof date);
    bool over = strcmp(days->date, next) != 0;
    (void)save_ended(engine, dest);
    if (over && end_day(engine, dest)) {
        memcpy(days->date, next, sizeof next);
        days->unsaved = false; /* of the new one there is nothing */
    } else if (days->unsaved && !days->ended) { /* until then a crash finds the day before where this one will be */
        save_now(engine, dest);
    }
}

bool days_close(struct engine *engine, struct dest *dest)
{
    if (dest->days.date[0] == '\0')
        day_of(engine->config, engine_now(engine), dest->days.date);
    bool saved = save_ended(engine, dest);
    if (saved && dest->days.unsaved)
        save_now(engine, dest);
    return saved && !dest->days.unsaved;
}

void days_restore(struct engine *engine, const struct saved *saved)
{
    struct dest *dest = dest_find(engine, saved->name);
    if (dest)
        daybook_read(saved->value, &dest->days.today, dest->days.date);
}
