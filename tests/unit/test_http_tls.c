/* HTTPS: whom the transport trusts, what it shows, and what it says when either fails. */
#include "support/certificates.h"
#include "support/check.h"
#include "support/http_rig.h"
#include "support/receiver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct certificates files;
static struct rig rig;

static int open_rig(void **state)
{
    (void)state;
    certificates_make(&files);
    rig_open(&rig);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    certificates_remove(&files);
    return 0;
}

static struct receiver *secure(const char *cert, const char *client_ca, int version_max)
{
    struct receiver_settings settings = { .cert = cert, .key = certificate_key(cert), .client_ca = client_ca, .tls_version_max = version_max };
    return receiver_new(&settings);
}

static void configure(const struct receiver *receiver, const char *host, const char *ca, const char *cert, const char *more)
{
    char shown[512] = "";
    if (cert)
        snprintf(shown, sizeof shown, ", cert: '%s', key: '%s'", cert, certificate_key(cert));
    rig_configure(&rig, "url: 'https://%s:%d/in', allow_private: true, timeout: 60s, tls: { %s%s%s%s }%s", host, receiver_port(receiver),
                  ca ? "ca: '" : "verify: true", ca ? ca : "", ca ? "'" : "", shown, more);
}

static void test_trust(void **state)
{
    (void)state;
    const struct {
        const char *name, *server, *host, *ca;
        int version_max;
        enum outcome outcome;
        const char *code;
    } cases[] = {
        { "right", files.server, "127.0.0.1", files.ca, 0, OUTCOME_DELIVERED, "http:200" },
        { "right by name", files.server, "localhost", files.ca, 0, OUTCOME_DELIVERED, "http:200" },
        { "TLS 1.2", files.server, "127.0.0.1", files.ca, TLS1_2_VERSION, OUTCOME_DELIVERED, "http:200" },
        { "TLS 1.1 is too old", files.server, "127.0.0.1", files.ca, TLS1_1_VERSION, OUTCOME_NONE, "curl:35" },
        { "of another authority", files.server, "127.0.0.1", files.other_ca, 0, OUTCOME_NONE, "curl:60" },
        { "of nobody the system knows", files.server, "127.0.0.1", NULL, 0, OUTCOME_NONE, "curl:60" },
        { "expired", files.expired, "127.0.0.1", files.ca, 0, OUTCOME_NONE, "curl:60" },
        { "of another host", files.elsewhere, "127.0.0.1", files.ca, 0, OUTCOME_NONE, "curl:60" },
        { "no file of authorities", files.server, "127.0.0.1", "/nowhere/ca.pem", 0, OUTCOME_BLOCKED, "curl:77" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver *receiver = secure(cases[i].server, NULL, cases[i].version_max);
        struct rig_send send;
        configure(receiver, cases[i].host, cases[i].ca, NULL, "");
        rig_send(&rig, &send);
        check(send.answer.attempted && send.answer.outcome == cases[i].outcome, "%s: %s %s", cases[i].name, outcome_name(send.answer.outcome), send.text);
        check(strcmp(send.code, cases[i].code) == 0, "%s: %s %s", cases[i].name, send.code, send.text);
        check(send.answer.outcome == OUTCOME_DELIVERED || strncmp(send.text, "TLS_ERROR - ", 12) == 0, "%s: %s", cases[i].name, send.text);
        check(receiver_requests(receiver) == (cases[i].outcome == OUTCOME_DELIVERED), "%s: a request went out", cases[i].name);
        receiver_free(receiver);
    }
}

static void test_trust_switched_off(void **state)
{
    (void)state;
    struct receiver *receiver = secure(files.elsewhere, NULL, 0);
    struct rig_send send;
    rig_configure(&rig, "url: 'https://127.0.0.1:%d', allow_private: true, tls: { verify: false }", receiver_port(receiver));
    rig_send(&rig, &send);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    receiver_free(receiver);
}

/*
 * A refused certificate is the destination's matter, and certain: also in TLS 1.3, where it shows only in the answer.
 * In TLS 1.2 a missing one looks like any failed handshake.
 */
static void test_client_certificates(void **state)
{
    (void)state;
    const struct {
        const char *name, *cert;
        int version;
        enum outcome outcome;
        const char *code;
    } cases[] = {
        { "1.2, right", files.client, TLS1_2_VERSION, OUTCOME_DELIVERED, "http:200" },
        { "1.2, of another authority", files.stranger, TLS1_2_VERSION, OUTCOME_BLOCKED, "curl:98" },
        { "1.2, none", NULL, TLS1_2_VERSION, OUTCOME_NONE, "curl:35" },
        { "1.3, right", files.client, TLS1_3_VERSION, OUTCOME_DELIVERED, "http:200" },
        { "1.3, of another authority", files.stranger, TLS1_3_VERSION, OUTCOME_BLOCKED, "curl:98" },
        { "1.3, none", NULL, TLS1_3_VERSION, OUTCOME_BLOCKED, "curl:98" },
    };
    struct receiver *proxy = receiver_new(NULL);
    char through[64];
    snprintf(through, sizeof through, ", proxy: 'http://127.0.0.1:%d'", receiver_port(proxy));
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        size_t row = i / 2;
        struct receiver *receiver = secure(files.server, files.ca, cases[row].version);
        struct rig_send send;
        configure(receiver, "127.0.0.1", files.ca, cases[row].cert, i % 2 ? through : "");
        rig_send(&rig, &send);
        check(send.answer.outcome == cases[row].outcome, "%s: %s %s %s", cases[row].name, outcome_name(send.answer.outcome), send.code,
              send.text);
        check(strcmp(send.code, cases[row].code) == 0, "%s: %s %s", cases[row].name, send.code, send.text);
        check(receiver_requests(receiver) == (cases[row].outcome == OUTCOME_DELIVERED), "%s: a request went out", cases[row].name);
        receiver_free(receiver);
    }
    check(receiver_requests(proxy) == COUNT_OF(cases), "%zu tunnels", receiver_requests(proxy));
    receiver_free(proxy);
}

static void test_client_certificate_files(void **state)
{
    (void)state;
    struct receiver *receiver = secure(files.server, files.ca, 0);
    struct rig_send send;
    configure(receiver, "127.0.0.1", files.ca, "/nowhere/client.pem", "");
    rig_send(&rig, &send);
    check(send.answer.outcome == OUTCOME_BLOCKED && strcmp(send.code, "curl:58") == 0, "%s %s", send.code, send.text);
    check(receiver_requests(receiver) == 0, "a request went out");
    receiver_free(receiver);
}

/* A connection made with one certificate must not carry jobs of a destination that shows another, or none. */
static void test_connections_are_not_shared(void **state)
{
    (void)state;
    struct receiver *receiver = secure(files.server, files.ca, TLS1_2_VERSION);
    struct rig_send send;
    configure(receiver, "127.0.0.1", files.ca, files.client, "");
    for (int i = 0; i < 3; i++) {
        rig_send(&rig, &send);
        check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    }
    check(receiver_connections(receiver) == 1, "%zu connections", receiver_connections(receiver));
    configure(receiver, "127.0.0.1", files.ca, NULL, "");
    rig_send(&rig, &send);
    check(strcmp(send.code, "curl:35") == 0, "%s", send.text);
    configure(receiver, "127.0.0.1", files.other_ca, files.client, "");
    rig_send(&rig, &send);
    check(strcmp(send.code, "curl:60") == 0, "%s", send.text);
    check(receiver_requests(receiver) == 3, "%zu requests", receiver_requests(receiver));
    receiver_free(receiver);
}

static void test_lost_answers(void **state)
{
    (void)state;
    static const struct receiver_reply lost[] = { { .fate = FATE_CLOSE }, { .fate = FATE_RESET }, { .fate = FATE_HANG }, { .body = "x", .form = FORM_HALF } };
    for (size_t i = 0; i < COUNT_OF(lost); i++) {
        struct receiver *receiver = secure(files.server, NULL, 0);
        struct rig_send send;
        receiver_script(receiver, &lost[i], 1);
        rig_configure(&rig, "url: 'https://127.0.0.1:%d', allow_private: true, timeout: %s, tls: { ca: '%s' }", receiver_port(receiver),
                      lost[i].fate == FATE_HANG ? "5s" : "30s", files.ca);
        rig_send(&rig, &send);
        check(send.answer.outcome == OUTCOME_IN_DOUBT, "row %zu: %s %s", i, outcome_name(send.answer.outcome), send.text);
        receiver_free(receiver);
    }
}

static void test_through_a_proxy(void **state)
{
    (void)state;
    struct receiver *proxy = receiver_new(NULL), *receiver = secure(files.server, NULL, 0);
    struct receiver_request request;
    struct rig_send send;
    char more[64];
    snprintf(more, sizeof more, ", proxy: 'http://127.0.0.1:%d'", receiver_port(proxy));
    configure(receiver, "localhost", files.ca, NULL, more);
    rig_send(&rig, &send);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    check(receiver_requests(receiver) == 1 && receiver_requests(proxy) == 1, "%zu at the proxy", receiver_requests(proxy));
    assert_true(receiver_last(proxy, 0, &request));
    assert_string_equal(request.method.data, "CONNECT");
    receiver_request_release(&request);
    receiver_free(receiver);
    receiver_free(proxy);
}

/* --- HTTP/2, which the receiver does not speak and nginx does ---------------------------------- */

static int free_port(void)
{
    struct receiver *receiver = receiver_new(NULL);
    int port = receiver_port(receiver);
    receiver_free(receiver);
    return port;
}

/* At the second port it ends a connection after three requests. */
static pid_t nginx_start(int port, int short_port)
{
    char path[CERTIFICATE_PATH_BYTES * 2];
    snprintf(path, sizeof path, "%s/nginx.conf", files.folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "daemon off; master_process off; pid %s/pid; error_log /dev/null;\nevents {}\n"
            "http { access_log off; client_body_temp_path %s/b; proxy_temp_path %s/b; fastcgi_temp_path %s/b;\n"
            "uwsgi_temp_path %s/b; scgi_temp_path %s/b; server { listen 127.0.0.1:%d ssl http2;\n"
            "ssl_certificate %s; ssl_certificate_key %s;\n"
            "location / { return 200 '$server_protocol $connection'; } location /lost { return 444; } }\n"
            "server { listen 127.0.0.1:%d ssl http2; keepalive_requests 3; ssl_certificate %s; ssl_certificate_key %s;\n"
            "location / { return 200 '$server_protocol $connection'; } } }\n",
            files.folder, files.folder, files.folder, files.folder, files.folder, files.folder, port, files.server,
            certificate_key(files.server), short_port, files.server, certificate_key(files.server));
    fclose(file);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* a test that fails must not leave it behind */
        execl("/usr/sbin/nginx", "nginx", "-e", "/dev/null", "-p", files.folder, "-c", path, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Until somebody listens; false: nginx could not be started. */
static bool nginx_await(pid_t pid, int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    for (int i = 0; i < 6000 && waitpid(pid, NULL, WNOHANG) == 0; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool there = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
        close(fd);
        if (there)
            return true;
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    return false;
}

static void nginx_stop(pid_t pid)
{
    static const char *const left[] = { "nginx.conf", "pid" };
    char path[CERTIFICATE_PATH_BYTES * 2];
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
    for (size_t i = 0; i < COUNT_OF(left); i++) {
        snprintf(path, sizeof path, "%s/%s", files.folder, left[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/b", files.folder);
    rmdir(path);
}

static void test_http2(void **state)
{
    (void)state;
    enum { SENDS = 60 };
    int port = free_port(), short_port = free_port();
    while (short_port == port)
        short_port = free_port();
    if (access("/usr/sbin/nginx", X_OK) != 0)
        skip();
    pid_t pid = nginx_start(port, short_port);
    assert_true(nginx_await(pid, port));
    struct rig_send first, *sends = calloc(SENDS, sizeof *sends);
    rig_configure(&rig, "url: 'https://127.0.0.1:%d/', allow_private: true, tls: { ca: '%s' }", port, files.ca);
    rig_send(&rig, &first);
    check(strncmp(first.text, "HTTP 200: HTTP/2.0 ", 19) == 0, "%s", first.text);
    for (size_t i = 0; i < SENDS; i++) {
        rig_prepare(&rig, &sends[i]);
        rig_start(&rig, &sends[i]);
    }
    for (size_t i = 0; i < SENDS; i++) {
        rig_wait(&rig, &sends[i]);
        check(sends[i].answer.outcome == OUTCOME_DELIVERED, "send %zu: %s", i, sends[i].text);
        check(strcmp(sends[i].text, first.text) == 0, "send %zu is on a connection of its own: %s", i, sends[i].text);
    }
    free(sends);
    /* A stream or connection that ends without an answer on a kept connection: not sent again. */
    rig_configure(&rig, "url: 'https://127.0.0.1:%d/lost', allow_private: true, tls: { ca: '%s' }", port, files.ca);
    rig_send(&rig, &first);
    check(first.answer.outcome == OUTCOME_IN_DOUBT, "%s %s", first.code, first.text);
    /* One after the other, over connections that the server ends while they are idle. */
    rig_configure(&rig, "url: 'https://127.0.0.1:%d/', allow_private: true, tls: { ca: '%s' }", short_port, files.ca);
    char before[64] = "";
    int connections = 0;
    for (int i = 0; i < 20; i++) {
        rig_send(&rig, &first);
        check(strncmp(first.text, "HTTP 200: HTTP/2.0 ", 19) == 0, "send %d: %s", i, first.text);
        connections += strcmp(first.text, before) != 0;
        snprintf(before, sizeof before, "%.60s", first.text);
        rig_run(&rig, i % 3 ? 0 : 20);
    }
    check(connections >= 4 && connections <= 10, "%d connections", connections);
    nginx_stop(pid);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_trust),
        TEST(test_trust_switched_off),
        TEST(test_client_certificates),
        TEST(test_client_certificate_files),
        TEST(test_connections_are_not_shared),
        TEST(test_lost_answers),
        TEST(test_through_a_proxy),
        TEST(test_http2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
