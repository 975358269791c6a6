/*
 * Whether what a valid configuration refers to is there and can work: addresses, certificates, tokens, the store.
 */
#include "api/http/auth.h"
#include "base/buffer.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "transport/address.h"
#include "transport/exec/exec.h"
#include "transport/http/settings.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PROBLEM_BYTES_MAX = 1024, HOST_BYTES_MAX = 256 };

struct checking {
    const struct config *config;
    const struct destination_config *destination; /* that is looked at; NULL: the file */
    const char *tenant; /* whose account there; NULL: the destination's */
    struct buffer *out;
    bool log_tenants; /* what is wrong with a tenant's account is logged, and not counted */
    size_t count;
};

static void tell(struct checking *checking, struct config_place at, const char *format, ...) PRINTF_LIKE(3, 4);
static void tell(struct checking *checking, struct config_place at, const char *format, ...)
{
    char text[PROBLEM_BYTES_MAX];
    size_t from = checking->out->len;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buffer_append_text(checking->out, checking->config->path ? checking->config->path : "built-in defaults");
    if (at.line > 0)
        buffer_printf(checking->out, ":%zu:%zu", at.line, at.column);
    buffer_append_text(checking->out, ": ");
    if (checking->destination)
        buffer_printf(checking->out, "destination \"%s\": ", checking->destination->name);
    if (checking->tenant)
        buffer_printf(checking->out, "tenant \"%s\": ", checking->tenant);
    config_hide(checking->config, text, checking->out);
    if (checking->tenant && checking->log_tenants) {
        log_event(LOG_ERROR, "account_unusable", FIELD_TEXT("reason", slice_from_offset(buffer_slice(checking->out), from)));
        checking->out->len = from;
        return;
    }
    buffer_append_byte(checking->out, '\n');
    checking->count++;
}

/* ---- addresses ---- */

/* The host of a URL, without the brackets of IPv6. False: it is too long to be one. */
static bool host_of(const char *url, char ret_host[HOST_BYTES_MAX])
{
    const char *from = strstr(url, "://");
    from = from ? from + 3 : url;
    const char *end = from + strcspn(from, "/?#");
    for (const char *at = from; at < end; at++)
        from = *at == '@' ? at + 1 : from;
    bool bracketed = *from == '[';
    from += bracketed;
    size_t len = strcspn(from, bracketed ? "]" : ":/?#");
    if (len >= HOST_BYTES_MAX || from + len > end)
        return false;
    memcpy(ret_host, from, len);
    ret_host[len] = '\0';
    return true;
}

/* Written as a number or as localhost: what a name leads to is known only at the send. */
static bool host_is_private(const char *host)
{
    const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
    struct slice name = slice_from(host);
    struct addrinfo *found;
    if (slice_equal_nocase(name, SLICE("localhost")) || slice_has_suffix(name, SLICE(".localhost")))
        return true;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    bool private = address_is_private(found->ai_addr);
    freeaddrinfo(found);
    return private;
}

static void check_addresses(struct checking *checking)
{
    const struct destination_config *destination = checking->destination;
    const struct {
        const char *name, *url;
        struct config_place at;
    } urls[] = {
        { "url", destination->url, destination->at.url },
        { "fallback.url", destination->fallback_url, destination->at.fallback_url },
        { "health.url", destination->health.url, destination->at.health_url },
        { "verify.url", destination->verify.url, destination->at.verify_url },
        { "poll.url", destination->poll.url, destination->at.poll_url },
        { "oauth2.token_url", destination->oauth2.token_url, destination->at.oauth2_url },
    };
    char host[HOST_BYTES_MAX];
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        if (urls[i].url && !destination->allow_private && !destination->proxy && host_of(urls[i].url, host) &&
            host_is_private(host))
            tell(checking, urls[i].at,
                 "%s is at %s, a private address, to which nothing is sent; set allow_private: true if it is meant",
                 urls[i].name, host);
}

/* ---- certificates ---- */

static FILE *open_reported(struct checking *checking, struct config_place at, const char *name, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        tell(checking, at, "%s: %s: %s", name, path, strerror(errno));
    return file;
}

/* The first certificate in the file, which must have one. NULL: it has not, which is reported. */
static X509 *certificate_read(struct checking *checking, struct config_place at, const char *name, const char *path)
{
    FILE *file = open_reported(checking, at, name, path);
    if (!file)
        return NULL;
    X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);
    fclose(file);
    if (!certificate)
        tell(checking, at, "%s: %s has no certificate in PEM form", name, path);
    return certificate;
}

/* Nobody is there to be asked. */
static int no_passphrase(UNUSED char *buffer, UNUSED int size, UNUSED int writing, UNUSED void *context)
{
    return -1;
}

static EVP_PKEY *key_read(struct checking *checking, struct config_place at, const char *path)
{
    FILE *file = open_reported(checking, at, "tls.key", path);
    if (!file)
        return NULL;
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, no_passphrase, NULL);
    fclose(file);
    if (!key)
        tell(checking, at, "tls.key: %s has no key in PEM form that can be read without a passphrase", path);
    return key;
}

static void check_tls(struct checking *checking)
{
    const struct destination_config *destination = checking->destination;
    const struct tls_config *tls = &destination->tls;
    X509 *authority = tls->ca ? certificate_read(checking, destination->at.tls_ca, "tls.ca", tls->ca) : NULL;
    X509 *certificate = tls->cert ? certificate_read(checking, destination->at.tls_cert, "tls.cert", tls->cert) : NULL;
    EVP_PKEY *key = tls->key ? key_read(checking, destination->at.tls_key, tls->key) : NULL;
    if (certificate && key && X509_check_private_key(certificate, key) != 1)
        tell(checking, destination->at.tls_key, "tls.key: %s is not the key of the certificate %s", tls->key, tls->cert);
    X509_free(authority);
    X509_free(certificate);
    EVP_PKEY_free(key);
    ERR_clear_error();
}

/* ---- all of it ---- */

static void check_account(struct checking *checking, const struct destination_config *destination)
{
    struct error error;
    checking->destination = destination;
    check_addresses(checking);
    check_tls(checking);
    checking->destination = NULL; /* the next has its name in its message */
    if (destination->transport == TRANSPORT_HTTP && http_settings_check(destination, &error) != STATUS_OK)
        tell(checking, destination->at.self, "%s", error.text);
    if (destination->transport == TRANSPORT_EXEC && exec_settings_check(destination, &error) != STATUS_OK)
        tell(checking, destination->at.self, "%s", error.text);
}

static void check_destination(struct checking *checking, const struct destination_config *destination)
{
    check_account(checking, destination);
    for (size_t i = 0; i < destination->tenant_count; i++) {
        checking->tenant = destination->tenants[i].tenant;
        check_account(checking, destination->tenants[i].destination);
    }
    checking->tenant = NULL;
}

static void check_source(struct checking *checking, const struct source_config *source)
{
    const struct {
        const char *name, *path;
    } files[] = { { "ca", source->tls.ca }, { "cert", source->tls.cert } };
    const struct config_place nowhere = { 0, 0 };
    char name[HOST_BYTES_MAX];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(name, sizeof name, "source \"%s\": tls.%s", source->name, files[i].name);
        X509_free(files[i].path ? certificate_read(checking, nowhere, name, files[i].path) : NULL);
    }
    EVP_PKEY_free(source->tls.key ? key_read(checking, nowhere, source->tls.key) : NULL);
    ERR_clear_error();
}

static void check_tokens(struct checking *checking)
{
    struct tokens *tokens = NULL;
    struct error error;
    if (checking->config->tokens_file && tokens_load(checking->config->tokens_file, &tokens, &error) != STATUS_OK)
        tell(checking, checking->config->tokens_file_at, "auth.tokens_file: %s", error.text);
    tokens_free(tokens);
}

static size_t find_problems(const struct config *config, const struct store_backend *const *backends, bool log_tenants,
                            struct buffer *out)
{
    struct checking checking = { .config = config, .out = out, .log_tenants = log_tenants };
    struct error error;
    for (size_t i = 0; i < config_destination_total(config); i++)
        check_destination(&checking, config_destination_at(config, i));
    for (size_t i = 0; i < config->source_count; i++)
        check_source(&checking, &config->sources[i]);
    check_tokens(&checking);
    if (store_address_check(backends, slice_from(config->store), &error) != STATUS_OK)
        tell(&checking, config->store_at, "%s", error.text);
    return checking.count;
}

size_t daemon_problems(const struct config *config, const struct store_backend *const *backends, struct buffer *out)
{
    return find_problems(config, backends, false, out);
}

static enum status check(const struct config *config, const struct store_backend *const *backends, bool log_tenants,
                         struct error *err)
{
    struct buffer problems = buffer_up_to(1 << 20);
    enum status status = STATUS_OK;
    if (find_problems(config, backends, log_tenants, &problems) > 0) {
        struct slice first = buffer_slice(&problems);
        status = error_set(err, STATUS_UNSUPPORTED, "%.*s", (int)slice_find(first, '\n'), first.data ? first.data : "");
    }
    buffer_release(&problems);
    return status;
}

enum status daemon_check(const struct config *config, const struct store_backend *const *backends, struct error *err)
{
    return check(config, backends, false, err);
}

enum status daemon_check_to_run(const struct config *config, const struct store_backend *const *backends, struct error *err)
{
    return check(config, backends, true, err);
}
