#include "guests/source_stream.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_MS = 5000,
    ANSWER_MS = 10 * 1000, /* that Redis may take for an answer, besides what it was asked to wait */
    CLAIM_COUNT = 1000,    /* entries taken over at once */
    FIELDS_REJECTED_MAX = 1000,
    NUMBER_BYTES = 24,
};

static struct slice text_of(const struct redisReply *reply)
{
    return (struct slice){ reply && reply->str ? reply->str : "", reply && reply->str ? reply->len : 0 };
}

static bool is_array(const struct redisReply *reply, size_t least)
{
    return reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= least;
}

enum status stream_open(struct stream *stream, struct error *err)
{
    const struct source_config *config = stream->config;
    const struct redis_place place = {
        .url = config->redis, .username = config->username, .password = config->password, .tls = config->tls
    };
    const char *group[] = { "XGROUP", "CREATE", config->stream, config->group, "0", "MKSTREAM", NULL };
    struct redisReply *reply = NULL;
    enum status status = redis_client_open(stream->client, &place, CONNECT_MS, err);
    if (status != STATUS_OK)
        return status;
    status = redis_client_ask(stream->client, group, ANSWER_MS, &reply, err);
    freeReplyObject(reply);
    bool there = status == STATUS_INVALID && slice_has_prefix(slice_from(err->text), SLICE("BUSYGROUP"));
    return there ? STATUS_OK : status;
}

/* ---- entries ---- */

void stream_page_release(struct stream_page *page)
{
    for (size_t i = 0; i < page->count; i++)
        free(page->items[i].fields);
    free(page->items);
    freeReplyObject(page->reply);
    *page = (struct stream_page){ 0 };
}

/* [id, [name, value, ...]], or [id, nil] of one that was deleted. */
static bool entry_take(const struct redisReply *reply, struct stream_entry *ret_entry)
{
    if (!is_array(reply, 2))
        return false;
    const struct redisReply *fields = reply->element[1];
    *ret_entry = (struct stream_entry){ .id = text_of(reply->element[0]), .gone = fields->type == REDIS_REPLY_NIL };
    if (ret_entry->id.len == 0 || ret_entry->id.len >= STREAM_ID_BYTES)
        return false;
    if (ret_entry->gone)
        return true;
    if (!is_array(fields, 0))
        return false;
    ret_entry->fields = calloc(fields->elements + 1, sizeof *ret_entry->fields);
    if (!ret_entry->fields)
        return false;
    for (size_t i = 0; i < fields->elements; i++)
        ret_entry->fields[i] = text_of(fields->element[i]);
    ret_entry->field_count = fields->elements;
    return true;
}

/* [[stream, [entry, ...]]], or nil when nothing came. Takes the reply. */
static enum status page_take(struct redisReply *reply, struct stream_page *ret_page, struct error *err)
{
    *ret_page = (struct stream_page){ .reply = reply };
    if (reply->type == REDIS_REPLY_NIL)
        return STATUS_OK;
    bool good = is_array(reply, 1) && is_array(reply->element[0], 2) && is_array(reply->element[0]->element[1], 0);
    const struct redisReply *entries = good ? reply->element[0]->element[1] : NULL;
    ret_page->items = good ? calloc(entries->elements + 1, sizeof *ret_page->items) : NULL;
    good = good && ret_page->items;
    for (size_t i = 0; good && i < entries->elements; i++) {
        good = entry_take(entries->element[i], &ret_page->items[i]);
        ret_page->count += good;
    }
    if (good)
        return STATUS_OK;
    stream_page_release(ret_page);
    return error_set(err, STATUS_AWAY, "what Redis answers are no entries");
}

enum status stream_read(struct stream *stream, const char *after, int64_t count, int64_t block_ms,
                        struct stream_page *ret_page, struct error *err)
{
    const struct source_config *config = stream->config;
    char number[NUMBER_BYTES], block[NUMBER_BYTES];
    const char *words[16] = { "XREADGROUP", "GROUP", config->group, stream->consumer, "COUNT", number };
    size_t at = 6;
    struct redisReply *reply = NULL;
    snprintf(number, sizeof number, "%" PRId64, count);
    snprintf(block, sizeof block, "%" PRId64, block_ms);
    if (!after && block_ms > 0) {
        words[at++] = "BLOCK";
        words[at++] = block;
    }
    words[at++] = "STREAMS";
    words[at++] = config->stream;
    words[at++] = after ? after : ">";
    words[at] = NULL;
    enum status status = redis_client_ask(stream->client, words, block_ms + ANSWER_MS, &reply, err);
    return status == STATUS_OK ? page_take(reply, ret_page, err) : status;
}

enum status stream_claim(struct stream *stream, int64_t *ret_claimed, int64_t *ret_gone, struct error *err)
{
    const struct source_config *config = stream->config;
    char idle[NUMBER_BYTES], count[NUMBER_BYTES], start[STREAM_ID_BYTES] = "0-0";
    enum status status = STATUS_OK;
    snprintf(idle, sizeof idle, "%" PRId64, config->claim_after_ms);
    snprintf(count, sizeof count, "%d", CLAIM_COUNT);
    *ret_claimed = *ret_gone = 0;
    do {
        const char *words[] = { "XAUTOCLAIM", config->stream, config->group, stream->consumer, idle, start,
                                "COUNT",      count,          "JUSTID",      NULL };
        struct redisReply *reply = NULL;
        status = redis_client_ask(stream->client, words, ANSWER_MS, &reply, err);
        if (status == STATUS_OK && !is_array(reply, 2))
            status = error_set(err, STATUS_AWAY, "what Redis answers to XAUTOCLAIM is no list");
        if (status == STATUS_OK) {
            struct slice next = text_of(reply->element[0]);
            snprintf(start, sizeof start, "%.*s", SLICE_ARG(next));
            *ret_claimed += (int64_t)reply->element[1]->elements;
            *ret_gone += reply->elements > 2 ? (int64_t)reply->element[2]->elements : 0;
        }
        freeReplyObject(reply);
    } while (status == STATUS_OK && strcmp(start, "0-0") != 0 && !redis_client_stopped(stream->client));
    return status;
}

enum status stream_pending(struct stream *stream, const char *after, char ret_id[STREAM_ID_BYTES], struct error *err)
{
    char from[STREAM_ID_BYTES + 1];
    struct redisReply *reply = NULL;
    snprintf(from, sizeof from, "(%s", after);
    const char *words[] = { "XPENDING", stream->config->stream, stream->config->group, from, "+", "1", stream->consumer,
                            NULL };
    enum status status = redis_client_ask(stream->client, words, ANSWER_MS, &reply, err);
    ret_id[0] = '\0';
    if (status == STATUS_OK && is_array(reply, 1) && is_array(reply->element[0], 1)) {
        struct slice id = text_of(reply->element[0]->element[0]);
        if (id.len < STREAM_ID_BYTES)
            snprintf(ret_id, STREAM_ID_BYTES, "%.*s", SLICE_ARG(id));
    }
    freeReplyObject(reply);
    return status;
}

enum status stream_lag(struct stream *stream, int64_t *ret_lag, struct error *err)
{
    const char *words[] = { "XINFO", "GROUPS", stream->config->stream, NULL };
    struct redisReply *reply = NULL;
    enum status status = redis_client_ask(stream->client, words, ANSWER_MS, &reply, err);
    *ret_lag = -1;
    for (size_t i = 0; status == STATUS_OK && is_array(reply, 1) && i < reply->elements; i++) {
        const struct redisReply *group = reply->element[i];
        bool ours = false;
        for (size_t j = 0; is_array(group, 2) && j + 1 < group->elements; j += 2) {
            const struct redisReply *value = group->element[j + 1];
            struct slice name = text_of(group->element[j]);
            if (slice_equal(name, SLICE("name")))
                ours = slice_equal(text_of(value), slice_from(stream->config->group));
            else if (ours && slice_equal(name, SLICE("lag")) && value->type == REDIS_REPLY_INTEGER)
                *ret_lag = value->integer;
        }
    }
    freeReplyObject(reply);
    return status;
}

/* ---- done with ---- */

/* What `count` commands are answered. STATUS_FULL: one of them with an error, which the others need not be. */
static enum status hear_all(struct stream *stream, size_t count, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        struct redisReply *reply = NULL;
        struct error lost;
        enum status heard = redis_client_hear(stream->client, ANSWER_MS, &reply, &lost);
        if (heard != STATUS_OK) {
            *err = lost;
            return heard;
        }
        if (reply->type == REDIS_REPLY_ERROR && status == STATUS_OK)
            status = error_set(err, STATUS_FULL, "%s", reply->str);
        freeReplyObject(reply);
    }
    return status;
}

static bool say_ids(struct stream *stream, const char *word, const char *group, struct slice ids, size_t count)
{
    struct slice words[REDIS_WORDS_MAX];
    size_t at = 0;
    assert(count + 3 <= REDIS_WORDS_MAX);
    words[at++] = slice_from(word);
    words[at++] = slice_from(stream->config->stream);
    if (group)
        words[at++] = slice_from(group);
    for (size_t i = 0; i < count; i++) {
        words[at] = (struct slice){ ids.data, slice_find(ids, '\0') };
        ids = slice_from_offset(ids, words[at++].len + 1);
    }
    return redis_client_say(stream->client, words, at);
}

enum status stream_ack(struct stream *stream, struct slice ids, size_t count, struct error *err)
{
    bool said = say_ids(stream, "XACK", stream->config->group, ids, count) &&
                (!stream->config->delete || say_ids(stream, "XDEL", NULL, ids, count));
    if (!said)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a command");
    return hear_all(stream, stream->config->delete ? 2 : 1, err);
}

static bool say_rejected(struct stream *stream, const struct stream_entry *entry, const struct problem *problem)
{
    struct slice words[FIELDS_REJECTED_MAX + 16];
    size_t at = 0;
    size_t fields = entry->field_count <= FIELDS_REJECTED_MAX ? entry->field_count : 0;
    words[at++] = SLICE("XADD");
    words[at++] = slice_from(stream->rejected);
    words[at++] = SLICE("*");
    words[at++] = SLICE("insist_entry");
    words[at++] = entry->id;
    words[at++] = SLICE("insist_source");
    words[at++] = slice_from(stream->config->name);
    words[at++] = SLICE("insist_type");
    words[at++] = slice_from(problem->type);
    words[at++] = SLICE("insist_detail");
    words[at++] = slice_from(problem->detail);
    for (size_t i = 0; i < fields; i++)
        words[at++] = entry->fields[i];
    return redis_client_say(stream->client, words, at);
}

/* A transaction goes on behind a command that fails: the entry would be acknowledged, and copied nowhere. */
static enum status rejected_check(struct stream *stream, struct error *err)
{
    const char *words[] = { "TYPE", stream->rejected, NULL };
    struct redisReply *reply = NULL;
    enum status status = redis_client_ask(stream->client, words, ANSWER_MS, &reply, err);
    struct slice type = text_of(reply);
    if (status == STATUS_OK && !slice_equal(type, SLICE("stream")) && !slice_equal(type, SLICE("none")))
        status = error_set(err, STATUS_FULL, "%s is a %.*s, and entries can be set aside in a stream only", stream->rejected,
                           SLICE_ARG(type));
    freeReplyObject(reply);
    return status == STATUS_INVALID ? STATUS_OK : status; /* who may not ask may set aside all the same */
}

enum status stream_reject(struct stream *stream, const struct stream_entry *entry, const struct problem *problem,
                          struct error *err)
{
    enum status status = rejected_check(stream, err);
    if (status != STATUS_OK)
        return status;
    static const struct slice multi = { "MULTI", 5 }, exec = { "EXEC", 4 };
    char id[STREAM_ID_BYTES];
    bool whole = entry->field_count > 0 && entry->field_count <= FIELDS_REJECTED_MAX;
    bool deletes = stream->config->delete && whole; /* what was not copied stays in the stream */
    snprintf(id, sizeof id, "%.*s", SLICE_ARG(entry->id));
    struct slice ids = { id, strlen(id) + 1 };
    bool said = redis_client_say(stream->client, &multi, 1) && say_rejected(stream, entry, problem) &&
                say_ids(stream, "XACK", stream->config->group, ids, 1) &&
                (!deletes || say_ids(stream, "XDEL", NULL, ids, 1)) && redis_client_say(stream->client, &exec, 1);
    if (!said)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a command");
    return hear_all(stream, deletes ? 5 : 4, err);
}
