#include "store/filter.h"

#include "core/errors/fingerprint.h"

#include <assert.h>

static bool is_letter_equal(char a, char b)
{
    char x = a >= 'A' && a <= 'Z' ? (char)(a + 'a' - 'A') : a;
    char y = b >= 'A' && b <= 'Z' ? (char)(b + 'a' - 'A') : b;
    return x == y;
}

static bool is_part(struct slice part, struct slice text)
{
    assert(part.len > 0); /* nothing is part of everything */
    for (size_t at = 0; at + part.len <= text.len; at++) {
        size_t i = 0;
        while (i < part.len && is_letter_equal(part.data[i], text.data[at + i]))
            i++;
        if (i == part.len)
            return true;
    }
    return false;
}

static bool has_fingerprint(const struct job *job, struct slice wanted)
{
    assert(wanted.len > 0);
    struct fingerprint print;
    fingerprint_make(SLICE(""), job->last_code, job->last_error, &print);
    return slice_equal(slice_from(print.text), wanted);
}

bool filter_has_rest(const struct job_filter *filter)
{
    return filter->dead_code.len + filter->fingerprint.len + filter->text.len + filter->redrive.len > 0 ||
           filter->since != 0 || filter->until != 0;
}

/* The costly ones last. */
bool filter_means(const struct job_filter *filter, const struct job *job)
{
    assert(job->state != STATE_NONE);
    instant at = job->state == STATE_DEAD ? job->dead_at : job->created_at;
    if ((filter->since != 0 && at < filter->since) || (filter->until != 0 && at > filter->until))
        return false;
    if (filter->dead_code.len > 0 && !slice_equal(filter->dead_code, job->dead_code))
        return false;
    if (filter->redrive.len > 0 &&
        !slice_equal((struct slice){ job->redrive.data, slice_find(job->redrive, ' ') }, filter->redrive))
        return false;
    if (filter->text.len > 0 && !is_part(filter->text, job->last_error) && !is_part(filter->text, job->id))
        return false;
    return filter->fingerprint.len == 0 || has_fingerprint(job, filter->fingerprint);
}

enum status walk_page(struct store_reader *reader, struct job_walk *walk, size_t max, bool with_payload,
                      struct arena *memory, struct job **ret_jobs, size_t *ret_count, struct error *err)
{
    int64_t next;
    assert(!walk->over && (walk->id_count == 0 || walk->id < walk->id_count));
    if (walk->id_count > 0)
        walk->filter.id = walk->ids[walk->id];
    enum status status = reader->ops->reader_jobs(reader, &walk->filter, max, with_payload, memory, ret_jobs, ret_count,
                                                  &next, err);
    if (status != STATUS_OK)
        return status;
    walk->filter.before_seq = next;
    if (next != 0)
        return STATUS_OK;
    walk->id++;
    walk->over = walk->id >= walk->id_count;
    return STATUS_OK;
}
