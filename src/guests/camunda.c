#include "guests/camunda.h"

#include "api/jobs/decisions.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/errors/redact.h"
#include "guests/camunda_calls.h"
#include "guests/wire.h"
#include "lib/decision_json.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_MS = 10 * 1000,        /* for jobs, in one question */
    ANSWER_MS = 10 * 1000,      /* that Camunda may take for an answer */
    AGAIN_FIRST_MS = 200,       /* after an answer that was not taken, or a question that failed; then twice as long */
    AGAIN_MAX_MS = 30 * 1000,
    TEXT_BYTES_MAX = 2000,      /* of an error's message */
    ANSWER_BYTES_LOGGED = 500,  /* of an answer that was not expected */
    RETRIES_WHEN_UNTOLD = 3,    /* of an external task that never failed */
    STORE_AGAIN_MS = 10 * 1000, /* when the decision could not be put on record */
};

struct reply;

/* One type of job of one Camunda. */
struct worker {
    struct camunda *camunda;
    const struct camunda_config *config;
    const char *type, *policy;
    struct decisions *decisions;
    struct wire *wire;
    struct mailbox *mailbox; /* where the writer answers */
    bool recorded;           /* it has */
    struct reply *replies;   /* room for twice what is fetched at once: what was not taken waits beside the new ones */
    struct exchange *exchanges; /* likewise, to send them together */
    size_t open;             /* replies that Camunda has not taken yet */
    pthread_t thread;
    bool started;
    _Atomic bool ended;
    bool away; /* it was said that Camunda does not answer */
};

struct camunda {
    struct camunda_settings settings;
    struct worker *workers;
    size_t count;
    struct camunda *previous; /* of another configuration, asked to stop; NULL: none, or it has ended */
};

/* What one job is answered with, until it is taken or the job's lock has ended. */
struct reply {
    struct camunda_answer answer;
    char text[TEXT_BYTES_MAX + 1];
    struct buffer url, event;
    struct exchange exchange;
    int64_t until_ns; /* when the lock ends */
    int64_t again_ns; /* when it is to be given (again) */
    int64_t wait_ms;  /* after the next time that it is not taken */
    bool done;
};

/* --- deciding ------------------------------------------------------------------------------------------ */

static void fail(struct reply *reply, int64_t retries, int64_t retry_ms)
{
    reply->answer.end = CAMUNDA_FAILURE;
    reply->answer.retries = retries > 0 ? retries : 0;
    reply->answer.retry_ms = retries > 0 ? retry_ms : 0;
    reply->answer.text = reply->text;
}

static void set_text(struct reply *reply, struct slice text)
{
    struct buffer masked = buffer_up_to(TEXT_BYTES_MAX);
    redact(&masked, text, TEXT_BYTES_MAX);
    struct slice slice = buffer_slice(&masked);
    memcpy(reply->text, slice.data ? slice.data : "", slice.len);
    reply->text[slice.len] = '\0';
    buffer_release(&masked);
}

/* S0-119, S0-120, C-28: what is not tried again ends the job, by an error of the process or an incident. */
static void take_decision(const struct worker *worker, struct reply *reply)
{
    json_t *decision = reply->answer.decision;
    const char *error = json_string_value(json_object_get(decision, "originalError"));
    reply->answer.code = json_string_value(json_object_get(decision, "errorCode"));
    if (json_is_true(json_object_get(decision, "shouldRetry"))) {
        reply->answer.end = CAMUNDA_COMPLETE;
        return;
    }
    set_text(reply, slice_from(error ? error : ""));
    reply->answer.text = reply->text;
    if (worker->config->on_terminal == ON_TERMINAL_INCIDENT || !reply->answer.code)
        fail(reply, 0, 0);
    else
        reply->answer.end = CAMUNDA_ERROR;
}

/* A question that is not valid is the process's mistake: an incident shows it to a person. */
static void refuse(struct reply *reply)
{
    json_t *said = reply->answer.decision;
    const char *error = json_string_value(json_object_get(said, "error")),
               *detail = json_string_value(json_object_get(said, "detail"));
    struct buffer text = buffer_up_to(TEXT_BYTES_MAX);
    buffer_printf(&text, "%s: %s", error ? error : "INVALID_JSON", detail ? detail : "the variables cannot be read");
    set_text(reply, buffer_slice(&text));
    buffer_release(&text);
    json_decref(said);
    reply->answer.decision = NULL;
    fail(reply, 0, 0);
}

static void decide_job(struct worker *worker, const struct camunda_job *job, struct reply *reply)
{
    const struct camunda_settings *settings = &worker->camunda->settings;
    struct buffer out = buffer_up_to(DECISION_ANSWER_BYTES_MAX);
    struct decided decided = { .by = slice_from(worker->config->name), .event = &reply->event };
    int64_t began = clock_ticks_ns();
    bool valid = decisions_answer(worker->decisions, job->question, settings->now(settings->context), &decided, &out);
    int64_t took_ns = clock_ticks_ns() - began;
    struct slice text = buffer_slice(&out);
    reply->answer.decision = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
    buffer_release(&out);
    if (!valid) {
        refuse(reply);
        return;
    }
    settings->on_decided(settings->context, decided.policy, &decided.decision, took_ns);
    take_decision(worker, reply);
}

/* --- on record ----------------------------------------------------------------------------------------- */

static void on_recorded(struct batch *batch)
{
    struct worker *worker = batch->context;
    worker->recorded = true;
}

/* The events of all of them in one transaction; false: they are not in the trail. */
static bool record(struct worker *worker, struct reply *replies, size_t count)
{
    struct batch *batch = batch_new(count, SIZE_MAX / 4);
    if (!batch)
        return false;
    for (size_t i = 0; i < count; i++)
        if (replies[i].event.len > 0)
            batch->ops[batch->count++] = (struct store_op){ .kind = OP_NOTE, .data = buffer_slice(&replies[i].event) };
    bool done = batch->count == 0;
    if (!done) {
        batch->reply_to = worker->mailbox;
        batch->done = on_recorded;
        batch->context = worker;
        worker->recorded = false;
        writer_submit(worker->camunda->settings.writer, batch);
        while (!worker->recorded) { /* the writer answers everything that it was given */
            mailbox_wait(worker->mailbox, -1);
            mailbox_drain(worker->mailbox);
        }
        done = batch->status == STATUS_OK;
        for (size_t i = 0; done && i < batch->count; i++)
            done = batch->ops[i].status == STATUS_OK;
    }
    batch_free(batch);
    return done;
}

/* The decisions hold for nothing then: Camunda gives the jobs out again. */
static void take_back(const struct camunda_job *jobs, struct reply *replies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (replies[i].event.len == 0)
            continue;
        json_decref(replies[i].answer.decision);
        replies[i].answer.decision = NULL;
        set_text(&replies[i], SLICE("insist cannot write the decision to its store for now"));
        fail(&replies[i], (jobs[i].retries < 0 ? RETRIES_WHEN_UNTOLD : jobs[i].retries) - 1, STORE_AGAIN_MS);
    }
}

/* --- answering ----------------------------------------------------------------------------------------- */

static struct slice head_of(const struct buffer *answer)
{
    struct slice text = buffer_slice(answer);
    return (struct slice){ text.data, text.len < ANSWER_BYTES_LOGGED ? text.len : ANSWER_BYTES_LOGGED };
}

static void reply_release(struct reply *reply)
{
    buffer_release(&reply->url);
    buffer_release(&reply->exchange.body);
    buffer_release(&reply->exchange.answer);
}

/* False: the lock ends before it can be given again, and Camunda gives the job out anew. */
static bool take_verdict(const struct worker *worker, struct reply *reply, int64_t now_ns)
{
    enum camunda_verdict verdict = camunda_verdict(reply->exchange.status);
    if (verdict == CAMUNDA_GONE)
        log_event(LOG_INFO, "camunda_job_gone", FIELD_CSTR("camunda", worker->config->name),
                  FIELD_CSTR("url", reply->url.data), FIELD_INT("status", reply->exchange.status),
                  FIELD_TEXT("answer", head_of(&reply->exchange.answer)));
    reply->again_ns = now_ns + reply->wait_ms * 1000000;
    reply->wait_ms = reply->wait_ms < AGAIN_MAX_MS / 2 ? reply->wait_ms * 2 : AGAIN_MAX_MS;
    bool late = verdict == CAMUNDA_AGAIN && reply->again_ns >= reply->until_ns;
    reply->done = verdict != CAMUNDA_AGAIN || late;
    return !late;
}

static void tell_unanswered(const struct worker *worker, size_t count)
{
    if (count > 0)
        log_event(LOG_WARN, "camunda_not_answered", FIELD_CSTR("camunda", worker->config->name),
                  FIELD_INT("jobs", (int64_t)count),
                  FIELD_CSTR("advice", "Camunda gives them out again when their lock ends"));
}

/* Once each of those whose time it is; those that are taken, or too late, go. */
static void answer_due(struct worker *worker)
{
    int64_t now_ns = clock_ticks_ns();
    size_t due = 0, left = 0, lost = 0;
    for (size_t i = 0; i < worker->open; i++)
        if (worker->replies[i].again_ns <= now_ns)
            worker->exchanges[due++] = worker->replies[i].exchange;
    if (due == 0)
        return;
    wire_run(worker->wire, worker->exchanges, due, ANSWER_MS);
    due = 0;
    int64_t after_ns = clock_ticks_ns();
    for (size_t i = 0; i < worker->open; i++) {
        struct reply *reply = &worker->replies[i];
        if (reply->again_ns <= now_ns) {
            reply->exchange = worker->exchanges[due++];
            lost += !take_verdict(worker, reply, after_ns);
        }
        if (reply->done)
            reply_release(reply);
        else
            worker->replies[left++] = *reply;
    }
    worker->open = left;
    tell_unanswered(worker, lost);
}

/* How long nothing is to be answered, at most `most_ms`. */
static int64_t answer_free_ms(const struct worker *worker, int64_t most_ms)
{
    int64_t now_ns = clock_ticks_ns(), free_ms = most_ms;
    for (size_t i = 0; i < worker->open; i++) {
        int64_t ms = (worker->replies[i].again_ns - now_ns) / 1000000;
        free_ms = ms < free_ms ? ms : free_ms;
    }
    return free_ms > 0 ? free_ms : 0;
}

/* It is ready to be sent, and holds nothing but that. */
static void reply_make(const struct worker *worker, const struct camunda_job *job, struct reply *reply, int64_t until_ns)
{
    camunda_answer(worker->config, job, &reply->answer, &reply->url, &reply->exchange.body);
    json_decref(reply->answer.decision);
    buffer_release(&reply->event);
    reply->answer = (struct camunda_answer){ 0 };
    reply->exchange.url = reply->url.data;
    reply->until_ns = until_ns;
    reply->wait_ms = AGAIN_FIRST_MS;
}

static void handle(struct worker *worker, const struct camunda_job *jobs, size_t count, int64_t until_ns)
{
    struct reply *replies = worker->replies + worker->open;
    assert(worker->open + count <= 2 * (size_t)worker->config->jobs_max);
    for (size_t i = 0; i < count; i++) {
        replies[i] = (struct reply){ .exchange.head_only = true };
        buffer_init(&replies[i].url, 4096);
        buffer_init(&replies[i].event, EVENT_DATA_BYTES_MAX);
        buffer_init(&replies[i].exchange.body, DECISION_ANSWER_BYTES_MAX);
        buffer_init(&replies[i].exchange.answer, WIRE_HEAD_BYTES_MAX);
        decide_job(worker, &jobs[i], &replies[i]);
    }
    if (!record(worker, replies, count))
        take_back(jobs, replies, count);
    for (size_t i = 0; i < count; i++) {
        struct reply *reply = &replies[i];
        reply_make(worker, &jobs[i], reply, until_ns);
        if (buffer_status(&reply->exchange.body) != STATUS_OK || buffer_status(&reply->url) != STATUS_OK)
            reply_release(reply); /* no memory: given out again when the lock ends */
        else
            worker->replies[worker->open++] = *reply;
    }
    answer_due(worker);
}

/* --- fetching ------------------------------------------------------------------------------------------ */

static void tell_away(struct worker *worker, const struct exchange *exchange, const char *reason)
{
    if (!worker->away)
        log_event(LOG_WARN, "camunda_away", FIELD_CSTR("camunda", worker->config->name), FIELD_CSTR("type", worker->type),
                  FIELD_INT("status", exchange->status), FIELD_CSTR("reason", reason));
    worker->away = true;
}

/* One question for jobs, and their answers. False: there were none, because something is wrong. */
static bool fetch_and_handle(struct worker *worker, struct exchange *exchange, struct camunda_job *jobs, int64_t wait_ms)
{
    struct arena memory;
    struct buffer url = buffer_up_to(4096);
    size_t count = 0;
    arena_init(&memory, SIZE_MAX / 4);
    exchange->status = 0;
    buffer_clear(&exchange->body);
    camunda_fetch(worker->config, worker->type, wait_ms, &url, &exchange->body);
    exchange->url = url.data;
    if (buffer_status(&url) == STATUS_OK && buffer_status(&exchange->body) == STATUS_OK)
        wire_run(worker->wire, exchange, 1, wait_ms + ANSWER_MS);
    int64_t until_ns = clock_ticks_ns() + worker->config->timeout_ms * 1000000;
    bool answered = exchange->status == 200;
    bool understood = answered && camunda_fetched(worker->config, worker->policy, buffer_slice(&exchange->answer), &memory,
                                                  jobs, (size_t)worker->config->jobs_max, &count);
    if (!understood && !wire_stopped(worker->wire))
        tell_away(worker, exchange,
                  answered               ? "what it says are no jobs"
                  : exchange->failure[0] ? exchange->failure
                                         : "it refuses");
    if (understood && worker->away)
        log_event(LOG_INFO, "camunda_back", FIELD_CSTR("camunda", worker->config->name), FIELD_CSTR("type", worker->type));
    worker->away = worker->away && !understood;
    if (count > 0)
        handle(worker, jobs, count, until_ns);
    buffer_release(&url);
    arena_release(&memory);
    return understood;
}

/* Fetches unless it was of no use just now, or too many answers wait; those that do are given meanwhile. */
static void work_on(struct worker *worker, struct exchange *exchange, struct camunda_job *jobs)
{
    int64_t again_ms = AGAIN_FIRST_MS, fetch_ns = 0;
    while (!wire_stopped(worker->wire)) {
        answer_due(worker);
        int64_t away_ms = (fetch_ns - clock_ticks_ns()) / 1000000;
        bool full = worker->open >= (size_t)worker->config->jobs_max;
        if (full || away_ms > 0) {
            wire_sleep(worker->wire, answer_free_ms(worker, full ? AGAIN_MAX_MS : away_ms));
            continue;
        }
        int64_t wait_ms = answer_free_ms(worker, WAIT_MS);
        if (fetch_and_handle(worker, exchange, jobs, wait_ms > 0 ? wait_ms : 1)) {
            again_ms = AGAIN_FIRST_MS;
            continue;
        }
        fetch_ns = clock_ticks_ns() + again_ms * 1000000;
        again_ms = again_ms < AGAIN_MAX_MS / 2 ? again_ms * 2 : AGAIN_MAX_MS;
    }
    tell_unanswered(worker, worker->open);
}

static void *work(void *context)
{
    struct worker *worker = context;
    size_t max = (size_t)worker->config->jobs_max;
    struct camunda_job *jobs = calloc(max, sizeof *jobs);
    struct exchange exchange = { 0 };
    worker->replies = calloc(2 * max, sizeof *worker->replies);
    worker->exchanges = calloc(2 * max, sizeof *worker->exchanges);
    buffer_init(&exchange.body, 64 * 1024);
    buffer_init(&exchange.answer, WIRE_ANSWER_BYTES_MAX);
    if (jobs && worker->replies && worker->exchanges)
        work_on(worker, &exchange, jobs);
    else
        log_event(LOG_ERROR, "camunda_away", FIELD_CSTR("camunda", worker->config->name), FIELD_CSTR("type", worker->type),
                  FIELD_CSTR("reason", "no memory"));
    for (size_t i = 0; i < worker->open; i++)
        reply_release(&worker->replies[i]);
    buffer_release(&exchange.body);
    buffer_release(&exchange.answer);
    free(jobs);
    free(worker->replies);
    free(worker->exchanges);
    worker->ended = true;
    return NULL;
}

/* --- start and end ------------------------------------------------------------------------------------- */

static enum status worker_start(struct worker *worker, struct error *err)
{
    const struct wire_settings settings = { worker->config->username, worker->config->password, worker->config->token };
    worker->decisions = decisions_new(worker->camunda->settings.config);
    enum status status = worker->decisions ? wire_new(&settings, &worker->wire, err)
                                           : error_set(err, STATUS_NO_MEMORY, "no memory for decisions");
    if (status == STATUS_OK)
        status = mailbox_new(&worker->mailbox, err);
    if (status == STATUS_OK && pthread_create(&worker->thread, NULL, work, worker) != 0)
        status = error_set(err, STATUS_NO_MEMORY, "cannot start a thread for camunda %s", worker->config->name);
    worker->started = status == STATUS_OK;
    return status;
}

enum status camunda_start(const struct camunda_settings *settings, struct camunda **ret_camunda, struct error *err)
{
    const struct config *config = settings->config;
    size_t count = 0;
    *ret_camunda = NULL;
    for (size_t i = 0; i < config->camunda_count; i++)
        count += config->camunda[i].types.count;
    struct camunda *camunda = calloc(1, sizeof *camunda);
    struct worker *workers = calloc(count + 1, sizeof *workers);
    if (!camunda || !workers) {
        free(camunda);
        free(workers);
        return error_set(err, STATUS_NO_MEMORY, "no memory for camunda");
    }
    *camunda = (struct camunda){ .settings = *settings, .workers = workers };
    config_ref(camunda->settings.config);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < config->camunda_count; i++)
        for (size_t j = 0; status == STATUS_OK && j < config->camunda[i].types.count; j++) {
            struct worker *worker = &workers[camunda->count++];
            *worker = (struct worker){ .camunda = camunda,
                                       .config = &config->camunda[i],
                                       .type = config->camunda[i].types.items[j].name,
                                       .policy = config->camunda[i].types.items[j].value };
            status = worker_start(worker, err);
        }
    assert(camunda->count <= count);
    if (status == STATUS_OK)
        *ret_camunda = camunda;
    else
        camunda_stop(camunda);
    return status;
}

void camunda_cease(struct camunda *camunda)
{
    for (size_t i = 0; i < camunda->count; i++)
        if (camunda->workers[i].wire)
            wire_stop(camunda->workers[i].wire);
}

static bool has_ended(const struct camunda *camunda)
{
    for (size_t i = 0; i < camunda->count; i++)
        if (camunda->workers[i].started && !camunda->workers[i].ended)
            return false;
    return !camunda->previous || has_ended(camunda->previous);
}

void camunda_follow(struct camunda *camunda, struct camunda *previous)
{
    camunda_cease(previous);
    if (has_ended(previous)) {
        camunda_stop(previous);
        return;
    }
    struct camunda *last = previous;
    while (last->previous)
        last = last->previous;
    last->previous = camunda->previous;
    camunda->previous = previous;
}

void camunda_stop(struct camunda *camunda)
{
    if (!camunda)
        return;
    camunda_cease(camunda);
    for (size_t i = 0; i < camunda->count; i++) {
        struct worker *worker = &camunda->workers[i];
        if (worker->started)
            pthread_join(worker->thread, NULL);
        wire_free(worker->wire);
        mailbox_free(worker->mailbox);
        decisions_free(worker->decisions);
    }
    camunda_stop(camunda->previous);
    config_unref(camunda->settings.config);
    free(camunda->workers);
    free(camunda);
}
