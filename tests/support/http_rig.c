#include "support/http_rig.h"

#include "support/check.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WAIT_MS = 60000, TURNS_MIN = 20, CONFIG_TEXT_MAX = 64 * 1024 };

static instant rig_now(void *context)
{
    const struct rig *rig = context;
    return rig->now;
}

struct http_settings rig_settings(struct rig *rig)
{
    return (struct http_settings){ .now = rig_now, .context = rig, .connections_max = 256 };
}

void rig_open(struct rig *rig)
{
    struct error err;
    signal(SIGPIPE, SIG_IGN);
    *rig = (struct rig){ .loop = event_base_new() };
    assert_non_null(rig->loop);
    assert_int_equal(instant_parse(SLICE("2025-01-12T10:40:00Z"), &rig->now, NULL), STATUS_OK);
    struct http_settings settings = rig_settings(rig);
    if (http_transport_new(rig->loop, &settings, &rig->transport, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

void rig_close(struct rig *rig)
{
    rig->transport->ops->free(rig->transport);
    event_base_free(rig->loop);
    config_unref(rig->config);
}

const struct destination_config *rig_configure(struct rig *rig, const char *format, ...)
{
    struct buffer text, problems;
    char body[CONFIG_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(body, sizeof body, format, args);
    va_end(args);
    buffer_init(&text, 2 * CONFIG_TEXT_MAX);
    buffer_init(&problems, CONFIG_TEXT_MAX);
    buffer_printf(&text, "destinations: { d: { %s } }\n", body);
    config_unref(rig->config);
    rig->config = NULL;
    rig->transport->ops->forget(rig->transport); /* the next configuration may stand where this one stood */
    if (config_parse(buffer_slice(&text), "test", &rig->config, &problems) != STATUS_OK)
        fail_msg("%s: %s", body, problems.data);
    buffer_release(&text);
    buffer_release(&problems);
    return config_destination(rig->config, SLICE("d"));
}

static void copy(struct slice *slice, char *text, size_t size)
{
    check(slice->len < size, "an answer has %zu bytes of text", slice->len);
    if (slice->len > 0)
        memcpy(text, slice->data, slice->len);
    text[slice->len] = '\0';
    slice->data = text;
}

static void on_done(struct send *send, const struct answer *answer)
{
    struct rig_send *own = send->context;
    own->times++;
    own->answer = *answer;
    copy(&own->answer.code, own->code, sizeof own->code);
    copy(&own->answer.text, own->text, sizeof own->text);
    copy(&own->answer.reference, own->reference, sizeof own->reference);
    copy(&own->answer.left_out, own->left_out, sizeof own->left_out);
}

void rig_prepare(struct rig *rig, struct rig_send *send)
{
    *send = (struct rig_send){ .times = 0 };
    send->job = (struct job){ .destination = SLICE("d"), .tenant = SLICE("acme"), .id = SLICE("j-1"), .attempts = 1,
                              .attempts_total = 1, .payload = SLICE("{\"n\":1}"), .content_type = SLICE("application/json") };
    send->send = (struct send){ .destination = config_destination(rig->config, SLICE("d")), .done = on_done };
}

void rig_start(struct rig *rig, struct rig_send *send)
{
    send->send.job = &send->job;
    send->send.context = send;
    rig->transport->ops->start(rig->transport, &send->send);
    check(send->times == 0, "a send was answered from inside start");
}

void rig_begin(struct rig *rig, struct rig_send *send, const char *id, const char *payload)
{
    rig_prepare(rig, send);
    send->job.id = slice_from(id);
    send->job.payload = slice_from(payload);
    rig_start(rig, send);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void run_once(struct rig *rig, int ms)
{
    struct timeval wait = { ms / 1000, ms % 1000 * 1000 };
    event_base_loopexit(rig->loop, &wait);
    event_base_loop(rig->loop, EVLOOP_ONCE);
}

void rig_run(struct rig *rig, int ms)
{
    int turns = 0; /* on a busy machine the time may be gone after the first */
    for (int64_t end = now_ms() + ms; now_ms() < end || turns < TURNS_MIN; turns++)
        run_once(rig, ms > 100 ? 10 : 2);
}

void rig_wait(struct rig *rig, struct rig_send *send)
{
    for (int64_t end = now_ms() + WAIT_MS; send->times == 0;) {
        if (now_ms() > end)
            fail_msg("a send was never answered");
        event_base_loop(rig->loop, EVLOOP_ONCE);
    }
    check(send->times == 1, "a send was answered %d times", send->times);
}

void rig_send(struct rig *rig, struct rig_send *send)
{
    rig_prepare(rig, send);
    rig_start(rig, send);
    rig_wait(rig, send);
}

size_t rig_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}
