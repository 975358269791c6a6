/* Destinations that may not reach private addresses, however the address is written or found. */
#include "support/check.h"
#include "support/http_rig.h"
#include "support/receiver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * The resolver of this program, libcurl's too. NAME.test resolves to what the table says, slow.test when the test
 * lets it, every other name to nothing.
 */
static const struct {
    const char *name, *addresses[2];
} names[] = {
    { "loopback.test", { "127.0.0.1", NULL } },      { "mapped.test", { "::ffff:127.0.0.1", NULL } },
    { "inside.test", { "10.0.0.7", NULL } },         { "metadata.test", { "169.254.169.254", NULL } },
    { "both.test", { "::1", "127.0.0.1" } },         { "slow.test", { "127.0.0.1", NULL } },
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool let_go;
    int waiting;
} slow = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0 };

static void slow_wait(void)
{
    pthread_mutex_lock(&slow.lock);
    slow.waiting++;
    pthread_cond_broadcast(&slow.changed);
    while (!slow.let_go)
        pthread_cond_wait(&slow.changed, &slow.lock);
    slow.waiting--;
    pthread_cond_broadcast(&slow.changed);
    pthread_mutex_unlock(&slow.lock);
}

/* Until as many are waiting; libcurl's threads, so it must not take the loop's. */
static void slow_await(int count, bool let_go)
{
    pthread_mutex_lock(&slow.lock);
    slow.let_go = let_go;
    pthread_cond_broadcast(&slow.changed);
    while (slow.waiting != count)
        pthread_cond_wait(&slow.changed, &slow.lock);
    pthread_mutex_unlock(&slow.lock);
}

static struct addrinfo *address_new(const char *text, uint16_t port, struct addrinfo *next)
{
    struct addrinfo *info = calloc(1, sizeof *info + sizeof(struct sockaddr_in6));
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    bool v4 = inet_pton(AF_INET, text, &in.sin_addr) == 1;
    if (!v4)
        inet_pton(AF_INET6, text, &in6.sin6_addr);
    info->ai_addr = (struct sockaddr *)(info + 1);
    info->ai_addrlen = v4 ? sizeof in : sizeof in6;
    info->ai_family = v4 ? AF_INET : AF_INET6;
    info->ai_socktype = SOCK_STREAM;
    info->ai_next = next;
    memcpy(info->ai_addr, v4 ? (void *)&in : (void *)&in6, info->ai_addrlen);
    return info;
}

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                                                       struct addrinfo **result)
{
    (void)hints;
    uint16_t port = service ? (uint16_t)atoi(service) : 0;
    if (strcmp(node, "slow.test") == 0)
        slow_wait();
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(node, names[i].name) == 0) {
            struct addrinfo *second = names[i].addresses[1] ? address_new(names[i].addresses[1], port, NULL) : NULL;
            *result = address_new(names[i].addresses[0], port, second);
            return 0;
        }
    return EAI_NONAME;
}

__attribute__((visibility("default"))) void freeaddrinfo(struct addrinfo *info)
{
    while (info) {
        struct addrinfo *next = info->ai_next;
        free(info);
        info = next;
    }
}

static struct rig rig;

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void check_blocked(const struct rig_send *send, const char *name)
{
    check(send->answer.attempted && send->answer.outcome == OUTCOME_BLOCKED, "%s: %s %s", name, outcome_name(send->answer.outcome), send->text);
    check(strcmp(send->code, "insist:private_address") == 0, "%s: %s", name, send->code);
    check(strstr(send->text, "allow_private"), "%s: %s", name, send->text);
}

static const char *const hosts[] = {
    "127.0.0.1",   "127.1",     "2130706433",    "0x7f000001",    "0177.0.0.1",        "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "10.0.0.7", "192.168.0.1", "169.254.169.254", "loopback.test", "mapped.test", "inside.test", "metadata.test", "both.test",
};

static void test_refused(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_new(NULL);
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        struct rig_send send;
        rig_configure(&rig, "url: 'http://%s:%d', timeout: 60s", hosts[i], receiver_port(receiver));
        rig_send(&rig, &send);
        check_blocked(&send, hosts[i]);
    }
    check(receiver_connections(receiver) == 0, "%zu connections", receiver_connections(receiver));
    receiver_free(receiver);
}

static void test_questions_and_fallbacks(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_new(NULL);
    static const enum job_step steps[] = { STEP_VERIFY, STEP_POLL, STEP_SEND };
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct rig_send send;
        rig_configure(&rig, "url: 'https://far.example', breaker: { min_calls: 20 }, "
                      "fallback: { url: 'http://127.0.0.1:%d' }, verify: { url: 'http://127.0.0.1:%d/{id}' }, "
                      "poll: { url: 'http://127.0.0.1:%d/{id}' }", receiver_port(receiver), receiver_port(receiver), receiver_port(receiver));
        rig_prepare(&rig, &send);
        send.job.step = steps[i];
        send.send.use_fallback = true;
        rig_start(&rig, &send);
        rig_wait(&rig, &send);
        check_blocked(&send, "question");
    }
    check(receiver_connections(receiver) == 0, "%zu connections", receiver_connections(receiver));
    receiver_free(receiver);
}

/* The connection of a destination that may is there to be used again; one that may not must not. */
static void test_kept_connection(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_new(NULL);
    struct rig_send send;
    rig_configure(&rig, "url: 'http://loopback.test:%d', allow_private: true", receiver_port(receiver));
    rig_send(&rig, &send);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    rig_configure(&rig, "url: 'http://loopback.test:%d'", receiver_port(receiver));
    rig_send(&rig, &send);
    check_blocked(&send, "kept");
    rig_configure(&rig, "url: 'http://loopback.test:%d', allow_private: true", receiver_port(receiver));
    rig_send(&rig, &send);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    check(receiver_requests(receiver) == 2, "%zu requests", receiver_requests(receiver));
    receiver_free(receiver);
}

/* ::1 is not listened on: the second address of the name is tried. */
static void test_second_address(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_new(NULL);
    struct rig_send send;
    rig_configure(&rig, "url: 'http://both.test:%d', allow_private: true", receiver_port(receiver));
    rig_send(&rig, &send);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    receiver_free(receiver);
}

/* A resolver that hangs holds up neither the loop nor the other sends, nor an abort. */
static void test_slow_resolver(void **state)
{
    (void)state;
    struct rig_send send;
    static const bool aborts[] = { false, true };
    for (size_t i = 0; i < COUNT_OF(aborts); i++) {
        /* What is to be aborted must still be under way then, however busy the machine is. */
        const char *timeout = aborts[i] ? "5m" : "100ms";
        rig_configure(&rig, "url: 'http://slow.test:1', allow_private: true, connect_timeout: %s, timeout: %s", timeout, timeout);
        rig_prepare(&rig, &send);
        rig_start(&rig, &send);
        if (aborts[i]) {
            rig_run(&rig, 30);
            slow_await(2, false);
            rig.transport->ops->abort(rig.transport, &send.send);
            check(!send.answer.attempted, "%s", send.text);
        } else {
            rig_wait(&rig, &send);
            check(strcmp(send.code, "curl:28") == 0 && send.answer.outcome == OUTCOME_NONE, "%s %s", send.code, send.text);
        }
    }
    slow_await(2, false); /* nobody has let them go so far, and yet both sends are over */
    slow_await(0, true);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_refused), TEST(test_questions_and_fallbacks), TEST(test_kept_connection), TEST(test_second_address), TEST(test_slow_resolver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
