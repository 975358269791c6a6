/*
 * latency.c - how soon after its acknowledgement a job reaches an idle destination.
 *
 *   latency --api PORT --listen PORT --jobs N [--destination latency] [--pause-ms 2]
 *
 * Client and receiver are one process with one clock. Jobs go one by one: post, wait for the acknowledgement and for the
 * request that delivers the job, answer it, rest, go on. A job may arrive before its acknowledgement does; that counts
 * as 0 and is told apart. Prints one JSON object. A program that acknowledges sooner has a longer way from there on, so
 * the time from the request on is told beside it.
 */
#include "common.h"

#include <getopt.h>
#include <poll.h>

enum { PEERS_MAX = 128, REQUEST_BYTES_MAX = 65536, JOB_WAIT_MS_MAX = 10000, FIRST_PEER = 2 };

struct peer {
    size_t len;
    char data[REQUEST_BYTES_MAX + 1];
};

struct latency {
    uint16_t api_port, listen_port;
    long jobs, pause_ms;
    const char *destination;
    struct pollfd fds[FIRST_PEER + PEERS_MAX]; /* the API's, the listener's, then the receiver's connections */
    struct peer *peers[PEERS_MAX];
    nfds_t fd_count;
    struct peer api;
    int64_t asked_us, acknowledged_us, arrived_us; /* of the job under way, 0 is not yet */
    bool delivered;
};

static void peer_accept(struct latency *latency)
{
    int on = 1, fd = accept4(latency->fds[1].fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        die("accept: %s", strerror(errno));
    if (latency->fd_count == FIRST_PEER + PEERS_MAX)
        die("over %d connections to the receiver", PEERS_MAX);
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        die("TCP_NODELAY: %s", strerror(errno));
    latency->peers[latency->fd_count - FIRST_PEER] = allocate(1, sizeof(struct peer));
    latency->fds[latency->fd_count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

static void peer_close(struct latency *latency, nfds_t index)
{
    close(latency->fds[index].fd);
    free(latency->peers[index - FIRST_PEER]);
    latency->fd_count--;
    latency->fds[index] = latency->fds[latency->fd_count];
    latency->peers[index - FIRST_PEER] = latency->peers[latency->fd_count - FIRST_PEER];
}

/* Appends what there is. False: the other side closed. */
static bool peer_read(int fd, struct peer *peer)
{
    ssize_t count = recv(fd, peer->data + peer->len, REQUEST_BYTES_MAX - peer->len, 0);
    if (count <= 0)
        return false;
    peer->len += (size_t)count;
    peer->data[peer->len] = '\0';
    if (peer->len == REQUEST_BYTES_MAX)
        die("a message over %d bytes", REQUEST_BYTES_MAX);
    return true;
}

static void peer_drop(struct peer *peer, size_t len)
{
    peer->len -= len;
    memmove(peer->data, peer->data + len, peer->len + 1);
}

static void peer_serve(struct latency *latency, nfds_t index)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    struct peer *peer = latency->peers[index - FIRST_PEER];
    int64_t now = clock_us();
    if (!peer_read(latency->fds[index].fd, peer)) {
        peer_close(latency, index);
        return;
    }
    if (!latency->arrived_us)
        latency->arrived_us = now;
    size_t body, len = http_message_length(peer->data, peer->len, &body);
    if (!len)
        return;
    peer_drop(peer, len);
    if (send(latency->fds[index].fd, answer, sizeof answer - 1, MSG_NOSIGNAL) != (ssize_t)sizeof answer - 1)
        die("send: %s", strerror(errno));
    latency->delivered = true;
}

static void api_serve(struct latency *latency)
{
    int64_t now = clock_us();
    if (!peer_read(latency->fds[0].fd, &latency->api))
        die("the daemon closed the connection");
    size_t body, len = http_message_length(latency->api.data, latency->api.len, &body);
    if (!len)
        return;
    if (strncmp(latency->api.data, "HTTP/1.1 201", 12) != 0)
        die("unexpected answer: %.300s", latency->api.data);
    peer_drop(&latency->api, len);
    latency->acknowledged_us = now;
}

/* Serves one round of what happens within `wait_ms`. False: nothing did. */
static bool latency_poll(struct latency *latency, int wait_ms)
{
    int ready = poll(latency->fds, latency->fd_count, wait_ms);
    if (ready < 0 && errno != EINTR)
        die("poll: %s", strerror(errno));
    if (ready <= 0)
        return false;
    if (latency->fds[0].revents)
        api_serve(latency);
    for (nfds_t i = latency->fd_count; i-- > FIRST_PEER;) /* backwards: closing moves the last one here */
        if (latency->fds[i].revents)
            peer_serve(latency, i);
    if (latency->fds[1].revents)
        peer_accept(latency);
    return true;
}

/* Returns the time from acknowledgement to arrival, below 0 when the job was faster. */
static int64_t job_time(struct latency *latency)
{
    char request[2048], payload[513];
    memset(payload, 'x', 512);
    payload[512] = '\0';
    int body = (int)strlen("{\"destination\":\"\",\"payload\":\"\"}") + (int)strlen(latency->destination) + 512;
    int len = snprintf(request, sizeof request,
                       "POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                       "Content-Length: %d\r\n\r\n"
                       "{\"destination\":\"%s\",\"payload\":\"%s\"}",
                       body, latency->destination, payload);
    latency->acknowledged_us = latency->arrived_us = 0;
    latency->delivered = false;
    latency->asked_us = clock_us();
    if (send(latency->fds[0].fd, request, (size_t)len, MSG_NOSIGNAL) != len)
        die("send: %s", strerror(errno));
    while (!latency->acknowledged_us || !latency->delivered)
        if (!latency_poll(latency, JOB_WAIT_MS_MAX))
            die("a job was not %s within %d ms", latency->acknowledged_us ? "delivered" : "acknowledged", JOB_WAIT_MS_MAX);
    return latency->arrived_us - latency->acknowledged_us;
}

static void rest(struct latency *latency)
{
    int64_t until = clock_us() + latency->pause_ms * 1000;
    for (int64_t left = until - clock_us(); left > 0; left = until - clock_us())
        latency_poll(latency, (int)(left / 1000) + 1);
}

static void sockets_open(struct latency *latency)
{
    struct sockaddr_in address = loopback_address(latency->listen_port);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0)
        die("listen on 127.0.0.1:%u: %s", (unsigned)latency->listen_port, strerror(errno));
    latency->fds[0] = (struct pollfd){ .fd = loopback_connect(latency->api_port), .events = POLLIN };
    latency->fds[1] = (struct pollfd){ .fd = fd, .events = POLLIN };
    latency->fd_count = FIRST_PEER;
}

static void options_read(struct latency *latency, int argc, char **argv)
{
    static const struct option options[] = {
        { "api", required_argument, NULL, 'a' },         { "listen", required_argument, NULL, 'l' },
        { "jobs", required_argument, NULL, 'n' },        { "pause-ms", required_argument, NULL, 'p' },
        { "destination", required_argument, NULL, 'd' }, { 0 },
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'a': latency->api_port = (uint16_t)option_number("api", optarg, 1, 65535); break;
        case 'l': latency->listen_port = (uint16_t)option_number("listen", optarg, 1, 65535); break;
        case 'n': latency->jobs = option_number("jobs", optarg, 1, 1000000); break;
        case 'p': latency->pause_ms = option_number("pause-ms", optarg, 0, 10000); break;
        case 'd': latency->destination = optarg; break;
        default: exit(2);
        }
    }
    if (!latency->api_port || !latency->listen_port || strlen(latency->destination) > 200)
        die("usage: latency --api PORT --listen PORT [--jobs N] [--destination NAME] [--pause-ms N]");
}

int main(int argc, char **argv)
{
    static struct latency latency = { .jobs = 1000, .pause_ms = 2, .destination = "latency" };
    options_read(&latency, argc, argv);
    sockets_open(&latency);
    int64_t *times = allocate((size_t)latency.jobs, sizeof *times), *wholes = allocate((size_t)latency.jobs, sizeof *wholes);
    long early = 0;
    for (long i = 0; i < latency.jobs; i++) {
        int64_t time = job_time(&latency);
        early += time < 0;
        times[i] = time < 0 ? 0 : time;
        wholes[i] = latency.arrived_us - latency.asked_us;
        rest(&latency);
    }
    size_t count = (size_t)latency.jobs;
    qsort(times, count, sizeof *times, int64_compare);
    qsort(wholes, count, sizeof *wholes, int64_compare);
    printf("{\"jobs\":%ld,\"before_acknowledgement\":%ld,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,"
           "\"whole_p50_ms\":%.3f}\n", latency.jobs,
           early, (double)percentile(times, count, 0.5) / 1e3, (double)percentile(times, count, 0.99) / 1e3,
           (double)percentile(times, count, 1.0) / 1e3, (double)percentile(wholes, count, 0.5) / 1e3);
    free(times);
    free(wholes);
    while (latency.fd_count > FIRST_PEER)
        peer_close(&latency, latency.fd_count - 1);
    close(latency.fds[0].fd);
    close(latency.fds[1].fd);
    return 0;
}
