#include "api/observe/dead_ages.h"

#include <stdlib.h>
#include <string.h>

enum { DEAD_LETTERS_A_LOOK = STORE_PAGE_MAX / DEAD_AGES_LOOKS };

const struct histogram_bounds measured_age = {
    13, { MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, 12 * HOUR_MS, DAY_MS, 2 * DAY_MS, 3 * DAY_MS,
          5 * DAY_MS, 7 * DAY_MS, 14 * DAY_MS, 30 * (int64_t)DAY_MS }
};

static void map_empty(struct map *map)
{
    uint64_t seed = map->seed;
    size_t cursor = 0;
    for (struct map_entry *entry; (entry = map_next(map, &cursor));) {
        free(entry->value);
        free((char *)(uintptr_t)entry->key.data);
    }
    map_release(map);
    map_init(map, seed);
}

enum status dead_ages_new(uint64_t seed, struct dead_ages **ret_ages, struct error *err)
{
    struct dead_ages *ages = calloc(1, sizeof *ages);
    if (!ages)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the ages of dead letters");
    map_init(&ages->known, seed);
    map_init(&ages->counting, seed);
    *ret_ages = ages;
    return STATUS_OK;
}

void dead_ages_none(struct dead_ages *ages)
{
    map_empty(&ages->known);
    map_empty(&ages->counting);
    ages->before_seq = 0;
}

void dead_ages_free(struct dead_ages *ages)
{
    if (ages)
        dead_ages_none(ages);
    free(ages);
}

static enum status note(struct map *map, const struct job *job, instant now)
{
    int64_t age = job->dead_at != INSTANT_NONE && now > job->dead_at ? now - job->dead_at : 0;
    struct histogram *histogram = map_get(map, job->destination);
    if (!histogram) {
        char *name = strndup(job->destination.data, job->destination.len);
        histogram = calloc(1, sizeof *histogram);
        if (!name || !histogram || map_put(map, slice_from(name), histogram) != STATUS_OK) {
            free(name);
            free(histogram);
            return STATUS_NO_MEMORY;
        }
    }
    histogram_note(histogram, &measured_age, age);
    return STATUS_OK;
}

enum status dead_ages_look(struct dead_ages *ages, struct store_reader *reader, instant now, struct error *err)
{
    const struct job_filter filter = { .state = STATE_DEAD, .before_seq = ages->before_seq, .brief = true };
    struct arena memory = { 0 };
    struct job *jobs;
    size_t count;
    int64_t next = 0;
    if (ages->before_seq == 0)
        map_empty(&ages->counting);
    enum status status =
        reader->ops->reader_jobs(reader, &filter, DEAD_LETTERS_A_LOOK, false, &memory, &jobs, &count, &next, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        if (note(&ages->counting, &jobs[i], now) != STATUS_OK)
            status = error_set(err, STATUS_NO_MEMORY, "no memory for the ages of dead letters");
    arena_release(&memory);
    ages->before_seq = status == STATUS_OK ? next : 0;
    if (status != STATUS_OK || next != 0)
        return status;
    struct map whole = ages->counting;
    ages->counting = ages->known;
    ages->known = whole;
    return STATUS_OK;
}

const struct histogram *dead_ages_of(const struct dead_ages *ages, struct slice destination)
{
    return map_get(&ages->known, destination);
}
