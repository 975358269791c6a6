#include "engine/status.h"
#include "support/engine_fixture.h"

#include "support/check.h"

#include <string.h>

struct destination_status status_of(const struct stage *stage)
{
    return engine_destination(stage->engine, SLICE("d"));
}

void add_jobs(struct stage *stage, int count)
{
    for (int i = 0; i < count; i++)
        stage_add(stage, "d", i % 2 == 0 ? "A" : "B", NULL, "x");
}

size_t sends_under_way(const struct stage *stage)
{
    size_t count = 0;
    for (const struct stage_send *send = stage->sends; send; send = send->next)
        count++;
    return count;
}

int64_t delivers(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_DELIVERED;
    return 20;
}

void events_each(struct stage *stage, void (*see)(void *context, const struct event *event), void *context)
{
    int64_t after = 0;
    size_t count;
    do {
        struct arena memory = { 0 };
        struct event *events;
        struct error error;
        assert_int_equal(stage->reader->ops->reader_events(stage->reader, after, STORE_PAGE_MAX, &memory, &events, &count,
                                                           &error),
                         STATUS_OK);
        for (size_t i = 0; i < count; i++) {
            see(context, &events[i]);
            after = events[i].number;
        }
        arena_release(&memory);
    } while (count > 0);
}

struct telling {
    const char *wanted;
    json_t **ret_last;
    int count;
};

static void see_text(void *context, const struct event *event)
{
    struct telling *telling = context;
    telling->count += event->type == EVENT_TYPE_DESTINATION &&
                      memmem(event->data.data, event->data.len, telling->wanted, strlen(telling->wanted));
}

int told_text(struct stage *stage, const char *text)
{
    struct telling telling = { .wanted = text };
    events_each(stage, see_text, &telling);
    return telling.count;
}

static void see_change(void *context, const struct event *event)
{
    struct telling *telling = context;
    if (event->type != EVENT_TYPE_DESTINATION)
        return;
    json_t *data = json_loadb(event->data.data, event->data.len, 0, NULL);
    const char *change = json_string_value(json_object_get(data, "change"));
    assert_non_null(change);
    if (strcmp(change, telling->wanted) == 0) {
        telling->count++;
        if (telling->ret_last) {
            json_decref(*telling->ret_last);
            *telling->ret_last = json_incref(data);
        }
    }
    json_decref(data);
}

int reported(struct stage *stage, const char *change, json_t **ret_last)
{
    struct telling telling = { .wanted = change, .ret_last = ret_last };
    events_each(stage, see_change, &telling);
    return telling.count;
}
