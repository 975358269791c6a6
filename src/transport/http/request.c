#include "transport/http/request.h"

#include "base/hash.h"
#include "base/json.h"
#include "transport/http/headers.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    URL_BYTES_MAX = 8192,
    QUERY_BODY_BYTES_MAX = 1 << 20,
    LEFT_OUT_BYTES_MAX = 256, /* of their names */
    SECRET_BYTES_MAX = 512,
    UNEXPECTED_BYTES_MAX = 1024, /* no libcurl asks before it sends a body as short as this */
};

static bool has_header(const struct http_request *request, struct slice name)
{
    for (const struct curl_slist *line = request->headers; line; line = line->next)
        if (strncasecmp(line->data, name.data, name.len) == 0 && memchr(":;", line->data[name.len], 2))
            return true;
    return false;
}

/* A line of its parts, at the end of the list. */
static enum status add_line(struct http_request *request, struct slice name, struct slice between, struct slice value,
                            struct error *err)
{
    size_t len = name.len + between.len + value.len;
    struct curl_slist *added = arena_alloc_unset(&request->memory, 1, sizeof *added + len + 1);
    if (!added)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a header");
    char *line = (char *)(added + 1); /* it stands behind its link */
    memcpy(line, name.data, name.len);
    memcpy(line + name.len, between.data, between.len);
    if (value.len > 0)
        memcpy(line + name.len + between.len, value.data, value.len);
    line[len] = '\0';
    *added = (struct curl_slist){ .data = line };
    struct curl_slist **end = &request->headers;
    while (*end)
        end = &(*end)->next;
    *end = added;
    return STATUS_OK;
}

enum status http_request_header(struct http_request *request, struct slice name, struct slice value, struct error *err)
{
    if (!http_header_is_safe(name, value))
        return error_set(err, STATUS_INVALID, "header \"%.*s\" is too long or has a character that may not stand there",
                         http_header_is_safe(name, SLICE("")) ? (int)name.len : 0, name.data);
    value = slice_trim(value);
    /* libcurl takes "Name:" as a wish to leave the header out and "Name;" as an empty value. */
    return add_line(request, name, value.len > 0 ? SLICE(": ") : SLICE(";"), value, err);
}

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* "whsec_" and Base64, as Standard Webhooks hands secrets out; anything else is the key itself. 0: neither. */
static size_t secret_key(struct slice secret, unsigned char key[SECRET_BYTES_MAX])
{
    size_t len = 0;
    uint32_t bits = 0;
    int count = 0;
    if (secret.len > SECRET_BYTES_MAX)
        return 0;
    if (!slice_has_prefix(secret, SLICE("whsec_"))) {
        memcpy(key, secret.data, secret.len);
        return secret.len;
    }
    secret = slice_from_offset(secret, 6);
    for (size_t i = 0; i < secret.len && secret.data[i] != '='; i++) {
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
    struct buffer signed_text = buffer_up_to(SIZE_MAX / 4);
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
            status = error_set(err, STATUS_UNSUPPORTED, "sign: a secret is too long, or not Base64 after whsec_");
        else if (!HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)signed_text.data, signed_text.len, mac,
                       &mac_len))
            status = error_set(err, STATUS_NO_MEMORY, "HMAC failed");
        else
            buffer_printf(ret_signature, "%sv1,%.*s", i > 0 ? " " : "", EVP_EncodeBlock(text, mac, (int)mac_len),
                          (char *)text);
        OPENSSL_cleanse(key, sizeof key);
    }
    buffer_release(&signed_text);
    return status == STATUS_OK ? buffer_status(ret_signature) : status;
}

static void append_percent(struct buffer *out, struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (ascii_is_alnum(value.data[i]) || memchr("-._~", value.data[i], 4))
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

static void append_json(struct buffer *out, struct slice value)
{
    struct buffer text = buffer_up_to(QUERY_BODY_BYTES_MAX);
    struct json_writer json = json_writer(&text);
    json_put_string(&json, value);
    if (buffer_status(&text) == STATUS_OK)
        buffer_append(out, (struct slice){ text.data + 1, text.len - 2 }); /* the template has the quotes */
    buffer_release(&text);
}

/* "." and ".." would climb in the path, and nothing at all would ask about the whole collection. */
static bool names_something(struct slice value)
{
    return value.len > 0 && !slice_equal(value, SLICE(".")) && !slice_equal(value, SLICE(".."));
}

/* False: a name of the job is needed that it does not have, or that cannot be written there. */
static bool expand(struct buffer *out, struct slice template, const struct job *job,
                   void (*append)(struct buffer *, struct slice))
{
    const struct { struct slice name, value; bool needed; } fields[] = {
        { SLICE("{id}"), job->id, true },
        { SLICE("{reference}"), job->reference, true },
        { SLICE("{tenant}"), job->tenant, false },
    };
    for (size_t i = 0; i < template.len;) {
        struct slice rest = slice_from_offset(template, i);
        size_t k = 0;
        while (k < sizeof fields / sizeof *fields && !slice_has_prefix(rest, fields[k].name))
            k++;
        if (k == sizeof fields / sizeof *fields) {
            buffer_append_byte(out, rest.data[0]);
            i++;
            continue;
        }
        bool empty = fields[k].value.len == 0;
        if (empty ? fields[k].needed : append == append_percent && !names_something(fields[k].value))
            return false;
        append(out, fields[k].value);
        i += fields[k].name.len;
    }
    return true;
}

/* Its name only: what stands in it may be a secret. */
static void leave_out(struct http_request *request, struct slice name)
{
    if (request->left_out.len + name.len + 2 > LEFT_OUT_BYTES_MAX)
        return;
    if (request->left_out.len > 0)
        buffer_append(&request->left_out, SLICE(", "));
    buffer_append(&request->left_out, name);
}

/* A job that was stored when the rules were others goes without what it may not set. */
static enum status add_job_headers(struct http_request *request, const struct send *send, struct error *err)
{
    enum status status = STATUS_OK;
    struct slice headers = send->job->headers;
    if (headers.len == 0)
        return STATUS_OK;
    json_t *root = json_loadb(headers.data, headers.len, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(root))
        status = error_set(err, STATUS_INVALID, "the job's headers are not a JSON object");
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value) {
        struct slice name = slice_from(key);
        if (status != STATUS_OK)
            break;
        if (!json_is_string(value))
            status = error_set(err, STATUS_INVALID, "one of the job's headers is not a string");
        else if (http_header_rule(send->destination, name) != HEADER_FREE)
            leave_out(request, name);
        else
            status = http_request_header(request, name,
                                         (struct slice){ json_string_value(value), json_string_length(value) }, err);
    }
    json_decref(root);
    return status;
}

/* The destination's own; a job's header of the same name comes before. */
static enum status add_destination_headers(struct http_request *request, const struct destination_config *destination,
                                           struct error *err)
{
    enum status status = http_headers_check(destination, err);
    for (size_t i = 0; i < destination->headers.count && status == STATUS_OK; i++) {
        struct slice name = slice_from(destination->headers.items[i].name);
        if (!has_header(request, name))
            status = http_request_header(request, name, slice_from(destination->headers.items[i].value), err);
    }
    return status;
}

static void write_hex(char *text, uint64_t value)
{
    for (int i = 15; i >= 0; i--, value >>= 4)
        text[i] = "0123456789abcdef"[value & 15];
}

/* A trace of its own for each job of a tenant, a span for each attempt: equal for equal inputs. */
static enum status add_trace(struct http_request *request, const struct job *job, struct error *err)
{
    char text[] = "00-................................-................-01";
    struct slice trace = job->correlation_id.len > 0 ? job->correlation_id : job->id;
    uint64_t tenant = hash_slice(0, 0, job->tenant);
    write_hex(text + 3, hash_slice(tenant, 1, trace) | 1);
    write_hex(text + 19, hash_slice(tenant, 2, trace));
    write_hex(text + 36, hash_slice(tenant + (uint64_t)job->attempts_total, 3, job->id) | 1);
    return add_line(request, SLICE("traceparent"), SLICE(": "), (struct slice){ text, sizeof text - 1 }, err);
}

/*
 * Of printable ASCII but %, and without a blank at its ends, a text is itself; every other byte is written as %XX. So two
 * texts never become one, and every receiver reads the same: a header's blanks are trimmed and its bytes beyond ASCII
 * taken for Latin-1 by many.
 */
static void append_key_part(struct buffer *out, struct slice part, char separator)
{
    size_t plain = 0; /* from here on it stands as it is */
    for (size_t i = 0; i < part.len; i++) {
        char byte = part.data[i];
        if (byte > ' ' && byte <= '~' && byte != '%' && byte != separator)
            continue;
        if (byte == ' ' && i > 0 && i + 1 < part.len)
            continue;
        buffer_append(out, (struct slice){ part.data + plain, i - plain });
        buffer_printf(out, "%%%02X", (unsigned)(unsigned char)byte);
        plain = i + 1;
    }
    buffer_append(out, slice_from_offset(part, plain));
}

void http_key_append(struct buffer *out, const struct job *job)
{
    append_key_part(out, job->tenant, '/');
    buffer_append_byte(out, '/');
    append_key_part(out, job->id, '%');
}

static enum status add_signature(struct http_request *request, const struct sign_config *sign, struct slice key,
                                 instant now, struct error *err)
{
    struct buffer value = buffer_up_to(HEADER_BYTES_MAX);
    buffer_append_int64(&value, now / SECOND_MS);
    enum status status = http_request_header(request, SLICE("webhook-timestamp"), buffer_slice(&value), err);
    if (status == STATUS_OK)
        status = http_request_header(request, SLICE("webhook-id"), key, err);
    buffer_clear(&value);
    if (status == STATUS_OK)
        status = http_sign(sign, key, now / SECOND_MS, request->body, &value, err);
    if (status == STATUS_OK)
        status = http_request_header(request, SLICE("webhook-signature"), buffer_slice(&value), err);
    buffer_release(&value);
    return status;
}

static enum status add_own_headers(struct http_request *request, const struct send *send, instant now, struct error *err)
{
    const struct job *job = send->job;
    struct buffer text = buffer_up_to(HEADER_BYTES_MAX); /* the key, and behind it the attempt */
    http_key_append(&text, job);
    size_t key_len = text.len;
    buffer_append_int64(&text, job->attempts);
    struct slice key = { text.data, key_len }, attempt = slice_from_offset(buffer_slice(&text), key_len);
    enum status status = buffer_status(&text);
    if (status != STATUS_OK)
        error_set(err, status, "no memory for a header");
    /* As a line, without another look at it: it was made of what may stand in a header. */
    if (status == STATUS_OK)
        status = add_line(request, SLICE("Idempotency-Key"), SLICE(": "), key, err);
    if (status == STATUS_OK)
        status = add_line(request, SLICE("Insist-Attempt"), SLICE(": "), attempt, err);
    if (status == STATUS_OK && !has_header(request, SLICE("traceparent")))
        status = add_trace(request, job, err);
    /* Not by CURLOPT_USERAGENT: libcurl would write it anew for each request, a character at a time. */
    if (status == STATUS_OK && !has_header(request, SLICE("User-Agent")))
        status = add_line(request, SLICE("User-Agent"), SLICE(": "), SLICE(USER_AGENT), err);
    if (status == STATUS_OK && send->destination->sign.secrets.count > 0 && job->step == STEP_SEND)
        status = add_signature(request, &send->destination->sign, key, now, err);
    buffer_release(&text);
    return status;
}

/* How a job's names are written into a question's body, by what the body is. */
static void (*escape_for(struct slice content_type))(struct buffer *, struct slice)
{
    if (slice_search(content_type, SLICE("json")) < content_type.len)
        return append_json;
    return slice_has_prefix(content_type, SLICE("application/x-www-form-urlencoded")) ? append_percent : append_xml;
}

static enum status choose_target(const struct send *send, struct http_request *request, struct error *err)
{
    const struct destination_config *destination = send->destination;
    const struct job *job = send->job;
    if (job->step == STEP_SEND) {
        bool second = send->use_fallback && destination->fallback_url;
        buffer_append_text(&request->url, second ? destination->fallback_url : destination->url);
        request->method = slice_from(destination->method ? destination->method : "POST");
        request->body = job->payload;
        enum status status = buffer_status(&request->url);
        return status == STATUS_OK ? STATUS_OK : error_set(err, STATUS_UNSUPPORTED, "the url is too long");
    }
    const struct query_config *query = job->step == STEP_VERIFY ? &destination->verify : &destination->poll;
    request->method = slice_from(query->method ? query->method : query->body ? "POST" : "GET");
    bool complete = expand(&request->url, slice_from(query->url), job, append_percent);
    if (query->body) {
        void (*escape)(struct buffer *, struct slice) = escape_for(slice_from(destination->content_type));
        complete = expand(&request->text, slice_from(query->body), job, escape) && complete;
        request->body = buffer_slice(&request->text);
    }
    if (!complete)
        return error_set(err, STATUS_INVALID, "the job has no id or reference that fits into the question");
    if (buffer_status(&request->url) != STATUS_OK || buffer_status(&request->text) != STATUS_OK)
        return error_set(err, STATUS_LIMIT, "the url or the body of the question is too long");
    return STATUS_OK;
}

static enum status add_headers(struct http_request *request, const struct send *send, instant now, struct error *err)
{
    bool sending = send->job->step == STEP_SEND;
    struct slice type = sending && send->job->content_type.len > 0 ? send->job->content_type
                                                                   : slice_from(send->destination->content_type);
    enum status status = sending ? add_job_headers(request, send, err) : STATUS_OK;
    if (status == STATUS_OK && sending && send->job->content_type.len > 0 && !has_header(request, SLICE("Content-Type")))
        status = http_request_header(request, SLICE("Content-Type"), type, err);
    if (status == STATUS_OK)
        status = add_destination_headers(request, send->destination, err);
    if (status == STATUS_OK && request->body.len > 0 && type.len > 0 && !has_header(request, SLICE("Content-Type")))
        status = http_request_header(request, SLICE("Content-Type"), type, err);
    if (status == STATUS_OK)
        status = add_own_headers(request, send, now, err);
    /* libcurl would call any body a form's. */
    if (status == STATUS_OK && !has_header(request, SLICE("Content-Type")))
        status = add_line(request, SLICE("Content-Type"), SLICE(":"), SLICE(""), err);
    /* libcurl would ask with Expect: 100-continue and wait a second where the server does not know it. */
    if (status == STATUS_OK && request->body.len > UNEXPECTED_BYTES_MAX)
        status = add_line(request, SLICE("Expect"), SLICE(":"), SLICE(""), err);
    return status;
}

void http_request_init(struct http_request *request, size_t text_bytes_max)
{
    *request = (struct http_request){ .headers = NULL };
    buffer_init(&request->url, URL_BYTES_MAX);
    buffer_init(&request->text, text_bytes_max);
    buffer_init(&request->left_out, LEFT_OUT_BYTES_MAX);
}

enum status http_request_make(const struct send *send, instant now, struct http_request *ret_request, struct error *err)
{
    struct http_request request;
    http_request_init(&request, QUERY_BODY_BYTES_MAX);
    enum status status = choose_target(send, &request, err);
    if (status == STATUS_OK)
        status = add_headers(&request, send, now, err);
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
    buffer_release(&request->left_out);
    arena_release(&request->memory);
    request->headers = NULL;
}
