/*
 * Who sends jobs, who operates the daemon, and what goes wrong around it.
 */
#include "engine/orders.h"
#include "world.h"

#include "support/store_faulty.h"

#include <inttypes.h>
#include <stdio.h>

enum { PAYLOAD_BYTES = 64, NOTES_MANY = 8192 /* from then on nothing more goes wrong */ };

struct shadow *world_expect(struct world *world, int dest, int tenant)
{
    assert_true(world->job_count < (int)COUNT_OF(world->jobs));
    int number = world->job_count++;
    struct shadow *shadow = &world->jobs[number];
    *shadow = (struct shadow){ .dest = dest, .tenant = tenant, .delivered_epoch = -1, .refused_epoch = -1 };
    snprintf(shadow->id, sizeof shadow->id, "CLM-W-%d", number);
    return shadow;
}

/* A few tenants have most of the work. */
static int draw_tenant(struct world *world)
{
    return once_in(world, 2) ? 0 : (int)below(world, (size_t)world->tenants);
}

static void insert(struct world *world, int number)
{
    struct shadow *shadow = &world->jobs[number];
    const struct destination_config *config = world_dest(world, shadow->dest);
    char tenant[TENANT_BYTES], payload[PAYLOAD_BYTES];
    struct arena memory = { 0 };
    instant now = world_now(world);
    enum priority priority = (enum priority)below(world, PRIORITY_COUNT);
    bool later = once_in(world, 8), limited = once_in(world, 6);
    tenant_name(shadow->tenant, tenant);
    snprintf(payload, sizeof payload, "the s3cr3t payload of job %d", number);
    instant run_at = later ? now + (int64_t)below(world, HOUR_MS) : now;
    int64_t ttl = limited ? 1000 + (int64_t)below(world, 6 * HOUR_MS) : config->job_ttl_ms;
    struct store_op op = {
        .kind = OP_INSERT,
        .insert = {
            .destination = slice_from(dest_names[shadow->dest]),
            .tenant = slice_from(tenant),
            .id = slice_from(shadow->id),
            .priority = priority,
            .rank = rank_of(priority, now, config->aging_ms),
            .run_at = run_at,
            .deadline = ttl > 0 ? now + ttl : INSTANT_NONE,
            .payload = slice_from(payload),
        },
    };
    shadow->deadline = op.insert.deadline;
    if (world_apply(world, &op, &memory) && op.status == STATUS_OK) {
        shadow->acknowledged = true;
        note(world, "accepted", number, op.insert.ret_lane);
    }
    arena_release(&memory);
}

void arrival_fire(struct world *world, struct timer *timer)
{
    size_t count = once_in(world, 8) ? 1 + below(world, 30) : 1;
    for (size_t i = 0; i < count && world->arrived < world->jobs_max; i++) {
        int dest = world->narrow && !once_in(world, 20) ? 0 : (int)below(world, CLIENT_DESTS);
        if (!world_dest(world, dest))
            continue; /* the API refuses it */
        world->arrived++;
        insert(world, (int)(world_expect(world, dest, draw_tenant(world)) - world->jobs));
    }
    workers_begin(world);
    if (world->arrived < world->jobs_max)
        timer_set(world, timer, world->mono + (int64_t)below(world, (size_t)(2 * world->arrive_ms) * count));
}

void world_reload(struct world *world, int config)
{
    struct error error;
    note(world, "reload", config, 0);
    if (engine_reload(world->engine, world->configs[config], &error) != STATUS_OK)
        return; /* the store could not be read, and everything stays as it was */
    world_configure(world, config);
    check_forget(world, CHANGE_RELOAD, 0);
}

/* ---- operators ---- */

static void operate_job(struct world *world)
{
    static const enum op_kind kinds[] = { OP_CANCEL, OP_PRIORITIZE, OP_REDRIVE, OP_REDRIVE, OP_PURGE };
    if (world->job_count == 0)
        return;
    int number = (int)below(world, (size_t)world->job_count);
    char tenant[TENANT_BYTES];
    struct arena memory = { 0 };
    tenant_name(world->jobs[number].tenant, tenant);
    enum priority priority = (enum priority)below(world, PRIORITY_COUNT);
    struct store_op op = {
        .kind = kinds[below(world, COUNT_OF(kinds))],
        .job = { .tenant = slice_from(tenant), .id = slice_from(world->jobs[number].id), .priority = priority,
                 .rank = rank_of(priority, world_now(world), HOUR_MS), .forget_at = world_now(world) + DAY_MS },
    };
    note(world, "operator, job", number, op.kind);
    if (world_apply(world, &op, &memory))
        injected(world, FAULT_OPERATOR);
    arena_release(&memory);
}

/* Makes room where dead letters fill a destination's store. */
void purge_dead(struct world *world, int dest)
{
    for (int i = 0; i < world->job_count; i++) {
        const struct shadow *shadow = &world->jobs[i];
        char tenant[TENANT_BYTES];
        struct arena memory = { 0 };
        if (shadow->dest != dest || shadow->state != STATE_DEAD || shadow->gone)
            continue;
        tenant_name(shadow->tenant, tenant);
        struct store_op op = { .kind = OP_PURGE, .job = { .tenant = slice_from(tenant), .id = slice_from(shadow->id) } };
        world_apply(world, &op, &memory);
        arena_release(&memory);
    }
}

int64_t find_lane(struct world *world, struct slice destination, struct slice tenant, struct error *error)
{
    struct arena memory = { 0 };
    struct lane lane;
    enum status status = world->reader->ops->reader_lane(world->reader, destination, tenant, &memory, &lane, error);
    if (status == STATUS_OK)
        engine_recall(world->engine, lane.id, destination, tenant);
    arena_release(&memory);
    return status == STATUS_OK ? lane.id : 0;
}

static enum status operate_tenant(struct world *world, struct slice name, struct error *error)
{
    char tenant[TENANT_BYTES];
    tenant_name(world->tells && once_in(world, 8) ? TENANT_NOTIFY : draw_tenant(world), tenant);
    bool pause = once_in(world, 3);
    int64_t lane = find_lane(world, name, slice_from(tenant), error);
    if (lane == 0)
        return STATUS_NOT_FOUND;
    return pause ? engine_pause_tenant(world->engine, lane, SLICE("they asked for it"), error)
                 : engine_resume_tenant(world->engine, lane, error);
}

static void operate_destination(struct world *world)
{
    struct slice name = slice_from(dest_names[below(world, DESTS)]);
    struct error error;
    enum status status;
    size_t what = below(world, 8);
    world->ordered_mono = world->mono;
    switch (what) {
    case 6:
    case 7:
        status = operate_tenant(world, name, &error);
        break;
    case 0:
        status = engine_pause(world->engine, name, SLICE("they asked for it"), &error);
        break;
    case 1:
        status = engine_enter_contingency(world->engine, name, SLICE("they said so"), &error);
        break;
    case 2:
    case 3:
        status = engine_leave_contingency(world->engine, name, &error);
        break;
    default:
        status = engine_resume(world->engine, name, &error);
        if (status == STATUS_OK)
            refused_forget(world, dest_number(name));
        break;
    }
    note(world, "operator, destination", dest_number(name), (int64_t)what);
    assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND);
    injected(world, FAULT_OPERATOR);
}

/* ---- what goes wrong around it ---- */

static void jump_clock(struct world *world)
{
    static const int64_t most[] = { 2 * SECOND_MS, MINUTE_MS, HOUR_MS, 3 * DAY_MS };
    int64_t by = 1 + (int64_t)below(world, (size_t)most[below(world, COUNT_OF(most))]);
    bool back = once_in(world, 2);
    if (!world->clock_jumps)
        return;
    world->offset += back ? -by : by;
    world->clock_jumped_mono = world->mono;
    injected(world, back ? FAULT_CLOCK_BACK : FAULT_CLOCK_FORWARD);
    note(world, "clock jumps by ms", back ? -by : by, 0);
    check_forget(world, CHANGE_CLOCK, back ? -by : by);
}

static void store_fails(struct world *world)
{
    static const enum status statuses[] = { STATUS_FULL, STATUS_NO_MEMORY, STATUS_BUSY };
    size_t what = below(world, 13);
    bool for_good = what < 3 || what >= 10 || (what == 8 && once_in(world, 2));
    note(world, "store", (int64_t)what, for_good);
    if (what >= 10) {
        world_lose(world);
        world->reads_failed = true;
        world->unread_until_mono = INT64_MAX;
    } else if (what == 9) {
        world_break(world);
    } else if (what == 8) {
        injected(world, FAULT_STORE_READ);
        world->reads_failed = true;
        world->unread_until_mono = for_good ? INT64_MAX : world->mono;
        store_faulty_set(world->store, FAULTY_READ, 1 + (int64_t)below(world, 4), for_good, STATUS_IO);
    } else {
        injected(world, FAULT_STORE);
        store_faulty_set(world->store, FAULTY_APPLY, 1 + (int64_t)below(world, 6), for_good, statuses[below(world, COUNT_OF(statuses))]);
    }
    if (for_good)
        timer_set(world, &world->heal, world->mono + (int64_t)below(world, 5 * MINUTE_MS));
}

void heal_fire(struct world *world, struct timer *timer)
{
    (void)timer;
    note(world, "store heals", 0, 0);
    world->unread_until_mono = world->mono;
    store_faulty_set(world->store, FAULTY_APPLY, 0, false, STATUS_IO);
    store_faulty_set(world->store, FAULTY_READ, 0, false, STATUS_IO);
    store_faulty_away(world->store, AWAY_NOT);
    world->leaves_with_claim = false;
}

static void disturb_receiver(struct world *world)
{
    size_t dest = below(world, DESTS);
    struct receiver *receiver = &world->receivers[dest == 0 && world->narrow ? 1 : dest];
    note(world, "receiver", receiver - world->receivers, 0);
    switch (below(world, 8)) {
    case 0:
        receiver->down = true;
        receiver->up_at = world->mono + (int64_t)below(world, (size_t)(1 + 3 * world->disturb_ms));
        break;
    case 1:
        receiver->flapping = !receiver->flapping;
        break;
    case 2:
        receiver->slow = !receiver->slow;
        break;
    case 3:
        receiver->capacity = receiver->capacity ? 0 : 1 + (int64_t)below(world, 4);
        break;
    case 4:
        receiver->badness = below(world, 101);
        break;
    case 5:
        receiver->refused = (enum refused_kind)(REFUSED_JOBS + below(world, REFUSED_KINDS - REFUSED_JOBS));
        receiver->refused_tenant = (int)below(world, 3);
        receiver->refused_until = world->mono + (int64_t)below(world, (size_t)(1 + 5 * world->disturb_ms));
        receiver->second_refuses = once_in(world, 2);
        break;
    default:
        receiver->down = receiver->flapping = false;
        receiver->badness = below(world, 20);
        break;
    }
}

void disturbance_fire(struct world *world, struct timer *timer)
{
    size_t what = below(world, 100);
    if (world->job_count - world->arrived > NOTES_MANY)
        return; /* enough was told of this world */
    timer_set(world, timer, world->mono + 1 + (int64_t)below(world, (size_t)(2 * world->disturb_ms)));
    if (what < 30)
        disturb_receiver(world);
    else if (what < 50)
        operate_job(world);
    else if (what < 65)
        operate_destination(world);
    else if (what < 75)
        store_fails(world);
    else if (what < 84)
        jump_clock(world);
    else if (what < 92)
        world_crash(world);
    else {
        injected(world, FAULT_RELOAD);
        world_reload(world, (int)below(world, CONFIGS));
    }
    workers_begin(world);
}
