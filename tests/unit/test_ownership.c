/*
 * Who owns what: trust, death, what is taken and given away; and that every node places shards alike.
 */
#include "core/ownership/ownership.h"
#include "support/check.h"

#include <stdio.h>

enum { SHARDS_MAX = 40, ACTIONS_MAX = 80 };

/* A small cluster: nodes "a", "b", ... with sessions 1, 2, ...; shards from 1 on. */
struct scene {
    struct node_seen nodes[NODES_MAX + 4];
    struct shard_seen shards[SHARDS_MAX];
    struct cluster_seen seen;
    struct ownership ownership;
    int64_t placement[SHARDS_MAX];
    struct ownership_action actions[ACTIONS_MAX];
    size_t count;
};

static char shard_names[SHARDS_MAX][8]; /* the first is the steward's office */

static int name_shards(void **state)
{
    (void)state;
    for (int i = 1; i < SHARDS_MAX; i++)
        snprintf(shard_names[i], sizeof shard_names[i], "d%02d", i);
    return 0;
}

static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };

static void scene_begin(struct scene *scene, size_t nodes, size_t shards)
{
    *scene = (struct scene){ .seen = { .nodes = scene->nodes, .node_count = nodes, .shards = scene->shards, .shard_count = shards } };
    for (size_t i = 0; i < nodes; i++)
        scene->nodes[i] = (struct node_seen){ .name = slice_from(names[i % COUNT_OF(names)]), .session = (int64_t)i + 1, .beat = 1 };
    for (size_t i = 0; i < shards; i++)
        scene->shards[i] = (struct shard_seen){ .name = slice_from(shard_names[i]) };
    ownership_init(&scene->ownership, 1);
}

static void look(struct scene *scene, int64_t now)
{
    scene->count = ownership_look(&scene->ownership, &scene->seen, now, scene->placement, scene->actions, ACTIONS_MAX);
}

static size_t count_of(const struct scene *scene, enum ownership_act act)
{
    size_t count = 0;
    for (size_t i = 0; i < scene->count; i++)
        count += scene->actions[i].act == act;
    return count;
}

static const struct ownership_action *first_of(const struct scene *scene, enum ownership_act act)
{
    for (size_t i = 0; i < scene->count; i++)
        if (scene->actions[i].act == act)
            return &scene->actions[i];
    return NULL;
}

static struct shard_seen *shard_of(struct scene *scene, struct slice name)
{
    for (size_t i = 0; i < scene->seen.shard_count; i++)
        if (slice_equal(scene->shards[i].name, name))
            return &scene->shards[i];
    fail();
    return NULL;
}

/* As the store does it. */
static void obey(struct scene *scene)
{
    for (size_t i = 0; i < scene->count; i++) {
        const struct ownership_action *action = &scene->actions[i];
        if (action->act == OWNERSHIP_TAKE)
            shard_of(scene, action->shard)->session = scene->ownership.session;
        if (action->act == OWNERSHIP_GIVE)
            shard_of(scene, action->shard)->session = 0;
    }
}

/* Everybody beats but those that are silent. */
static void beat(struct scene *scene, int64_t sent_at, int silent)
{
    for (size_t i = 0; i < scene->seen.node_count; i++)
        scene->nodes[i].beat += (int)i != silent;
    ownership_beaten(&scene->ownership, sent_at);
}

static void trust_begins_before_the_beat_was_sent(void **state)
{
    (void)state;
    struct ownership ownership;
    ownership_init(&ownership, 7);
    assert_false(ownership_trusted(&ownership, -1000000));
    ownership_beaten(&ownership, 10000); /* answered at 14400: what counts is when it was sent */
    assert_true(ownership_trusted(&ownership, 14499));
    assert_false(ownership_trusted(&ownership, 14500));
    ownership_beaten(&ownership, 11000);
    ownership_beaten(&ownership, 10500); /* an answer that comes late takes nothing away */
    assert_true(ownership_trusted(&ownership, 15499));
    assert_false(ownership_trusted(&ownership, 15500));
}

static void the_same_beat_for_six_seconds_is_death(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 3, 0);
    for (int64_t now = 0; now <= 6000; now += 1000) {
        if (now > 0)
            beat(&scene, now, 1);
        look(&scene, now);
        assert_int_equal(count_of(&scene, OWNERSHIP_FENCE), now == 6000);
    }
    assert_int_equal(first_of(&scene, OWNERSHIP_FENCE)->session, 2);
    assert_int_equal(first_of(&scene, OWNERSHIP_FENCE)->beat, 1);
    scene.nodes[1].beat = 2; /* it lives, after all */
    look(&scene, 6500);
    assert_int_equal(count_of(&scene, OWNERSHIP_FENCE), 0);
    scene.nodes[2].beat++;
    look(&scene, 12499);
    assert_int_equal(count_of(&scene, OWNERSHIP_FENCE), 0);
}

/* Who could not reach the store has not seen that others were silent. */
static void nobody_dies_while_we_are_away(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 2, 0);
    look(&scene, 0);
    ownership_away(&scene.ownership);
    look(&scene, 60000);
    assert_int_equal(count_of(&scene, OWNERSHIP_FENCE), 0);
    look(&scene, 65999);
    assert_int_equal(count_of(&scene, OWNERSHIP_FENCE), 0);
    look(&scene, 66000);
    assert_int_equal(count_of(&scene, OWNERSHIP_FENCE), 1);
}

/* Nobody fences itself, and a new session of the same node is another. */
static void a_new_session_is_another(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 2, 0);
    look(&scene, 0);
    scene.nodes[1].session = 9; /* with the same beat */
    look(&scene, 5000);
    look(&scene, 10999);
    assert_int_equal(scene.count, 0);
    look(&scene, 11000);
    assert_int_equal(scene.count, 1);
    assert_int_equal(scene.actions[0].session, 9);
    scene.nodes[1].session = 0; /* fenced */
    look(&scene, 99000);
    assert_int_equal(scene.count, 0);
}

static void who_was_fenced_trusts_itself_no_more(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 2, 4);
    ownership_beaten(&scene.ownership, 0);
    look(&scene, 100);
    obey(&scene);
    scene.nodes[0].session = 0;
    look(&scene, 200);
    assert_int_equal(scene.count, 1);
    assert_int_equal(scene.actions[0].act, OWNERSHIP_ENDED);
    assert_false(ownership_trusted(&scene.ownership, 201)); /* whatever the last beat promised */
}

static void free_shards_are_taken_with_trust(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 1, 5);
    look(&scene, 0);
    assert_int_equal(scene.count, 0); /* without trust nothing is taken */
    ownership_beaten(&scene.ownership, 0);
    look(&scene, 4499);
    assert_int_equal(count_of(&scene, OWNERSHIP_TAKE), 5);
    look(&scene, 4500);
    assert_int_equal(scene.count, 0);
    scene_begin(&scene, 3, 9);
    ownership_beaten(&scene.ownership, 0);
    look(&scene, 0);
    assert_int_equal(count_of(&scene, OWNERSHIP_TAKE), 3); /* of free ones its own part */
    for (size_t i = 0; i < 9; i++)
        scene.shards[i].session = 2;
    look(&scene, 1);
    assert_int_equal(scene.count, 0); /* what another has is taken from nobody */
}

/* One comes: what is its own is given away, one shard after the other, and not in its first seconds. */
static void a_newcomer_gets_one_shard_at_a_time(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 2, 6);
    for (size_t i = 0; i < 6; i++)
        scene.shards[i].session = 1;
    int64_t now = 0, gone = 0;
    for (; now < 6000; now += 1000) {
        beat(&scene, now, -1);
        look(&scene, now);
        assert_int_equal(scene.count, 0);
    }
    for (; now < 60000; now += 1000) {
        beat(&scene, now, -1);
        look(&scene, now);
        assert_true(count_of(&scene, OWNERSHIP_GIVE) <= 1 && scene.count <= 1);
        const struct ownership_action *give = first_of(&scene, OWNERSHIP_GIVE);
        if (!give)
            continue;
        struct shard_seen *shard = shard_of(&scene, give->shard);
        assert_int_equal(scene.placement[shard - scene.shards], 2);
        look(&scene, now + 500); /* it takes a while: no other meanwhile */
        assert_int_equal(scene.count, 1);
        assert_true(slice_equal(scene.actions[0].shard, shard->name));
        shard->session = 2;
        gone++;
    }
    assert_int_equal(gone, 3);
}

/* ---- placement ---- */

static void nobody_has_more_than_its_part(void **state)
{
    (void)state;
    for (size_t nodes = 1; nodes <= COUNT_OF(names); nodes++) {
        for (size_t shards = 0; shards <= SHARDS_MAX; shards++) {
            struct scene scene;
            size_t has[COUNT_OF(names) + 1] = { 0 };
            scene_begin(&scene, nodes, shards);
            placement_of(&scene.seen, scene.placement);
            for (size_t i = 0; i < shards; i++) {
                assert_in_range(scene.placement[i], 1, nodes);
                has[scene.placement[i]]++;
            }
            for (size_t i = 1; i <= nodes; i++)
                assert_true(has[i] <= (shards + nodes - 1) / nodes);
        }
    }
}

/* Who goes moves its own part and little more: with a hash of the number of nodes nearly everything would move. */
static void who_goes_moves_little(void **state)
{
    (void)state;
    struct scene scene;
    int64_t before[SHARDS_MAX];
    size_t moved = 0;
    scene_begin(&scene, 4, SHARDS_MAX);
    placement_of(&scene.seen, before);
    scene.nodes[2].session = 0;
    placement_of(&scene.seen, scene.placement);
    for (size_t i = 0; i < SHARDS_MAX; i++) {
        assert_int_not_equal(scene.placement[i], 3);
        moved += before[i] != 3 && before[i] != scene.placement[i];
    }
    assert_true(moved <= SHARDS_MAX / 4);
}

static void a_pin_comes_first(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 3, 6);
    for (size_t i = 0; i < 4; i++)
        scene.shards[i].pinned = SLICE("b");
    placement_of(&scene.seen, scene.placement);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(scene.placement[i], 2); /* more than its part */
    assert_int_not_equal(scene.placement[4], 2);
    assert_int_not_equal(scene.placement[5], 2);
    scene.nodes[1].session = 0;
    placement_of(&scene.seen, scene.placement);
    for (size_t i = 0; i < 6; i++)
        assert_true(scene.placement[i] == 1 || scene.placement[i] == 3);
}

static void no_nodes_and_too_many(void **state)
{
    (void)state;
    struct scene scene;
    scene_begin(&scene, 2, 3);
    scene.nodes[0].session = scene.nodes[1].session = 0;
    placement_of(&scene.seen, scene.placement);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(scene.placement[i], 0); /* nobody runs */
    scene_begin(&scene, NODES_MAX + 4, SHARDS_MAX);
    placement_of(&scene.seen, scene.placement);
    for (size_t i = 0; i < SHARDS_MAX; i++)
        assert_in_range(scene.placement[i], 1, NODES_MAX);
    look(&scene, 0);
    look(&scene, 6000);
    assert_int_equal(count_of(&scene, OWNERSHIP_FENCE), NODES_MAX - 1);
    scene.count = ownership_look(&scene.ownership, &scene.seen, 6000, scene.placement, scene.actions, 3);
    assert_int_equal(scene.count, 3); /* the rest is said again */
}

static void claims_ripen_after_the_longest_send(void **state)
{
    (void)state;
    assert_int_equal(ownership_ripe_at(1000, false, 30000), 33000);
    assert_int_equal(ownership_ripe_at(1000, true, 30000), 1000);
    assert_int_equal(ownership_ripe_at(INSTANT_MAX, false, 1), INSTANT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trust_begins_before_the_beat_was_sent),
        cmocka_unit_test(the_same_beat_for_six_seconds_is_death),
        cmocka_unit_test(nobody_dies_while_we_are_away),
        cmocka_unit_test(a_new_session_is_another),
        cmocka_unit_test(who_was_fenced_trusts_itself_no_more),
        cmocka_unit_test(free_shards_are_taken_with_trust),
        cmocka_unit_test(a_newcomer_gets_one_shard_at_a_time),
        cmocka_unit_test(nobody_has_more_than_its_part),
        cmocka_unit_test(who_goes_moves_little),
        cmocka_unit_test(a_pin_comes_first),
        cmocka_unit_test(no_nodes_and_too_many),
        cmocka_unit_test(claims_ripen_after_the_longest_send),
    };
    return cmocka_run_group_tests_name("ownership", tests, name_shards, NULL);
}
