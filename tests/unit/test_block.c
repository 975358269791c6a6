/*
 * Refused answers: whom they hold, when it is looked again, and what ends it.
 */
#include "core/outage/block.h"
#include "support/check.h"

#include <string.h>

#define START INT64_C(1736678400000)
#define MINUTES(n) ((int64_t)(n) * 60 * 1000)

enum { TENANTS = 4 };

struct scene {
    struct block destination, tenants[TENANTS];
    bool only, own;
    int64_t job;
};

static void scene_begin(struct scene *scene, bool only, bool own)
{
    *scene = (struct scene){ .only = only, .own = own };
    block_init(&scene->destination);
    for (int i = 0; i < TENANTS; i++)
        block_init(&scene->tenants[i]);
}

static enum block_scope refuse(struct scene *scene, int tenant, bool again, instant now)
{
    const struct block_refusal refusal = { .job = ++scene->job, .tenant = tenant + 1, .again = again, .own = scene->own,
                                           .only_tenant = scene->only };
    return block_refused(&scene->destination, &scene->tenants[tenant], &refusal, now);
}

static void let_in(struct scene *scene, int tenant)
{
    block_went_well(&scene->destination);
    block_went_well(&scene->tenants[tenant]);
}

/*
 * A letter is a job of that tenant that is refused, lower case: again; a digit is one of that tenant (0: A) that goes well.
 * What they hold is written below: . nothing more, t the tenant, d the destination.
 */
static void whom_it_holds(void **state)
{
    static const struct {
        const char *name;
        bool only, own;
        const char *answers, *held;
    } rows[] = {
        { "one job", false, false, "A", "." },
        { "one job, and others are good", false, false, "A1A1A", "..t.." },
        { "a tenant's second", false, false, "AA", ".t" },
        { "with something good of it between", false, false, "A0A0A", "....." },
        { "another tenant's", false, false, "AB", ".d" },
        { "with something good between", false, false, "A2B2A", "....t" },
        { "refused again is no news", false, false, "AaaaA", "....t" },
        { "of another tenant neither", false, false, "AbA", "..t" },
        { "a tenant that is not well yet says nothing about others", false, false, "A2B2AB", "....tt" },
        { "the only tenant's second", true, false, "AA", ".d" },
        { "its first, again and again", true, false, "Aaaa", "...." },
        { "accounts of their own", false, true, "ABCAB", "...tt" },
        { "an only account", true, true, "AA", ".t" },
        { "what is held is not held anew", true, false, "AAAA", ".d.." },
        { "nor is a tenant", false, false, "AAAA", ".t.." },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct scene scene;
        char held[16] = "";
        scene_begin(&scene, rows[i].only, rows[i].own);
        for (size_t k = 0; rows[i].answers[k]; k++) {
            char answer = rows[i].answers[k];
            if (answer <= '9') {
                let_in(&scene, answer - '0');
                held[k] = '.';
                continue;
            }
            bool again = answer >= 'a';
            held[k] = ".td"[refuse(&scene, answer - (again ? 'a' : 'A'), again, START)];
        }
        check(strcmp(held, rows[i].held) == 0, "%s: %s", rows[i].name, held);
    }
}

/* The same job that is refused over and over is one, whatever was noted of it. */
static void one_job_is_one(void **state)
{
    struct scene scene;
    (void)state;
    scene_begin(&scene, true, false);
    for (int i = 0; i < 5; i++) {
        const struct block_refusal refusal = { .job = 7, .tenant = 1, .only_tenant = true };
        assert_int_equal(block_refused(&scene.destination, &scene.tenants[0], &refusal, START), BLOCK_JOB);
    }
}

/* After a minute, then as long again as it has been held, up to an hour. */
static void looks_double(void **state)
{
    static const int minutes[] = { 1, 2, 4, 8, 16, 32, 64, 124, 184, 244 };
    struct scene scene;
    struct block *block = &scene.destination;
    (void)state;
    scene_begin(&scene, true, false);
    refuse(&scene, 0, false, START);
    assert_false(block_looks(block, START));
    refuse(&scene, 0, false, START);
    for (size_t i = 0; i < COUNT_OF(minutes); i++) {
        instant due = START + MINUTES(minutes[i]);
        assert_true(block_holds(block) && block->saved.look_at == due);
        assert_false(block_looks(block, due - 1));
        assert_true(block_looks(block, due));
        block_looked(block, due);
        assert_false(block_looks(block, due));
        refuse(&scene, 0, false, due);
    }
    assert_true(block->saved.confirmed);
}

static void what_was_under_way_changes_no_look(void **state)
{
    struct scene scene;
    (void)state;
    scene_begin(&scene, true, false);
    for (int i = 0; i < 50; i++)
        refuse(&scene, 0, false, START + i);
    assert_int_equal(scene.destination.saved.look_at, START + 1 + MINUTES(1));
    assert_false(scene.destination.saved.confirmed);
    refuse(&scene, 0, false, START - 5000); /* the clock was put back */
    assert_int_equal(scene.destination.saved.look_at, START + 1 + MINUTES(1));
    assert_true(block_looks(&scene.destination, START - MINUTES(120)));
}

/* A look that says nothing is followed by another. */
static void looks_go_on(void **state)
{
    struct scene scene;
    struct block *block = &scene.tenants[0];
    (void)state;
    scene_begin(&scene, false, true);
    refuse(&scene, 0, false, START);
    refuse(&scene, 0, false, START);
    block_looked(block, START + MINUTES(1));
    assert_int_equal(block->saved.look_at, START + MINUTES(2));
    block_hasten(block, START + MINUTES(1) + 5);
    assert_true(block_looks(block, START + MINUTES(1) + 5));
    assert_int_equal(refuse(&scene, 0, true, START + MINUTES(3)), BLOCK_JOB);
    assert_int_equal(block->saved.look_at, START + MINUTES(6));
    assert_true(block_went_well(block));
    assert_false(block_holds(block) || block_looks(block, INSTANT_MAX) || block_went_well(block));
    block_hasten(block, START);
    assert_false(block_holds(block));
}

/* A hold that proves wrong asks for more refusals the next time, until a look has confirmed one. */
static void a_wrong_hold_is_harder_to_come_by(void **state)
{
    struct scene scene;
    int needed = 0;
    (void)state;
    scene_begin(&scene, true, false);
    for (int wanted = 2; wanted <= 256; wanted *= 2) {
        for (needed = 1; refuse(&scene, 0, false, START) == BLOCK_JOB; needed++)
            ;
        check(needed == (wanted < BLOCK_NEEDED_MAX ? wanted : BLOCK_NEEDED_MAX), "%d, not %d", needed, wanted);
        let_in(&scene, 0);
    }
    while (refuse(&scene, 0, false, START) == BLOCK_JOB)
        ;
    refuse(&scene, 0, false, START + MINUTES(1));
    let_in(&scene, 0);
    assert_int_equal(scene.destination.saved.needed, BLOCK_NEEDED);
}

/* Nothing leaves: whoever's job it was, and whatever each tenant has of its own. */
static void what_cannot_be_sent(void **state)
{
    struct scene scene;
    const struct block_refusal refusal = { .job = 1, .tenant = 1, .unsent = true, .again = true, .own = true };
    (void)state;
    scene_begin(&scene, false, true);
    assert_int_equal(block_refused(&scene.destination, &scene.tenants[0], &refusal, START), BLOCK_DESTINATION);
    assert_true(scene.destination.saved.unsent);
    assert_int_equal(block_refused(&scene.destination, &scene.tenants[0], &refusal, START + MINUTES(1)), BLOCK_JOB);
    assert_int_equal(scene.destination.saved.look_at, START + MINUTES(2));
    refuse(&scene, 1, false, START + MINUTES(2)); /* it can, and is refused */
    assert_false(scene.destination.saved.unsent);
}

/* A tenant whose own certificate is broken is held alone, whoever else is there; and a second address is not held for it. */
static void what_one_account_cannot_send(void **state)
{
    struct scene scene;
    struct block second;
    const struct block_refusal refusal = { .job = 1, .tenant = 1, .unsent = true, .own = true, .account = true };
    (void)state;
    scene_begin(&scene, false, true);
    assert_int_equal(block_refused(&scene.destination, &scene.tenants[0], &refusal, START), BLOCK_TENANT);
    assert_true(block_holds(&scene.tenants[0]) && scene.tenants[0].saved.unsent && !block_holds(&scene.destination));
    assert_int_equal(block_refused(&scene.destination, &scene.tenants[0], &refusal, START + MINUTES(1)), BLOCK_JOB);
    assert_int_equal(scene.tenants[0].saved.look_at, START + MINUTES(2));
    assert_true(block_went_well(&scene.tenants[0]) && !block_holds(&scene.tenants[0]));
    assert_int_equal(scene.tenants[0].saved.needed, BLOCK_NEEDED);
    block_init(&second);
    assert_false(block_second_refused(&second, &refusal, START));
    assert_false(block_holds(&second));
}

static void what_is_kept(void **state)
{
    static const struct block_saved held = { .held = true, .since = START, .look_at = START + 5, .needed = 8 };
    static const int64_t odd[] = { 0, 1, -3, 65 };
    struct block block;
    (void)state;
    block_restore(&block, &held);
    assert_true(block_holds(&block) && block_looks(&block, START + 5) && block.saved.needed == 8);
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        struct block_saved saved = held;
        saved.needed = odd[i];
        block_restore(&block, &saved);
        assert_int_equal(block.saved.needed, BLOCK_NEEDED);
    }
}

static void a_second_address_counts_in_a_row(void **state)
{
    struct block block;
    (void)state;
    block_init(&block);
    /* A letter is a job of that tenant, as above; a blank is one that goes well. */
    static const struct { const char *name; bool only, own, unsent; const char *answers; bool held; } rows[] = {
        { "one tenant", false, false, false, "AAAA", false },
        { "another one", false, false, false, "AB", true },
        { "with something good between", false, false, false, "A B", false },
        { "refused again is no news", false, false, false, "Ab", false },
        { "two jobs of an only tenant", true, false, false, "AA", true },
        { "accounts of their own", false, true, false, "ABCD", false },
        { "nothing can be sent", false, true, true, "a", true },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool held = false;
        block_init(&block);
        for (const char *at = rows[i].answers; *at; at++) {
            bool again = *at >= 'a';
            const struct block_refusal refusal = { .job = at - rows[i].answers + 1, .tenant = *at - (again ? 'a' : 'A') + 1,
                                                   .again = again, .unsent = rows[i].unsent, .only_tenant = rows[i].only,
                                                   .own = rows[i].own };
            if (*at == ' ')
                block_went_well(&block);
            else
                held = block_second_refused(&block, &refusal, START);
        }
        check(held == rows[i].held && block_holds(&block) == held, "%s: %d", rows[i].name, held);
    }
}

/* As the first: a minute, and twice as long each time; what is under way says nothing new. */
static void a_second_address_is_looked_at(void **state)
{
    static const int64_t minutes[] = { 1, 2, 4, 8, 16, 32, 64, 124, 184 };
    const struct block_refusal refusal = { .job = 1, .tenant = 1 }, unsent = { .job = 1, .tenant = 1, .unsent = true };
    struct block block;
    (void)state;
    block_init(&block);
    assert_true(block_second_refused(&block, &unsent, START));
    assert_false(block_second_refused(&block, &unsent, START + 10));
    for (size_t i = 0; i < COUNT_OF(minutes); i++) {
        assert_int_equal(block.saved.look_at, START + MINUTES(minutes[i]));
        assert_true(block_looks(&block, START + MINUTES(minutes[i])));
        assert_false(block_second_refused(&block, &refusal, START + MINUTES(minutes[i])));
    }
    assert_true(block_went_well(&block));
    assert_int_equal(block.saved.needed, BLOCK_NEEDED); /* looks had confirmed it */
}

static void a_job_waits_longer_each_time(void **state)
{
    static const int64_t minutes[] = { 1, 2, 4, 8, 16, 32, 60, 60 };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(minutes); i++)
        assert_int_equal(block_job_ms((int64_t)i + 1), MINUTES(minutes[i]));
    assert_int_equal(block_job_ms(INT64_MAX), MINUTES(60));
}

static void what_an_answer_says(void **state)
{
    static const struct {
        enum outcome outcome;
        const char *code;
        bool over, unsent;
    } rows[] = {
        { OUTCOME_DELIVERED, "http:200", true, false }, { OUTCOME_ACCEPTED, "", true, false },
        { OUTCOME_DUPLICATE, "http:409", true, false }, { OUTCOME_PERMANENT, "http:422", true, false },
        { OUTCOME_PARTIAL, "tiss:1", true, false },     { OUTCOME_PERMANENT, "curl:43", false, true },
        { OUTCOME_TRANSIENT, "http:500", false, false }, { OUTCOME_THROTTLED, "http:429", false, false },
        { OUTCOME_IN_DOUBT, "curl:52", false, true },   { OUTCOME_BLOCKED, "http:401", false, false },
        { OUTCOME_BLOCKED, "curl:60", false, true },    { OUTCOME_BLOCKED, "insist:private_address", false, true },
        { OUTCOME_BLOCKED, "smtp:535", false, true },   { OUTCOME_BLOCKED, "smtp:550", false, false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check(block_is_over(rows[i].outcome, slice_from(rows[i].code)) == rows[i].over, "%zu: over", i);
        check(block_is_unsent(slice_from(rows[i].code)) == rows[i].unsent, "%zu: unsent", i);
    }
}

/* Who was not refused may know more than those who were; but a certificate is the same for all. */
static void a_newcomer_brings_the_look_forward(void **state)
{
    enum { NOW = 1000000 };
    static const struct {
        const char *name;
        bool held, unsent, refused, tenant_held;
        instant look_at, then;
    } cases[] = {
        { "an hour to go", true, false, false, false, NOW + BLOCK_LOOK_MAX_MS, NOW + BLOCK_LOOK_MS },
        { "it is soon", true, false, false, false, NOW + 5, NOW + 5 },
        { "nothing is held", false, false, false, false, INSTANT_NONE, INSTANT_NONE },
        { "nothing can be sent", true, true, false, false, NOW + BLOCK_LOOK_MAX_MS, NOW + BLOCK_LOOK_MAX_MS },
        { "it was refused itself", true, false, true, false, NOW + BLOCK_LOOK_MAX_MS, NOW + BLOCK_LOOK_MAX_MS },
        { "it is held itself", true, false, false, true, NOW + BLOCK_LOOK_MAX_MS, NOW + BLOCK_LOOK_MAX_MS },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct block destination, tenant;
        block_init(&destination);
        block_init(&tenant);
        destination.saved.held = cases[i].held;
        destination.saved.unsent = cases[i].unsent;
        destination.saved.look_at = cases[i].look_at;
        tenant.in_a_row = cases[i].refused;
        tenant.saved.held = cases[i].tenant_held;
        block_newcomer(&destination, &tenant, NOW);
        check(destination.saved.look_at == cases[i].then, "%s", cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whom_it_holds),
        cmocka_unit_test(one_job_is_one),
        cmocka_unit_test(looks_double),
        cmocka_unit_test(a_newcomer_brings_the_look_forward),
        cmocka_unit_test(what_was_under_way_changes_no_look),
        cmocka_unit_test(looks_go_on),
        cmocka_unit_test(a_wrong_hold_is_harder_to_come_by),
        cmocka_unit_test(what_cannot_be_sent),
        cmocka_unit_test(what_one_account_cannot_send),
        cmocka_unit_test(what_is_kept),
        cmocka_unit_test(a_second_address_counts_in_a_row),
        cmocka_unit_test(a_second_address_is_looked_at),
        cmocka_unit_test(a_job_waits_longer_each_time),
        cmocka_unit_test(what_an_answer_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
