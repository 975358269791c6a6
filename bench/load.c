/*
 * load.c - makes work for a queue server on loopback and times it.
 *
 *   load enqueue   --port P --jobs N [--connections 64] [--ids]   POST /v1/jobs, one job a request
 *   load batch     --port P --jobs N [--connections 4] [--batch 500]   POST /v1/jobs/batch, one job a line
 *   load lease     --port P --jobs N [--connections 4] [--batch 100]   POST /v1/leases, then /v1/leases/ack
 *   load beanstalk --port P --jobs N [--connections 64]           beanstalkd's put
 *
 * The generator shares the machine with what it measures, so it is one thread on epoll that builds requests by copying
 * and reads no more of an answer than it must. A connection has one request under way. Only jobs that the server
 * acknowledged count. Prints one JSON object.
 */
#include "common.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/epoll.h>

enum { CONNECTIONS_MAX = 1024, PAYLOAD_BYTES_MAX = 60000, IN_BYTES_MAX = 64 << 20, ERRORS_SHOWN_MAX = 3 };

struct bytes {
    char *data; /* always ended by a zero byte */
    size_t len, room;
};

struct connection {
    int fd;
    bool acking;          /* lease: the request under way is the ack */
    bool wants_write;     /* what epoll was told */
    struct bytes out, in;
    size_t sent;
    size_t request_jobs;
    int64_t started_us;
};

struct load;

struct mode {
    const char *name;
    long connections, batch;
    /* Fills connection->out with the next request. False: nothing is left to ask. */
    bool (*prepare)(struct load *load, struct connection *connection);
    /* Handles a complete answer. Returns its length, or 0 while it is incomplete. */
    size_t (*answer)(struct load *load, struct connection *connection);
};

struct load {
    const struct mode *mode;
    uint16_t port;
    long connections, batch, jobs, payload_bytes, seconds_max;
    bool ids;
    const char *destination, *extra;
    char *payload;
    uint64_t random[2];
    int epoll;
    long jobs_asked, jobs_done, errors;
    int64_t *latencies_us;
    size_t latency_count, latency_room;
};

static void bytes_reserve(struct bytes *bytes, size_t more)
{
    if (bytes->len + more < bytes->room)
        return;
    size_t room = (bytes->len + more + 1) * 2;
    char *data = realloc(bytes->data, room);
    if (!data)
        die("out of memory");
    bytes->data = data;
    bytes->room = room;
}

static void bytes_add(struct bytes *bytes, const char *data, size_t len)
{
    bytes_reserve(bytes, len);
    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
    bytes->data[bytes->len] = '\0';
}

static void bytes_add_text(struct bytes *bytes, const char *text)
{
    bytes_add(bytes, text, strlen(text));
}

static uint64_t random_next(struct load *load) /* xorshift128+ */
{
    uint64_t a = load->random[0], b = load->random[1];
    load->random[0] = b;
    a ^= a << 23;
    load->random[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
    return load->random[1] + b;
}

static void bytes_add_uuid(struct bytes *bytes, struct load *load)
{
    static const char digits[] = "0123456789abcdef";
    char text[37] = "xxxxxxxx-xxxx-4xxx-axxx-xxxxxxxxxxxx";
    uint64_t bits = 0;
    for (int i = 0, used = 16; i < 36; i++) {
        if (text[i] != 'x')
            continue;
        if (used == 16) {
            bits = random_next(load);
            used = 0;
        }
        text[i] = digits[bits & 15];
        bits >>= 4;
        used++;
    }
    bytes_add(bytes, text, 36);
}

static void bytes_add_job(struct bytes *bytes, struct load *load)
{
    bytes_add_text(bytes, "{\"destination\":\"");
    bytes_add_text(bytes, load->destination);
    bytes_add_text(bytes, "\",");
    if (load->ids) {
        bytes_add_text(bytes, "\"id\":\"");
        bytes_add_uuid(bytes, load);
        bytes_add_text(bytes, "\",");
    }
    if (load->extra) {
        bytes_add_text(bytes, load->extra);
        bytes_add_text(bytes, ",");
    }
    bytes_add_text(bytes, "\"payload\":\"");
    bytes_add(bytes, load->payload, (size_t)load->payload_bytes);
    bytes_add_text(bytes, "\"}");
}

/* The body follows an exact head, so its length is written into a place of fixed width once it is known. */
static size_t request_begin(struct bytes *out, const char *path, const char *type)
{
    char head[256];
    int len = snprintf(head, sizeof head,
                       "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nContent-Length: %010d\r\n\r\n", path,
                       type, 0);
    out->len = 0;
    bytes_add(out, head, (size_t)len);
    return out->len;
}

static void request_end(struct bytes *out, size_t head)
{
    char digits[11];
    snprintf(digits, sizeof digits, "%010zu", (out->len - head) % 10000000000u);
    memcpy(out->data + head - 4 - 10, digits, 10);
}

/* How many jobs the next request of the connection has, 0 when all were asked for. */
static size_t jobs_take(struct load *load)
{
    long left = load->jobs - load->jobs_asked;
    long taken = left < load->batch ? left : load->batch;
    load->jobs_asked += taken;
    return (size_t)taken;
}

static bool enqueue_prepare(struct load *load, struct connection *connection)
{
    connection->request_jobs = jobs_take(load);
    if (!connection->request_jobs)
        return false;
    size_t head = request_begin(&connection->out, "/v1/jobs", "application/json");
    bytes_add_job(&connection->out, load);
    request_end(&connection->out, head);
    return true;
}

static bool batch_prepare(struct load *load, struct connection *connection)
{
    connection->request_jobs = jobs_take(load);
    if (!connection->request_jobs)
        return false;
    size_t head = request_begin(&connection->out, "/v1/jobs/batch", "application/x-ndjson");
    for (size_t i = 0; i < connection->request_jobs; i++) {
        bytes_add_job(&connection->out, load);
        bytes_add(&connection->out, "\n", 1);
    }
    request_end(&connection->out, head);
    return true;
}

static void error_count(struct load *load, const struct connection *connection)
{
    load->errors++;
    if (load->errors <= ERRORS_SHOWN_MAX)
        fprintf(stderr, "load: unexpected answer: %.300s\n", connection->in.data);
}

static int http_status(const struct connection *connection)
{
    const char *space = strchr(connection->in.data, ' ');
    return space ? atoi(space + 1) : 0;
}

static size_t enqueue_answer(struct load *load, struct connection *connection)
{
    size_t body, len = http_message_length(connection->in.data, connection->in.len, &body);
    if (!len)
        return 0;
    int status = http_status(connection);
    if (status == 201 || status == 200)
        load->jobs_done++;
    else
        error_count(load, connection);
    return len;
}

static size_t batch_answer(struct load *load, struct connection *connection)
{
    size_t body, len = http_message_length(connection->in.data, connection->in.len, &body);
    if (!len)
        return 0;
    int status = http_status(connection);
    const char *accepted = strstr(connection->in.data + body, "\"accepted\"");
    const char *colon = accepted ? strchr(accepted, ':') : NULL;
    long count = colon && (status == 200 || status == 201) ? atol(colon + 1) : 0;
    load->jobs_done += count;
    if (count != (long)connection->request_jobs)
        error_count(load, connection);
    return len;
}

static bool lease_prepare(struct load *load, struct connection *connection)
{
    if (connection->acking)
        return true; /* lease_answer wrote the ack */
    connection->request_jobs = jobs_take(load);
    if (!connection->request_jobs)
        return false;
    char body[256];
    snprintf(body, sizeof body, "{\"destination\":\"%s\",\"max\":%zu,\"wait_s\":0,\"lease_s\":60}", load->destination,
             connection->request_jobs);
    size_t head = request_begin(&connection->out, "/v1/leases", "application/json");
    bytes_add_text(&connection->out, body);
    request_end(&connection->out, head);
    return true;
}

/*
 * Writes the ack of every `"lease":…` in the answer, and returns how many. A payload cannot be taken for one: the quotes
 * inside a JSON string are escaped.
 */
static size_t ack_write(struct bytes *out, const char *answer)
{
    size_t count = 0, head = request_begin(out, "/v1/leases/ack", "application/json");
    bytes_add_text(out, "{\"leases\":[");
    for (const char *at = strstr(answer, "\"lease\":"); at; at = strstr(at, "\"lease\":")) {
        at += strlen("\"lease\":");
        at += strspn(at, " ");
        size_t len = *at == '"' ? strcspn(at + 1, "\"") + 2 : strcspn(at, ",} \r\n");
        if (count++)
            bytes_add(out, ",", 1);
        bytes_add(out, at, len);
        at += len;
    }
    bytes_add_text(out, "]}");
    request_end(out, head);
    return count;
}

static size_t lease_answer(struct load *load, struct connection *connection)
{
    size_t body, len = http_message_length(connection->in.data, connection->in.len, &body);
    if (!len)
        return 0;
    int status = http_status(connection);
    bool good = status == 200 || status == 201 || (connection->acking && status == 204);
    if (!good) {
        error_count(load, connection);
        connection->acking = false;
    } else if (connection->acking) {
        load->jobs_done += (long)connection->request_jobs;
        connection->acking = false;
    } else {
        size_t asked = connection->request_jobs;
        connection->request_jobs = ack_write(&connection->out, connection->in.data + body);
        connection->acking = connection->request_jobs > 0;
        if (connection->acking) /* a short lease leaves the rest for a later request */
            load->jobs_asked -= (long)asked - (long)connection->request_jobs;
        else
            error_count(load, connection);
    }
    return len;
}

static bool beanstalk_prepare(struct load *load, struct connection *connection)
{
    connection->request_jobs = jobs_take(load);
    if (!connection->request_jobs)
        return false;
    char head[64];
    int len = snprintf(head, sizeof head, "put 1024 0 60 %ld\r\n", load->payload_bytes);
    connection->out.len = 0;
    bytes_add(&connection->out, head, (size_t)len);
    bytes_add(&connection->out, load->payload, (size_t)load->payload_bytes);
    bytes_add(&connection->out, "\r\n", 2);
    return true;
}

static size_t beanstalk_answer(struct load *load, struct connection *connection)
{
    const char *end = memmem(connection->in.data, connection->in.len, "\r\n", 2);
    if (!end)
        return 0;
    if (strncmp(connection->in.data, "INSERTED ", 9) == 0)
        load->jobs_done++;
    else
        error_count(load, connection);
    return (size_t)(end - connection->in.data) + 2;
}

static const struct mode modes[] = {
    { "enqueue", 64, 1, enqueue_prepare, enqueue_answer },
    { "batch", 4, 500, batch_prepare, batch_answer },
    { "lease", 4, 100, lease_prepare, lease_answer },
    { "beanstalk", 64, 1, beanstalk_prepare, beanstalk_answer },
};

static void interest_set(struct load *load, struct connection *connection, bool write)
{
    if (connection->wants_write == write)
        return;
    struct epoll_event event = { .events = write ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = connection };
    if (epoll_ctl(load->epoll, EPOLL_CTL_MOD, connection->fd, &event) != 0)
        die("epoll_ctl: %s", strerror(errno));
    connection->wants_write = write;
}

static void request_send(struct load *load, struct connection *connection)
{
    while (connection->sent < connection->out.len) {
        ssize_t count = send(connection->fd, connection->out.data + connection->sent,
                             connection->out.len - connection->sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN)
            break;
        if (count < 0)
            die("send: %s", strerror(errno));
        connection->sent += (size_t)count;
    }
    interest_set(load, connection, connection->sent < connection->out.len);
}

/* Starts the connection's next request. False: it has none left. */
static bool request_start(struct load *load, struct connection *connection)
{
    if (!load->mode->prepare(load, connection))
        return false;
    connection->sent = 0;
    connection->started_us = clock_us();
    request_send(load, connection);
    return true;
}

static void latency_add(struct load *load, int64_t us)
{
    if (load->latency_count == load->latency_room) {
        load->latency_room = load->latency_room ? load->latency_room * 2 : 65536;
        load->latencies_us = realloc(load->latencies_us, load->latency_room * sizeof *load->latencies_us);
        if (!load->latencies_us)
            die("out of memory");
    }
    load->latencies_us[load->latency_count++] = us;
}

/* Reads what there is. False: the connection's answer came and nothing is left to ask on it. */
static bool answer_read(struct load *load, struct connection *connection)
{
    struct bytes *in = &connection->in;
    bytes_reserve(in, 16384);
    ssize_t count = recv(connection->fd, in->data + in->len, in->room - in->len - 1, 0);
    if (count < 0 && errno == EAGAIN)
        return true;
    if (count <= 0)
        die("the server closed a connection with a request under way%s%s", count < 0 ? ": " : "",
            count < 0 ? strerror(errno) : "");
    in->len += (size_t)count;
    in->data[in->len] = '\0';
    if (in->len > IN_BYTES_MAX)
        die("an answer over %d bytes", IN_BYTES_MAX);
    size_t len = load->mode->answer(load, connection);
    if (!len)
        return true;
    latency_add(load, clock_us() - connection->started_us);
    in->len -= len;
    memmove(in->data, in->data + len, in->len + 1);
    return request_start(load, connection);
}

static void load_run(struct load *load, struct connection *connections, int64_t deadline_us)
{
    long open = 0;
    for (long i = 0; i < load->connections; i++)
        open += request_start(load, &connections[i]);
    while (open > 0) {
        struct epoll_event events[64];
        int count = epoll_wait(load->epoll, events, 64, 1000);
        if (count < 0 && errno != EINTR)
            die("epoll_wait: %s", strerror(errno));
        if (clock_us() > deadline_us)
            die("not done after %ld s: %ld of %ld jobs", load->seconds_max, load->jobs_done, load->jobs);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (events[i].events & EPOLLOUT)
                request_send(load, connection);
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                open -= !answer_read(load, connection);
        }
    }
}

static void connections_open(struct load *load, struct connection *connections)
{
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (load->epoll < 0)
        die("epoll_create1: %s", strerror(errno));
    for (long i = 0; i < load->connections; i++) {
        connections[i].fd = loopback_connect(load->port);
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = &connections[i] };
        if (fcntl(connections[i].fd, F_SETFL, O_NONBLOCK) != 0 ||
            epoll_ctl(load->epoll, EPOLL_CTL_ADD, connections[i].fd, &event) != 0)
            die("a new connection: %s", strerror(errno));
    }
}

static void payload_make(struct load *load)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789 ";
    load->payload = allocate((size_t)load->payload_bytes + 1, 1);
    for (long i = 0; i < load->payload_bytes; i++)
        load->payload[i] = letters[random_next(load) % (sizeof letters - 1)];
}

static void options_read(struct load *load, int argc, char **argv)
{
    static const struct option options[] = {
        { "port", required_argument, NULL, 'p' },        { "connections", required_argument, NULL, 'c' },
        { "jobs", required_argument, NULL, 'n' },        { "batch", required_argument, NULL, 'b' },
        { "payload", required_argument, NULL, 's' },     { "seconds", required_argument, NULL, 't' },
        { "destination", required_argument, NULL, 'd' }, { "extra", required_argument, NULL, 'x' },
        { "ids", no_argument, NULL, 'i' },               { 0 },
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'p': load->port = (uint16_t)option_number("port", optarg, 1, 65535); break;
        case 'c': load->connections = option_number("connections", optarg, 1, CONNECTIONS_MAX); break;
        case 'n': load->jobs = option_number("jobs", optarg, 1, 100000000); break;
        case 'b': load->batch = option_number("batch", optarg, 1, 100000); break;
        case 's': load->payload_bytes = option_number("payload", optarg, 0, PAYLOAD_BYTES_MAX); break;
        case 't': load->seconds_max = option_number("seconds", optarg, 1, 3600); break;
        case 'd': load->destination = optarg; break;
        case 'x': load->extra = optarg; break;
        case 'i': load->ids = true; break;
        default: exit(2);
        }
    }
    if (!load->port || !load->jobs)
        die("load: --port and --jobs are required");
}

static void result_print(struct load *load, double seconds)
{
    qsort(load->latencies_us, load->latency_count, sizeof *load->latencies_us, int64_compare);
    printf("{\"jobs\":%ld,\"errors\":%ld,\"seconds\":%.6f,\"per_second\":%.1f,\"requests\":%zu,"
           "\"p50_us\":%lld,\"p95_us\":%lld,\"p99_us\":%lld,\"max_us\":%lld}\n",
           load->jobs_done, load->errors, seconds, (double)load->jobs_done / seconds, load->latency_count,
           (long long)percentile(load->latencies_us, load->latency_count, 0.50),
           (long long)percentile(load->latencies_us, load->latency_count, 0.95),
           (long long)percentile(load->latencies_us, load->latency_count, 0.99),
           (long long)percentile(load->latencies_us, load->latency_count, 1.0));
}

int main(int argc, char **argv)
{
    struct load load = { .payload_bytes = 512, .seconds_max = 120, .destination = "bench" };
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            load.mode = &modes[i];
    if (!load.mode)
        die("usage: load enqueue|batch|lease|beanstalk --port P --jobs N [--connections N] [--batch N] [--payload BYTES] "
            "[--destination NAME] [--extra MEMBERS] [--ids] [--seconds MAX]");
    load.connections = load.mode->connections;
    load.batch = load.mode->batch;
    options_read(&load, argc - 1, argv + 1);
    load.random[0] = (uint64_t)clock_us() * 0x9e3779b97f4a7c15u | 1;
    load.random[1] = (uint64_t)getpid() * 0xbf58476d1ce4e5b9u | 1;
    payload_make(&load);

    struct connection *connections = allocate((size_t)load.connections, sizeof *connections);
    connections_open(&load, connections);
    int64_t begin = clock_us();
    load_run(&load, connections, begin + load.seconds_max * 1000000);
    result_print(&load, (double)(clock_us() - begin) / 1e6);
    for (long i = 0; i < load.connections; i++) {
        close(connections[i].fd);
        free(connections[i].in.data);
        free(connections[i].out.data);
    }
    free(connections);
    free(load.latencies_us);
    free(load.payload);
    return load.errors || load.jobs_done != load.jobs;
}
