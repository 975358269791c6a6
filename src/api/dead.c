/*
 * The dead letters' export: line by line, whatever their number.
 */
#include "api/api_private.h"
#include "api/job_json.h"
#include "api/pages.h"
#include "base/log.h"

enum { EXPORT_JOBS_AT_ONCE = 16 }; /* with their payloads in memory */

static enum piece export_next(struct call *call, struct buffer *out)
{
    struct job_filter *filter = call->context;
    struct store_reader *reader = call->api->reader;
    struct arena memory;
    struct error error;
    struct job *jobs;
    size_t count;
    int64_t next;
    arena_init(&memory, SIZE_MAX / 4);
    enum status status =
        reader->ops->reader_jobs(reader, filter, EXPORT_JOBS_AT_ONCE, true, &memory, &jobs, &count, &next, &error);
    if (status == STATUS_OK) {
        for (size_t i = 0; i < count; i++)
            dead_entry_write(out, &jobs[i]);
        filter->before_seq = next;
    } else {
        log_event(LOG_ERROR, "export_failed", FIELD_CSTR("error", error.text));
    }
    arena_release(&memory);
    if (status != STATUS_OK)
        return PIECE_FAILED;
    return next > 0 ? PIECE_MORE : PIECE_LAST;
}

void handle_dead_export(struct call *call)
{
    struct job_filter *filter = call_alloc(call, sizeof *filter);
    if (!filter)
        return;
    if (!job_filter_read(call, filter))
        return;
    filter->state = STATE_DEAD;
    call->context = filter;
    call_stream(call, "application/x-ndjson", export_next);
}
