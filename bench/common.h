/*
 * common.h - what the measuring programs share: the clock, loopback sockets, percentiles, giving up.
 *
 * They are tools that measure for a few seconds and exit, so an error ends the program with a message.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

__attribute__((format(printf, 1, 2), noreturn)) static inline void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static inline int64_t clock_us(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        die("clock_gettime: %s", strerror(errno));
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static inline void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        die("out of memory");
    return memory;
}

static inline struct sockaddr_in loopback_address(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* A connected blocking socket that sends at once. */
static inline int loopback_connect(uint16_t port)
{
    struct sockaddr_in address = loopback_address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect to 127.0.0.1:%u: %s", (unsigned)port, strerror(errno));
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        die("TCP_NODELAY: %s", strerror(errno));
    return fd;
}

/* A whole number within the bounds, or the end. */
static inline long option_number(const char *name, const char *text, long min, long max)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno || end == text || *end || number < min || number > max)
        die("--%s must be a number from %ld to %ld, not \"%s\"", name, min, max, text);
    return number;
}

/*
 * An HTTP message at the start of `text`, ended by a zero byte at text[len]. Returns its length, headers and body, or 0
 * while it is incomplete. Only bodies with a Content-Length are known: nothing measured here sends others.
 */
static inline size_t http_message_length(const char *text, size_t len, size_t *ret_body_at)
{
    const char *end = memmem(text, len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    size_t head = (size_t)(end - text) + 4, body = 0;
    for (const char *line = memmem(text, head, "\r\n", 2); line && line < end; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, "content-length:", 15) == 0)
            body = strtoul(line + 17, NULL, 10);
        else if (strncasecmp(line + 2, "transfer-encoding:", 18) == 0)
            die("a chunked message: only Content-Length is understood");
    }
    *ret_body_at = head;
    return len >= head + body ? head + body : 0;
}

static inline int int64_compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* The values must be sorted. `share` is from 0 to 1. */
static inline int64_t percentile(const int64_t *sorted, size_t count, double share)
{
    return count ? sorted[(size_t)(share * (double)(count - 1) + 0.5)] : 0;
}

#endif
