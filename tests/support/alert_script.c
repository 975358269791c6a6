#include "support/alert_script.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void note_message(struct script *script, const struct send *send)
{
    json_t *root = json_loadb(send->job->payload.data, send->job->payload.len, 0, NULL);
    const json_t *data = json_object_get(root, "data");
    const char *destination = json_string_value(json_object_get(data, "destination"));
    const char *tenant = json_string_value(json_object_get(data, "tenant"));
    assert_non_null(data);
    assert_true(script->count < MESSAGES_MAX);
    snprintf(script->messages[script->count++], sizeof *script->messages, "%s %s %s %s", json_string_value(json_object_get(root, "type")) + 6,
             json_string_value(json_object_get(data, "alert")), destination ? destination : "-", tenant ? tenant : "-");
    json_decref(root);
}

int64_t alert_answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct script *script = stage->context;
    bool reported = slice_equal(send->job->tenant, NOTIFY_TENANT);
    const char *fails_with = reported ? script->webhook_fails ? "http:503" : NULL : script->fails_with;
    answer->outcome = fails_with ? OUTCOME_NONE : OUTCOME_DELIVERED;
    if (fails_with) {
        answer->code = slice_from(fails_with);
        answer->text = SLICE("it failed");
    }
    if (reported && !fails_with)
        note_message(script, send);
    return 5;
}

void alert_messages_check(const struct script *script, const char *const *expected, size_t count, const char *what)
{
    for (size_t i = 0; i < script->count || i < count; i++)
        check(i < script->count && i < count && strcmp(script->messages[i], expected[i]) == 0, "%s: message %zu is \"%s\", expected \"%s\"",
              what, i, i < script->count ? script->messages[i] : "none", i < count ? expected[i] : "none");
}

size_t alert_notes(struct stage *stage, struct slice space, struct slice *ret_first, struct arena *memory)
{
    struct saved *saved;
    struct error error;
    size_t count;
    *memory = (struct arena){ 0 };
    assert_int_equal(stage->reader->ops->reader_saved_list(stage->reader, space, SLICE(""), STORE_PAGE_MAX, memory, &saved, &count, &error),
                     STATUS_OK);
    if (count > 0 && ret_first)
        *ret_first = saved[0].value;
    return count;
}

size_t alert_state(struct stage *stage)
{
    struct arena memory;
    size_t count = alert_notes(stage, SPACE_ALERT, NULL, &memory);
    arena_release(&memory);
    return count;
}

size_t alert_cleared(struct stage *stage)
{
    struct arena memory;
    size_t count = alert_notes(stage, SPACE_ALERT_CLEARED, NULL, &memory);
    arena_release(&memory);
    return count;
}

size_t alert_events(struct stage *stage, const char *note)
{
    struct arena memory = { 0 };
    struct event *list;
    struct error error;
    size_t count, found = 0;
    int64_t after = 0;
    do {
        assert_int_equal(stage->reader->ops->reader_events(stage->reader, after, STORE_PAGE_MAX, &memory, &list, &count, &error), STATUS_OK);
        for (size_t i = 0; i < count; i++) {
            found += list[i].type == EVENT_TYPE_NOTE && slice_search(list[i].data, slice_from(note)) < list[i].data.len;
            after = list[i].number;
        }
        arena_release(&memory);
    } while (count == STORE_PAGE_MAX);
    return found;
}

void alert_jobs_add(struct stage *stage, const char *destination, const char *tenant, int count)
{
    for (int i = 0; i < count; i++)
        stage_add(stage, destination, tenant, NULL, "x");
}

void status_ok(enum status status)
{
    assert_int_equal(status, STATUS_OK);
}
