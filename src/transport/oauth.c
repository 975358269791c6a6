#include "transport/oauth.h"

#include "base/clock.h"
#include "transport/address.h"
#include "transport/curl_loop.h"

#include <assert.h>
#include <event2/event.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    ANSWER_BYTES_MAX = 64 * 1024,
    FORM_BYTES_MAX = 16 * 1024,
    TOKEN_BYTES_MAX = 16 * 1024,
    FETCH_MS_MAX = 30 * 1000,
    LIFE_S = 3600,       /* of a token that does not say how long it lives */
    LIFE_S_MAX = 86400,
    MARGIN_S = 30,       /* so long before its end it is not used any more, or for half of a shorter life */
    SHOWN_BYTES_MAX = 512,
};

struct oauth {
    struct curl_loop loop;
    struct oauth_token *tokens;
    uint64_t generation; /* of the configuration */
    uint64_t numbers;
    struct event *later; /* fetches that could not begin */
};

struct oauth_token {
    struct oauth *oauth;
    const struct destination_config *destination; /* only compared once the fetch has begun */
    uint64_t generation;
    char *bearer; /* NULL: none */
    uint64_t number;
    int64_t until_ms;
    CURL *curl; /* of the fetch; NULL: none is under way */
    bool guarded, private_address, unset;
    struct buffer form, body;
    char curl_error[CURL_ERROR_SIZE];
    struct oauth_wait *waiting;
    struct oauth_token *next;
};

static void token_drop(struct oauth_token *token)
{
    free(token->bearer);
    token->bearer = NULL;
}

static void token_free(struct oauth_token *token)
{
    assert(!token->waiting);
    if (token->curl) {
        curl_multi_remove_handle(token->oauth->loop.multi, token->curl);
        curl_easy_cleanup(token->curl);
    }
    token_drop(token);
    buffer_release(&token->form);
    buffer_release(&token->body);
    free(token);
}

/* Those of an older configuration that nobody waits for. */
static void tokens_sweep(struct oauth *oauth)
{
    for (struct oauth_token **at = &oauth->tokens; *at;) {
        struct oauth_token *token = *at;
        if (token->generation == oauth->generation || token->waiting) {
            at = &token->next;
            continue;
        }
        *at = token->next;
        token_free(token);
    }
}

/* ---- The answer. ---- */

static void tell(struct oauth_token *token, const struct answer *failure)
{
    struct oauth_wait *waiting = token->waiting, *wait;
    token->waiting = NULL; /* who hears of it may wait again at once */
    while ((wait = waiting)) {
        waiting = wait->next;
        wait->token = NULL;
        wait->done(wait, failure);
    }
}

static void fail(struct oauth_token *token, bool attempted, enum outcome outcome, const struct words *words)
{
    struct answer failure = { .attempted = attempted, .outcome = outcome, .code = buffer_slice(&words->code),
                              .text = buffer_slice(&words->text), .retry_after_ms = -1 };
    tell(token, &failure);
}

static void judge_lost(struct oauth_token *token, CURLcode result)
{
    struct words words;
    bool scarce = token->unset || result == CURLE_OUT_OF_MEMORY || result == CURLE_FAILED_INIT;
    words_init(&words);
    if (token->private_address) {
        buffer_append(&words.code, SLICE("insist:private_address"));
        buffer_append(&words.text,
                      SLICE("oauth2.token_url is at a private address; set allow_private: true where that is meant"));
        fail(token, true, OUTCOME_BLOCKED, &words);
    } else {
        buffer_printf(&words.code, "curl:%d", (int)result);
        buffer_append(&words.text, SLICE("no access token: "));
        curl_failure_text(result, token->curl_error, &words.text);
        fail(token, !scarce, OUTCOME_NONE, &words);
    }
    words_release(&words);
}

/* "invalid_client": who we are is not known there, which no other job changes. */
static void judge_refusal(struct oauth_token *token, long status, const json_t *answer)
{
    struct words words;
    const char *error = json_string_value(json_object_get(answer, "error"));
    bool ours = status / 100 == 2 || status == 400 || status == 401 || status == 403;
    struct slice shown = slice_trim(buffer_slice(&token->body));
    words_init(&words);
    if (ours)
        buffer_printf(&words.code, "oauth2:%.64s", error ? error : status / 100 == 2 ? "no_token" : "refused");
    else
        buffer_printf(&words.code, "http:%ld", status);
    shown.len = status / 100 == 2 ? 0 : shown.len < SHOWN_BYTES_MAX ? shown.len : SHOWN_BYTES_MAX;
    buffer_printf(&words.text, "no access token: HTTP %ld from oauth2.token_url%s%.*s", status, shown.len > 0 ? ": " : "",
                  SLICE_ARG(shown));
    fail(token, true, ours ? OUTCOME_BLOCKED : OUTCOME_NONE, &words);
    words_release(&words);
}

static bool is_plain(const char *text)
{
    size_t len = 0;
    for (; text[len]; len++)
        if (text[len] <= ' ' || text[len] > '~')
            return false;
    return len > 0 && len < TOKEN_BYTES_MAX;
}

static bool token_take(struct oauth_token *token, const json_t *answer)
{
    const char *bearer = json_string_value(json_object_get(answer, "access_token"));
    const json_t *life = json_object_get(answer, "expires_in");
    int64_t life_s = json_is_integer(life) ? json_integer_value(life) : LIFE_S;
    if (!bearer || !is_plain(bearer))
        return false;
    if (life_s < 1 || life_s > LIFE_S_MAX)
        life_s = life_s < 1 ? 1 : LIFE_S_MAX;
    token_drop(token);
    token->bearer = strdup(bearer);
    token->number = ++token->oauth->numbers;
    int64_t margin_ms = life_s > 2 * MARGIN_S ? MARGIN_S * SECOND_MS : life_s * SECOND_MS / 2;
    token->until_ms = clock_ticks_ms() + life_s * SECOND_MS - margin_ms;
    return token->bearer != NULL;
}

static void on_fetched(void *private_data, CURLcode result)
{
    struct oauth_token *token = private_data;
    struct oauth *oauth = token->oauth;
    long status = 0;
    curl_easy_getinfo(token->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(oauth->loop.multi, token->curl);
    curl_easy_cleanup(token->curl);
    token->curl = NULL;
    json_t *answer = result == CURLE_OK ? json_loadb(buffer_slice(&token->body).data, token->body.len, 0, NULL) : NULL;
    if (result != CURLE_OK)
        judge_lost(token, result);
    else if (status / 100 == 2 && token_take(token, answer))
        tell(token, NULL);
    else
        judge_refusal(token, status, answer);
    json_decref(answer);
    event_active(oauth->later, EV_TIMEOUT, 0); /* one of an older configuration goes */
}

/* ---- The fetch. ---- */

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct oauth_token *token = context;
    buffer_append(&token->body, (struct slice){ data, size * count });
    return buffer_status(&token->body) == STATUS_OK ? size * count : 0;
}

static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct oauth_token *token = context;
    if (purpose == CURLSOCKTYPE_IPCXN && token->guarded && address_is_private(&address->addr)) {
        token->private_address = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void form_add(struct oauth_token *token, const char *name, const char *value)
{
    char *escaped = value ? curl_easy_escape(token->curl, value, 0) : NULL;
    if (escaped)
        buffer_printf(&token->form, "%s%s=%s", token->form.len > 0 ? "&" : "", name, escaped);
    token->unset = token->unset || (value && !escaped);
    curl_free(escaped);
}

static void set_login(struct oauth_token *token, const struct oauth2_config *config)
{
    char *id = curl_easy_escape(token->curl, config->client_id, 0);
    char *secret = curl_easy_escape(token->curl, config->client_secret, 0);
    token->unset = token->unset || !id || !secret;
    curl_set_text(token->curl, CURLOPT_USERNAME, id, &token->unset);
    curl_set_text(token->curl, CURLOPT_PASSWORD, secret, &token->unset);
    curl_easy_setopt(token->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
    curl_free(id);
    curl_free(secret);
}

static void set_options(struct oauth_token *token, const struct destination_config *destination)
{
    CURL *curl = token->curl;
    const struct oauth2_config *config = &destination->oauth2;
    buffer_clear(&token->form);
    form_add(token, "grant_type", "client_credentials");
    form_add(token, "scope", config->scope);
    if (config->auth == OAUTH2_BODY) {
        form_add(token, "client_id", config->client_id);
        form_add(token, "client_secret", config->client_secret);
    } else {
        set_login(token, config);
    }
    buffer_append_byte(&token->form, '\0');
    token->unset = token->unset || buffer_status(&token->form) != STATUS_OK;
    curl_set_text(curl, CURLOPT_URL, config->token_url, &token->unset);
    curl_set_text(curl, CURLOPT_PROTOCOLS_STR, "http,https", &token->unset);
    curl_set_text(curl, CURLOPT_COPYPOSTFIELDS, token->unset ? NULL : token->form.data, &token->unset);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, token);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, token->curl_error);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, token);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, token);
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L); /* an open one could lead to an address that nobody meant */
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)destination->connect_timeout_ms);
    int64_t timeout_ms = destination->timeout_ms < FETCH_MS_MAX ? destination->timeout_ms : FETCH_MS_MAX;
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_set_way(curl, destination, &token->unset);
}

static void fetch(struct oauth_token *token, const struct destination_config *destination)
{
    buffer_clear(&token->body);
    token->curl_error[0] = '\0';
    token->private_address = token->unset = false;
    token->guarded = !destination->allow_private && !destination->proxy;
    token->curl = curl_easy_init();
    if (token->curl)
        set_options(token, destination);
    if (token->curl && !token->unset && curl_multi_add_handle(token->oauth->loop.multi, token->curl) == CURLM_OK)
        return;
    curl_easy_cleanup(token->curl);
    token->curl = NULL;
    token->unset = true;
    event_active(token->oauth->later, EV_TIMEOUT, 0);
}

static void on_later(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct oauth *oauth = context;
    for (struct oauth_token *token = oauth->tokens; token; token = token->next)
        if (token->waiting && !token->curl)
            judge_lost(token, CURLE_OUT_OF_MEMORY);
    tokens_sweep(oauth);
}

/* ---- From outside. ---- */

static struct oauth_token *token_of(struct oauth *oauth, const struct destination_config *destination)
{
    for (struct oauth_token *token = oauth->tokens; token; token = token->next)
        if (token->destination == destination && token->generation == oauth->generation)
            return token;
    return NULL;
}

const char *oauth_bearer(struct oauth *oauth, const struct destination_config *destination, uint64_t *ret_number)
{
    struct oauth_token *token = token_of(oauth, destination);
    if (!token || !token->bearer || clock_ticks_ms() >= token->until_ms)
        return NULL;
    *ret_number = token->number;
    return token->bearer;
}

bool oauth_wait(struct oauth *oauth, const struct destination_config *destination, struct oauth_wait *wait)
{
    struct oauth_token *token = token_of(oauth, destination);
    if (!token) {
        token = calloc(1, sizeof *token);
        if (!token)
            return false;
        *token = (struct oauth_token){ .oauth = oauth, .destination = destination, .generation = oauth->generation,
                                       .next = oauth->tokens };
        buffer_init(&token->form, FORM_BYTES_MAX);
        buffer_init(&token->body, ANSWER_BYTES_MAX);
        oauth->tokens = token;
    }
    struct oauth_wait **end = &token->waiting; /* in the order in which they came */
    while (*end)
        end = &(*end)->next;
    wait->next = NULL;
    wait->token = token;
    *end = wait;
    if (!token->curl && token->waiting == wait)
        fetch(token, destination);
    return true;
}

void oauth_leave(struct oauth_wait *wait)
{
    struct oauth_wait **link = &wait->token->waiting;
    while (*link != wait)
        link = &(*link)->next;
    *link = wait->next;
    wait->token = NULL;
}

void oauth_refused(struct oauth *oauth, const struct destination_config *destination, uint64_t number)
{
    struct oauth_token *token = token_of(oauth, destination);
    if (token && token->number == number) /* else somebody has a newer one already */
        token_drop(token);
}

void oauth_forget(struct oauth *oauth)
{
    oauth->generation++;
    tokens_sweep(oauth);
}

void oauth_free(struct oauth *oauth)
{
    if (!oauth)
        return;
    oauth_forget(oauth);
    assert(!oauth->tokens);
    curl_loop_release(&oauth->loop);
    if (oauth->later)
        event_free(oauth->later);
    free(oauth);
}

enum status oauth_new(struct event_base *loop, struct oauth **ret_oauth, struct error *err)
{
    struct oauth *oauth = calloc(1, sizeof *oauth);
    bool made = oauth && curl_loop_init(&oauth->loop, loop, on_fetched);
    if (made)
        oauth->later = event_new(loop, -1, 0, on_later, oauth);
    if (made && oauth->later) {
        *ret_oauth = oauth;
        return STATUS_OK;
    }
    if (oauth)
        curl_loop_release(&oauth->loop);
    free(oauth);
    return error_set(err, STATUS_NO_MEMORY, "no memory for access tokens");
}
