#include "transport/broker/redis.h"

#include "transport/broker/broker.h"
#include "transport/http/request.h"

#include <hiredis/hiredis.h>

enum {
    ARGUMENTS_MAX = 40,
    REPLY_BYTES_MAX = 64 * 1024, /* what is longer is no answer to an XADD */
    WORD_BYTES_MAX = 32,
    KEY_BYTES_MAX = 4096,
};

struct redis_state {
    redisReader *reader;
    size_t unread; /* bytes of a reply that has not ended */
    int greetings; /* answers that come before those of jobs */
};

struct arguments {
    const char *texts[ARGUMENTS_MAX];
    size_t lengths[ARGUMENTS_MAX];
    int count;
};

static void add(struct arguments *arguments, struct slice text)
{
    arguments->texts[arguments->count] = text.data ? text.data : "";
    arguments->lengths[arguments->count++] = text.len;
}

static void add_field(struct arguments *arguments, const char *name, struct slice value)
{
    if (value.len == 0)
        return;
    add(arguments, slice_from(name));
    add(arguments, value);
}

/* False: no memory. */
static bool append(struct arguments *arguments, struct buffer *out)
{
    char *command = NULL;
    long long len = redisFormatCommandArgv(&command, arguments->count, arguments->texts, arguments->lengths);
    if (len < 0)
        return false;
    buffer_append(out, (struct slice){ command, (size_t)len });
    redisFreeCommand(command);
    return true;
}

/* ---- What is said. ---- */

static void greet(struct broker_link *link, const char *word, const char *first, const char *second)
{
    struct redis_state *state = link->state;
    struct arguments arguments = { .count = 0 };
    struct buffer out = buffer_up_to(REPLY_BYTES_MAX);
    add(&arguments, slice_from(word));
    if (first && first[0])
        add(&arguments, slice_from(first));
    if (second)
        add(&arguments, slice_from(second));
    state->greetings++;
    if (append(&arguments, &out) && buffer_status(&out) == STATUS_OK)
        broker_give(link, buffer_slice(&out));
    else
        broker_refuse(link, true, SLICE("curl:27"), SLICE("OUT_OF_MEMORY - no memory to log in"));
    buffer_release(&out);
}

static void begin(struct broker_link *link)
{
    struct redis_state *state = link->state;
    state->reader = redisReaderCreate();
    if (!state->reader) {
        broker_refuse(link, true, SLICE("curl:27"), SLICE("OUT_OF_MEMORY - no memory for answers"));
        return;
    }
    if (link->url.password)
        greet(link, "AUTH", link->url.username, link->url.password);
    if (link->url.path && link->url.path[0] == '/' && link->url.path[1] && link->wire.curl)
        greet(link, "SELECT", link->url.path + 1, NULL);
    if (state->greetings == 0)
        broker_ready(link);
}

static void add_job(struct arguments *arguments, const struct job *job, struct slice key, struct slice attempt)
{
    add_field(arguments, "id", job->id);
    add_field(arguments, "tenant", job->tenant);
    add_field(arguments, "destination", job->destination);
    add_field(arguments, "idempotency_key", key);
    add_field(arguments, "attempt", attempt);
    add_field(arguments, "content_type", job->content_type);
    add_field(arguments, "correlation_id", job->correlation_id);
    add_field(arguments, "metadata", job->metadata);
    add_field(arguments, "headers", job->headers);
    add(arguments, SLICE("payload"));
    add(arguments, job->payload);
}

static enum status write_job(struct broker_link *link, struct broker_entry *entry, struct buffer *out, struct error *err)
{
    const struct redis_config *config = &link->destination->redis;
    struct arguments arguments = { .count = 0 };
    struct buffer key, attempt, length;
    buffer_init(&key, KEY_BYTES_MAX);
    buffer_init(&attempt, WORD_BYTES_MAX);
    buffer_init(&length, WORD_BYTES_MAX);
    http_key_append(&key, entry->send->job);
    buffer_append_int64(&attempt, entry->send->job->attempts);
    buffer_append_int64(&length, config->maxlen);
    add(&arguments, SLICE("XADD"));
    add(&arguments, slice_from(config->stream));
    if (config->maxlen > 0) {
        add(&arguments, SLICE("MAXLEN"));
        add(&arguments, SLICE("~"));
        add(&arguments, buffer_slice(&length));
    }
    add(&arguments, SLICE("*"));
    add_job(&arguments, entry->send->job, buffer_slice(&key), buffer_slice(&attempt));
    bool made = append(&arguments, out);
    buffer_release(&key);
    buffer_release(&attempt);
    buffer_release(&length);
    return made ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for a command");
}

/* ---- What is answered. ---- */

/* "LOADING Redis is loading the dataset in memory": the first word is the code. */
static void code_of(struct slice text, struct buffer *code)
{
    size_t len = slice_find(text, ' ');
    bool word = len > 0 && len < WORD_BYTES_MAX;
    for (size_t i = 0; i < len; i++)
        word = word && text.data[i] >= 'A' && text.data[i] <= 'Z';
    buffer_append(code, SLICE("redis:"));
    buffer_append(code, word ? (struct slice){ text.data, len } : SLICE("ERR"));
}

/* The server is not what it was, or not yet: the next job looks for it anew, under its name. */
static bool is_elsewhere(struct slice code)
{
    return slice_equal(code, SLICE("redis:READONLY")) || slice_equal(code, SLICE("redis:MASTERDOWN"));
}

static void refused(struct broker_link *link, struct broker_entry *entry, struct slice text)
{
    struct buffer code = buffer_up_to(WORD_BYTES_MAX * 2), shown = buffer_up_to(REPLY_BYTES_MAX);
    code_of(text, &code);
    buffer_printf(&shown, "Redis: %.*s", SLICE_ARG(text));
    if (is_elsewhere(buffer_slice(&code)))
        broker_leave(link);
    if (entry)
        broker_answer(link, entry, OUTCOME_NONE, buffer_slice(&code), buffer_slice(&shown), SLICE(""));
    else
        broker_refuse(link, true, buffer_slice(&code), buffer_slice(&shown));
    buffer_release(&code);
    buffer_release(&shown);
}

static void take(struct broker_link *link, const redisReply *reply)
{
    struct redis_state *state = link->state;
    struct slice text = { reply->str ? reply->str : "", reply->str ? reply->len : 0 };
    struct broker_entry *entry = state->greetings > 0 ? NULL : broker_first(link);
    if (state->greetings == 0 && !entry) {
        broker_refuse(link, false, SLICE("redis:ERR"), SLICE("Redis: an answer that nobody asked for"));
    } else if (reply->type == REDIS_REPLY_ERROR) {
        refused(link, entry, text);
    } else if (state->greetings > 0) {
        if (--state->greetings == 0)
            broker_ready(link);
    } else if (reply->type == REDIS_REPLY_STRING) {
        broker_answer(link, entry, OUTCOME_DELIVERED, SLICE("redis:OK"), SLICE(""), text);
    } else {
        broker_answer(link, entry, OUTCOME_IN_DOUBT, SLICE("redis:ERR"), SLICE("Redis: an answer that is no id"), SLICE(""));
    }
}

static void received(struct broker_link *link, struct slice bytes)
{
    struct redis_state *state = link->state;
    void *reply = NULL;
    bool good = redisReaderFeed(state->reader, bytes.data, bytes.len) == REDIS_OK;
    state->unread += bytes.len;
    while (good && link->wire.curl && (good = redisReaderGetReply(state->reader, &reply) == REDIS_OK) && reply) {
        state->unread = 0;
        take(link, reply);
        freeReplyObject(reply);
    }
    if (link->wire.curl && (!good || state->unread > REPLY_BYTES_MAX))
        broker_refuse(link, false, SLICE("redis:ERR"), SLICE("Redis: what the server says is not its protocol"));
}

static void release(struct broker_link *link)
{
    struct redis_state *state = link->state;
    if (state && state->reader)
        redisReaderFree(state->reader);
}

static const struct broker_protocol protocol = {
    .name = "redis", .scheme = { "rediss://", 6379, 6379 }, .state_bytes = sizeof(struct redis_state),
    .begin = begin, .received = received, .write = write_job, .release = release,
};

enum status redis_transport_new(struct event_base *loop, size_t connections_max, struct transport **ret_transport,
                                struct error *err)
{
    return broker_new(loop, &protocol, connections_max, ret_transport, err);
}
