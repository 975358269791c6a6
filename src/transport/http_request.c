#include "transport/http_request.h"

#include "base/hash.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

enum { URL_BYTES_MAX = 8192, QUERY_BODY_BYTES_MAX = 1 << 20, HEADER_BYTES_MAX = 16 * 1024, SECRET_BYTES_MAX = 512 };

bool http_header_is_safe(struct slice name, struct slice value)
{
    if (name.len == 0 || name.len + value.len > HEADER_BYTES_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!ascii_is_alnum(name.data[i]) && !strchr("!#$%&'*+-.^_`|~", name.data[i]))
            return false;
    for (size_t i = 0; i < value.len; i++)
        if (value.data[i] == '\r' || value.data[i] == '\n' || value.data[i] == '\0')
            return false;
    return true;
}

static enum status add_header(struct http_request *request, struct slice name, struct slice value, struct error *err)
{
    struct buffer line;
    if (!http_header_is_safe(name, value))
        return error_set(err, STATUS_INVALID, "header \"%.*s\" has a character that may not stand in a header", SLICE_ARG(name));
    buffer_init(&line, HEADER_BYTES_MAX + 4);
    buffer_append(&line, name);
    /* libcurl takes "Name:" as a wish to leave the header out and "Name;" as an empty value. */
    buffer_append(&line, value.len > 0 ? SLICE(": ") : SLICE(";"));
    buffer_append(&line, value);
    struct curl_slist *longer = buffer_status(&line) == STATUS_OK ? curl_slist_append(request->headers, line.data) : NULL;
    buffer_release(&line);
    if (!longer)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a header");
    request->headers = longer;
    return STATUS_OK;
}

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* "whsec_" and Base64, as Standard Webhooks hands secrets out; anything else is the key itself. */
static size_t secret_key(struct slice secret, unsigned char key[SECRET_BYTES_MAX])
{
    size_t len = 0;
    uint32_t bits = 0;
    int count = 0;
    if (!slice_has_prefix(secret, SLICE("whsec_"))) {
        len = secret.len < SECRET_BYTES_MAX ? secret.len : SECRET_BYTES_MAX;
        memcpy(key, secret.data, len);
        return len;
    }
    secret = slice_from_offset(secret, 6);
    for (size_t i = 0; i < secret.len && secret.data[i] != '=' && len < SECRET_BYTES_MAX; i++) {
        int value = base64_value(secret.data[i]);
        if (value < 0)
            return 0;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            key[len++] = (unsigned char)(bits >> count);
        }
    }
    return len;
}

enum status http_sign(const struct sign_config *sign, struct slice id, int64_t timestamp_s, struct slice body,
                      struct buffer *ret_signature, struct error *err)
{
    struct buffer signed_text;
    buffer_init(&signed_text, SIZE_MAX / 4);
    buffer_append(&signed_text, id);
    buffer_printf(&signed_text, ".%" PRId64 ".", timestamp_s);
    buffer_append(&signed_text, body);
    enum status status = buffer_status(&signed_text);
    for (size_t i = 0; i < sign->secrets.count && status == STATUS_OK; i++) {
        unsigned char key[SECRET_BYTES_MAX], mac[EVP_MAX_MD_SIZE];
        unsigned char text[EVP_MAX_MD_SIZE * 2];
        unsigned int mac_len;
        size_t key_len = secret_key(slice_from(sign->secrets.items[i]), key);
        if (key_len == 0)
            status = error_set(err, STATUS_INVALID, "sign: a secret is not Base64 after whsec_");
        else if (!HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)signed_text.data, signed_text.len, mac, &mac_len))
            status = error_set(err, STATUS_NO_MEMORY, "HMAC failed");
        else
            buffer_printf(ret_signature, "%sv1,%.*s", i > 0 ? " " : "", EVP_EncodeBlock(text, mac, (int)mac_len), (char *)text);
        OPENSSL_cleanse(key, sizeof key);
    }
    buffer_release(&signed_text);
    return status == STATUS_OK ? buffer_status(ret_signature) : status;
}

static void append_percent(struct buffer *out, struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (ascii_is_alnum(value.data[i]) || strchr("-._~", value.data[i]))
            buffer_append_byte(out, value.data[i]);
        else
            buffer_printf(out, "%%%02X", (unsigned char)value.data[i]);
    }
}

static void append_xml(struct buffer *out, struct slice value)
{
    static const struct { char byte; const char *text; } escapes[] = {
        { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" }, { '\'', "&#39;" },
    };
    for (size_t i = 0; i < value.len; i++) {
        size_t k = 0;
        while (k < sizeof escapes / sizeof *escapes && escapes[k].byte != value.data[i])
            k++;
        if (k < sizeof escapes / sizeof *escapes)
            buffer_append_text(out, escapes[k].text);
        else
            buffer_append_byte(out, value.data[i]);
    }
}

static void expand(struct buffer *out, struct slice template, const struct job *job, void (*append)(struct buffer *, struct slice))
{
    const struct { struct slice name, value; } fields[] = {
        { SLICE("{id}"), job->id }, { SLICE("{tenant}"), job->tenant }, { SLICE("{reference}"), job->reference },
    };
    for (size_t i = 0; i < template.len;) {
        struct slice rest = slice_from_offset(template, i);
        size_t k = 0;
        while (k < sizeof fields / sizeof *fields && !slice_has_prefix(rest, fields[k].name))
            k++;
        if (k < sizeof fields / sizeof *fields) {
            append(out, fields[k].value);
            i += fields[k].name.len;
        } else {
            buffer_append_byte(out, rest.data[0]);
            i++;
        }
    }
}

static enum status add_job_headers(struct http_request *request, struct slice headers, struct error *err)
{
    enum status status = STATUS_OK;
    if (headers.len == 0)
        return STATUS_OK;
    json_t *root = json_loadb(headers.data, headers.len, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(root))
        status = error_set(err, STATUS_INVALID, "the job's headers are not a JSON object");
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value) {
        if (status == STATUS_OK)
            status = add_header(request, slice_from(name), (struct slice){ json_string_value(value), json_string_length(value) }, err);
    }
    json_decref(root);
    return status;
}

/* A trace of its own for each job, a span for each attempt: equal for equal inputs. */
static enum status add_trace(struct http_request *request, const struct job *job, struct error *err)
{
    char text[64];
    struct slice trace = job->correlation_id.len > 0 ? job->correlation_id : job->id;
    int len = snprintf(text, sizeof text, "00-%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "-01", hash_slice(1, 1, trace) | 1,
                       hash_slice(2, 2, trace), hash_slice((uint64_t)job->attempts_total, 3, job->id) | 1);
    return add_header(request, SLICE("traceparent"), (struct slice){ text, (size_t)len }, err);
}

static enum status add_own_headers(struct http_request *request, const struct send *send, instant now, struct error *err)
{
    const struct job *job = send->job;
    struct buffer value;
    buffer_init(&value, HEADER_BYTES_MAX);
    buffer_append(&value, job->tenant);
    buffer_append_byte(&value, '/');
    buffer_append(&value, job->id);
    enum status status = add_header(request, SLICE("Idempotency-Key"), buffer_slice(&value), err);
    buffer_clear(&value);
    buffer_append_int64(&value, job->attempts);
    if (status == STATUS_OK)
        status = add_header(request, SLICE("Insist-Attempt"), buffer_slice(&value), err);
    if (status == STATUS_OK)
        status = add_trace(request, job, err);
    if (status == STATUS_OK && send->destination->sign.secrets.count > 0 && job->step == STEP_SEND) {
        buffer_clear(&value);
        buffer_append_int64(&value, now / SECOND_MS);
        status = add_header(request, SLICE("webhook-timestamp"), buffer_slice(&value), err);
        if (status == STATUS_OK)
            status = add_header(request, SLICE("webhook-id"), job->id, err);
        buffer_clear(&value);
        if (status == STATUS_OK)
            status = http_sign(&send->destination->sign, job->id, now / SECOND_MS, request->body, &value, err);
        if (status == STATUS_OK)
            status = add_header(request, SLICE("webhook-signature"), buffer_slice(&value), err);
    }
    buffer_release(&value);
    return status;
}

static void choose_target(const struct send *send, struct http_request *request)
{
    const struct destination_config *destination = send->destination;
    const struct job *job = send->job;
    if (job->step == STEP_SEND) {
        buffer_append_text(&request->url, send->use_fallback && destination->fallback_url ? destination->fallback_url : destination->url);
        request->method = slice_from(destination->method ? destination->method : "POST");
        request->body = job->payload;
        return;
    }
    const struct query_config *query = job->step == STEP_VERIFY ? &destination->verify : &destination->poll;
    expand(&request->url, slice_from(query->url), job, append_percent);
    request->method = slice_from(query->method ? query->method : query->body ? "POST" : "GET");
    if (query->body) {
        expand(&request->text, slice_from(query->body), job, append_xml);
        request->body = buffer_slice(&request->text);
    }
}

enum status http_request_make(const struct send *send, instant now, struct http_request *ret_request, struct error *err)
{
    const struct destination_config *destination = send->destination;
    struct http_request request = { .headers = NULL };
    buffer_init(&request.url, URL_BYTES_MAX);
    buffer_init(&request.text, QUERY_BODY_BYTES_MAX);
    choose_target(send, &request);

    enum status status = buffer_status(&request.url);
    if (status == STATUS_OK)
        status = buffer_status(&request.text);
    if (status != STATUS_OK)
        error_set(err, status, "the url or the body of the request is too long");
    struct slice type = send->job->step == STEP_SEND && send->job->content_type.len > 0
                            ? send->job->content_type
                            : slice_from(destination->content_type);
    if (status == STATUS_OK && request.body.len > 0 && type.len > 0)
        status = add_header(&request, SLICE("Content-Type"), type, err);
    for (size_t i = 0; i < destination->headers.count && status == STATUS_OK; i++)
        status = add_header(&request, slice_from(destination->headers.items[i].name),
                            slice_from(destination->headers.items[i].value), err);
    if (status == STATUS_OK && send->job->step == STEP_SEND)
        status = add_job_headers(&request, send->job->headers, err);
    if (status == STATUS_OK)
        status = add_own_headers(&request, send, now, err);
    /* libcurl would ask with Expect: 100-continue and wait a second where the server does not know it. */
    if (status == STATUS_OK) {
        struct curl_slist *longer = curl_slist_append(request.headers, "Expect:");
        status = longer ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for a header");
        request.headers = longer ? longer : request.headers;
    }
    if (status != STATUS_OK) {
        http_request_release(&request);
        return status;
    }
    *ret_request = request;
    return STATUS_OK;
}

void http_request_release(struct http_request *request)
{
    buffer_release(&request->url);
    buffer_release(&request->text);
    curl_slist_free_all(request->headers);
    request->headers = NULL;
}
