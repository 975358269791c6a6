/*
 * daybook.h - what became of a destination's jobs in one day, as exact counts: what the documents' KPIs are made of.
 *
 * Fixed in size. How long it took from the first attempt to the delivery is counted in classes, each with its sum, so that
 * a median is the mean of the class that it is in. Pure.
 */
#ifndef CORE_HISTORY_DAYBOOK_H
#define CORE_HISTORY_DAYBOOK_H

#include "base/json.h"

enum {
    DAYBOOK_TRIES = 20,  /* attempts counted by their number; the rest together */
    DAYBOOK_CODES = 20,  /* codes of dead letters; the rest as "other" */
    DAYBOOK_CODE_BYTES = 64,
    DAYBOOK_TIMES = 128, /* classes: four from each power of two of a millisecond to the next */
    DAYBOOK_DATE_BYTES = 8, /* "20250112" */
};

enum daybook_end {
    DAYBOOK_DELIVERED,
    DAYBOOK_PERMANENT,  /* dead: it would never be taken */
    DAYBOOK_EXHAUSTED,  /* dead: all tries were used */
    DAYBOOK_OTHER_DEAD, /* dead by its deadline, in doubt, in part */
    DAYBOOK_ENDS
};

struct daybook_code {
    char code[DAYBOOK_CODE_BYTES];
    int64_t ends[DAYBOOK_ENDS];
};

struct daybook {
    int64_t ends[DAYBOOK_ENDS];    /* jobs that ended so, */
    int64_t retried[DAYBOOK_ENDS]; /* those of them that had more than one attempt */
    int64_t tries;                /* attempts of all that ended */
    int64_t sent[DAYBOOK_TRIES + 1], taken[DAYBOOK_TRIES + 1]; /* attempts by their number, and those that succeeded */
    int64_t times[DAYBOOK_TIMES], time_sums[DAYBOOK_TIMES];    /* of those delivered after a retry */
    struct daybook_code codes[DAYBOOK_CODES];
    size_t code_count;
    int64_t other_codes[DAYBOOK_ENDS];
};

/* An attempt of that number was answered. */
static inline void daybook_attempt(struct daybook *daybook, int64_t number, bool taken)
{
    int64_t i = number < 1 ? 0 : number <= DAYBOOK_TRIES ? number - 1 : DAYBOOK_TRIES;
    daybook->sent[i]++;
    daybook->taken[i] += taken;
}

/* A job has ended after so many attempts, so long after the first; `code` is of its last failure, if it is dead. */
void daybook_job(struct daybook *daybook, enum daybook_end end, int64_t tries, int64_t took_ms, struct slice code);
void daybook_add(struct daybook *sum, const struct daybook *more);

int64_t daybook_ended(const struct daybook *daybook);
int64_t daybook_retried(const struct daybook *daybook);
/* Of jobs delivered after a retry, in ms; negative: there are none. */
double daybook_time_mean(const struct daybook *daybook);
double daybook_time_median(const struct daybook *daybook);

/* As an object with its date, and back. What is missing or makes no sense is 0. */
void daybook_write(struct json_writer *json, const struct daybook *daybook, const char date[DAYBOOK_DATE_BYTES + 1]);
void daybook_read(struct slice text, struct daybook *ret_daybook, char ret_date[DAYBOOK_DATE_BYTES + 1]);

#endif
