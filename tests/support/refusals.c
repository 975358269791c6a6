#include "support/refusals.h"

#include "engine/orders.h"
#include "support/check.h"

#include <stdio.h>
#include <string.h>

static bool is_refused(const struct door *door, const struct job *job)
{
    return door->all || (door->jobs && strchr(door->jobs, job->id.data[0])) ||
           (door->tenants && strchr(door->tenants, job->tenant.data[0])) ||
           (door->one_in > 0 && job->seq % door->one_in == 0);
}

int64_t guards(struct stage *stage, const struct send *send, struct answer *answer)
{
    struct door *door = stage->context;
    if ((door->until > 0 && stage->now >= door->until) || !is_refused(door, send->job))
        return delivers(stage, send, answer);
    if (door->refused < 64)
        door->refused_at[door->refused] = stage->now;
    door->refused++;
    answer->code = door->unsent ? SLICE("curl:60") : SLICE("http:403");
    answer->text = door->unsent ? SLICE("SSL certificate problem: certificate has expired") : SLICE("HTTP 403: not you");
    answer->outcome = door->unsent ? OUTCOME_BLOCKED : OUTCOME_NONE;
    return 20;
}

void add_lettered(struct stage *stage, const char *tenant, char letter, int count)
{
    for (int i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof id, "%c%d", letter, i);
        stage_add(stage, "d", tenant, id, "x");
    }
}

void resume_d(struct stage *stage)
{
    struct error error;
    assert_int_equal(engine_resume(stage->engine, SLICE("d"), &error), STATUS_OK);
}
