#include "transport/curl_failure.h"

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
