/*
 * forward_event.h - which events an entry of `events` wants, and what is said of one.
 *
 * Pure: no I/O and no clock.
 */
#ifndef GUESTS_FORWARD_EVENT_H
#define GUESTS_FORWARD_EVENT_H

#include "base/buffer.h"
#include "config/config.h"
#include "store/store.h"

/* An event whose facts have been read. Slices are the event's, or of the memory that it was read with. */
struct forward_event {
    const struct event *event;
    struct slice facts; /* a JSON object: the event's data, or {} */
    struct slice code, error, dead_code, class, rule;
    int64_t retry_count, max_retries, backoff_ms, duration_ms;
    bool has_retries, has_backoff, should_retry;
    struct slice next_at;
};

/* STATUS_NO_MEMORY. Facts that cannot be read are none. */
enum status forward_event_read(const struct event *event, struct arena *memory, struct forward_event *ret_read) MUST_CHECK;
/* Whether a job has ended with it. */
bool forward_event_ends(enum event_type type);
/* Of jobs of a destination to which events go nothing is forwarded: that would have no end. */
bool forward_event_wanted(const struct config *config, const struct event_config *entry, const struct forward_event *read);
/* `job` NULL: it is gone. */
void forward_event_write(struct buffer *out, enum event_format format, const struct forward_event *read,
                         const struct job *job);
/* What the callback of a job says of its end. */
void forward_callback_write(struct buffer *out, const struct forward_event *read, const struct job *job);
struct slice forward_content_type(enum event_format format);

#endif
