#include "transport/curl_send.h"

#include "base/clock.h"

#include <assert.h>

enum { CODE_WORD_BYTES_MAX = 256, TEXT_WORD_BYTES_MAX = 16 * 1024 };

void curl_set_text(CURL *curl, CURLoption option, const char *text, bool *unset)
{
    if (text && curl_easy_setopt(curl, option, text) != CURLE_OK)
        *unset = true;
}

void curl_set_way(CURL *curl, const struct destination_config *destination, bool *unset)
{
    const struct tls_config *tls = &destination->tls;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L); /* a resolver that hangs must not hold the loop when its send is over */
    /* Environment variables of the daemon's must not send the jobs elsewhere, nor past their proxy. */
    curl_set_text(curl, CURLOPT_PROXY, destination->proxy ? destination->proxy : "", unset);
    curl_set_text(curl, CURLOPT_NOPROXY, "", unset);
    curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* the proxy's are no answer of the destination's */
    curl_set_text(curl, CURLOPT_CAINFO, tls->ca, unset);
    curl_set_text(curl, CURLOPT_SSLCERT, tls->cert, unset);
    curl_set_text(curl, CURLOPT_SSLKEY, tls->key, unset);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, tls->verify ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, tls->verify ? 2L : 0L);
}

/* ---- What is reported. ---- */

void words_init(struct words *words)
{
    buffer_init(&words->code, CODE_WORD_BYTES_MAX);
    buffer_init(&words->text, TEXT_WORD_BYTES_MAX);
    buffer_init(&words->reference, REFERENCE_BYTES_MAX);
}

void words_release(struct words *words)
{
    buffer_release(&words->code);
    buffer_release(&words->text);
    buffer_release(&words->reference);
}

void words_tell(const struct words *words, int64_t started_ns, struct answer *answer)
{
    answer->code = buffer_slice(&words->code);
    answer->text = buffer_slice(&words->text);
    answer->reference = buffer_slice(&words->reference);
    answer->duration_ms = (clock_ticks_ns() - started_ns) / 1000000;
}

void words_interrupted(struct words *words)
{
    words_init(words);
    buffer_append(&words->code, SLICE("curl:42"));
    buffer_append(&words->text, SLICE("INTERRUPTED - the daemon was stopped before the answer came"));
}

void curl_failure_text(CURLcode result, const char *detail, struct buffer *text)
{
    static const struct { CURLcode code; const char *word; } words[] = {
        { CURLE_OPERATION_TIMEDOUT, "TIMEOUT" },           { CURLE_COULDNT_RESOLVE_HOST, "NETWORK_ERROR" },
        { CURLE_COULDNT_RESOLVE_PROXY, "NETWORK_ERROR" },  { CURLE_COULDNT_CONNECT, "CONNECTION_ERROR" },
        { CURLE_SEND_ERROR, "CONNECTION_ERROR" },          { CURLE_RECV_ERROR, "CONNECTION_ERROR" },
        { CURLE_GOT_NOTHING, "CONNECTION_ERROR" },         { CURLE_PARTIAL_FILE, "CONNECTION_ERROR" },
        { CURLE_SSL_CONNECT_ERROR, "TLS_ERROR" },          { CURLE_PEER_FAILED_VERIFICATION, "TLS_ERROR" },
        { CURLE_SSL_CERTPROBLEM, "TLS_ERROR" },            { CURLE_SSL_CACERT_BADFILE, "TLS_ERROR" },
        { CURLE_SSL_CLIENTCERT, "TLS_ERROR" },             { CURLE_USE_SSL_FAILED, "TLS_ERROR" },
    };
    const char *word = "TRANSPORT_ERROR";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].code == result)
            word = words[i].word;
    buffer_printf(text, "%s - %s", word, detail && detail[0] ? detail : curl_easy_strerror(result));
}

/* OpenSSL's words for those alerts are stable. */
bool curl_failure_refused_certificate(CURLcode result, const char *detail)
{
    static const char *const alerts[] = {
        "alert certificate required", "alert bad certificate",     "alert unsupported certificate",
        "alert certificate expired",  "alert certificate revoked", "alert certificate unknown",
        "alert unknown ca",           "alert access denied",
    };
    if (result != CURLE_RECV_ERROR && result != CURLE_SEND_ERROR && result != CURLE_SSL_CONNECT_ERROR)
        return false;
    for (size_t i = 0; i < sizeof alerts / sizeof *alerts; i++)
        if (strstr(detail, alerts[i]))
            return true;
    return false;
}

void private_judge(struct answer *answer, struct words *words)
{
    answer->outcome = OUTCOME_BLOCKED;
    buffer_append(&words->code, SLICE("insist:private_address"));
    buffer_append(&words->text,
                  SLICE("the destination's address is private; set allow_private: true where that is meant"));
}

/* ---- Sends that never began. ---- */

void unstarted_judge(const struct error *failure, const char *code, const char *word, struct answer *answer,
                     struct words *words)
{
    switch (failure->status) {
    case STATUS_INVALID:
    case STATUS_LIMIT:
        answer->attempted = true;
        answer->outcome = OUTCOME_PERMANENT;
        break;
    case STATUS_UNSUPPORTED:
        answer->attempted = true;
        answer->outcome = OUTCOME_BLOCKED;
        code = "insist:configuration";
        word = "INVALID_CONFIGURATION";
        break;
    case STATUS_FULL:
        code = "insist:connections";
        word = "NO_CONNECTION";
        break;
    default:
        code = "curl:27";
        word = "OUT_OF_MEMORY";
    }
    buffer_append_text(&words->code, code);
    buffer_printf(&words->text, "%s - %s", word, failure->text);
}

static void answer_starved(struct send *send)
{
    static const struct answer answer = { .code = { "curl:27", 7 },
                                          .text = { "OUT_OF_MEMORY - no memory for a request", 39 },
                                          .reference = { "", 0 },
                                          .retry_after_ms = -1 };
    send->done(send, &answer);
}

void starved_answer_all(struct send **starved)
{
    while (*starved) {
        struct send *send = *starved;
        *starved = send->next;
        answer_starved(send);
    }
}

void starved_abort(struct send **starved, struct send *send)
{
    struct send **link = starved;
    while (*link && *link != send)
        link = &(*link)->next;
    assert(*link); /* only a send under way may be aborted */
    *link = send->next;
    answer_starved(send);
}
