#include "guests/camunda_calls.h"

#include <stdlib.h>
#include <string.h>

/* S0-118, S1-087: what is asked for, and what comes back. */
static const char *const asked[] = { "claimId", "submissionError", "retryCount" };
static const char *const answered[] = {
    "shouldRetry",   "retryCount",  "maxRetries",          "backoffMinutes", "backoffMs",
    "nextRetryTime", "retryReason", "errorClassification", "errorCode",      "originalError"
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static void append_json(struct buffer *out, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    if (text)
        buffer_append_text(out, text);
    free(text);
    json_decref(value);
}

/* An address and a path, whether or not the address ends with a slash. */
static void append_url(const struct camunda_config *camunda, struct buffer *url, const char *path)
{
    size_t len = strlen(camunda->url);
    while (len > 0 && camunda->url[len - 1] == '/')
        len--;
    buffer_append(url, (struct slice){ camunda->url, len });
    buffer_append_text(url, path);
}

static json_t *names_of(void)
{
    json_t *names = json_array();
    for (size_t i = 0; i < COUNT_OF(asked); i++)
        json_array_append_new(names, json_string(asked[i]));
    return names;
}

static json_t *tenants_of(const struct camunda_config *camunda)
{
    if (camunda->tenants.count == 0)
        return NULL;
    json_t *tenants = json_array();
    for (size_t i = 0; i < camunda->tenants.count; i++)
        json_array_append_new(tenants, json_string(camunda->tenants.items[i]));
    return tenants;
}

static json_t *fetch_8(const struct camunda_config *camunda, const char *type, int64_t wait_ms)
{
    json_t *body = json_pack("{s:s, s:s, s:I, s:I, s:I, s:o}", "type", type, "worker", camunda->name, "timeout",
                             (json_int_t)camunda->timeout_ms, "maxJobsToActivate", (json_int_t)camunda->jobs_max,
                             "requestTimeout", (json_int_t)wait_ms, "fetchVariable", names_of());
    if (camunda->tenants.count > 0)
        json_object_set_new(body, "tenantIds", tenants_of(camunda));
    return body;
}

static json_t *fetch_7(const struct camunda_config *camunda, const char *type, int64_t wait_ms)
{
    json_t *topic = json_pack("{s:s, s:I, s:o}", "topicName", type, "lockDuration", (json_int_t)camunda->timeout_ms,
                              "variables", names_of());
    if (camunda->tenants.count > 0)
        json_object_set_new(topic, "tenantIdIn", tenants_of(camunda));
    return json_pack("{s:s, s:I, s:b, s:I, s:[o]}", "workerId", camunda->name, "maxTasks", (json_int_t)camunda->jobs_max,
                     "usePriority", 1, "asyncResponseTimeout", (json_int_t)wait_ms, "topics", topic);
}

void camunda_fetch(const struct camunda_config *camunda, const char *type, int64_t wait_ms, struct buffer *url,
                   struct buffer *body)
{
    bool is_8 = camunda->engine == 8;
    append_url(camunda, url, is_8 ? "/v2/jobs/activation" : "/external-task/fetchAndLock");
    append_json(body, is_8 ? fetch_8(camunda, type, wait_ms) : fetch_7(camunda, type, wait_ms));
}

/* Camunda's tasks often have numbers as text: "0" is the documents' own default. */
static json_t *as_number(json_t *value)
{
    const char *text = json_string_value(value);
    json_t *number = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    if (json_is_integer(number))
        return number;
    json_decref(number);
    return json_incref(value);
}

/* The question about a job's variables; of engine 7 each is an object with its value. */
static struct slice question_of(const struct camunda_config *camunda, const char *policy, json_t *variables,
                                struct arena *memory)
{
    json_t *question = json_pack("{s:s, s:i}", "policy", policy, "retryCount", 0);
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        json_t *value = json_object_get(variables, asked[i]);
        if (camunda->engine == 7)
            value = json_object_get(value, "value");
        if (value && !json_is_null(value))
            json_object_set_new(question, asked[i],
                                strcmp(asked[i], "retryCount") == 0 ? as_number(value) : json_incref(value));
    }
    char *text = question ? json_dumps(question, JSON_COMPACT) : NULL;
    struct slice copy = text ? arena_copy(memory, slice_from(text)) : (struct slice){ 0 };
    free(text);
    json_decref(question);
    return copy;
}

bool camunda_fetched(const struct camunda_config *camunda, const char *policy, struct slice answer, struct arena *memory,
                     struct camunda_job *jobs, size_t max, size_t *ret_count)
{
    bool is_8 = camunda->engine == 8;
    json_t *said = json_loadb(answer.data ? answer.data : "", answer.len, 0, NULL);
    json_t *list = is_8 ? json_object_get(said, "jobs") : said, *one;
    size_t index;
    *ret_count = 0;
    bool is_list = json_is_array(list);
    json_array_foreach (list, index, one) {
        const char *key = json_string_value(json_object_get(one, is_8 ? "jobKey" : "id"));
        json_t *retries = json_object_get(one, "retries");
        if (!key || *ret_count == max)
            continue;
        jobs[(*ret_count)++] = (struct camunda_job){
            .key = arena_copy(memory, slice_from(key)),
            .retries = json_is_integer(retries) ? json_integer_value(retries) : -1,
            .question = question_of(camunda, policy, json_object_get(one, "variables"), memory),
        };
    }
    json_decref(said);
    return is_list;
}

static const char *type_of(const json_t *value)
{
    if (json_is_boolean(value))
        return "Boolean";
    return json_is_integer(value) ? "Long" : "String";
}

static json_t *variables_of(const struct camunda_config *camunda, const json_t *decision)
{
    json_t *variables = json_object();
    for (size_t i = 0; i < COUNT_OF(answered); i++) {
        json_t *value = json_object_get(decision, answered[i]);
        if (value && camunda->engine == 8)
            json_object_set(variables, answered[i], value);
        else if (value)
            json_object_set_new(variables, answered[i], json_pack("{s:O, s:s}", "value", value, "type", type_of(value)));
    }
    return variables;
}

static json_t *body_of(const struct camunda_config *camunda, const struct camunda_answer *answer)
{
    bool is_8 = camunda->engine == 8;
    json_t *body = is_8 ? json_object() : json_pack("{s:s}", "workerId", camunda->name);
    if (answer->decision)
        json_object_set_new(body, "variables", variables_of(camunda, answer->decision));
    if (answer->end == CAMUNDA_ERROR)
        json_object_set_new(body, "errorCode", json_string(answer->code));
    if (answer->end != CAMUNDA_COMPLETE)
        json_object_set_new(body, "errorMessage", json_string(answer->text ? answer->text : ""));
    if (answer->end == CAMUNDA_FAILURE) {
        json_object_set_new(body, "retries", json_integer(answer->retries));
        json_object_set_new(body, is_8 ? "retryBackOff" : "retryTimeout", json_integer(answer->retry_ms));
    }
    return body;
}

void camunda_answer(const struct camunda_config *camunda, const struct camunda_job *job, const struct camunda_answer *answer,
                    struct buffer *url, struct buffer *body)
{
    static const char *const ends[2][3] = { { "/complete", "/bpmnError", "/failure" },
                                            { "/completion", "/error", "/failure" } };
    append_url(camunda, url, camunda->engine == 8 ? "/v2/jobs/" : "/external-task/");
    for (size_t i = 0; i < job->key.len;
         i++) { /* a key is digits or a UUID; whatever else it is stays one part of the path */
        unsigned char c = (unsigned char)job->key.data[i];
        bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' || c == '_';
        buffer_printf(url, plain ? "%c" : "%%%02X", c);
    }
    buffer_append_text(url, ends[camunda->engine == 8][answer->end]);
    append_json(body, body_of(camunda, answer));
}

/* 404, 409 and of engine 7 400: the job is another's by now, or gone. Any other 4xx will not become better by asking again.
 */
enum camunda_verdict camunda_verdict(long status)
{
    if (status >= 200 && status < 300)
        return CAMUNDA_TAKEN;
    bool later = status < 400 || status >= 500 || status == 401 || status == 403 || status == 408 || status == 429;
    return later ? CAMUNDA_AGAIN : CAMUNDA_GONE;
}
