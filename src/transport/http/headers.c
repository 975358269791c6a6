#include "transport/http/headers.h"

#include <string.h>

/* How a request is framed is the transport's: another's word would shift where the next request on the line begins. */
static const char *const framing_headers[] = {
    "Connection", "Content-Length", "Expect", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Upgrade",
    "Transfer-Encoding", NULL,
};
/* What the receiver tells jobs and attempts apart by. */
static const char *const own_headers[] = {
    "Idempotency-Key", "Insist-Attempt", "webhook-id", "webhook-timestamp", "webhook-signature", NULL,
};
static const char *const guarded_headers[] = { "Authorization", "Cookie", "HTTP2-Settings", NULL };
/* Whose name has one of these and is set by the destination is the destination's way to show who it is. */
static const char *const credential_words[] = {
    "auth", "key", "token", "secret", "password", "session", "credential", NULL,
};

static bool is_listed(const char *const *names, struct slice name)
{
    while (*names && !slice_equal_nocase(slice_from(*names), name))
        names++;
    return *names != NULL;
}

static bool has_word(struct slice name, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= name.len; i++)
        if (slice_equal_nocase((struct slice){ name.data + i, len }, slice_from(word)))
            return true;
    return false;
}

static bool is_credential_of(const struct destination_config *destination, struct slice name)
{
    bool set = false, named = false;
    for (size_t i = 0; i < destination->headers.count; i++)
        set = set || slice_equal_nocase(slice_from(destination->headers.items[i].name), name);
    for (const char *const *word = credential_words; *word; word++)
        named = named || has_word(name, *word);
    return set && named;
}

enum header_rule http_header_rule(const struct destination_config *destination, struct slice name)
{
    struct slice proxy = SLICE("Proxy-");
    bool for_proxy = name.len > proxy.len && slice_equal_nocase((struct slice){ name.data, proxy.len }, proxy);
    if (is_listed(framing_headers, name) || is_listed(own_headers, name) || slice_equal_nocase(name, SLICE("Host")))
        return HEADER_OURS;
    for (size_t i = 0; i < destination->allow_headers.count; i++)
        if (slice_equal_nocase(slice_from(destination->allow_headers.items[i]), name))
            return HEADER_FREE;
    bool guarded = for_proxy || is_listed(guarded_headers, name) || is_credential_of(destination, name);
    return guarded ? HEADER_GUARDED : HEADER_FREE;
}

static bool is_token(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!ascii_is_alnum(name.data[i]) && !memchr("!#$%&'*+-.^_`|~", name.data[i], 15))
            return false;
    return name.len > 0;
}

static bool is_value(struct slice value)
{
    for (size_t i = 0; i < value.len; i++)
        if (((unsigned char)value.data[i] < ' ' && value.data[i] != '\t') || value.data[i] == 0x7f)
            return false;
    return true;
}

bool http_header_is_safe(struct slice name, struct slice value)
{
    return is_token(name) && name.len + value.len <= HEADER_BYTES_MAX && is_value(value);
}

enum status http_headers_check(const struct destination_config *destination, struct error *err)
{
    for (size_t i = 0; i < destination->headers.count; i++) {
        struct slice name = slice_from(destination->headers.items[i].name);
        struct slice value = slice_from(destination->headers.items[i].value);
        bool framing = is_listed(framing_headers, name) || slice_equal_nocase(name, SLICE("HTTP2-Settings"));
        if (framing || is_listed(own_headers, name) || !http_header_is_safe(name, value))
            return error_set(err, STATUS_UNSUPPORTED, "headers: %s cannot be set", destination->headers.items[i].name);
    }
    for (size_t i = 0; i < destination->allow_headers.count; i++)
        if (http_header_rule(destination, slice_from(destination->allow_headers.items[i])) == HEADER_OURS)
            return error_set(err, STATUS_UNSUPPORTED, "allow_headers: %s cannot be set by a job",
                             destination->allow_headers.items[i]);
    return STATUS_OK;
}
