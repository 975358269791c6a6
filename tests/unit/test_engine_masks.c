/* Nobody and nothing secret is named in the log or in the trail, in whatever form an answer names it. */
#include "base/log.h"
#include "support/check.h"
#include "support/engine_fixture.h"
#include "support/said.h"

#include <string.h>

/* What an answer says, and what of it must not be told. */
static const struct { const char *text, *hidden; } answers[] = {
    { "user ana.silva@hospital.example is unknown", "ana.silva" },
    { "login?user=ana.silva%40hospital.example", "ana.silva" },
    { "CPF 529.982.247-25", "982.247" },
    { "card 4111 1111 1111 1111 was declined", "1111 1111" },
    { "phone +595 981 123 456", "981 123" },
    { "CNPJ 12.ABC.345/01DE-35", "ABC.345" },
    { "<wsse:Password Type='x'>hunter2x</wsse:Password>", "hunter2x" },
    { "<senha><![CDATA[hunter2x]]></senha>", "hunter2x" },
    { "contrase\xc3\xb1" "a\t=\thunter2x", "hunter2x" },
    { "{\"credentials\":{\"user\":\"u\",\"password\":\"hunter2x\"}}", "hunter2x" },
    { "{\"tokens_of\":1,\"token\":[\"hunter2x\"]}", "hunter2x" },
    { "sent Basic dXNlcjpwYXNz", "dXNlcjpwYXNz" },
    { "sent eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP", "eyJzdWIiOiIxIn0" },
    { "pin=4711", "4711" },
};

/* By the job's number; the first try is to be repeated, the second is the end. */
static int64_t names_somebody(struct stage *stage, const struct send *send, struct answer *answer)
{
    size_t row = (size_t)(send->job->id.data[0] - 'a');
    (void)stage;
    answer->code = send->job->attempts == 1 ? SLICE("http:503") : SLICE("http:400");
    answer->text = slice_from(answers[row].text);
    return 5;
}

/* S1-078 */
static void nobody_is_named(void **state)
{
    struct stage stage = { .destination = names_somebody };
    struct arena memory = { 0 };
    struct event *events;
    struct error error;
    size_t count, reported = 0;
    (void)state;
    stage_begin(&stage, "destinations: { d: { url: 'http://127.0.0.1:1/', allow_private: true, errors: { permanent: ['400'], transient: ['503'] },\n"
                        "  retry: { max_retries: 3, base: 1s, factor: 1, cap: 1s, floor: 0s, jitter: 0 } } }\n", began);
    log_set_level(LOG_DEBUG);
    said_begin();
    for (size_t i = 0; i < COUNT_OF(answers); i++)
        stage_add(&stage, "d", "t", (char[]){ (char)('a' + i), '\0' }, "a payload that is nobody's business");
    stage_run_for(&stage, MINUTE_MS);
    char *said = said_end();
    log_set_level(LOG_INFO);
    assert_int_equal(stage_counts(&stage, "d").dead, COUNT_OF(answers));
    assert_int_equal(stage.reader->ops->reader_events(stage.reader, 0, 500, &memory, &events, &count, &error), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        check(!strstr(said, answers[i].hidden), "the log tells %s", answers[i].hidden);
        for (size_t j = 0; j < count; j++) {
            reported += memmem(events[j].data.data, events[j].data.len, "\"error\"", 7) != NULL;
            check(!memmem(events[j].data.data, events[j].data.len, answers[i].hidden, strlen(answers[i].hidden)), "the trail tells %s",
                  answers[i].hidden);
        }
    }
    check(strstr(said, "retry_scheduled") && strstr(said, "job_dead") && reported > 0, "nothing was told");
    check(!strstr(said, "nobody's business"), "the log tells a payload");
    arena_release(&memory);
    stage_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(nobody_is_named) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
