#include "transport/ses/ses.h"

#include "base/json.h"
#include "transport/curl_send.h"
#include "transport/http/answer.h"
#include "transport/http/request.h"
#include "transport/smtp/message.h"

#include <jansson.h>
#include <stdio.h>

enum {
    OVERHEAD_BYTES = 64 * 1024,
    EXPANSION = 8, /* a message's text at most, in Base64 */
    ERROR_NAME_BYTES_MAX = 100,
    SIGNING_BYTES_MAX = 256,
};

/* ---- The call. ---- */

/* What follows DATA, as it was before it was made fit for that: without the dot at the end and those put before dots. */
static void unstuff(struct slice data, struct buffer *out)
{
    struct slice end = SLICE(".\r\n");
    if (slice_has_suffix(data, end))
        data.len -= end.len;
    while (data.len > 0) {
        size_t len = slice_find(data, '\n');
        len += len < data.len;
        size_t stuffed = data.data[0] == '.';
        buffer_append(out, (struct slice){ data.data + stuffed, len - stuffed });
        data = slice_from_offset(data, len);
    }
}

/* The recipients of the envelope, who are all named in one list: the headers say who is in copy. */
static void email_write(const struct smtp_source *source, const struct smtp_message *message, struct slice text,
                        struct buffer *out)
{
    struct json_writer json = json_begin(out);
    json_member_string(&json, "FromEmailAddress", message->from);
    json_member_object(&json, "Destination");
    json_member_array(&json, "ToAddresses");
    for (size_t i = 0; i < message->recipient_count; i++)
        json_put_string(&json, message->recipients[i]);
    json_array_end(&json);
    json_object_end(&json);
    json_member_object(&json, "Content");
    json_member_object(&json, "Raw");
    json_name(&json, "Data");
    json_put_base64(&json, text);
    json_object_end(&json);
    json_object_end(&json);
    json_member_given(&json, "ConfigurationSetName", slice_from(source->destination->ses.configuration_set));
    json_object_end(&json);
}

static enum status email_make(const struct smtp_source *source, struct buffer *ret_body, struct error *err)
{
    struct smtp_message message;
    struct buffer text;
    enum status status = smtp_message_make(source, &message, err);
    if (status != STATUS_OK)
        return status;
    if (message.recipient_count > SES_RECIPIENTS_MAX)
        status = error_set(err, STATUS_LIMIT, "there are %zu recipients; SES takes up to %d in one message",
                           message.recipient_count, SES_RECIPIENTS_MAX);
    buffer_init(&text, message.data.len + 1);
    if (status == STATUS_OK) {
        unstuff(buffer_slice(&message.data), &text);
        email_write(source, &message, buffer_slice(&text), ret_body);
        status = buffer_status(&text) == STATUS_OK ? buffer_status(ret_body) : STATUS_NO_MEMORY;
        if (status != STATUS_OK)
            error_set(err, status, "the message is too long, or there is no memory for it");
    }
    buffer_release(&text);
    smtp_message_release(&message);
    return status;
}

/* A call of SES's own has a member that no e-mail of ours may have. */
static bool is_own_call(struct slice payload, bool *ret_bulk)
{
    struct slice start = slice_trim(payload);
    if (start.len == 0 || start.data[0] != '{')
        return false;
    json_t *call = json_loadb(payload.data, payload.len, JSON_REJECT_DUPLICATES, NULL);
    *ret_bulk = json_object_get(call, "BulkEmailEntries") != NULL;
    bool own = *ret_bulk || json_object_get(call, "Content");
    json_decref(call);
    return own;
}

/*
 * The call's body: of an e-mail as transport smtp takes it a SendEmail with the raw message; another is taken as it is.
 * `ret_bulk`: it is one of SendBulkEmail. Errors as of smtp_message_make.
 */
static enum status ses_body_make(const struct smtp_source *source, struct buffer *ret_body, bool *ret_bulk,
                                 struct error *err)
{
    *ret_bulk = false;
    if (!is_own_call(source->payload, ret_bulk))
        return email_make(source, ret_body, err);
    buffer_append(ret_body, source->payload);
    return buffer_status(ret_body);
}

enum status ses_message_check(const struct smtp_source *source, struct error *err)
{
    struct buffer body;
    bool bulk;
    buffer_init(&body, source->payload.len * EXPANSION + OVERHEAD_BYTES);
    enum status status = ses_body_make(source, &body, &bulk, err);
    buffer_release(&body);
    return status;
}

static enum status url_make(const struct destination_config *destination, const char *base, bool bulk, struct buffer *url,
                            struct error *err)
{
    struct slice start = slice_from(base);
    if (start.len > 0 && start.data[start.len - 1] == '/')
        start.len--;
    if (start.len > 0)
        buffer_append(url, start);
    else
        buffer_printf(url, "https://email.%s.amazonaws.com", destination->ses.region);
    buffer_append_text(url, bulk ? "/v2/email/outbound-bulk-emails" : "/v2/email/outbound-emails");
    enum status status = buffer_status(url);
    return status == STATUS_OK ? STATUS_OK : error_set(err, STATUS_UNSUPPORTED, "the url is too long");
}

/* Every header is signed by libcurl, so there are no more than are needed. */
static enum status headers_make(const struct destination_config *destination, struct http_request *request,
                                struct error *err)
{
    enum status status = http_request_header(request, SLICE("Content-Type"), SLICE("application/json"), err);
    if (status == STATUS_OK && destination->ses.session_token)
        status =
            http_request_header(request, SLICE("X-Amz-Security-Token"), slice_from(destination->ses.session_token), err);
    return status == STATUS_INVALID ? STATUS_UNSUPPORTED : status;
}

/* As http_request_make. */
static enum status ses_request_make(const struct send *send, instant now, struct http_request *ret_request,
                                    struct error *err)
{
    const struct destination_config *destination = send->destination;
    const struct job *job = send->job;
    const struct smtp_source source = { .destination = destination, .tenant = job->tenant, .id = job->id,
                                        .payload = job->payload, .metadata = job->metadata, .headers = job->headers,
                                        .created_at = job->created_at };
    struct http_request request;
    bool bulk;
    (void)now; /* libcurl signs with the machine's own clock */
    http_request_init(&request, job->payload.len * EXPANSION + OVERHEAD_BYTES);
    request.method = SLICE("POST");
    enum status status = ses_body_make(&source, &request.text, &bulk, err);
    if (status == STATUS_OK)
        status = url_make(destination, send->use_fallback ? destination->fallback_url : destination->url, bulk, &request.url,
                          err);
    if (status == STATUS_OK)
        status = headers_make(destination, &request, err);
    if (status != STATUS_OK) {
        http_request_release(&request);
        return status;
    }
    request.body = buffer_slice(&request.text);
    *ret_request = request;
    return STATUS_OK;
}

/* ---- The answer. ---- */

/* "com.amazonaws.ses#MessageRejected", "ThrottlingException:http://internal.amazon.com/": the word between. */
static struct slice error_name(struct slice text)
{
    size_t hash = slice_find(text, '#');
    if (hash < text.len)
        text = slice_from_offset(text, hash + 1);
    text.len = slice_find(text, ':');
    text = slice_trim(text);
    for (size_t i = 0; i < text.len; i++)
        if (!ascii_is_alnum(text.data[i]) && text.data[i] != '_')
            return SLICE("");
    return text.len <= ERROR_NAME_BYTES_MAX ? text : SLICE("");
}

static struct slice text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? (struct slice){ json_string_value(value), json_string_length(value) } : SLICE("");
}

static struct slice error_of(const struct http_response *response, const json_t *body)
{
    static const char *const members[] = { "__type", "code", "Code" };
    struct slice name = error_name(http_header(response->headers, SLICE("x-amzn-ErrorType")));
    for (size_t i = 0; name.len == 0 && i < sizeof members / sizeof *members; i++)
        name = error_name(text_of(body, members[i]));
    return name;
}

static void reference_add(struct buffer *reference, struct slice id)
{
    size_t comma = reference->len > 0;
    if (id.len == 0 || reference->len + comma + id.len > REFERENCE_BYTES_MAX)
        return;
    buffer_append(reference, (struct slice){ ",", comma });
    buffer_append(reference, id);
}

/* By its own name alone: the answer's text has the other entries' in it, too. */
static enum outcome entry_judge(const struct policy *policy, struct slice name)
{
    char code[sizeof "ses:" + ERROR_NAME_BYTES_MAX];
    int len = snprintf(code, sizeof code, "ses:%.*s", SLICE_ARG(name));
    enum outcome outcome = classify(policy->classifier, (struct evidence){ { code, (size_t)len }, name }).outcome;
    return outcome == OUTCOME_NONE ? policy->unknown : outcome;
}

/* What became of the entries of a bulk. */
struct bulk {
    size_t taken, unread;
    struct slice failed; /* the name by which those are judged that were not taken */
    enum outcome outcome;
    bool differ; /* there are others */
};

/* None of them was taken, so all may be sent again: one that may pass is not lost by another that never will. */
static void bulk_failed(struct bulk *bulk, const struct policy *policy, struct slice name)
{
    enum outcome outcome = entry_judge(policy, name);
    bool first = bulk->failed.len == 0;
    bulk->differ = bulk->differ || (!first && !slice_equal(name, bulk->failed));
    if (!first && (bulk->outcome != OUTCOME_PERMANENT || outcome == OUTCOME_PERMANENT))
        return;
    bulk->failed = name;
    bulk->outcome = outcome;
}

static enum outcome bulk_read(const json_t *results, const struct policy *policy, struct buffer *ret_code,
                              struct buffer *ret_reference)
{
    struct bulk bulk = { .outcome = OUTCOME_NONE };
    size_t index;
    const json_t *entry;
    json_array_foreach(results, index, entry) {
        struct slice status = error_name(text_of(entry, "Status"));
        bool success = slice_equal(status, SLICE("SUCCESS"));
        bulk.taken += success;
        bulk.unread += status.len == 0;
        if (success)
            reference_add(ret_reference, text_of(entry, "MessageId"));
        else if (status.len > 0)
            bulk_failed(&bulk, policy, status);
    }
    if (bulk.taken == json_array_size(results))
        return OUTCOME_NONE;
    buffer_append(ret_code, SLICE("ses:"));
    buffer_append(ret_code, bulk.taken > 0 ? SLICE("PARTIAL") : bulk.failed.len > 0 ? bulk.failed : SLICE("UNREADABLE"));
    if (bulk.taken > 0)
        return OUTCOME_PARTIAL;
    if (bulk.unread > 0)
        return OUTCOME_IN_DOUBT;
    return bulk.differ ? bulk.outcome : OUTCOME_NONE;
}

/*
 * Code and reference of an answer: ses:NAME of an error, http:NNN where there is none; the message's id. Of SendBulkEmail
 * of which no entry was taken the name of one, and where some were ses:PARTIAL, their ids and OUTCOME_PARTIAL: to
 * send all of them again would send those twice. Success that names no message is not confirmed.
 */
static enum outcome ses_answer_read(const struct http_response *response, const struct destination_config *destination,
                                    struct buffer *ret_code, struct buffer *ret_reference)
{
    json_t *body = response->body_cut ? NULL : json_loadb(response->body.data, response->body.len, 0, NULL);
    const json_t *results = json_object_get(body, "BulkEmailEntryResults");
    enum outcome certain = OUTCOME_NONE;
    if (response->status / 100 != 2) {
        struct slice name = error_of(response, body);
        if (name.len > 0) {
            buffer_append(ret_code, SLICE("ses:"));
            buffer_append(ret_code, name);
        }
    } else if (json_array_size(results) > 0) {
        certain = bulk_read(results, &destination->policy, ret_code, ret_reference);
    } else if (text_of(body, "MessageId").len > 0) {
        reference_add(ret_reference, text_of(body, "MessageId"));
    } else {
        response->reading->refused = response->body_cut ? "it is too long" : "it names no message, as SES does";
        certain = response->body_cut ? OUTCOME_IN_DOUBT : OUTCOME_NONE; /* a rule would find one entry's failure in it */
    }
    if (ret_code->len == 0) {
        buffer_append(ret_code, SLICE("http:"));
        buffer_append_int64(ret_code, response->status);
    }
    json_decref(body);
    return certain;
}

/* ---- The dialect. ---- */

/* The service must be named: libcurl would take it from the host's name, where it is `email`. */
static void prepare(CURL *curl, const struct destination_config *destination, bool *unset)
{
    struct buffer signing = buffer_up_to(SIGNING_BYTES_MAX);
    buffer_printf(&signing, "aws:amz:%s:ses", destination->ses.region);
    buffer_append_byte(&signing, '\0');
    if (buffer_status(&signing) == STATUS_OK)
        curl_set_text(curl, CURLOPT_AWS_SIGV4, signing.data, unset);
    else
        *unset = true;
    curl_set_text(curl, CURLOPT_USERAGENT, USER_AGENT, unset);
    buffer_release(&signing);
}

static const struct http_dialect dialect = { .make = ses_request_make, .prepare = prepare, .read = ses_answer_read };

enum status ses_transport_new(struct event_base *loop, const struct http_settings *settings,
                              struct transport **ret_transport, struct error *err)
{
    struct http_settings own = *settings;
    own.dialect = &dialect;
    return http_transport_new(loop, &own, ret_transport, err);
}
