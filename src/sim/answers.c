#include "sim/answers.h"

#include "base/json.h"

struct words {
    const char *code, *text;
};

/* As libcurl and web servers say it. */
static const struct words http_words[MODEL_ANSWER_COUNT] = {
    [MODEL_OK] = { "http:200", "" },
    [MODEL_TRANSIENT] = { "http:500", "SERVER_ERROR: 500 Internal Server Error" },
    [MODEL_PERMANENT] = { "http:422", "422 Unprocessable Entity" },
    [MODEL_THROTTLED] = { "http:429", "RATE_LIMIT: 429 Too Many Requests" },
    [MODEL_LOST] = { "curl:28", "TIMEOUT: the request was sent, no answer came" },
    [MODEL_REFUSED] = { "curl:7", "CONNECTION_ERROR: connection refused" },
    [MODEL_TIMED_OUT] = { "curl:28", "TIMEOUT: the request was sent, no answer came" },
    [MODEL_UNAVAILABLE_NOW] = { "http:503", "SERVICE_UNAVAILABLE: 503 Service Unavailable" },
    [MODEL_BLOCKED] = { "http:401", "401 Unauthorized: the certificate has expired" },
};

static const struct words smtp_words[MODEL_ANSWER_COUNT] = {
    [MODEL_OK] = { "smtp:250", "" },
    [MODEL_TRANSIENT] = { "smtp:451", "451 4.3.0 temporary failure" },
    [MODEL_PERMANENT] = { "smtp:550", "550 5.1.1 no such user" },
    [MODEL_THROTTLED] = { "smtp:450", "450 4.2.1 too many messages, rate limited" },
    [MODEL_LOST] = { "curl:28", "timed out: the message was sent, no answer came" },
    [MODEL_REFUSED] = { "curl:7", "connection refused" },
    [MODEL_TIMED_OUT] = { "curl:28", "timed out: the message was sent, no answer came" },
    [MODEL_UNAVAILABLE_NOW] = { "smtp:421", "421 4.3.2 service not available" },
    [MODEL_BLOCKED] = { "smtp:535", "535 5.7.8 authentication credentials invalid" },
};

void answer_make(const struct model_reply *reply, const struct send *send, bool there, struct answer *ret_answer)
{
    bool smtp = send->destination->transport == TRANSPORT_SMTP;
    bool question = send->job->step != STEP_SEND, lost = reply->answer == MODEL_LOST || reply->answer == MODEL_TIMED_OUT;
    const struct words *words = smtp ? &smtp_words[reply->answer] : &http_words[reply->answer];
    *ret_answer = (struct answer){
        .attempted = true,
        .outcome = reply->answer == MODEL_OK ? OUTCOME_DELIVERED : lost ? OUTCOME_IN_DOUBT : OUTCOME_NONE,
        .code = slice_from(words->code),
        .text = slice_from(words->text),
        .retry_after_ms = reply->retry_after_ms,
        .slow_all = reply->answer == MODEL_THROTTLED,
        .duration_ms = reply->takes_ms,
    };
    if (question)
        ret_answer->query = reply->answer != MODEL_OK ? QUERY_UNCLEAR : there ? QUERY_DELIVERED : QUERY_ABSENT;
}

static void append_status(const struct health_config *health, struct buffer *body)
{
    const char *word = health->expect_status ? health->expect_status : "UP";
    struct json_writer json = json_begin(body);
    json_member_text(&json, "status", word);
    json_member_object(&json, "services");
    for (size_t i = 0; i < health->expect_services.count; i++)
        json_member_text(&json, health->expect_services.items[i], word);
    json_object_end(&json);
    json_object_end(&json);
}

void health_answer_make(const struct model_reply *reply, const struct health_config *health, struct buffer *body,
                        struct health_answer *ret_answer)
{
    bool well = reply->answer == MODEL_OK, silent = reply->answer == MODEL_REFUSED || reply->answer == MODEL_TIMED_OUT;
    int64_t good = health->kind == HEALTH_SMTP ? 220 : 200, bad = health->kind == HEALTH_SMTP ? 421 : 503;
    buffer_clear(body);
    if (well && health->kind == HEALTH_JSON)
        append_status(health, body);
    else if (well && health->kind == HEALTH_WSDL)
        buffer_append_text(body, "<definitions/>");
    *ret_answer = (struct health_answer){
        .connected = !silent, /* one that says that it is not available can be connected to */
        .status = silent ? 0 : well ? good : bad,
        .latency_ms = reply->takes_ms,
        .body = buffer_slice(body),
    };
}
