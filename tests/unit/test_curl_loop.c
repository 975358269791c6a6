/*
 * libcurl's sockets on an event loop that they share with others. Descriptors are numbers that come again: whatever
 * becomes of a connection, nothing of it may be left where the next owner of its number would suffer from it.
 */
#include "node/mailbox.h"
#include "support/check.h"
#include "support/receiver.h"
#include "transport/curl_loop.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LOOPS = 2, WAIT_MS = 60000 };

static struct event_base *base;
static struct curl_loop loops[LOOPS]; /* as deliveries and probes have */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint32_t chance_state = 1;

static unsigned chance(unsigned below)
{
    chance_state = chance_state * 1664525 + 1013904223;
    return (chance_state >> 8) % below;
}

/* --- transfers --------------------------------------------------------------------------------- */

struct transfer {
    struct curl_loop *loop;
    CURL *curl;
    struct curl_slist *addresses;
    curl_socket_t fd, fd_before; /* opened last, and before that */
    CURLcode result;
    int times; /* how often it was done */
};

static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *transfer = context;
    (void)purpose;
    transfer->fd_before = transfer->fd;
    transfer->fd = curl_loop_open(transfer->loop, address);
    return transfer->fd;
}

static void on_done(void *private_data, CURLcode result)
{
    struct transfer *transfer = private_data;
    transfer->result = result;
    transfer->times++;
    curl_loop_keep(transfer->loop, transfer->curl);
    curl_multi_remove_handle(transfer->loop->multi, transfer->curl);
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    (void)data;
    (void)context;
    return size * count;
}

static void transfer_start(struct transfer *transfer, struct curl_loop *loop, const char *url)
{
    transfer->loop = loop;
    transfer->fd = transfer->fd_before = -1;
    transfer->times = 0;
    if (!transfer->curl)
        transfer->curl = curl_easy_init();
    assert_non_null(transfer->curl);
    CURL *curl = transfer->curl;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)WAIT_MS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, curl_loop_close);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETDATA, loop);
    assert_int_equal(curl_multi_add_handle(loop->multi, curl), CURLM_OK);
}

static void transfer_release(struct transfer *transfer)
{
    curl_easy_cleanup(transfer->curl);
    curl_slist_free_all(transfer->addresses);
}

static void on_nothing(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    (void)context;
}

/* One turn of the loop, of 10 ms at most. */
static void turn(void)
{
    event_base_once(base, -1, EV_TIMEOUT, on_nothing, NULL, &(struct timeval){ 0, 10000 });
    event_base_loop(base, EVLOOP_ONCE);
}

static void await(const struct transfer *transfer)
{
    for (int64_t end = now_ms() + 2 * WAIT_MS; transfer->times == 0 && now_ms() < end;)
        turn();
    check(transfer->times == 1, "a transfer was done %d times", transfer->times);
}

/* --- a server on the same loop ------------------------------------------------------------------ */

struct server {
    struct event *listening, *connection; /* one at a time */
    int fd;
    const char *stray; /* sent some time after the answer, when nobody asked */
    struct event *later;
};

static void on_later(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    (void)fd;
    (void)what;
    assert_int_equal(write(server->fd, server->stray, strlen(server->stray)), (ssize_t)strlen(server->stray));
}

static void on_request(evutil_socket_t fd, short what, void *context)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    struct server *server = context;
    char bytes[4096];
    ssize_t got = read(fd, bytes, sizeof bytes);
    (void)what;
    if (got <= 0) {
        event_free(server->connection);
        server->connection = NULL;
        close(fd);
        return;
    }
    assert_int_equal(write(fd, answer, sizeof answer - 1), (ssize_t)sizeof answer - 1);
    if (server->stray)
        event_add(server->later, &(struct timeval){ 0, 20000 });
}

static void on_connection(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    (void)what;
    server->fd = accept(fd, NULL, NULL);
    assert_true(server->fd >= 0 && !server->connection);
    server->connection = event_new(base, server->fd, EV_READ | EV_PERSIST, on_request, server);
    event_add(server->connection, NULL);
}

/* `port` 0: any. Returns the one it has; 0: there is no such address here. */
static int server_open(struct server *server, const char *address, int port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } place = { .six = { .sin6_port = htons((uint16_t)port) } }; /* the port has the same place in both */
    bool is_six = strchr(address, ':') != NULL;
    place.any.sa_family = is_six ? AF_INET6 : AF_INET;
    socklen_t len = is_six ? sizeof place.six : sizeof place.four;
    int fd = socket(place.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    void *digits = is_six ? (void *)&place.six.sin6_addr : (void *)&place.four.sin_addr;
    assert_int_equal(inet_pton(place.any.sa_family, address, digits), 1);
    if (fd < 0 || bind(fd, &place.any, len) != 0) {
        close(fd);
        return 0;
    }
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, &place.any, &len), 0);
    server->listening = event_new(base, fd, EV_READ | EV_PERSIST, on_connection, server);
    server->later = event_new(base, -1, 0, on_later, server);
    event_add(server->listening, NULL);
    return ntohs(place.four.sin_port);
}

static void server_close(struct server *server)
{
    if (server->connection) {
        event_free(server->connection);
        close(server->fd);
    }
    int fd = event_get_fd(server->listening);
    event_free(server->listening);
    event_free(server->later);
    close(fd);
}

/* --- tests -------------------------------------------------------------------------------------- */

static void on_ready(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    *(short *)context = (short)(*(short *)context | what);
}

/* Somebody else's pipe gets the number of a socket that libcurl has closed: it must be told what happens to it. */
static void check_number_is_free(const char *name, int number, short kind)
{
    int pair[2];
    short seen = 0;
    check(number >= 0 && fcntl(number, F_GETFD) < 0, "%s: the socket is still open", name);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    if (pair[1] == number) {
        pair[1] = pair[0];
    } else if (pair[0] != number) {
        assert_int_equal(dup2(pair[0], number), number);
        close(pair[0]);
    }
    assert_int_equal(write(pair[1], "x", 1), 1);
    struct event *event = event_new(base, number, kind, on_ready, &seen);
    event_add(event, NULL);
    for (int64_t end = now_ms() + WAIT_MS; !seen && now_ms() < end;)
        turn();
    event_free(event);
    close(pair[1]);
    close(number);
    check(seen == kind, "%s: of %d only %d was seen", name, kind, seen);
}

/* libcurl closes a socket whose connection was never made without a word. */
static void test_given_up_before_connected(void **state)
{
    (void)state;
    static const struct receiver_reply hang = { .stage = STAGE_ACCEPTED, .fate = FATE_HANG };
    struct receiver_settings deaf = { .deaf = true };
    struct receiver *queue_full = receiver_new(&deaf), *silent = receiver_new(NULL);
    receiver_script(silent, &hang, 1);
    const struct {
        const char *name, *scheme;
        int port;
        bool aborted;
    } cases[] = {
        { "connecting, out of time", "http", receiver_port(queue_full), false },
        { "connecting, aborted", "http", receiver_port(queue_full), true },
        { "in the handshake, out of time", "https", receiver_port(silent), false },
        { "in the handshake, aborted", "https", receiver_port(silent), true },
    };
    static const short kinds[] = { EV_READ, EV_WRITE, EV_READ | EV_WRITE };
    for (size_t row = 0; row < COUNT_OF(cases) * COUNT_OF(kinds); row++) {
        size_t i = row / COUNT_OF(kinds);
        struct transfer transfer = { .times = 0 };
        char url[64];
        snprintf(url, sizeof url, "%s://127.0.0.1:%d/", cases[i].scheme, cases[i].port);
        transfer_start(&transfer, &loops[0], url);
        curl_easy_setopt(transfer.curl, CURLOPT_CONNECTTIMEOUT_MS, cases[i].aborted ? (long)WAIT_MS : 150L);
        if (cases[i].aborted) {
            for (int turns = 0; turns < 20; turns++)
                turn();
            check(transfer.times == 0 && transfer.fd >= 0, "%s: it ended by itself", cases[i].name);
            curl_multi_remove_handle(loops[0].multi, transfer.curl);
        } else {
            await(&transfer);
            check(transfer.result == CURLE_OPERATION_TIMEDOUT, "%s: %d", cases[i].name, transfer.result);
        }
        check_number_is_free(cases[i].name, transfer.fd, kinds[row % COUNT_OF(kinds)]);
        transfer_release(&transfer);
    }
    receiver_free(queue_full);
    receiver_free(silent);
}

/* Two addresses are tried side by side; the one that loses is closed without a word, too. */
static void test_two_addresses(void **state)
{
    (void)state;
    struct receiver_settings deaf = { .deaf = true };
    struct receiver *first = receiver_new(&deaf);
    struct server second = { .fd = -1 };
    struct transfer transfer = { .curl = curl_easy_init() };
    char url[64], resolved[96];
    int port = server_open(&second, "::1", receiver_port(first));
    if (port == 0) { /* a machine without IPv6 */
        transfer_release(&transfer);
        receiver_free(first);
        skip();
    }
    snprintf(url, sizeof url, "http://two.test:%d/", port);
    snprintf(resolved, sizeof resolved, "two.test:%d:127.0.0.1,[::1]", port);
    transfer.addresses = curl_slist_append(NULL, resolved);
    curl_easy_setopt(transfer.curl, CURLOPT_RESOLVE, transfer.addresses);
    curl_easy_setopt(transfer.curl, CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, 50L);
    transfer_start(&transfer, &loops[0], url);
    await(&transfer);
    check(transfer.result == CURLE_OK, "%s", curl_easy_strerror(transfer.result));
    check(transfer.fd_before >= 0 && transfer.fd != transfer.fd_before, "only one was tried");
    check_number_is_free("the one that lost", transfer.fd_before, EV_WRITE);
    transfer_release(&transfer);
    server_close(&second);
    receiver_free(first);
}

/* Two of one family: when the first stays silent for half of the time, the second is tried. */
static void test_silent_first_address(void **state)
{
    (void)state;
    struct receiver_settings deaf = { .deaf = true };
    struct receiver *first = receiver_new(&deaf);
    struct server second = { .fd = -1 };
    struct transfer transfer = { .curl = curl_easy_init() };
    char url[64], resolved[96];
    int port = server_open(&second, "127.0.0.2", receiver_port(first));
    assert_int_equal(port, receiver_port(first));
    snprintf(url, sizeof url, "http://two.test:%d/", port);
    snprintf(resolved, sizeof resolved, "two.test:%d:127.0.0.1,127.0.0.2", port);
    transfer.addresses = curl_slist_append(NULL, resolved);
    curl_easy_setopt(transfer.curl, CURLOPT_RESOLVE, transfer.addresses);
    curl_easy_setopt(transfer.curl, CURLOPT_CONNECTTIMEOUT_MS, 4000L); /* the second is tried after 2000 */
    transfer_start(&transfer, &loops[0], url);
    await(&transfer);
    check(transfer.result == CURLE_OK, "%s", curl_easy_strerror(transfer.result));
    transfer_release(&transfer);
    server_close(&second);
    receiver_free(first);
}

/* A socket of the same number in place of the one that is being connected, without a word to the loop. */
static void test_number_reopened(void **state)
{
    (void)state;
    struct receiver_settings deaf = { .deaf = true };
    struct receiver *first = receiver_new(&deaf);
    struct server second = { .fd = -1 };
    struct transfer transfer = { .times = 0 };
    struct sockaddr_in place = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct curl_sockaddr address = { .family = AF_INET, .socktype = SOCK_STREAM };
    char url[64];
    place.sin_port = htons((uint16_t)server_open(&second, "127.0.0.1", 0));
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", receiver_port(first));
    transfer_start(&transfer, &loops[0], url);
    for (int turns = 0; turns < 20; turns++)
        turn();
    check(transfer.times == 0 && transfer.fd >= 0, "it ended by itself");
    close(transfer.fd);
    assert_int_equal(curl_loop_open(&loops[0], &address), transfer.fd);
    assert_int_equal(connect(transfer.fd, (struct sockaddr *)&place, sizeof place), 0);
    assert_int_equal(evutil_make_socket_nonblocking(transfer.fd), 0);
    await(&transfer);
    check(transfer.result == CURLE_OK, "%s", curl_easy_strerror(transfer.result));
    transfer_release(&transfer);
    server_close(&second);
    receiver_free(first);
}

/* What comes on a connection that nobody uses is looked at once, and does not wake the loop again and again. */
static void test_stray_bytes(void **state)
{
    (void)state;
    struct server server = { .fd = -1 };
    struct transfer transfer = { .times = 0 };
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", server_open(&server, "127.0.0.1", 0));
    for (int i = 0; i < 3; i++) {
        server.stray = i == 2 ? "HTTP/1.1 408 Too late\r\n\r\n" : NULL;
        transfer_start(&transfer, &loops[0], url);
        await(&transfer);
        check(transfer.result == CURLE_OK && (transfer.fd >= 0) == (i == 0), "transfer %d: %d", i, transfer.result);
    }
    int turns = 0;
    for (int64_t end = now_ms() + 200; now_ms() < end; turns++)
        turn();
    check(turns <= 60, "the loop turned %d times in 200 ms", turns);
    transfer_release(&transfer);
    server_close(&server);
}

/* --- many at once ------------------------------------------------------------------------------- */

enum { SENDS = 600, SCRIPT = 997, AT_ONCE = 12, SERVERS = 2 };

static struct receiver_reply script[SCRIPT];

static void script_make(void)
{
    for (size_t i = 0; i < SCRIPT; i++) {
        script[i] = (struct receiver_reply){ .body = "fine" };
        switch (chance(8)) {
        case 0:
            script[i].vanish = true;
            break;
        case 1:
            script[i].close = true;
            break;
        case 2:
            script[i].delay_ms = (int)chance(4);
            break;
        case 3:
            script[i].form = FORM_CHUNKED;
            break;
        default:
            break;
        }
    }
}

/* Of another loop or of this one, but for an end that is none of theirs. */
struct crowd {
    struct receiver *receivers[SERVERS], *deaf;
    struct transfer transfers[AT_ONCE];
    size_t begun, done, given_up;
};

static void crowd_begin(struct crowd *crowd, size_t slot)
{
    static const char *const hosts[] = { "127.0.0.1", "localhost", "127.0.0.1" };
    struct transfer *transfer = &crowd->transfers[slot];
    struct curl_loop *loop = &loops[slot % LOOPS];
    char url[80];
    bool hangs = chance(10) == 0;
    if (hangs)
        snprintf(url, sizeof url, "http://127.0.0.1:%d/", receiver_port(crowd->deaf));
    else
        snprintf(url, sizeof url, "http://%s:%d/", hosts[chance(3)], receiver_port(crowd->receivers[chance(SERVERS)]));
    transfer_start(transfer, loop, url);
    curl_easy_setopt(transfer->curl, CURLOPT_DNS_CACHE_TIMEOUT, 0L); /* each name has its resolver, with a socket pair */
    curl_easy_setopt(transfer->curl, CURLOPT_CONNECTTIMEOUT_MS, hangs ? 1L + chance(30) : (long)WAIT_MS);
    crowd->begun++;
}

static void crowd_turn(struct crowd *crowd)
{
    for (size_t i = 0; i < AT_ONCE; i++) {
        struct transfer *transfer = &crowd->transfers[i];
        if (transfer->curl && transfer->times == 0 && chance(400) == 0) {
            curl_multi_remove_handle(transfer->loop->multi, transfer->curl);
            transfer->times = 1;
            transfer->result = CURLE_ABORTED_BY_CALLBACK;
        }
        if (transfer->curl && transfer->times == 0)
            continue;
        if (transfer->curl) {
            check(transfer->times == 1, "done %d times", transfer->times);
            bool gave_up = transfer->result == CURLE_ABORTED_BY_CALLBACK || transfer->result == CURLE_OPERATION_TIMEDOUT;
            check(gave_up || transfer->result == CURLE_OK, "%s", curl_easy_strerror(transfer->result));
            crowd->given_up += gave_up;
            crowd->done++;
            transfer->times = 0;
            if (crowd->begun >= SENDS) {
                curl_easy_cleanup(transfer->curl);
                transfer->curl = NULL;
            }
        }
        if (crowd->begun < SENDS)
            crowd_begin(crowd, i);
    }
    turn();
}

/* Two loops on one base, with names and addresses, ends at any moment on either side: every transfer ends, and soon. */
static void test_crowd(void **state)
{
    (void)state;
    struct receiver_settings deaf = { .deaf = true };
    struct crowd crowd = { .deaf = receiver_new(&deaf) };
    script_make();
    for (size_t i = 0; i < SERVERS; i++) {
        crowd.receivers[i] = receiver_new(NULL);
        receiver_script(crowd.receivers[i], script, SCRIPT);
    }
    for (int64_t end = now_ms() + WAIT_MS; crowd.done < SENDS && now_ms() < end;)
        crowd_turn(&crowd);
    check(crowd.done == SENDS, "only %zu are done", crowd.done);
    check(crowd.given_up > 20 && crowd.given_up < SENDS / 4, "%zu were given up", crowd.given_up);
    for (size_t i = 0; i < AT_ONCE; i++)
        assert_null(crowd.transfers[i].curl);
    for (size_t i = 0; i < SERVERS; i++)
        receiver_free(crowd.receivers[i]);
    receiver_free(crowd.deaf);
}

static int count_if_same(const struct event_base *of, const struct event *event, void *context)
{
    int *wanted = context;
    (void)of;
    if (event_get_fd(event) != wanted[0])
        return 0;
    wanted[1]++;
    return 0; /* go on */
}

static bool is_registered(int fd)
{
    int wanted[2] = { fd, 0 };
    event_base_foreach_event(base, count_if_same, wanted);
    return wanted[1] == 1;
}

/* Sockets that are idle stay registered; a second loop gets their numbers once the first has closed them. */
static void test_numbers_of_another_loop(void **state)
{
    (void)state;
    static const struct receiver_reply soon = { .body = "fine", .delay_ms = 5 }; /* at once: libcurl need not wait for it */
    struct receiver *receiver = receiver_new(NULL);
    char url[64];
    receiver_script(receiver, &soon, 1);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", receiver_port(receiver));
    for (int round = 0; round < 20; round++) {
        struct curl_loop own;
        struct transfer mine = { .times = 0 }, theirs = { .times = 0 };
        int fd = -1;
        assert_true(curl_loop_init(&own, base, on_done));
        for (int i = 0; i < 3; i++) {
            transfer_start(&mine, &own, url);
            await(&mine);
            check(mine.result == CURLE_OK && (i == 0) == (mine.fd >= 0), "round %d: %d", round, mine.result);
            /* The first answer tells that the connection is kept; from the second on it stays registered. */
            fd = i == 0 ? mine.fd : fd;
            check(is_registered(fd) == (i > 0), "round %d, transfer %d", round, i);
        }
        transfer_release(&mine);
        curl_loop_release(&own); /* closes what is idle */
        transfer_start(&theirs, &loops[1], url);
        await(&theirs);
        check(theirs.result == CURLE_OK, "round %d: %d", round, theirs.result);
        transfer_release(&theirs);
    }
    receiver_free(receiver);
}

static int loops_open(struct event_base *on, uint32_t seed)
{
    signal(SIGPIPE, SIG_IGN);
    chance_state = seed;
    base = on;
    assert_non_null(base);
    for (size_t i = 0; i < LOOPS; i++)
        assert_true(curl_loop_init(&loops[i], base, on_done));
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return loops_open(loop_new(), 1);
}

/* With a base that tells the kernel of each change at once. */
static int setup_plain(void **state)
{
    (void)state;
    return loops_open(event_base_new(), 7);
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < LOOPS; i++)
        curl_loop_release(&loops[i]);
    event_base_free(base);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown), \
                   cmocka_unit_test_setup_teardown(name, setup_plain, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_given_up_before_connected),
        TEST(test_two_addresses),
        TEST(test_silent_first_address),
        TEST(test_number_reopened),
        TEST(test_stray_bytes),
        TEST(test_crowd),
        TEST(test_numbers_of_another_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
