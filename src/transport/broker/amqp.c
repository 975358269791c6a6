#include "transport/broker/amqp.h"

#include "base/clock.h"
#include "base/hash.h"
#include "transport/broker/amqp_frame.h"
#include "transport/broker/broker.h"
#include "transport/http/request.h"

enum {
    CHANNEL = 1,
    HEARTBEAT_S = 20,
    SHORT_TEXT_BYTES_MAX = 255,
    KEY_BYTES_MAX = 4096,
    TEXT_BYTES_MAX = 1024,
    PERSISTENT = 2,
    HEADERS_MAX = 4,
    POOL_BYTES = 4096,
};

struct amqp_state {
    bool begun;
    amqp_pool_t pool;      /* of the method that is read */
    struct buffer in;      /* a frame that is not whole yet */
    size_t frame_bytes_max;
    int heartbeat_s;       /* 0: none was agreed upon */
    int64_t heard_ms, spoken_ms;
    bool confirmed;        /* something was, so the exchange was there */
    bool returning;        /* the head of a message that comes back is next */
    struct buffer returned; /* why it does */
    struct buffer blocked; /* why the broker takes nothing just now; empty: it does */
};

/* ---- What is said. ---- */

static void give(struct broker_link *link, struct buffer *out, bool made)
{
    struct amqp_state *state = link->state;
    state->spoken_ms = clock_ticks_ms();
    if (made && buffer_status(out) == STATUS_OK)
        broker_give(link, buffer_slice(out));
    else
        broker_refuse(link, true, SLICE("insist:configuration"),
                      SLICE("username, password, vhost, exchange or routing_key is longer than AMQP allows"));
    buffer_release(out);
}

static void say(struct broker_link *link, int channel, amqp_method_number_t number, void *method)
{
    struct buffer out = buffer_up_to(AMQP_FRAME_BYTES_MAX);
    give(link, &out, amqp_frame_method(&out, channel, number, method));
}

static void begin(struct broker_link *link)
{
    struct amqp_state *state = link->state;
    static const char hello[] = { 'A', 'M', 'Q', 'P', 0, 0, 9, 1 };
    init_amqp_pool(&state->pool, POOL_BYTES);
    buffer_init(&state->in, 2 * AMQP_FRAME_BYTES_MAX);
    buffer_init(&state->returned, TEXT_BYTES_MAX);
    buffer_init(&state->blocked, TEXT_BYTES_MAX);
    state->frame_bytes_max = AMQP_FRAME_MIN_SIZE;
    state->heard_ms = state->spoken_ms = clock_ticks_ms();
    state->begun = true;
    broker_give(link, (struct slice){ hello, sizeof hello });
}

static amqp_table_entry_t entry_text(const char *name, struct slice text)
{
    return (amqp_table_entry_t){ .key = amqp_cstring_bytes(name),
                                 .value = { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_text(text) } };
}

static amqp_table_entry_t entry_yes(const char *name)
{
    return (amqp_table_entry_t){ .key = amqp_cstring_bytes(name),
                                 .value = { .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 } };
}

/* What we can bear to hear: that a login failed, and that nothing is taken just now. */
static void start_ok(struct broker_link *link)
{
    amqp_table_entry_t abilities[] = { entry_yes("authentication_failure_close"), entry_yes("connection.blocked"),
                                       entry_yes("publisher_confirms") };
    amqp_table_entry_t properties[] = { entry_text("product", SLICE("insist")), entry_text("version", SLICE(INSIST_VERSION)),
                                        { .key = amqp_cstring_bytes("capabilities") } };
    struct buffer login = buffer_up_to(TEXT_BYTES_MAX);
    const char *name = link->url.username ? link->url.username : "guest",
               *password = link->url.password ? link->url.password : "guest";
    properties[2].value.kind = AMQP_FIELD_KIND_TABLE;
    properties[2].value.value.table = (amqp_table_t){ .num_entries = 3, .entries = abilities };
    buffer_append_byte(&login, '\0');
    buffer_append_text(&login, name);
    buffer_append_byte(&login, '\0');
    buffer_append_text(&login, password);
    amqp_connection_start_ok_t method = { .client_properties = { .num_entries = 3, .entries = properties },
                                          .mechanism = amqp_cstring_bytes("PLAIN"),
                                          .response = amqp_text(buffer_slice(&login)),
                                          .locale = amqp_cstring_bytes("en_US") };
    say(link, 0, AMQP_CONNECTION_START_OK_METHOD, &method);
    buffer_release(&login);
}

static void tune(struct broker_link *link, const amqp_connection_tune_t *wish)
{
    struct amqp_state *state = link->state;
    size_t frame_max =
        wish->frame_max > 0 && wish->frame_max < AMQP_FRAME_BYTES_MAX ? wish->frame_max : AMQP_FRAME_BYTES_MAX;
    state->frame_bytes_max = frame_max > AMQP_FRAME_MIN_SIZE ? frame_max : AMQP_FRAME_MIN_SIZE;
    state->heartbeat_s = wish->heartbeat > 0 && wish->heartbeat < HEARTBEAT_S ? wish->heartbeat : HEARTBEAT_S;
    amqp_connection_tune_ok_t tuned = { .channel_max = CHANNEL, .frame_max = (uint32_t)state->frame_bytes_max,
                                        .heartbeat = (uint16_t)state->heartbeat_s };
    /* amqp://host and amqp://host/ are the vhost "/", amqp://host/a is "a", amqp://host/%2Fa is "/a". */
    const char *vhost = link->url.path && link->url.path[0] == '/' && link->url.path[1] ? link->url.path + 1 : "/";
    amqp_connection_open_t open = { .virtual_host = amqp_cstring_bytes(vhost) };
    say(link, 0, AMQP_CONNECTION_TUNE_OK_METHOD, &tuned);
    if (link->wire.curl)
        say(link, 0, AMQP_CONNECTION_OPEN_METHOD, &open);
}

/* A text that a short one of AMQP can be: of a longer one its beginning and what tells it from others. */
static void short_text(struct buffer *out, struct slice text)
{
    char mark[20];
    if (text.len <= SHORT_TEXT_BYTES_MAX) {
        buffer_append(out, text);
        return;
    }
    snprintf(mark, sizeof mark, "~%016llx", (unsigned long long)hash_slice(0, 0, text));
    buffer_append(out, (struct slice){ text.data, SHORT_TEXT_BYTES_MAX - strlen(mark) });
    buffer_append_text(out, mark);
}

static amqp_basic_properties_t properties_of(const struct job *job, struct slice id, amqp_table_t headers)
{
    amqp_basic_properties_t properties = { .delivery_mode = PERSISTENT, .message_id = amqp_text(id), .headers = headers,
                                           .timestamp = (uint64_t)(job->created_at / SECOND_MS),
                                           .app_id = amqp_cstring_bytes("insist") };
    properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_HEADERS_FLAG |
                        AMQP_BASIC_TIMESTAMP_FLAG | AMQP_BASIC_APP_ID_FLAG;
    if (job->content_type.len > 0 && job->content_type.len <= SHORT_TEXT_BYTES_MAX) {
        properties.content_type = amqp_text(job->content_type);
        properties._flags |= AMQP_BASIC_CONTENT_TYPE_FLAG;
    }
    if (job->correlation_id.len > 0 && job->correlation_id.len <= SHORT_TEXT_BYTES_MAX) {
        properties.correlation_id = amqp_text(job->correlation_id);
        properties._flags |= AMQP_BASIC_CORRELATION_ID_FLAG;
    }
    return properties;
}

static bool job_add(struct broker_link *link, const struct job *job, struct slice key, struct slice id, struct buffer *out)
{
    const struct amqp_config *config = &link->destination->amqp;
    const struct amqp_state *state = link->state;
    amqp_table_entry_t entries[HEADERS_MAX + 1];
    int count = 0;
    entries[count++] = entry_text("insist-job-id", job->id);
    entries[count++] = entry_text("insist-tenant", job->tenant);
    entries[count++] = entry_text("insist-idempotency-key", key);
    entries[count++] = (amqp_table_entry_t){ .key = amqp_cstring_bytes("insist-attempt"),
                                             .value = { .kind = AMQP_FIELD_KIND_I64, .value.i64 = job->attempts } };
    if (job->metadata.len > 0)
        entries[count++] = entry_text("insist-metadata", job->metadata);
    amqp_basic_properties_t properties =
        properties_of(job, id, (amqp_table_t){ .num_entries = count, .entries = entries });
    amqp_basic_publish_t publish = { .exchange = amqp_cstring_bytes(config->exchange ? config->exchange : ""),
                                     .routing_key = amqp_cstring_bytes(config->routing_key ? config->routing_key : ""),
                                     .mandatory = config->mandatory };
    return amqp_frame_method(out, CHANNEL, AMQP_BASIC_PUBLISH_METHOD, &publish) &&
           amqp_frame_content(out, CHANNEL, job->payload, &properties, state->frame_bytes_max);
}

static enum status write_job(struct broker_link *link, struct broker_entry *entry, struct buffer *out, struct error *err)
{
    struct amqp_state *state = link->state;
    struct buffer key = buffer_up_to(KEY_BYTES_MAX);
    if (state->blocked.len > 0)
        return error_set(err, STATUS_BUSY, "the broker takes no messages: %.*s", SLICE_ARG(buffer_slice(&state->blocked)));
    http_key_append(&key, entry->send->job);
    short_text(&entry->why, buffer_slice(&key)); /* by which it is known when it comes back */
    bool made = job_add(link, entry->send->job, buffer_slice(&key), buffer_slice(&entry->why), out);
    buffer_release(&key);
    if (!made)
        return error_set(err, STATUS_LIMIT,
                         "the job's id, metadata or another of its facts is too long for a message of AMQP");
    if (buffer_status(out) != STATUS_OK)
        return error_set(err, buffer_status(out), "the job is too long to be sent, or there is no memory for it");
    state->spoken_ms = clock_ticks_ms();
    return STATUS_OK;
}

/* ---- What is answered. ---- */

static void answer_one(struct broker_link *link, struct broker_entry *entry, bool taken)
{
    struct buffer why = entry->why; /* the entry goes with its answer */
    buffer_init(&entry->why, 0);
    if (taken && entry->returned) {
        struct slice text = buffer_slice(&why);
        size_t space = slice_find(text, ' ');
        broker_answer(link, entry, OUTCOME_NONE, (struct slice){ text.data, space }, slice_from_offset(text, space + 1),
                      SLICE(""));
    } else if (taken) {
        broker_answer(link, entry, OUTCOME_DELIVERED, SLICE("amqp:ack"), SLICE(""), SLICE(""));
    } else {
        broker_answer(link, entry, OUTCOME_NONE, SLICE("amqp:nack"), SLICE("the broker could not take the message"),
                      SLICE(""));
    }
    buffer_release(&why);
}

/* One, or all up to it: the broker counts as we do. */
static void confirmed(struct broker_link *link, uint64_t tag, bool multiple, bool taken)
{
    struct amqp_state *state = link->state;
    state->confirmed = true;
    struct broker_entry *next;
    for (struct broker_entry *entry = broker_first(link); entry && link->wire.curl; entry = next) {
        next = entry->next;
        if (entry->number == tag || (multiple && (tag == 0 || entry->number < tag)))
            answer_one(link, entry, taken);
    }
}

/* `surely`: one that did not arrive, whatever is true of the others; NULL: none. */
static void refuse(struct broker_link *link, bool certain, struct broker_entry *surely, unsigned number, amqp_bytes_t text)
{
    struct buffer code = buffer_up_to(32), shown = buffer_up_to(TEXT_BYTES_MAX);
    buffer_printf(&code, "amqp:%u", number);
    buffer_printf(&shown, "AMQP %u: %.*s", number, SLICE_ARG(amqp_slice(text)));
    if (surely)
        broker_answer(link, surely, OUTCOME_NONE, buffer_slice(&code), buffer_slice(&shown), SLICE(""));
    broker_refuse(link, certain, buffer_slice(&code), buffer_slice(&shown));
    buffer_release(&code);
    buffer_release(&shown);
}

static void returned_begin(struct broker_link *link, const amqp_basic_return_t *method)
{
    struct amqp_state *state = link->state;
    state->returning = true;
    buffer_clear(&state->returned);
    buffer_printf(&state->returned, "amqp:%u AMQP %u: %.*s (exchange \"%.*s\", routing key \"%.*s\")",
                  (unsigned)method->reply_code, (unsigned)method->reply_code, SLICE_ARG(amqp_slice(method->reply_text)),
                  SLICE_ARG(amqp_slice(method->exchange)), SLICE_ARG(amqp_slice(method->routing_key)));
}

/* Its confirmation comes after it: the broker has dealt with the message, by giving it back. */
static void returned_end(struct broker_link *link, struct slice payload)
{
    struct amqp_state *state = link->state;
    const amqp_basic_properties_t *properties = amqp_piece_properties(payload, &state->pool);
    state->returning = false;
    struct slice id = properties && (properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG) ? amqp_slice(properties->message_id)
                                                                                      : SLICE("");
    for (struct broker_entry *entry = broker_first(link); entry; entry = entry->next)
        if (!entry->returned && slice_equal(buffer_slice(&entry->why), id)) {
            entry->returned = true;
            buffer_clear(&entry->why);
            buffer_append(&entry->why, buffer_slice(&state->returned));
            return;
        }
}

static void blocked(struct broker_link *link, const amqp_connection_blocked_t *method)
{
    struct amqp_state *state = link->state;
    struct slice reason = amqp_slice(method->reason);
    buffer_clear(&state->blocked);
    buffer_append(&state->blocked, reason.len > 0 && reason.len < TEXT_BYTES_MAX / 2 ? reason : SLICE("it is blocked"));
}

/* False: it is none of what may come now. */
static bool greeting_take(struct broker_link *link, amqp_method_number_t number, const void *method)
{
    amqp_channel_open_t open = { .out_of_band = amqp_empty_bytes };
    amqp_confirm_select_t select = { .nowait = 0 };
    switch (number) {
    case AMQP_CONNECTION_START_METHOD:
        start_ok(link);
        return true;
    case AMQP_CONNECTION_TUNE_METHOD:
        tune(link, method);
        return true;
    case AMQP_CONNECTION_OPEN_OK_METHOD:
        say(link, CHANNEL, AMQP_CHANNEL_OPEN_METHOD, &open);
        return true;
    case AMQP_CHANNEL_OPEN_OK_METHOD:
        say(link, CHANNEL, AMQP_CONFIRM_SELECT_METHOD, &select);
        return true;
    case AMQP_CONFIRM_SELECT_OK_METHOD:
        broker_ready(link);
        return true;
    default:
        return false;
    }
}

/*
 * A channel that is closed for its exchange takes neither the message that this was noticed with nor those after it, so the
 * last is certain. Those before may have been taken, unless the exchange never took anything here.
 */
static void channel_closed(struct broker_link *link, const amqp_channel_close_t *close)
{
    const struct amqp_state *state = link->state;
    bool exchange = close->reply_code == AMQP_NOT_FOUND || close->reply_code == AMQP_ACCESS_REFUSED;
    struct broker_entry *last = NULL;
    for (struct broker_entry *entry = broker_first(link); entry && entry->from < link->wire.sent; entry = entry->next)
        last = entry;
    refuse(link, exchange && !state->confirmed, exchange ? last : NULL, close->reply_code, close->reply_text);
}

static void closed(struct broker_link *link, amqp_method_number_t number, const void *method)
{
    amqp_channel_close_ok_t ok = { .dummy = 0 };
    if (number == AMQP_CONNECTION_CLOSE_METHOD) {
        const amqp_connection_close_t *close = method;
        say(link, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
        refuse(link, false, NULL, close->reply_code, close->reply_text);
        return;
    }
    channel_closed(link, method);
}

static bool method_take(struct broker_link *link, amqp_method_number_t number, const void *method)
{
    struct amqp_state *state = link->state;
    switch (number) {
    case AMQP_BASIC_ACK_METHOD:
        confirmed(link, ((const amqp_basic_ack_t *)method)->delivery_tag, ((const amqp_basic_ack_t *)method)->multiple,
                  true);
        return true;
    case AMQP_BASIC_NACK_METHOD:
        confirmed(link, ((const amqp_basic_nack_t *)method)->delivery_tag, ((const amqp_basic_nack_t *)method)->multiple,
                  false);
        return true;
    case AMQP_BASIC_RETURN_METHOD:
        returned_begin(link, method);
        return true;
    case AMQP_CONNECTION_BLOCKED_METHOD:
        blocked(link, method);
        return true;
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
        buffer_clear(&state->blocked);
        return true;
    case AMQP_CONNECTION_CLOSE_METHOD:
    case AMQP_CHANNEL_CLOSE_METHOD:
        closed(link, number, method);
        return true;
    default:
        return !link->ready && greeting_take(link, number, method);
    }
}

static bool piece_take(struct broker_link *link, const struct amqp_piece *piece)
{
    struct amqp_state *state = link->state;
    if (piece->type == AMQP_FRAME_HEADER && state->returning)
        returned_end(link, piece->payload);
    if (piece->type != AMQP_FRAME_METHOD)
        return true; /* heartbeats, and bodies of what comes back */
    const void *method = amqp_piece_method(piece->payload, &state->pool);
    return method && method_take(link, amqp_piece_number(piece->payload), method);
}

static void received(struct broker_link *link, struct slice bytes)
{
    struct amqp_state *state = link->state;
    struct amqp_piece piece;
    state->heard_ms = clock_ticks_ms();
    buffer_append(&state->in, bytes);
    struct slice rest = buffer_slice(&state->in);
    enum amqp_split split = buffer_status(&state->in) == STATUS_OK ? AMQP_SPLIT_FRAME : AMQP_SPLIT_BROKEN;
    while (split == AMQP_SPLIT_FRAME && link->wire.curl) {
        split = amqp_frame_split(&rest, &piece);
        if (split == AMQP_SPLIT_FRAME && !piece_take(link, &piece))
            split = AMQP_SPLIT_BROKEN;
        recycle_amqp_pool(&state->pool);
    }
    if (link->wire.curl && split == AMQP_SPLIT_BROKEN)
        broker_refuse(link, false, SLICE("amqp:501"), SLICE("AMQP 501: what the server says is not AMQP 0-9-1"));
    size_t left = rest.len;
    if (left > 0)
        memmove(state->in.data, rest.data, left);
    state->in.len = left;
}

static void tick(struct broker_link *link, int64_t now)
{
    struct amqp_state *state = link->state;
    struct buffer out = buffer_up_to(AMQP_FRAME_OVERHEAD);
    if (state->heartbeat_s == 0)
        return;
    if (now - state->heard_ms > 2 * state->heartbeat_s * SECOND_MS) {
        broker_refuse(link, false, SLICE("curl:28"), SLICE("TIMEOUT - the broker was not heard of for two heartbeats"));
        return;
    }
    if (now - state->spoken_ms < state->heartbeat_s * SECOND_MS / 2)
        return;
    amqp_frame_heartbeat(&out);
    give(link, &out, true);
}

/* A word of goodbye, if it can be said at once. */
static void release(struct broker_link *link)
{
    struct amqp_state *state = link->state;
    amqp_connection_close_t close = { .reply_code = AMQP_REPLY_SUCCESS, .reply_text = amqp_cstring_bytes("done") };
    struct buffer out = buffer_up_to(AMQP_FRAME_MIN_SIZE);
    size_t sent;
    if (!state || !state->begun)
        return;
    if (link->wire.connected && link->wire.out.len == 0 && link->ready &&
        amqp_frame_method(&out, 0, AMQP_CONNECTION_CLOSE_METHOD, &close))
        (void)!curl_easy_send(link->wire.curl, out.data, out.len, &sent);
    buffer_release(&out);
    empty_amqp_pool(&state->pool);
    buffer_release(&state->in);
    buffer_release(&state->returned);
    buffer_release(&state->blocked);
}

static const struct broker_protocol protocol = {
    .name = "amqp", .scheme = { "amqps://", 5672, 5671 }, .state_bytes = sizeof(struct amqp_state),
    .begin = begin, .received = received, .write = write_job, .tick = tick, .release = release,
};

enum status amqp_transport_new(struct event_base *loop, size_t connections_max, struct transport **ret_transport,
                               struct error *err)
{
    return broker_new(loop, &protocol, connections_max, ret_transport, err);
}
