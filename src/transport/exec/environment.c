#include "transport/exec/environment.h"

#include "base/buffer.h"
#include "transport/http/request.h"

#include <assert.h>

enum { OWN_MAX = 24, VALUE_BYTES_MAX = 100 * 1024 }; /* Linux takes up to 128 KB with the name */

struct making {
    struct environment environment;
    size_t count, room;
    struct error *err;
    enum status status;
};

static void add(struct making *making, const char *name, struct slice value)
{
    if (making->status != STATUS_OK)
        return;
    assert(making->count < making->room);
    if (value.len > VALUE_BYTES_MAX || memchr(value.data ? value.data : "", '\0', value.len)) {
        making->status = error_set(making->err, STATUS_INVALID, "%s cannot be given to a program: it %s", name,
                                   value.len > VALUE_BYTES_MAX ? "is longer than 100 KB" : "has a NUL in it");
        return;
    }
    struct buffer text = buffer_up_to(VALUE_BYTES_MAX + 1024);
    buffer_printf(&text, "%s=", name);
    buffer_append(&text, value);
    char *copy = buffer_status(&text) == STATUS_OK
                     ? arena_copy_text(&making->environment.memory, buffer_slice(&text))
                     : NULL;
    buffer_release(&text);
    if (copy)
        making->environment.items[making->count++] = copy;
    else
        making->status = error_set(making->err, STATUS_NO_MEMORY, "no memory for the environment of a program");
}

static void add_number(struct making *making, const char *name, int64_t number)
{
    struct buffer text = buffer_up_to(32);
    buffer_append_int64(&text, number);
    add(making, name, buffer_slice(&text));
    buffer_release(&text);
}

static void add_instant(struct making *making, const char *name, instant at)
{
    char text[INSTANT_TEXT_BYTES];
    if (at == INSTANT_NONE)
        return;
    instant_format(at, text);
    add(making, name, slice_from(text));
}

static void add_given(struct making *making, const char *name, struct slice value)
{
    if (value.len > 0)
        add(making, name, value);
}

static void add_job(struct making *making, const struct job *job)
{
    struct buffer key = buffer_up_to(VALUE_BYTES_MAX);
    http_key_append(&key, job);
    add(making, "INSIST_JOB_ID", job->id);
    add(making, "INSIST_TENANT", job->tenant);
    add(making, "INSIST_DESTINATION", job->destination);
    add(making, "INSIST_IDEMPOTENCY_KEY", buffer_slice(&key));
    add_number(making, "INSIST_ATTEMPT", job->attempts);
    add_number(making, "INSIST_GENERATION", job->generation);
    add(making, "INSIST_PRIORITY", slice_from(priority_name(job->priority)));
    add_instant(making, "INSIST_CREATED_AT", job->created_at);
    add_instant(making, "INSIST_DEADLINE", job->deadline);
    add_given(making, "INSIST_CONTENT_TYPE", job->content_type);
    add_given(making, "INSIST_CORRELATION_ID", job->correlation_id);
    add_given(making, "INSIST_METADATA", job->metadata);
    add_given(making, "INSIST_HEADERS", job->headers);
    buffer_release(&key);
}

enum status environment_make(const struct send *send, struct environment *ret_environment, struct error *err)
{
    const struct pair_list *own = &send->destination->exec.environment;
    struct making making = { .room = OWN_MAX + own->count, .err = err };
    making.environment.items = arena_alloc_array(&making.environment.memory, making.room + 1, sizeof(char *));
    if (!making.environment.items)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the environment of a program");
    add(&making, "LANG", SLICE("C.UTF-8"));
    bool path = false;
    for (size_t i = 0; i < own->count; i++) {
        add(&making, own->items[i].name, slice_from(own->items[i].value));
        path = path || strcmp(own->items[i].name, "PATH") == 0;
    }
    if (!path)
        add(&making, "PATH", SLICE("/usr/local/bin:/usr/bin:/bin"));
    add_job(&making, send->job);
    if (making.status != STATUS_OK) {
        environment_release(&making.environment);
        return making.status;
    }
    *ret_environment = making.environment;
    return STATUS_OK;
}

void environment_release(struct environment *environment)
{
    arena_release(&environment->memory);
    environment->items = NULL;
}
