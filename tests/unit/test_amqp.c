/* Messages of AMQP: confirms, returns, a broker that is blocked, closes or says nonsense. The broker is a stand-in. */
#include "support/certificates.h"
#include "support/check.h"
#include "support/http_rig.h"
#include "support/line_server.h"

#include "transport/broker/amqp.h"
#include "transport/broker/amqp_frame.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { SENDS = 40, BODY_MAX = 1 << 20, LARGE_BYTES = 30 << 20, HELLO_BYTES = 8, WAIT_MS = 60000 };

/* Does with a message what its body says. */
struct broker_stand_in {
    struct line_server lines; /* first */
    size_t published, heartbeats;
    char order[4096];   /* bodies as they came, up to 8 bytes each */
    char vhost[64], login[64];
    size_t body_bytes; /* of the last */
    uint16_t heartbeat_s;
    bool holds;        /* what it says when it is asked to confirm, until `go` */
    bool blocks;       /* says so before that */
    size_t held, went; /* waits of this kind, also of a message "hold": begun, and ended with everything said */
    size_t go;         /* how many may end */
};

static struct rig rig;
static struct broker_stand_in server;
static struct rig_send sends[SENDS];

/* ---- The broker. ---- */

static bool next_piece(struct line *line, struct amqp_piece *ret_piece, size_t *ret_len)
{
    for (;;) {
        struct slice rest = buffer_slice(&line->in);
        size_t before = rest.len;
        enum amqp_split split = amqp_frame_split(&rest, ret_piece);
        check(split != AMQP_SPLIT_BROKEN, "a frame is broken");
        *ret_len = before - rest.len;
        if (split == AMQP_SPLIT_FRAME)
            return true;
        if (!line_read(line))
            return false;
    }
}

static void say(struct line *line, int channel, amqp_method_number_t number, void *method)
{
    struct buffer out;
    buffer_init(&out, BODY_MAX);
    assert_true(amqp_frame_method(&out, channel, number, method));
    line_write(line, buffer_slice(&out));
    buffer_release(&out);
}

static size_t count_of(size_t *value)
{
    return line_server_count(&server.lines, value);
}

static void let_go(void)
{
    pthread_mutex_lock(&server.lines.lock);
    server.go++;
    pthread_mutex_unlock(&server.lines.lock);
}

static void count_up(size_t *value)
{
    pthread_mutex_lock(&server.lines.lock);
    ++*value;
    pthread_mutex_unlock(&server.lines.lock);
}

/* Until the test lets it go. */
static void hold(void)
{
    count_up(&server.held);
    for (int i = 0; i < WAIT_MS && count_of(&server.go) < server.held; i++)
        sleep_ms(1);
}

static void ack(struct line *line, uint64_t tag, bool multiple)
{
    amqp_basic_ack_t method = { .delivery_tag = tag, .multiple = multiple };
    say(line, 1, AMQP_BASIC_ACK_METHOD, &method);
}

static void give_back(struct line *line, uint64_t tag, struct slice body, amqp_basic_properties_t *properties)
{
    amqp_basic_return_t method = { .reply_code = 312, .reply_text = amqp_cstring_bytes("NO_ROUTE"),
                                   .exchange = amqp_cstring_bytes(""), .routing_key = amqp_cstring_bytes("q") };
    struct buffer out;
    buffer_init(&out, BODY_MAX);
    say(line, 1, AMQP_BASIC_RETURN_METHOD, &method);
    assert_true(amqp_frame_content(&out, 1, body, properties, 4096));
    line_write(line, buffer_slice(&out));
    buffer_release(&out);
    ack(line, tag, false);
}

/* False: it ends the connection. */
static bool message_take(struct line *line, struct slice body, amqp_basic_properties_t *properties, uint64_t tag)
{
    amqp_basic_nack_t nack = { .delivery_tag = tag };
    amqp_channel_close_t gone = { .reply_code = 404, .reply_text = amqp_cstring_bytes("NOT_FOUND - no exchange") };
    amqp_connection_close_t forced = { .reply_code = 320, .reply_text = amqp_cstring_bytes("CONNECTION_FORCED") };
    amqp_connection_blocked_t blocked = { .reason = amqp_cstring_bytes("low on memory") };
    amqp_connection_unblocked_t unblocked = { .dummy = 0 };
    if (slice_has_prefix(body, SLICE("close")))
        return false;
    if (slice_has_prefix(body, SLICE("hold")))
        hold();
    if (slice_has_prefix(body, SLICE("nack")))
        say(line, 1, AMQP_BASIC_NACK_METHOD, &nack);
    else if (slice_has_prefix(body, SLICE("back")))
        give_back(line, tag, body, properties);
    else if (slice_has_prefix(body, SLICE("gone")))
        say(line, 1, AMQP_CHANNEL_CLOSE_METHOD, &gone);
    else if (slice_has_prefix(body, SLICE("forced")))
        say(line, 0, AMQP_CONNECTION_CLOSE_METHOD, &forced);
    else if (slice_has_prefix(body, SLICE("nonsense")))
        line_write(line, SLICE("\1\0\0\0\0\0\4abcdefgh"));
    else if (slice_has_prefix(body, SLICE("all")))
        ack(line, tag, true);
    else if (!slice_has_prefix(body, SLICE("later")))
        ack(line, tag, false);
    if (slice_has_prefix(body, SLICE("block")))
        say(line, 0, AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
    if (slice_has_prefix(body, SLICE("block then not")))
        say(line, 0, AMQP_CONNECTION_UNBLOCKED_METHOD, &unblocked);
    return true;
}

static bool greet(struct line *line, amqp_method_number_t number, const void *method)
{
    struct broker_stand_in *own = (struct broker_stand_in *)line->server;
    amqp_connection_tune_t tune = { .channel_max = 10, .frame_max = 8192, .heartbeat = own->heartbeat_s };
    amqp_connection_open_ok_t opened = { .known_hosts = amqp_empty_bytes };
    amqp_channel_open_ok_t channel = { .channel_id = amqp_empty_bytes };
    amqp_confirm_select_ok_t confirm = { .dummy = 0 };
    amqp_connection_blocked_t blocked = { .reason = amqp_cstring_bytes("low on memory") };
    amqp_connection_close_t refused = { .reply_code = 403, .reply_text = amqp_cstring_bytes("ACCESS_REFUSED") };
    if (number == AMQP_CONNECTION_START_OK_METHOD) {
        struct slice login = amqp_slice(((const amqp_connection_start_ok_t *)method)->response);
        struct slice name = slice_from_offset(login, 1);
        name.len = slice_find(name, '\0');
        snprintf(own->login, sizeof own->login, "%.*s:%.*s", SLICE_ARG(name), SLICE_ARG(slice_from_offset(login, name.len + 2)));
        bool wrong = strstr(own->login, "wrong") != NULL;
        say(line, 0, wrong ? AMQP_CONNECTION_CLOSE_METHOD : AMQP_CONNECTION_TUNE_METHOD, wrong ? (void *)&refused : &tune);
    } else if (number == AMQP_CONNECTION_OPEN_METHOD) {
        struct slice vhost = amqp_slice(((const amqp_connection_open_t *)method)->virtual_host);
        snprintf(own->vhost, sizeof own->vhost, "%.*s", SLICE_ARG(vhost));
        say(line, 0, AMQP_CONNECTION_OPEN_OK_METHOD, &opened);
    } else if (number == AMQP_CHANNEL_OPEN_METHOD) {
        say(line, 1, AMQP_CHANNEL_OPEN_OK_METHOD, &channel);
    } else if (number == AMQP_CONFIRM_SELECT_METHOD) {
        if (own->holds)
            hold();
        if (own->blocks)
            say(line, 0, AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
        say(line, 1, AMQP_CONFIRM_SELECT_OK_METHOD, &confirm);
        count_up(&own->went);
    }
    return number != AMQP_CONNECTION_CLOSE_METHOD && number != AMQP_CONNECTION_CLOSE_OK_METHOD;
}

/* One whose head came; its body follows. */
static bool body_read(struct line *line, struct buffer *body, size_t len)
{
    struct amqp_piece piece;
    size_t used;
    buffer_clear(body);
    while (body->len < len) {
        if (!next_piece(line, &piece, &used))
            return false;
        assert_int_equal(piece.type, AMQP_FRAME_BODY);
        assert_true(used <= 8192);
        buffer_append(body, piece.payload);
        line_consume(line, used);
    }
    return true;
}

static bool piece_take(struct line *line, amqp_pool_t *pool, struct buffer *body, uint64_t *tag)
{
    struct broker_stand_in *own = (struct broker_stand_in *)line->server;
    struct amqp_piece piece;
    size_t used;
    if (!next_piece(line, &piece, &used))
        return false;
    if (piece.type == AMQP_FRAME_METHOD) {
        void *method = amqp_piece_method(piece.payload, pool);
        assert_non_null(method);
        bool goes_on = greet(line, amqp_piece_number(piece.payload), method);
        line_consume(line, used);
        return goes_on;
    }
    if (piece.type == AMQP_FRAME_HEADER) {
        size_t len = 0;
        for (int i = 4; i < 12; i++)
            len = len << 8 | (unsigned char)piece.payload.data[i];
        char id[256] = "";
        amqp_basic_properties_t *properties = amqp_piece_properties(piece.payload, pool);
        assert_non_null(properties);
        snprintf(id, sizeof id, "%.*s", SLICE_ARG(amqp_slice(properties->message_id)));
        amqp_basic_properties_t back = { ._flags = AMQP_BASIC_MESSAGE_ID_FLAG, .message_id = amqp_cstring_bytes(id) };
        line_consume(line, used);
        if (!body_read(line, body, len))
            return false;
        pthread_mutex_lock(&own->lines.lock);
        own->published++;
        own->body_bytes = len;
        snprintf(own->order + strlen(own->order), sizeof own->order - strlen(own->order), "%.8s ", id);
        pthread_mutex_unlock(&own->lines.lock);
        return message_take(line, buffer_slice(body), &back, ++*tag);
    }
    if (piece.type == AMQP_FRAME_HEARTBEAT) {
        struct buffer beat;
        buffer_init(&beat, AMQP_FRAME_OVERHEAD);
        amqp_frame_heartbeat(&beat);
        line_write(line, buffer_slice(&beat));
        buffer_release(&beat);
        count_up(&own->heartbeats);
    }
    line_consume(line, used);
    return true;
}

static void serve(struct line *line)
{
    amqp_connection_start_t start = { .version_major = 0, .version_minor = 9, .mechanisms = amqp_cstring_bytes("PLAIN"),
                                      .locales = amqp_cstring_bytes("en_US") };
    struct buffer body;
    amqp_pool_t pool;
    uint64_t tag = 0;
    buffer_init(&body, LARGE_BYTES);
    init_amqp_pool(&pool, 4096);
    if (line->server->settings.cert && !line_begin_tls(line))
        goto out;
    while (line->in.len < HELLO_BYTES)
        if (!line_read(line))
            goto out;
    assert_memory_equal(line->in.data, "AMQP\0\0\11\1", HELLO_BYTES);
    line_consume(line, HELLO_BYTES);
    say(line, 0, AMQP_CONNECTION_START_METHOD, &start);
    while (piece_take(line, &pool, &body, &tag))
        recycle_amqp_pool(&pool);
out:
    empty_amqp_pool(&pool);
    buffer_release(&body);
}

/* ---- The rig. ---- */

static void open_rig_with(const struct line_settings *settings)
{
    struct error err;
    signal(SIGPIPE, SIG_IGN);
    server = (struct broker_stand_in){ .heartbeat_s = 60 };
    line_server_open(&server.lines, settings);
    rig = (struct rig){ .loop = event_base_new() };
    assert_int_equal(amqp_transport_new(rig.loop, 3, &rig.transport, &err), STATUS_OK);
}

static void open_rig(void)
{
    open_rig_with(&(struct line_settings){ .serve = serve });
}

static void close_rig(void)
{
    rig_close(&rig);
    line_server_close(&server.lines);
}

static void configure(const char *login, const char *vhost, const char *more)
{
    rig_configure(&rig, "url: 'amqp://%s127.0.0.1:%d%s', allow_private: true, amqp: { routing_key: q }%s", login,
                  server.lines.port, vhost, more);
}

static void send_one(const char *payload)
{
    rig_begin(&rig, &sends[0], "j", payload);
    rig_wait(&rig, &sends[0]);
}

static void test_answers(void **state)
{
    (void)state;
    static const struct {
        const char *payload, *code, *text;
        enum outcome outcome;
    } cases[] = {
        { "ok", "amqp:ack", "", OUTCOME_DELIVERED },
        { "", "amqp:ack", "", OUTCOME_DELIVERED },
        { "nack", "amqp:nack", "could not take", OUTCOME_NONE },
        { "back", "amqp:312", "AMQP 312: NO_ROUTE (exchange \"\", routing key \"q\")", OUTCOME_NONE },
        { "ok", "amqp:ack", "", OUTCOME_DELIVERED },
        { "gone", "amqp:404", "AMQP 404: NOT_FOUND", OUTCOME_NONE },
        { "forced", "amqp:320", "CONNECTION_FORCED", OUTCOME_IN_DOUBT },
        { "close", "curl:52", "", OUTCOME_IN_DOUBT },
        { "nonsense", "amqp:501", "not AMQP", OUTCOME_IN_DOUBT },
        { "later", "curl:28", "no answer in time", OUTCOME_IN_DOUBT },
        { "block then not", "amqp:ack", "", OUTCOME_DELIVERED },
        { "ok", "amqp:ack", "", OUTCOME_DELIVERED },
    };
    open_rig();
    for (size_t i = 0; i < COUNT_OF(cases); i++) { /* a busy machine is not hurried where it is to answer */
        configure("", "", strcmp(cases[i].code, "curl:28") == 0 ? ", timeout: 5s" : ", timeout: 60s");
        send_one(cases[i].payload);
        check(strcmp(sends[0].code, cases[i].code) == 0, "%s: %s %s", cases[i].payload, sends[0].code, sends[0].text);
        check(strstr(sends[0].text, cases[i].text) != NULL, "%s: %s", cases[i].payload, sends[0].text);
        check(sends[0].answer.outcome == cases[i].outcome, "%s: %d", cases[i].payload, (int)sends[0].answer.outcome);
    }
    close_rig();
}

static void test_login(void **state)
{
    (void)state;
    open_rig();
    configure("", "", "");
    send_one("ok");
    assert_string_equal(server.vhost, "/");
    assert_string_equal(server.login, "guest:guest");
    configure("me:s%3Acret@", "/prod%2Feu", "");
    send_one("ok");
    assert_string_equal(server.vhost, "prod/eu");
    assert_string_equal(server.login, "me:s:cret");
    configure("me:wrong@", "", "");
    send_one("ok");
    assert_string_equal(sends[0].code, "amqp:403");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_NONE);
    assert_int_equal(server.published, 2);
    close_rig();
}

/* One confirmation may be for many, a return for one of them. A large body goes in many frames. */
static void test_many(void **state)
{
    (void)state;
    char ids[SENDS][16];
    char *large = calloc(1, BODY_MAX / 2);
    open_rig();
    configure("", "", "");
    for (size_t i = 0; i < SENDS; i++) {
        snprintf(ids[i], sizeof ids[i], "%02zu", i);
        rig_begin(&rig, &sends[i], ids[i], i + 1 == SENDS ? "all" : i == 7 ? "back" : "later");
    }
    for (size_t i = 0; i < SENDS; i++) {
        rig_wait(&rig, &sends[i]);
        assert_string_equal(sends[i].code, i == 7 ? "amqp:312" : "amqp:ack");
    }
    for (size_t i = 0; i < SENDS; i++)
        check(strncmp(server.order + i * 8, "acme/", 5) == 0 && strncmp(server.order + i * 8 + 5, ids[i], 2) == 0, "%s", server.order);
    assert_int_equal(line_server_count(&server.lines, &server.lines.begun), 1);
    memset(large, 'x', BODY_MAX / 2 - 1);
    send_one(large);
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    assert_int_equal(server.body_bytes, BODY_MAX / 2 - 1);
    close_rig();
    free(large);
}

/* While it says that it takes nothing, nothing is sent. */
static void test_blocked(void **state)
{
    (void)state;
    open_rig();
    configure("", "", "");
    send_one("block");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    for (int i = 0; i < 1000; i++) {
        send_one("ok");
        if (strcmp(sends[0].code, "amqp:ack") != 0)
            break;
    }
    assert_string_equal(sends[0].code, "amqp:blocked");
    check(strstr(sends[0].text, "low on memory") != NULL, "%s", sends[0].text);
    assert_int_equal(sends[0].answer.outcome, OUTCOME_NONE);
    size_t published = server.published;
    send_one("ok");
    assert_string_equal(sends[0].code, "amqp:blocked");
    assert_int_equal(server.published, published);
    close_rig();
}

/* An id that no short text of AMQP can hold is known by its beginning and a hash; too much metadata is the job's fault. */
static void test_long_facts(void **state)
{
    (void)state;
    static char id[300], metadata[200 * 1024];
    memset(id, 'i', sizeof id - 1);
    memset(metadata, 'm', sizeof metadata - 1);
    open_rig();
    configure("", "", "");
    rig_begin(&rig, &sends[0], id, "back");
    rig_wait(&rig, &sends[0]);
    assert_string_equal(sends[0].code, "amqp:312");
    rig_prepare(&rig, &sends[0]);
    sends[0].job.metadata = slice_from(metadata);
    rig_start(&rig, &sends[0]);
    rig_wait(&rig, &sends[0]);
    assert_int_equal(sends[0].answer.outcome, OUTCOME_PERMANENT);
    send_one("ok"); /* and its number was not counted */
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    close_rig();
}

/* Runs the loop until the number is reached. */
static void await(size_t *value, size_t wanted)
{
    for (int i = 0; i < WAIT_MS / 2 && count_of(value) < wanted; i++)
        rig_run(&rig, 2);
    assert_true(count_of(value) >= wanted);
}

/* A connection that takes no more jobs has some that are not answered yet: the broker must not take it for dead. */
static void test_leaving_beats_on(void **state)
{
    (void)state;
    open_rig();
    server.heartbeat_s = 6;
    configure("", "", ", timeout: 60s");
    rig_begin(&rig, &sends[0], "j", "later");
    await(&server.published, 1);
    rig.transport->ops->forget(rig.transport);
    size_t before = count_of(&server.heartbeats);
    await(&server.heartbeats, before + 1);
    assert_int_equal(sends[0].times, 0);
    rig.transport->ops->abort(rig.transport, &sends[0].send);
    close_rig();
}

static void on_turn(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    ++*(int *)context;
}

/*
 * A broker gives up whoever is silent for two heartbeats: one of a second is said every second. Counted in turns of the same
 * loop, which a busy machine holds up as well.
 */
static void test_a_heartbeat_of_a_second(void **state)
{
    enum { TURN_MS = 100, BEATS = 4 };
    const struct timeval every = { .tv_usec = TURN_MS * 1000 };
    int turns = 0;
    (void)state;
    open_rig();
    server.heartbeat_s = 1;
    configure("", "", ", timeout: 60s");
    struct event *turn = event_new(rig.loop, -1, EV_PERSIST, on_turn, &turns);
    rig_begin(&rig, &sends[0], "j", "later");
    await(&server.heartbeats, 1);
    event_add(turn, &every);
    await(&server.heartbeats, 1 + BEATS);
    check(turns < BEATS * 3 / 2 * 1000 / TURN_MS, "%d beats took %d turns of %d ms", BEATS, turns, TURN_MS);
    event_free(turn);
    rig.transport->ops->abort(rig.transport, &sends[0].send);
    close_rig();
}

/* When a pause ends, its time is over and the broker's refusal is there, too: it is answered once, and nothing was sent. */
static void test_late_and_refused(void **state)
{
    (void)state;
    open_rig();
    server.holds = server.blocks = true;
    configure("", "", ", timeout: 1s");
    rig_begin(&rig, &sends[0], "j", "ok");
    await(&server.held, 1);
    let_go();
    while (count_of(&server.went) == 0)
        sleep_ms(1);
    sleep_ms(1100); /* the pause: nothing is waited for */
    rig_wait(&rig, &sends[0]);
    rig_run(&rig, 50);
    check(sends[0].times == 1 && sends[0].answer.outcome == OUTCOME_NONE, "%d times, %s", sends[0].times, sends[0].text);
    assert_int_equal(server.published, 0);
    close_rig();
}

/* One that has no room among those that wait to go out is not counted by the broker, nor by us. */
static void test_no_room(void **state)
{
    (void)state;
    static const char *const codes[] = { "amqp:ack", "amqp:ack", "insist:connections", "amqp:nack", "amqp:ack" };
    static const char *const ids[] = { "0", "1", "2", "3", "4" };
    char *large = malloc(LARGE_BYTES);
    assert_non_null(large);
    memset(large, 'x', LARGE_BYTES - 1);
    large[LARGE_BYTES - 1] = '\0';
    open_rig();
    server.holds = true;
    configure("", "", ", timeout: 60s");
    for (size_t i = 0; i < COUNT_OF(codes); i++)
        rig_begin(&rig, &sends[i], ids[i], i < 3 ? large : i == 3 ? "nack" : "ok");
    await(&server.held, 1);
    let_go();
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        rig_wait(&rig, &sends[i]);
        check(strcmp(sends[i].code, codes[i]) == 0, "%zu: %s %s", i, sends[i].code, sends[i].text);
    }
    assert_false(sends[2].answer.attempted);
    close_rig();
    free(large);
}

/* The exchange was there: only the last is sure to have met its end. */
static void test_exchange_removed(void **state)
{
    (void)state;
    open_rig();
    configure("", "", ", timeout: 60s");
    send_one("ok");
    rig_begin(&rig, &sends[1], "1", "later");
    rig_begin(&rig, &sends[2], "2", "gone");
    for (size_t i = 1; i < 3; i++) {
        rig_wait(&rig, &sends[i]);
        assert_string_equal(sends[i].code, "amqp:404");
        check(sends[i].answer.outcome == (i == 1 ? OUTCOME_IN_DOUBT : OUTCOME_NONE), "%zu: %d", i, (int)sends[i].answer.outcome);
    }
    close_rig();
}

/* Over TLS a write that found no room is repeated, wherever its bytes have moved meanwhile. */
static void test_slow_reader_over_tls(void **state)
{
    (void)state;
    enum { MANY = 30, PIECE = 1 << 20 };
    struct certificates files;
    char ids[MANY][16], *large = malloc(PIECE);
    assert_non_null(large);
    memset(large, 'x', PIECE - 1);
    large[PIECE - 1] = '\0';
    certificates_make(&files);
    open_rig_with(&(struct line_settings){ .serve = serve, .cert = files.server, .key = certificate_key(files.server), .small_window = true });
    rig_configure(&rig, "url: 'amqps://127.0.0.1:%d', allow_private: true, timeout: 60s, tls: { ca: '%s' }, amqp: { routing_key: q }",
                  server.lines.port, files.ca);
    rig_begin(&rig, &sends[0], "hold", "hold");
    await(&server.held, 1);
    for (size_t i = 1; i < MANY; i++) {
        snprintf(ids[i], sizeof ids[i], "%zu", i);
        rig_begin(&rig, &sends[i], ids[i], large);
        rig_run(&rig, 2);
    }
    let_go();
    for (size_t i = 0; i < MANY; i++) {
        rig_wait(&rig, &sends[i]);
        check(sends[i].answer.outcome == OUTCOME_DELIVERED, "%zu: %s %s", i, sends[i].code, sends[i].text);
    }
    close_rig();
    certificates_remove(&files);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_login),      cmocka_unit_test(test_many),
        cmocka_unit_test(test_blocked), cmocka_unit_test(test_long_facts),
        cmocka_unit_test(test_leaving_beats_on),
        cmocka_unit_test(test_a_heartbeat_of_a_second),
        cmocka_unit_test(test_late_and_refused),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_exchange_removed),
        cmocka_unit_test(test_slow_reader_over_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
