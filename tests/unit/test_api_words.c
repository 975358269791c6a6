/*
 * The documents' own words: what a job's status is called on its way through, with the presets as they are.
 */
#include "support/api_fixture.h"
#include "support/check.h"

#include <stdio.h>

static const char config[] = "listen: 127.0.0.1:0\n"
                             "store: 'memory:'\n"
                             "destinations:\n"
                             "  email: { preset: email, transport: pull, content_type: text/plain }\n"
                             "  sifen: { preset: sifen, transport: pull, id_pattern: '.*', in_doubt: park }\n"
                             "  provisioning: { preset: provisioning, transport: pull }\n";

static const struct {
    const char *name, *destination;
    const char *pending, *running, *waiting, *completed, *dead;
} rows[] = {
    { "S2-080 C-79", "email", "PENDING", "IN_PROGRESS", "PENDING", "SENT", "DLQ" },
    { "S3-020 C-61", "sifen", "Pendiente", "Reintentando", "Reintentando", "Aprobado", "Error" },
    { "S4-006 S4-009 S4-041 C-68", "provisioning", "PENDING", "IN_PROGRESS", "FAILED", "COMPLETED", "FAILED" },
};

/* The job's status and state are these. */
static void shows(const struct api_fixture *fixture, const char *id, const char *state, const char *word, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/jobs/%s", id);
    await_state(fixture, path, state);
    struct reply reply = http_do(fixture, "GET", path, NULL);
    check(strcmp(reply_text(&reply, "status"), word) == 0, "%s: %s is %s, not %s", name, state, reply_text(&reply, "status"), word);
    reply_release(&reply);
}

/* Takes the job, which must be the only one that can be taken, and says what came of it. */
static void settle(const struct api_fixture *fixture, const char *destination, const char *how, const char *more)
{
    char body[256], path[64];
    snprintf(body, sizeof body, "{\"destination\":\"%s\",\"wait_s\":20,\"lease_s\":600}", destination);
    struct reply taken = http_do(fixture, "POST", "/v1/leases", body);
    check(taken.status == 200 && json_array_size(reply_at(&taken, "leases")) == 1, "%s: %s", destination, taken.body);
    if (how) {
        snprintf(body, sizeof body, "{\"lease\":\"%s\"%s}", reply_text(&taken, "leases.0.lease"), more);
        snprintf(path, sizeof path, "/v1/leases/%s", how);
        struct reply settled = http_do(fixture, "POST", path, body);
        check(settled.status == 200, "%s: %s", destination, settled.body);
        reply_release(&settled);
    }
    reply_release(&taken);
}

#define FAILED(class) ",\"error\":\"went wrong\",\"class\":\"" class "\""

/* A failed one is selected again (S4-009) and may end well; one that is refused is a dead letter; another is being worked on. */
static void a_job_is_called_as_its_document_calls_it(void **state)
{
    struct api_fixture *fixture = api_fixture_new(&(struct api_fixture_settings){ .config = config });
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *to = rows[i].destination;
        char id[3][32];
        for (int k = 0; k < 3; k++)
            snprintf(id[k], sizeof id[k], "%s-%d", to, k);
        put_job(fixture, to, "", id[0], "x");
        shows(fixture, id[0], "pending", rows[i].pending, rows[i].name);
        settle(fixture, to, "nack", FAILED("transient"));
        shows(fixture, id[0], "waiting", rows[i].waiting, rows[i].name);
        api_fixture_advance(fixture, 10 * MINUTE_MS);
        settle(fixture, to, "ack", "");
        shows(fixture, id[0], "completed", rows[i].completed, rows[i].name);
        put_job(fixture, to, "", id[1], "x");
        settle(fixture, to, "nack", FAILED("permanent"));
        shows(fixture, id[1], "dead", rows[i].dead, rows[i].name);
        put_job(fixture, to, "", id[2], "x");
        settle(fixture, to, NULL, "");
        shows(fixture, id[2], "running", rows[i].running, rows[i].name);
    }
    api_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_job_is_called_as_its_document_calls_it) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
