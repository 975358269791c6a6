#include "daemon/neighbours.h"

#include <stdio.h>
#include <string.h>

static void text_take(struct buffer *text, char ret_text[NODES_NEWS_BYTES])
{
    snprintf(ret_text, NODES_NEWS_BYTES, "%.*s", (int)text->len, text->len > 0 ? text->data : "");
    buffer_release(text);
}

/* ---- who is gone ---- */

/* Whether a later one is of the same node: what became of an earlier one says nothing any more. */
static bool is_last(const struct session *sessions, size_t count, size_t index)
{
    for (size_t i = index + 1; i < count; i++)
        if (slice_equal(sessions[i].node, sessions[index].node))
            return false;
    return true;
}

static void look_for_gone(const struct session *sessions, size_t count, instant now, struct nodes_news *news)
{
    struct buffer text = buffer_up_to(NODES_NEWS_BYTES - 1);
    for (size_t i = 0; i < count; i++) {
        char at[INSTANT_TEXT_BYTES];
        bool fenced = sessions[i].ended && sessions[i].fenced_at != INSTANT_NONE;
        if (!fenced || now - sessions[i].fenced_at > NEIGHBOURS_GONE_MS || !is_last(sessions, count, i))
            continue;
        instant_format(sessions[i].fenced_at, at);
        buffer_printf(&text, "%s%.*s since %s", text.len > 0 ? ", " : "", SLICE_ARG(sessions[i].node), at);
    }
    text_take(&text, news->gone);
}

/* ---- whose configurations differ ---- */

static bool counts(const struct session *session)
{
    return !session->ended && session->config != 0;
}

static bool is_first_of_its_kind(const struct session *sessions, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (counts(&sessions[i]) && sessions[i].config == sessions[index].config)
            return false;
    return true;
}

/* "a, c; b": the first two have the same. */
static size_t kinds_write(const struct session *sessions, size_t count, struct buffer *text)
{
    size_t kinds = 0;
    for (size_t i = 0; i < count; i++) {
        if (!counts(&sessions[i]) || !is_first_of_its_kind(sessions, i))
            continue;
        buffer_append_text(text, kinds++ > 0 ? "; " : "");
        for (size_t k = i; k < count; k++)
            if (counts(&sessions[k]) && sessions[k].config == sessions[i].config)
                buffer_printf(text, "%s%.*s", k > i ? ", " : "", SLICE_ARG(sessions[k].node));
    }
    return kinds;
}

static void look_for_differences(struct neighbours *neighbours, const struct session *sessions, size_t count, int64_t steady,
                                 struct nodes_news *news)
{
    struct buffer text = buffer_up_to(NODES_NEWS_BYTES - 1);
    bool differ = kinds_write(sessions, count, &text) > 1;
    text_take(&text, news->differ);
    if (differ && !neighbours->differ)
        neighbours->differ_since = steady;
    neighbours->differ = differ;
    news->differ_ms = differ ? steady - neighbours->differ_since + 1 : 0;
    if (!differ)
        news->differ[0] = '\0';
}

void neighbours_look(struct neighbours *neighbours, const struct session *sessions, size_t count, int64_t steady,
                     instant now, struct nodes_news *ret_news)
{
    look_for_gone(sessions, count, now, ret_news);
    look_for_differences(neighbours, sessions, count, steady, ret_news);
}

/* ---- the ends of chains ---- */

/* *ret_there: the event of that number is there. */
static enum status event_at(struct store_reader *reader, const struct trail_head *head, bool *ret_there, bool *ret_same,
                            instant *ret_at, struct error *err)
{
    struct arena memory = { 0 };
    struct event *events;
    size_t count = 0;
    enum status status = reader->ops->reader_events(reader, head->number - 1, 1, &memory, &events, &count, err);
    *ret_there = status == STATUS_OK && count > 0 && events[0].number == head->number;
    *ret_same = *ret_there && memcmp(events[0].hash, head->hash, EVENT_HASH_BYTES) == 0;
    *ret_at = *ret_there ? events[0].at : INSTANT_NONE;
    arena_release(&memory);
    return status;
}

static enum status look_for_seen(const struct neighbours *neighbours, struct store_reader *reader, int64_t retention_ms,
                                 instant now, struct nodes_news *news, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < neighbours->seen_count && status == STATUS_OK && !news->missing[0]; i++) {
        const struct trail_head *head = &neighbours->seen[i].head;
        bool there, same;
        instant at;
        status = event_at(reader, head, &there, &same, &at, err);
        bool trimmed = !there && retention_ms > 0 && now - neighbours->seen[i].at > retention_ms - NEIGHBOURS_HEADS_MS;
        if (status == STATUS_OK && !same && !trimmed)
            snprintf(news->missing, sizeof news->missing, "event %s %s", event_id(head->number).text,
                     there ? "was written anew" : "is not there any more");
    }
    return status;
}

/* A chain whose newest event was trimmed has nothing to be remembered. */
static enum status remember(struct neighbours *neighbours, struct store_reader *reader, const struct trail_head *heads,
                            size_t count, struct error *err)
{
    enum status status = STATUS_OK;
    neighbours->seen_count = 0;
    for (size_t i = 0; i < count && i < TRAIL_CHAINS_MAX && status == STATUS_OK; i++) {
        bool there, same;
        instant at;
        if (heads[i].number == heads[i].number >> EVENT_CHAIN_SHIFT << EVENT_CHAIN_SHIFT)
            continue;
        status = event_at(reader, &heads[i], &there, &same, &at, err);
        if (!same)
            continue;
        neighbours->seen[neighbours->seen_count].head = heads[i];
        neighbours->seen[neighbours->seen_count++].at = at;
    }
    return status;
}

enum status neighbours_heads(struct neighbours *neighbours, struct store_reader *reader, int64_t retention_ms,
                             int64_t steady, instant now, struct nodes_news *ret_news, struct error *err)
{
    struct arena memory = { 0 };
    struct trail_head *heads;
    size_t count = 0;
    ret_news->missing[0] = '\0';
    if (!reader->ops->reader_heads || (neighbours->looked && steady - neighbours->looked_at < NEIGHBOURS_HEADS_MS))
        return STATUS_OK;
    neighbours->looked = true;
    neighbours->looked_at = steady;
    enum status status = look_for_seen(neighbours, reader, retention_ms, now, ret_news, err);
    if (status == STATUS_OK)
        status = reader->ops->reader_heads(reader, &memory, &heads, &count, err);
    if (status == STATUS_OK)
        status = remember(neighbours, reader, heads, count, err);
    arena_release(&memory);
    return status;
}
