/*
 * Destinations that an engine gains and loses while it runs: in the middle of traffic, during an outage and on the way back,
 * with a rate nearly paid. What holds for one engine holds across two.
 */
#include "core/decision/job.h"
#include "engine/loop.h"
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

static int64_t answers(struct world *world, const struct send *send, struct answer *answer)
{
    struct seen *seen = world->context;
    assert_true(seen->count < SENDS_MAX);
    bool to_d = strcmp(send->destination->name, "d") == 0;
    snprintf(seen->sent[seen->count].id, sizeof seen->sent->id, "%.*s", SLICE_ARG(send->job->id));
    snprintf(seen->sent[seen->count].tenant, sizeof seen->sent->tenant, "%.*s", SLICE_ARG(send->job->tenant));
    seen->sent[seen->count].at = world->now;
    seen->sent[seen->count].until = world->now + seen->takes_ms;
    seen->sent[seen->count++].to_d = to_d;
    answer->outcome = !to_d || seen->outcome == OUTCOME_NONE ? OUTCOME_DELIVERED : seen->outcome;
    answer->code = answer->outcome == OUTCOME_DELIVERED ? SLICE("http:200") : SLICE("http:503");
    answer->text = SLICE("HTTP 503: gone");
    return seen->takes_ms;
}

static void begin(struct world *world, struct seen *seen, const char *config)
{
    *seen = (struct seen){ .takes_ms = 100 };
    *world = (struct world){ .destination = answers, .context = seen, .shared = true };
    world_begin(world, config, began);
    assert_int_equal(world_gain(world, ""), STATUS_OK);
    assert_int_equal(world_gain(world, "d"), STATUS_OK);
    assert_int_equal(world_gain(world, "e"), STATUS_OK);
}

static void add(struct world *world, int from, int count)
{
    for (int i = from; i < from + count; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        world_add(world, "d", i % 3 == 0 ? "A" : i % 3 == 1 ? "B" : "C", id, "x");
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
    struct world world;
    (void)state;
    begin(&world, &seen, CONFIG(""));
    add(&world, 0, 200);
    for (int i = 0; i < 40; i++)
        world_add(&world, "e", "E", NULL, "x");
    for (int turn = 0; turn < 2; turn++) {
        world_run_for(&world, 350);
        assert_int_equal(world_lose(&world, "d"), STATUS_OK);
        size_t before = sent_to_d(&seen);
        assert_false(engine_destination(world.engine, SLICE("d")).known);
        assert_null(dest_find(world.engine, SLICE("d")));
        assert_int_equal(world_counts(&world, "d").running, 0); /* sends have ended */
        add(&world, 200 + turn * 10, 10);                        /* somebody else's for now */
        world_run_for(&world, 5 * SECOND_MS);
        assert_int_equal(sent_to_d(&seen), before);
        assert_int_equal(world_gain(&world, "d"), STATUS_OK);
    }
    assert_int_equal(world_counts(&world, "e").completed, 40);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(world_counts(&world, "d").completed, 220);
    assert_int_equal(world.engine->lanes.by_id.count, 4);
    check_each_once(&seen, 220);
    check_at_once(&seen);
    world_end(&world);
}

/* A tenant that has had its turn does not have it again before the others, but for one round. */
static void turns_hold(void **state)
{
    static struct seen seen;
    struct world world;
    int counts[3] = { 0 };
    (void)state;
    begin(&world, &seen, CONFIG(", fairness: { batch: 1 }"));
    add(&world, 0, 300);
    for (int turn = 0; turn < 10; turn++) {
        world_run_for(&world, 250);
        assert_int_equal(world_lose(&world, "d"), STATUS_OK);
        assert_int_equal(world_gain(&world, "d"), STATUS_OK);
    }
    for (size_t i = 0; i < seen.count; i++)
        counts[seen.sent[i].tenant[0] - 'A']++;
    for (int i = 1; i < 3; i++)
        check(counts[i] >= counts[0] - 10 && counts[i] <= counts[0] + 10, "%d of %c, %d of A", counts[i], 'A' + i, counts[0]);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(world_counts(&world, "d").completed, 300);
    check_at_once(&seen);
    world_end(&world);
}

/* A rate by the hour that is nearly paid: whoever has the destination, no window has more. */
static void rates_hold(void **state)
{
    static struct seen seen;
    struct world world;
    (void)state;
    begin(&world, &seen, CONFIG(", rate: { total: 30/h, per_tenant: 12/h }"));
    add(&world, 0, 120);
    for (int turn = 0; turn < 24; turn++) {
        world_run_for(&world, 10 * MINUTE_MS);
        assert_int_equal(world_lose(&world, "d"), STATUS_OK);
        assert_int_equal(world_gain(&world, "d"), STATUS_OK);
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
    world_end(&world);
}

static bool has_alert(const struct world *world, enum alert_kind kind)
{
    const struct dest *dest = dest_find(world->engine, SLICE("d"));
    return dest && (dest->alerts.active & 1u << kind) != 0;
}

/* An outage stays one over it: the mode, its alert, its record; and on the way back no more goes than the ramp's step. */
static void an_outage_is_handed_over(void **state)
{
    static struct seen seen;
    struct world world;
    struct error error;
    (void)state;
    begin(&world, &seen, CONFIG(", contingency: { ramp: [1, 2], stable: 10m, check: 5m }"));
    add(&world, 0, 60);
    world_run_for(&world, 150);
    assert_int_equal(engine_enter_contingency(world.engine, SLICE("d"), SLICE("they said so"), &error), STATUS_OK);
    world_run_for(&world, MINUTE_MS);
    instant since = engine_destination(world.engine, SLICE("d")).mode_since;
    size_t before = seen.count;
    for (int turn = 0; turn < 2; turn++) {
        assert_true(has_alert(&world, ALERT_CONTINGENCY));
        assert_int_equal(world_lose(&world, "d"), STATUS_OK);
        assert_int_equal(world_gain(&world, "d"), STATUS_OK);
        world_run_for(&world, MINUTE_MS);
        struct destination_status status = engine_destination(world.engine, SLICE("d"));
        assert_string_equal(status.mode, "contingency");
        assert_string_equal(status.pause_reason, "they said so");
        assert_int_equal(status.mode_since, since);
    }
    assert_int_equal(seen.count, before);
    assert_int_equal(engine_leave_contingency(world.engine, SLICE("d"), &error), STATUS_OK);
    world_run_for(&world, SECOND_MS);
    struct contingency_saved was = dest_find(world.engine, SLICE("d"))->gate.contingency.saved;
    assert_int_equal(world_lose(&world, "d"), STATUS_OK);
    assert_int_equal(world_gain(&world, "d"), STATUS_OK);
    struct contingency_saved is = dest_find(world.engine, SLICE("d"))->gate.contingency.saved;
    assert_int_equal(is.mode, MODE_RECOVERING);
    bool on = is.step == was.step || is.step == was.step + 1; /* by the answers that were waited for */
    check(on && is.since == was.since, "step %d after %d", (int)is.step, (int)was.step);
    size_t back = seen.count;
    world_run_for(&world, SECOND_MS);
    check(seen.count - back <= 2 * (1 + SECOND_MS / 100), "%zu in a second, two at a time", seen.count - back);
    world_run_for(&world, HOUR_MS);
    assert_int_equal(world_counts(&world, "d").completed, 60);
    check_each_once(&seen, 60);
    assert_false(has_alert(&world, ALERT_CONTINGENCY));
    assert_int_equal(reported(&world, "contingency", NULL), 1); /* it is told once */
    assert_int_equal(reported(&world, "normal", NULL), 1);
    world_end(&world);
}

/* Held by somebody, as a whole or one tenant: it stays so. */
static void holds_are_handed_over(void **state)
{
    static struct seen seen;
    struct world world;
    struct error error;
    (void)state;
    begin(&world, &seen, CONFIG(""));
    world_add(&world, "d", "A", "j0", "x");
    world_run_for(&world, SECOND_MS);
    assert_int_equal(world_pause_tenant(&world, SLICE("d"), SLICE("A"), SLICE("unpaid"), &error), STATUS_OK);
    world_settle(&world);
    assert_int_equal(world_lose(&world, "d"), STATUS_OK);
    world_add(&world, "d", "A", "j1", "x");
    world_add(&world, "d", "B", "j2", "x");
    assert_int_equal(world_gain(&world, "d"), STATUS_OK);
    world_run_for(&world, MINUTE_MS);
    assert_int_equal(world_job(&world, "A", "j1").state, STATE_PENDING);
    assert_int_equal(world_job(&world, "B", "j2").state, STATE_COMPLETED);
    assert_int_equal(engine_pause(world.engine, SLICE("d"), SLICE("hands off"), &error), STATUS_OK);
    world_settle(&world);
    assert_int_equal(world_lose(&world, "d"), STATUS_OK);
    assert_int_equal(world_gain(&world, "d"), STATUS_OK);
    assert_string_equal(engine_destination(world.engine, SLICE("d")).mode, "paused");
    assert_string_equal(engine_destination(world.engine, SLICE("d")).pause_reason, "hands off");
    world_end(&world);
}

static void on_lost(struct saved_wait *wait)
{
    *(bool *)wait->context = true;
}

/* The store refuses for a while: it is lost when everything is in it, and not before. */
static void a_store_that_refuses_is_waited_for(void **state)
{
    static struct seen seen;
    struct world world;
    bool lost = false;
    (void)state;
    begin(&world, &seen, CONFIG(", rate: { total: 60/h }"));
    add(&world, 0, 50);
    world_run_for(&world, 50);
    world.fail_applies = true;
    struct saved_wait wait = { .done = on_lost, .context = &lost };
    engine_lose(world.engine, SLICE("d"), &wait);
    world_run_for(&world, MINUTE_MS); /* answers are there, and nobody takes them */
    assert_false(lost);
    assert_int_equal(world_lose(&world, "d"), STATUS_BUSY);
    world.fail_applies = false;
    world_run_for(&world, MINUTE_MS);
    assert_true(lost);
    assert_int_equal(wait.error.status, STATUS_OK);
    assert_int_equal(world_counts(&world, "d").running, 0);
    assert_int_equal(world_counts(&world, "d").completed, (int)sent_to_d(&seen));
    assert_int_equal(world_lose(&world, "d"), STATUS_NOT_FOUND);
    assert_int_equal(world_gain(&world, "d"), STATUS_OK);
    assert_int_equal(world_gain(&world, "d"), STATUS_CONFLICT);
    world_end(&world);
}

static int64_t reading(struct world *world, enum status *fails)
{
    *fails = world->send_count == 0 ? STATUS_OK : *(enum status *)world->context;
    return 2 * SECOND_MS;
}

static int64_t takes(struct world *world, const struct send *send, struct answer *answer)
{
    (void)world;
    (void)send;
    answer->outcome = OUTCOME_DELIVERED;
    return 100;
}

/* It takes seconds to be read: what comes meanwhile is sent afterwards. Where it cannot be read it is not gained. */
static void what_comes_while_it_is_read_is_not_forgotten(void **state)
{
    enum status fails = STATUS_OK;
    struct world world = { .destination = takes, .context = &fails, .shared = true, .reading = reading };
    bool gained = false;
    struct saved_wait wait = { .done = on_lost, .context = &gained };
    (void)state;
    world_begin(&world, CONFIG(""), began);
    add(&world, 0, 10);
    engine_gain(world.engine, SLICE("d"), &wait);
    world_run_for(&world, SECOND_MS);
    add(&world, 10, 10); /* of known tenants, which the answer does not have */
    for (int i = 0; i < 5; i++)
        world_add(&world, "d", i % 2 ? "new" : "newer", NULL, "x");
    assert_false(gained);
    assert_int_equal(world.send_count, 0);
    world_run_for(&world, MINUTE_MS);
    assert_true(gained);
    assert_int_equal(world.send_count, 25);
    assert_int_equal(world_counts(&world, "d").completed, 25);
    assert_int_equal(world_lose(&world, "d"), STATUS_OK);
    fails = STATUS_CORRUPT;
    assert_int_equal(world_gain(&world, "d"), STATUS_CORRUPT);
    assert_false(engine_destination(world.engine, SLICE("d")).known);
    fails = STATUS_OK;
    assert_int_equal(world_gain(&world, "d"), STATUS_OK);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traffic_goes_on),
        cmocka_unit_test(turns_hold),
        cmocka_unit_test(rates_hold),
        cmocka_unit_test(an_outage_is_handed_over),
        cmocka_unit_test(holds_are_handed_over),
        cmocka_unit_test(a_store_that_refuses_is_waited_for),
        cmocka_unit_test(what_comes_while_it_is_read_is_not_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
