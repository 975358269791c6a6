/*
 * Destinations that an engine gains and loses while it runs: in the middle of traffic, during an outage and on the way back,
 * with a rate nearly paid. What holds for one engine holds across two.
 */
#include "core/decision/job.h"
#include "engine/loop.h"
#include "engine/restore.h"
#include "support/check.h"
#include "support/engine_fixture.h"

#include <stdio.h>
#include <string.h>

enum { SENDS_MAX = 4000, AT_ONCE = 4 };

#define TO(more) \
    "{ preset: http, url: 'http://127.0.0.1:1/', allow_private: true, concurrency: 4, in_doubt: resend, timeout: 10s" more " }"
#define CONFIG(more) "destinations: { d: " TO(more) ", e: " TO("") " }\n"

/* What the receiver has seen. */
struct seen {
    struct {
        char id[16];
        char tenant[8];
        instant at, until;
        bool to_d;
    } sent[SENDS_MAX];
    size_t count;
    int64_t takes_ms;
    enum outcome outcome; /* of those to "d"; OUTCOME_NONE: delivered */
};

static int64_t answers(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct seen *seen = stage->context;
    assert_true(seen->count < SENDS_MAX);
    bool to_d = strcmp(send->destination->name, "d") == 0;
    snprintf(seen->sent[seen->count].id, sizeof seen->sent->id, "%.*s", SLICE_ARG(send->job->id));
    snprintf(seen->sent[seen->count].tenant, sizeof seen->sent->tenant, "%.*s", SLICE_ARG(send->job->tenant));
    seen->sent[seen->count].at = stage->now;
    seen->sent[seen->count].until = stage->now + seen->takes_ms;
    seen->sent[seen->count++].to_d = to_d;
    answer->outcome = !to_d || seen->outcome == OUTCOME_NONE ? OUTCOME_DELIVERED : seen->outcome;
    answer->code = answer->outcome == OUTCOME_DELIVERED ? SLICE("http:200") : SLICE("http:503");
    answer->text = SLICE("HTTP 503: gone");
    return seen->takes_ms;
}

static void begin(struct stage *stage, struct seen *seen, const char *config)
{
    *seen = (struct seen){ .takes_ms = 100 };
    *stage = (struct stage){ .destination = answers, .context = seen, .shared = true };
    stage_begin(stage, config, began);
    assert_int_equal(stage_gain(stage, ""), STATUS_OK);
    assert_int_equal(stage_gain(stage, "d"), STATUS_OK);
    assert_int_equal(stage_gain(stage, "e"), STATUS_OK);
}

static void add(struct stage *stage, int from, int count)
{
    for (int i = from; i < from + count; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        stage_add(stage, "d", i % 3 == 0 ? "A" : i % 3 == 1 ? "B" : "C", id, "x");
    }
}

/* Never more at once than is configured, whoever sends. */
static void check_at_once(const struct seen *seen)
{
    for (size_t i = 0; i < seen->count; i++) {
        int at_once = 0;
        for (size_t k = 0; k < seen->count; k++)
            at_once += seen->sent[k].to_d && seen->sent[i].to_d && seen->sent[k].at <= seen->sent[i].at &&
                       seen->sent[i].at < seen->sent[k].until;
        check(at_once <= AT_ONCE, "%d at once with %s", at_once, seen->sent[i].id);
    }
}

static void check_each_once(const struct seen *seen, int count)
{
    for (int i = 0; i < count; i++) {
        char id[16];
        int times = 0;
        snprintf(id, sizeof id, "j%d", i);
        for (size_t k = 0; k < seen->count; k++)
            times += strcmp(seen->sent[k].id, id) == 0;
        check(times == 1, "%s was sent %d times", id, times);
    }
}

static size_t sent_to_d(const struct seen *seen)
{
    size_t count = 0;
    for (size_t i = 0; i < seen->count; i++)
        count += seen->sent[i].to_d;
    return count;
}

/* In the middle of traffic, twice: nothing is lost, nothing is sent twice, and "e" does not notice. */
static void traffic_goes_on(void **state)
{
    static struct seen seen;
    struct stage stage;
    (void)state;
    begin(&stage, &seen, CONFIG(""));
    add(&stage, 0, 200);
    for (int i = 0; i < 40; i++)
        stage_add(&stage, "e", "E", NULL, "x");
    for (int turn = 0; turn < 2; turn++) {
        stage_run_for(&stage, 350);
        assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
        size_t before = sent_to_d(&seen);
        assert_false(engine_destination(stage.engine, SLICE("d")).known);
        assert_null(dest_find(stage.engine, SLICE("d")));
        assert_int_equal(stage_counts(&stage, "d").running, 0); /* sends have ended */
        add(&stage, 200 + turn * 10, 10);                        /* somebody else's for now */
        stage_run_for(&stage, 5 * SECOND_MS);
        assert_int_equal(sent_to_d(&seen), before);
        assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    }
    assert_int_equal(stage_counts(&stage, "e").completed, 40);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 220);
    assert_int_equal(stage.engine->lanes.by_id.count, 4);
    check_each_once(&seen, 220);
    check_at_once(&seen);
    stage_end(&stage);
}

/* A tenant that has had its turn does not have it again before the others, but for one round. */
static void turns_hold(void **state)
{
    static struct seen seen;
    struct stage stage;
    int counts[3] = { 0 };
    (void)state;
    begin(&stage, &seen, CONFIG(", fairness: { batch: 1 }"));
    add(&stage, 0, 300);
    for (int turn = 0; turn < 10; turn++) {
        stage_run_for(&stage, 250);
        assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
        assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    }
    for (size_t i = 0; i < seen.count; i++)
        counts[seen.sent[i].tenant[0] - 'A']++;
    for (int i = 1; i < 3; i++)
        check(counts[i] >= counts[0] - 10 && counts[i] <= counts[0] + 10, "%d of %c, %d of A", counts[i], 'A' + i, counts[0]);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 300);
    check_at_once(&seen);
    stage_end(&stage);
}

/* A rate by the hour that is nearly paid: whoever has the destination, no window has more. */
static void rates_hold(void **state)
{
    static struct seen seen;
    struct stage stage;
    (void)state;
    begin(&stage, &seen, CONFIG(", rate: { total: 30/h, per_tenant: 12/h }"));
    add(&stage, 0, 120);
    for (int turn = 0; turn < 24; turn++) {
        stage_run_for(&stage, 10 * MINUTE_MS);
        assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
        assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    }
    assert_true(seen.count > 60); /* it is used, too */
    for (size_t i = 0; i < seen.count; i++) {
        int all = 0, own = 0;
        for (size_t k = i; k < seen.count && seen.sent[k].at < seen.sent[i].at + HOUR_MS; k++) {
            all++;
            own += seen.sent[k].tenant[0] == seen.sent[i].tenant[0];
        }
        check(all <= 30 + AT_ONCE && own <= 12 + AT_ONCE, "%d in an hour, %d of %s", all, own, seen.sent[i].tenant);
    }
    stage_end(&stage);
}

/* What a claim's note leaves out, less than a second's worth, is written when it is lost: handovers bring no fresh burst. */
static void quick_handovers_bring_no_burst(void **state)
{
    enum { A_SECOND = 40, BURST = 10 };
    static struct seen seen;
    struct stage stage;
    (void)state;
    begin(&stage, &seen, CONFIG(", rate: { total: 40/s, burst: 10 }"));
    seen.takes_ms = 1;
    add(&stage, 0, 300);
    for (int turn = 0; turn < 30; turn++) {
        stage_run_for(&stage, 100);
        assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
        assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    }
    assert_true(seen.count > 2 * A_SECOND); /* it is used, too */
    for (size_t i = 0; i < seen.count; i++) {
        int all = 0;
        for (size_t k = i; k < seen.count && seen.sent[k].at < seen.sent[i].at + SECOND_MS; k++)
            all++;
        check(all <= A_SECOND + BURST, "%d in a second from %s on", all, seen.sent[i].id);
    }
    stage_end(&stage);
}

static bool has_alert(const struct stage *stage, enum alert_kind kind)
{
    const struct dest *dest = dest_find(stage->engine, SLICE("d"));
    return dest && (dest->alerts.active & 1u << kind) != 0;
}

/* An outage stays one over it: the mode, its alert, its record; and on the way back no more goes than the ramp's step. */
static void an_outage_is_handed_over(void **state)
{
    static struct seen seen;
    struct stage stage;
    struct error error;
    (void)state;
    begin(&stage, &seen, CONFIG(", contingency: { ramp: [1, 2], stable: 10m, check: 5m }"));
    add(&stage, 0, 60);
    stage_run_for(&stage, 150);
    assert_int_equal(engine_enter_contingency(stage.engine, SLICE("d"), SLICE("they said so"), &error), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    instant since = engine_destination(stage.engine, SLICE("d")).mode_since;
    size_t before = seen.count;
    for (int turn = 0; turn < 2; turn++) {
        assert_true(has_alert(&stage, ALERT_CONTINGENCY));
        assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
        assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
        stage_run_for(&stage, MINUTE_MS);
        struct destination_status status = engine_destination(stage.engine, SLICE("d"));
        assert_string_equal(status.mode, "contingency");
        assert_string_equal(status.pause_reason, "they said so");
        assert_int_equal(status.mode_since, since);
    }
    assert_int_equal(seen.count, before);
    assert_int_equal(engine_leave_contingency(stage.engine, SLICE("d"), &error), STATUS_OK);
    stage_run_for(&stage, SECOND_MS);
    struct contingency_saved was = dest_find(stage.engine, SLICE("d"))->gate.contingency.saved;
    assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
    assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    struct contingency_saved is = dest_find(stage.engine, SLICE("d"))->gate.contingency.saved;
    assert_int_equal(is.mode, MODE_RECOVERING);
    bool on = is.step == was.step || is.step == was.step + 1; /* by the answers that were waited for */
    check(on && is.since == was.since, "step %d after %d", (int)is.step, (int)was.step);
    size_t back = seen.count;
    stage_run_for(&stage, SECOND_MS);
    check(seen.count - back <= 2 * (1 + SECOND_MS / 100), "%zu in a second, two at a time", seen.count - back);
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage_counts(&stage, "d").completed, 60);
    check_each_once(&seen, 60);
    assert_false(has_alert(&stage, ALERT_CONTINGENCY));
    assert_int_equal(reported(&stage, "contingency", NULL), 1); /* it is told once */
    assert_int_equal(reported(&stage, "normal", NULL), 1);
    stage_end(&stage);
}

/* Held by somebody, as a whole or one tenant: it stays so. */
static void holds_are_handed_over(void **state)
{
    static struct seen seen;
    struct stage stage;
    struct error error;
    (void)state;
    begin(&stage, &seen, CONFIG(""));
    stage_add(&stage, "d", "A", "j0", "x");
    stage_run_for(&stage, SECOND_MS);
    assert_int_equal(stage_pause_tenant(&stage, SLICE("d"), SLICE("A"), SLICE("unpaid"), &error), STATUS_OK);
    stage_settle(&stage);
    assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
    stage_add(&stage, "d", "A", "j1", "x");
    stage_add(&stage, "d", "B", "j2", "x");
    assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(stage_job(&stage, "A", "j1").state, STATE_PENDING);
    assert_int_equal(stage_job(&stage, "B", "j2").state, STATE_COMPLETED);
    assert_int_equal(engine_pause(stage.engine, SLICE("d"), SLICE("hands off"), &error), STATUS_OK);
    stage_settle(&stage);
    assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
    assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).mode, "paused");
    assert_string_equal(engine_destination(stage.engine, SLICE("d")).pause_reason, "hands off");
    stage_end(&stage);
}

static void on_lost(struct saved_wait *wait)
{
    *(bool *)wait->context = true;
}

/* The store refuses for a while: it is lost when everything is in it, and not before. */
static void a_store_that_refuses_is_waited_for(void **state)
{
    static struct seen seen;
    struct stage stage;
    bool lost = false;
    (void)state;
    begin(&stage, &seen, CONFIG(", rate: { total: 60/h }"));
    add(&stage, 0, 50);
    stage_run_for(&stage, 50);
    stage.fail_applies = true;
    struct saved_wait wait = { .done = on_lost, .context = &lost };
    engine_lose(stage.engine, SLICE("d"), &wait);
    stage_run_for(&stage, MINUTE_MS); /* answers are there, and nobody takes them */
    assert_false(lost);
    assert_int_equal(stage_lose(&stage, "d"), STATUS_BUSY);
    stage.fail_applies = false;
    stage_run_for(&stage, MINUTE_MS);
    assert_true(lost);
    assert_int_equal(wait.error.status, STATUS_OK);
    assert_int_equal(stage_counts(&stage, "d").running, 0);
    assert_int_equal(stage_counts(&stage, "d").completed, (int)sent_to_d(&seen));
    assert_int_equal(stage_lose(&stage, "d"), STATUS_NOT_FOUND);
    assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    assert_int_equal(stage_gain(&stage, "d"), STATUS_CONFLICT);
    stage_end(&stage);
}

static int64_t reading(struct stage *stage, enum status *fails)
{
    *fails = stage->send_count == 0 ? STATUS_OK : *(enum status *)stage->context;
    return 2 * SECOND_MS;
}

static int64_t takes(struct stage *stage, const struct send *send, struct answer *answer)
{
    (void)stage;
    (void)send;
    answer->outcome = OUTCOME_DELIVERED;
    return 100;
}

/* It takes seconds to be read: what comes meanwhile is sent afterwards. Where it cannot be read it is not gained. */
static void what_comes_while_it_is_read_is_not_forgotten(void **state)
{
    enum status fails = STATUS_OK;
    struct stage stage = { .destination = takes, .context = &fails, .shared = true, .reading = reading };
    bool gained = false;
    struct saved_wait wait = { .done = on_lost, .context = &gained };
    (void)state;
    stage_begin(&stage, CONFIG(""), began);
    add(&stage, 0, 10);
    engine_gain(stage.engine, SLICE("d"), &wait);
    stage_run_for(&stage, SECOND_MS);
    add(&stage, 10, 10); /* of known tenants, which the answer does not have */
    for (int i = 0; i < 5; i++)
        stage_add(&stage, "d", i % 2 ? "new" : "newer", NULL, "x");
    assert_false(gained);
    assert_int_equal(stage.send_count, 0);
    stage_run_for(&stage, MINUTE_MS);
    assert_true(gained);
    assert_int_equal(stage.send_count, 25);
    assert_int_equal(stage_counts(&stage, "d").completed, 25);
    assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
    fails = STATUS_CORRUPT;
    assert_int_equal(stage_gain(&stage, "d"), STATUS_CORRUPT);
    assert_false(engine_destination(stage.engine, SLICE("d")).known);
    fails = STATUS_OK;
    assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    stage_end(&stage);
}

static int64_t read_ms; /* that the next read takes; those after it are quick */

static int64_t reads_the_first_slowly(struct stage *stage, enum status *fails)
{
    int64_t takes_ms = read_ms;
    (void)stage;
    (void)fails;
    read_ms = 0;
    return takes_ms;
}

/* While it is read, tenants come whose lanes cannot be known yet: a lane of another that was forgotten is asked for before. */
static void who_comes_while_it_is_read_holds_up_nobody(void **state)
{
    struct stage stage = { .destination = takes, .shared = true, .reading = reads_the_first_slowly };
    bool gained = false;
    char tenant[16];
    struct saved_wait wait = { .done = on_lost, .context = &gained };
    const struct store_op resend = { .kind = OP_REDRIVE, .data = SLICE("{}"),
                                     .job = { .tenant = SLICE("E"), .id = SLICE("x"), .resend = true,
                                              .forget_at = INSTANT_NONE } };
    (void)state;
    read_ms = 0;
    stage_begin(&stage, CONFIG(""), began);
    assert_int_equal(stage_gain(&stage, "e"), STATUS_OK);
    for (int i = 0; i < MEASURED_TENANTS_MAX; i++) { /* who are measured are not forgotten */
        snprintf(tenant, sizeof tenant, "e%d", i);
        stage_add(&stage, "e", tenant, NULL, "x");
    }
    stage_run_for(&stage, MINUTE_MS);
    stage_add(&stage, "e", "E", "x", "x");
    stage_run_for(&stage, HOUR_MS);
    assert_int_equal(stage.engine->lanes.by_id.count, MEASURED_TENANTS_MAX);
    size_t before = stage.send_count;
    read_ms = HOUR_MS;
    engine_gain(stage.engine, SLICE("d"), &wait);
    for (int i = 0; i < 10 * RECALL_MAX; i++) {
        snprintf(tenant, sizeof tenant, "t%d", i);
        stage_add(&stage, "d", tenant, NULL, "x");
    }
    assert_true(stage.engine->lanes.missed.count > RECALL_MAX);
    stage_apply(&stage, &resend);
    stage_run_for(&stage, 2 * SECOND_MS);
    assert_false(gained);
    assert_int_equal(stage.send_count, before + 1);
    stage_run_for(&stage, 2 * HOUR_MS);
    assert_true(gained);
    assert_int_equal(stage_counts(&stage, "d").completed, 10 * RECALL_MAX);
    stage_end(&stage);
}

/* Two are read; the one that is there first is asked of, however many lanes wait for the other. */
static void who_waits_for_another_holds_up_nobody(void **state)
{
    struct stage stage = { .destination = takes, .shared = true, .reading = reads_the_first_slowly };
    bool gained[2] = { false, false };
    char tenant[16];
    struct saved_wait waits[] = { { .done = on_lost, .context = &gained[0] }, { .done = on_lost, .context = &gained[1] } };
    (void)state;
    stage_begin(&stage, CONFIG(""), began);
    read_ms = HOUR_MS;
    engine_gain(stage.engine, SLICE("d"), &waits[0]);
    stage_run_for(&stage, 1);
    read_ms = 10 * SECOND_MS;
    engine_gain(stage.engine, SLICE("e"), &waits[1]);
    stage_run_for(&stage, 1);
    for (int i = 0; i < 11 * RECALL_MAX; i++) {
        snprintf(tenant, sizeof tenant, "t%d", i);
        stage_add(&stage, i % 11 == 0 ? "e" : "d", tenant, NULL, "x");
    }
    stage_run_for(&stage, MINUTE_MS);
    assert_true(gained[1] && !gained[0]);
    assert_int_equal(stage_counts(&stage, "e").completed, RECALL_MAX);
    stage_run_for(&stage, 2 * HOUR_MS);
    assert_true(gained[0]);
    assert_int_equal(stage_counts(&stage, "d").completed, 10 * RECALL_MAX);
    stage_end(&stage);
}

enum { MANY_TENANTS = 3 * RESTORE_AT_ONCE + 100 };

/* One job each; the store has them, and no engine has the destination yet. */
static void add_tenants(struct stage *stage, int count)
{
    for (int i = 0; i < count; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, "t%d", i);
        stage_add(stage, "d", tenant, NULL, "x");
    }
}

/* Many tenants have work at a destination that is not this engine's. */
static void begin_without_many(struct stage *stage, struct seen *seen)
{
    begin(stage, seen, CONFIG(""));
    assert_int_equal(stage_lose(stage, "d"), STATUS_OK);
    add_tenants(stage, MANY_TENANTS);
    stage_settle(stage);
}

/* Who has many tenants is put in bit by bit: between two bits everybody else's work goes on. */
static void a_large_one_does_not_stop_the_others(void **state)
{
    static struct seen seen;
    struct stage stage;
    bool gained = false;
    size_t before, runs = 0;
    struct saved_wait wait = { .done = on_lost, .context = &gained };
    (void)state;
    begin_without_many(&stage, &seen);
    seen.takes_ms = 1;
    engine_gain(stage.engine, SLICE("d"), &wait);
    before = stage.engine->lanes.by_id.count;
    assert_true(before <= RESTORE_AT_ONCE);
    stage_add(&stage, "e", "E", "during", "x");
    while (!gained) {
        assert_true(stage_step(&stage));
        size_t known = stage.engine->lanes.by_id.count;
        check(known - before <= RESTORE_AT_ONCE + 1, "%zu lanes at once", known - before);
        runs += known > before;
        before = known;
        assert_int_equal(sent_to_d(&seen), 0);
    }
    assert_true(runs + 1 >= MANY_TENANTS / RESTORE_AT_ONCE);
    assert_int_equal(seen.count, 1); /* it was sent meanwhile */
    assert_string_equal(seen.sent[0].id, "during");
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(sent_to_d(&seen), MANY_TENANTS);
    check_at_once(&seen);
    stage_end(&stage);
}

/* What comes between two bits, of tenants that are there and of others, is neither lost nor sent before its destination is. */
static void what_comes_between_two_bits_is_sent(void **state)
{
    static struct seen seen;
    struct stage stage;
    bool gained = false;
    struct saved_wait wait = { .done = on_lost, .context = &gained };
    int added = 0;
    (void)state;
    begin_without_many(&stage, &seen);
    seen.takes_ms = 1;
    engine_gain(stage.engine, SLICE("d"), &wait);
    while (!gained) {
        int i = added;
        char tenant[16];
        snprintf(tenant, sizeof tenant, i % 2 ? "t%d" : "new%d", i % 2 ? MANY_TENANTS - i : i);
        stage_add(&stage, "d", tenant, NULL, "x");
        added++;
        assert_true(stage_step(&stage));
        assert_int_equal(sent_to_d(&seen), 0);
    }
    assert_true(added > 1);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(sent_to_d(&seen), MANY_TENANTS + added);
    stage_end(&stage);
}

/* A stop between two bits: whoever waits hears that it was not gained, and nothing is left behind. */
static void a_stop_between_two_bits_is_answered(void **state)
{
    static struct seen seen;
    struct stage stage;
    bool answered = false;
    struct saved_wait wait = { .done = on_lost, .context = &answered };
    (void)state;
    begin_without_many(&stage, &seen);
    engine_gain(stage.engine, SLICE("d"), &wait);
    assert_true(stage_step(&stage));
    assert_false(answered);
    engine_stop(stage.engine);
    assert_true(answered);
    assert_int_equal(wait.error.status, STATUS_CONFLICT);
    assert_int_equal(sent_to_d(&seen), 0);
    stage_end(&stage);
}

/* Likewise a stop while it is still being read, which is more than one bit. */
static void a_stop_while_it_is_read_is_answered(void **state)
{
    struct stage stage = { .destination = takes, .shared = true, .reading = reads_the_first_slowly };
    bool answered = false;
    struct saved_wait wait = { .done = on_lost, .context = &answered };
    (void)state;
    stage_begin(&stage, CONFIG(""), began);
    add_tenants(&stage, MANY_TENANTS);
    stage_settle(&stage);
    read_ms = SECOND_MS;
    engine_gain(stage.engine, SLICE("d"), &wait);
    engine_stop(stage.engine);
    assert_false(answered);
    stage_run_for(&stage, MINUTE_MS);
    assert_true(answered);
    assert_int_equal(wait.error.status, STATUS_CONFLICT);
    assert_int_equal(stage.send_count, 0);
    stage_end(&stage);
}

/* A worker's report that comes when another node has the destination by now. */
static void a_nack_after_a_loss_says_nothing(void **state)
{
    static struct seen seen;
    struct stage stage;
    struct settlement settlement = { .decision = { VERDICT_RETRY, OUTCOME_TRANSIENT, .known = true } };
    struct job job = { .seq = 1, .lease_token = 1, .lane = 1, .destination = SLICE("d"), .tenant = SLICE("A"),
                       .id = SLICE("j") };
    const struct lease_nack nack = { .job = &job, .answer = { .attempted = true } };
    const struct store_op op = { .kind = OP_SETTLE };
    (void)state;
    begin(&stage, &seen, CONFIG(""));
    assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
    engine_nacked(stage.engine, &nack, &op, &settlement);
    assert_null(dest_find(stage.engine, SLICE("d")));
    stage_end(&stage);
}

/* A reload that comes while it drains is refused: the next start reads the file. */
static void a_reload_while_it_stops_is_refused(void **state)
{
    static struct seen seen;
    struct stage stage;
    struct error error;
    (void)state;
    begin(&stage, &seen, CONFIG(""));
    add(&stage, 0, 10);
    stage_run_for(&stage, 50);
    size_t sent = sent_to_d(&seen);
    assert_true(sent > 0);
    engine_stop(stage.engine);
    assert_int_equal(engine_reload(stage.engine, stage.config, &error), STATUS_CONFLICT);
    stage_run_for(&stage, MINUTE_MS);
    assert_int_equal(sent_to_d(&seen), sent); /* what is under way ends, and nothing begins */
    assert_int_equal(stage_counts(&stage, "d").completed, (int)sent);
    stage_end(&stage);
}

/* Who is to hear that it is lost, and what the writer had of it then. */
struct losing {
    struct stage *stage;
    bool lost;
    size_t on_the_way;
};

static void look_when_lost(struct saved_wait *wait)
{
    struct losing *losing = wait->context;
    losing->lost = true;
    for (const struct batch *batch = losing->stage->batches; batch; batch = batch->next_pending)
        for (size_t i = 0; i < batch->count; i++)
            losing->on_the_way += batch->ops[i].kind == OP_DESTINATION || batch->ops[i].kind == OP_SAVE;
}

static enum status resume(struct engine *engine, struct slice destination, struct slice reason, struct error *err)
{
    (void)reason;
    return engine_resume(engine, destination, err);
}

/* Whatever an operator orders while it is being lost, and whenever: it is forgotten when all of that is back. */
static void what_is_on_its_way_is_waited_for(void **state)
{
    (void)state;
    for (int every = 1; every < 12; every++) {
        static struct seen seen;
        struct stage stage;
        struct error error;
        struct losing losing = { .stage = &stage };
        struct saved_wait lost = { .done = look_when_lost, .context = &losing };
        begin(&stage, &seen, CONFIG(""));
        stage_run_for(&stage, SECOND_MS);
        stage.commit_ms = 5;
        engine_lose(stage.engine, SLICE("d"), &lost);
        for (int i = 1; i < 60 && !losing.lost; i++) {
            if (!stage_step(&stage))
                stage.now++;
            if (!losing.lost && i % every == 0)
                assert_int_equal((i / every % 2 ? engine_pause : resume)(stage.engine, SLICE("d"), SLICE(""), &error), STATUS_OK);
        }
        stage_run_for(&stage, SECOND_MS);
        assert_true(losing.lost);
        check(losing.on_the_way == 0, "%zu writes were out when it was forgotten, ordered every %d steps", losing.on_the_way,
              every);
        stage_end(&stage);
    }
}

static void count_promotions(struct stage *stage, const struct store_op *ops, size_t count)
{
    int *promotions = stage->context;
    for (size_t i = 0; i < count; i++)
        *promotions += ops[i].kind == OP_PROMOTE;
}

/* The store promotes for who owns: what has become due at an earlier owner waits for the first look of the next. */
static void what_is_due_is_looked_for_at_once(void **state)
{
    static struct seen seen;
    struct stage stage;
    int promotions = 0;
    (void)state;
    begin(&stage, &seen, CONFIG(""));
    assert_int_equal(stage_lose(&stage, "d"), STATUS_OK);
    stage_run_for(&stage, 10 * SECOND_MS);
    stage.context = &promotions;
    stage.applied = count_promotions;
    stage_run_for(&stage, 10 * SECOND_MS);
    assert_int_equal(promotions, 0); /* nothing is due soon, as far as this engine knows */
    assert_int_equal(stage_gain(&stage, "d"), STATUS_OK);
    stage_run_for(&stage, SECOND_MS);
    assert_int_equal(promotions, 1);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traffic_goes_on),
        cmocka_unit_test(what_is_due_is_looked_for_at_once),
        cmocka_unit_test(what_is_on_its_way_is_waited_for),
        cmocka_unit_test(turns_hold),
        cmocka_unit_test(rates_hold),
        cmocka_unit_test(quick_handovers_bring_no_burst),
        cmocka_unit_test(an_outage_is_handed_over),
        cmocka_unit_test(holds_are_handed_over),
        cmocka_unit_test(a_store_that_refuses_is_waited_for),
        cmocka_unit_test(what_comes_while_it_is_read_is_not_forgotten),
        cmocka_unit_test(who_comes_while_it_is_read_holds_up_nobody),
        cmocka_unit_test(who_waits_for_another_holds_up_nobody),
        cmocka_unit_test(a_large_one_does_not_stop_the_others),
        cmocka_unit_test(what_comes_between_two_bits_is_sent),
        cmocka_unit_test(a_stop_between_two_bits_is_answered),
        cmocka_unit_test(a_stop_while_it_is_read_is_answered),
        cmocka_unit_test(a_nack_after_a_loss_says_nothing),
        cmocka_unit_test(a_reload_while_it_stops_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
