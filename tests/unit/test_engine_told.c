/*
 * Who is told of an outage: whatever brings it, and whatever comes between, one message at its beginning and one at its end,
 * and one event for each change of the mode (S3-015, S3-063, A-18).
 */
#include "engine/alerts/notify.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include "base/log.h"
#include "engine/orders.h"

#include <stdio.h>

#define TOLD "notify: [{ name: ops, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [all] }]\n"
#define SIFEN(more)                                                                                                         \
    TOLD "destinations: { d: { preset: sifen, url: 'http://127.0.0.1:1/', allow_private: true, id_pattern: '.*'"            \
         ", alerts: { pending: 0, breaker_open: 0 }, in_doubt: resend" more " } }\n"
#define SINGLE ", contingency: { activate_on_single_event: true }"

enum { MESSAGES_MAX = 16 };

/* Something that brings contingency. The destination is away until `back_at`. */
struct trigger {
    const char *name, *more; /* of the configuration */
    enum outcome outcome;    /* of sends; OUTCOME_DELIVERED: they go well all the while */
    const char *code, *text;
    bool checked;            /* health checks are made, and fail */
    bool by_hand;
    const char *reason;      /* that the message gives */
    const char *event;       /* that the event has */
};

static const struct trigger triggers[] = {
    { "no answer within the limit", SINGLE, OUTCOME_IN_DOUBT, "curl:28", "timed out", false, false, "signal: timeout",
      "\"change\":\"contingency\",\"cause\":\"signal\",\"sign\":\"timeout\"" },
    { "network or name service", SINGLE, OUTCOME_TRANSIENT, "curl:6", "could not resolve host", false, false,
      "signal: connectivity", "\"change\":\"contingency\",\"cause\":\"signal\",\"sign\":\"connectivity\"" },
    { "a server error", SINGLE, OUTCOME_NONE, "http:500", "HTTP 500", false, false, "signal: service_error",
      "\"change\":\"contingency\",\"cause\":\"signal\",\"sign\":\"service_error\"" },
    { "it is busy", SINGLE, OUTCOME_NONE, "http:429", "HTTP 429", false, false, "signal: busy",
      "\"change\":\"contingency\",\"cause\":\"signal\",\"sign\":\"busy\"" },
    { "a maintenance window", ", contingency: { maintenance: ['Sun 10:45-11:00'] }", OUTCOME_DELIVERED, "sifen:0260", "", false,
      false, "maintenance", "\"change\":\"contingency\",\"cause\":\"maintenance\",\"sign\":\"maintenance\"" },
    { "three health checks", ", health: { url: 'http://127.0.0.1:1/health' }", OUTCOME_DELIVERED, "sifen:0260", "", true, false,
      "health", "\"change\":\"contingency\",\"cause\":\"health\"" },
    { "a document at its end", "", OUTCOME_NONE, "http:500", "HTTP 500", false, false, "exhausted", "\"change\":\"contingency\",\"cause\":\"exhausted\"" },
    { "the breaker", ", breaker: { min_calls: 4, window: 60s, failure_rate: 0.5 }", OUTCOME_NONE, "http:503", "HTTP 503", false,
      false, "breaker", "\"change\":\"contingency\",\"cause\":\"breaker\"" },
    { "an operator", "", OUTCOME_DELIVERED, "sifen:0260", "", false, true, "they called", "\"change\":\"contingency\",\"cause\":\"operator\"" },
};

struct script {
    const struct trigger *trigger;
    instant back_at;
    int fails_again; /* so many sends after it came back */
    char messages[MESSAGES_MAX][200]; /* "raised contingency d (breaker)" */
    char ids[MESSAGES_MAX][80];
    size_t count;
};

static void note_message(struct script *script, const struct send *send)
{
    json_t *root = json_loadb(send->job->payload.data, send->job->payload.len, 0, NULL);
    const json_t *data = json_object_get(root, "data");
    const char *destination = json_string_value(json_object_get(data, "destination"));
    const char *reason = json_string_value(json_object_get(data, "reason"));
    assert_non_null(data);
    assert_true(script->count < MESSAGES_MAX);
    snprintf(script->ids[script->count], sizeof *script->ids, "%.*s", SLICE_ARG(send->job->id));
    snprintf(script->messages[script->count++], sizeof *script->messages, "%s %s %s (%s)",
             json_string_value(json_object_get(root, "type")) + strlen("alert."), json_string_value(json_object_get(data, "alert")),
             destination ? destination : "-", reason ? reason : "");
    json_decref(root);
}

static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct script *script = stage->context;
    answer->outcome = OUTCOME_DELIVERED;
    if (slice_equal(send->job->tenant, NOTIFY_TENANT)) {
        note_message(script, send);
        return 5;
    }
    if (stage->now >= script->back_at && script->fails_again > 0) {
        script->fails_again--;
        answer->outcome = OUTCOME_NONE;
        answer->code = SLICE("http:503");
        answer->text = SLICE("HTTP 503: again");
    } else if (stage->now < script->back_at) {
        answer->outcome = script->trigger->outcome;
        answer->code = slice_from(script->trigger->code);
        answer->text = slice_from(script->trigger->text);
    }
    return 20;
}

static int64_t says_how_it_is(struct stage *stage, const struct probe *probe, struct health_answer *answer)
{
    const struct script *script = stage->context;
    bool up = stage->now >= script->back_at;
    (void)probe;
    *answer = (struct health_answer){ .connected = up, .status = up ? 200 : 0,
                                      .body = up ? SLICE("{\"status\":\"UP\",\"services\":{\"facturation\":\"UP\",\"batch\":\"UP\"}}") : SLICE("") };
    return 20;
}

/* What happens to the daemon itself in the course of it. */
enum trouble { TROUBLE_NONE, TROUBLE_CRASHES, TROUBLE_RESTARTS, TROUBLE_SLOW_COMMITS, TROUBLE_FAILED_COMMITS, TROUBLE_RELOADS, TROUBLE_COUNT };

static const char *const trouble_names[TROUBLE_COUNT] = {
    [TROUBLE_NONE] = "no trouble",           [TROUBLE_CRASHES] = "crashes",
    [TROUBLE_RESTARTS] = "restarts",         [TROUBLE_SLOW_COMMITS] = "slow commits",
    [TROUBLE_FAILED_COMMITS] = "failed commits", [TROUBLE_RELOADS] = "reloads",
};

static void make_trouble(struct stage *stage, enum trouble trouble)
{
    struct error err;
    if (trouble == TROUBLE_CRASHES)
        stage_crash(stage);
    else if (trouble == TROUBLE_RESTARTS)
        stage_restart(stage);
    else if (trouble == TROUBLE_RELOADS)
        assert_int_equal(engine_reload(stage->engine, stage->config, &err), STATUS_OK);
    stage->fail_applies = trouble == TROUBLE_FAILED_COMMITS && !stage->fail_applies;
}

static void run_on(struct stage *stage, enum trouble trouble, instant until)
{
    enum { EVERY_MS = 97 * SECOND_MS };
    while (stage->now < until) {
        instant next = stage->now + EVERY_MS;
        make_trouble(stage, trouble);
        stage_run_until(stage, next < until ? next : until);
    }
    stage->fail_applies = false;
    stage_settle(stage);
}

static void check_told(struct stage *stage, const struct script *script, const char *what, int relapses)
{
    char raised[160], cleared[160];
    snprintf(raised, sizeof raised, "raised contingency d (%s)", script->trigger->reason);
    snprintf(cleared, sizeof cleared, "cleared contingency d (%s)", script->trigger->reason);
    for (size_t i = 0; script->count != 2 && i < script->count; i++)
        print_message("  %s\n", script->messages[i]);
    check(script->count == 2, "%s, %s: %zu messages, the last is %s", script->trigger->name, what, script->count, script->messages[script->count - 1]);
    check(strcmp(script->messages[0], raised) == 0, "%s, %s: %s", script->trigger->name, what, script->messages[0]);
    check(strcmp(script->messages[1], cleared) == 0, "%s, %s: %s", script->trigger->name, what, script->messages[1]);
    check(told_text(stage, script->trigger->event) == 1, "%s, %s: the cause", script->trigger->name, what);
    check(reported(stage, "contingency", NULL) == 1 + relapses, "%s, %s: contingency", script->trigger->name, what);
    check(reported(stage, "recovering", NULL) == 1 + relapses, "%s, %s: recovering", script->trigger->name, what);
    check(reported(stage, "normal", NULL) == 1, "%s, %s: normal", script->trigger->name, what);
    check(stage_counts(stage, "d").dead == 0, "%s, %s: some are dead", script->trigger->name, what);
}

static void play(const struct trigger *trigger, enum trouble trouble, int fails_again)
{
    struct script script = { .trigger = trigger, .back_at = began + 20 * MINUTE_MS, .fails_again = fails_again };
    struct stage stage = { .destination = answers, .health = trigger->checked ? says_how_it_is : NULL, .context = &script };
    struct error err;
    char yaml[1024];
    snprintf(yaml, sizeof yaml, SIFEN("%s"), trigger->more);
    stage_begin(&stage, yaml, began);
    stage.commit_ms = trouble == TROUBLE_SLOW_COMMITS ? 700 : 0;
    stage_run_for(&stage, MINUTE_MS);
    if (trigger->by_hand)
        assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &err), STATUS_OK);
    add_jobs(&stage, 4);
    stage_run_for(&stage, SECOND_MS); /* until an operator's order is durable */
    run_on(&stage, trouble, began + 10 * MINUTE_MS);
    add_jobs(&stage, 4);
    run_on(&stage, trouble, script.back_at);
    check(script.count == 1, "%s, %s: %zu messages in the outage, the last is %s", trigger->name, trouble_names[trouble], script.count,
          script.messages[script.count - 1]);
    if (trigger->by_hand)
        assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &err), STATUS_OK);
    stage_run_for(&stage, SECOND_MS);
    run_on(&stage, trouble, script.back_at + 30 * MINUTE_MS);
    stage_run_for(&stage, HOUR_MS);
    check_told(&stage, &script, trouble_names[trouble], fails_again > 0);
    stage_end(&stage);
}

/* Each criterion of the document and each other way into contingency, and back, in good times and in bad ones. */
static void each_transition_is_told_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(triggers); i++)
        for (int trouble = 0; trouble < TROUBLE_COUNT; trouble++)
            play(&triggers[i], (enum trouble)trouble, 0);
}

/* It fails again on the way back: events tell of that, but nobody is called a second time. */
static void a_relapse_is_the_same_outage(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(triggers); i++)
        if (triggers[i].by_hand || triggers[i].checked) /* elsewhere a job has to look first, and that is no relapse */
            play(&triggers[i], TROUBLE_NONE, 3); /* of the five of its first go */
}

/* Two outages are two: each has its two messages, and none has the id of another. */
static void a_second_outage_is_told_anew(void **state)
{
    struct script script = { .trigger = &triggers[8], .back_at = began };
    struct stage stage = { .destination = answers, .context = &script };
    struct error err;
    (void)state;
    stage_begin(&stage, SIFEN(""), began);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they called"), &err), STATUS_OK);
        assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("again"), &err), STATUS_OK);
        stage_run_for(&stage, MINUTE_MS);
        assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &err), STATUS_OK);
        stage_run_for(&stage, 20 * MINUTE_MS);
        assert_int_equal(script.count, 2 * (i + 1));
        assert_string_equal(status_of(&stage).mode, "normal");
    }
    for (size_t i = 0; i < script.count; i++)
        for (size_t j = i + 1; j < script.count; j++)
            assert_string_not_equal(script.ids[i], script.ids[j]);
    assert_int_equal(reported(&stage, "contingency", NULL), 3);
    assert_int_equal(reported(&stage, "normal", NULL), 3);
    stage_end(&stage);
}

static int64_t one_always_fails(struct stage *stage, const struct send *send, struct answer *answer)
{
    bool bad = slice_equal(send->job->id, SLICE("bad"));
    answer->outcome = bad ? OUTCOME_NONE : OUTCOME_DELIVERED;
    if (slice_equal(send->job->tenant, NOTIFY_TENANT))
        note_message(stage->context, send);
    if (bad) {
        answer->code = SLICE("http:500");
        answer->text = SLICE("HTTP 500");
    }
    return 20;
}

/*
 * S4-020: the tenth failure is the last, the item stays FAILED, and somebody is told, once. With others that go well, and
 * also alone, as long as somebody answers: then no outage is made of it.
 */
static void a_failed_item_is_told(void **state)
{
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        struct script script = { 0 };
        struct stage stage = { .destination = one_always_fails, .context = &script };
        stage_begin(&stage, "notify: [{ name: ops, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [max_retries_exceeded] }]\n"
                            "destinations: { d: { preset: provisioning, url: 'http://127.0.0.1:1/', allow_private: true } }\n", began);
        stage_add(&stage, "d", "t", "bad", "x");
        for (int i = 0; i < 75; i++) {
            bool ended = stage_job(&stage, "t", "bad").state == STATE_DEAD;
            check((script.count > 0) == ended, "minute %d: %zu messages", i, script.count);
            check(strcmp(status_of(&stage).mode, "normal") == 0, "minute %d: %s", i, status_of(&stage).mode);
            if (!alone)
                stage_add(&stage, "d", "t", NULL, "x");
            stage_run_for(&stage, MINUTE_MS);
        }
        struct job job = stage_job(&stage, "t", "bad");
        assert_int_equal(job.state, STATE_DEAD);
        assert_int_equal(job.attempts, 10);
        assert_string_equal(config_destination(stage.config, SLICE("d"))->status_words[STATE_DEAD], "FAILED");
        assert_int_equal(script.count, 1); /* it stands until somebody acknowledges it */
        assert_string_equal(script.messages[0], "raised max_retries_exceeded d ()");
        assert_int_equal(reported(&stage, "contingency", NULL), 0);
        stage_end(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_transition_is_told_once),
        cmocka_unit_test(a_relapse_is_the_same_outage),
        cmocka_unit_test(a_second_outage_is_told_anew),
        cmocka_unit_test(a_failed_item_is_told),
    };
    log_set_level(LOG_NONE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
