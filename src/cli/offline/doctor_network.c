#include "cli/offline/doctor.h"

#include "transport/address.h"

#include <curl/curl.h>
#include <sys/socket.h>

enum { CONNECT_TIMEOUT_MS = 5000 };

/* What a connection came to, beside curl's own result. */
struct trial {
    const struct destination_config *destination;
    bool refused; /* an address that the daemon does not connect to either */
    char message[CURL_ERROR_SIZE];
};

/* As the daemon's transports do it: through a proxy the address is the proxy's, which the operator chose. */
static curl_socket_t on_open_socket(void *context, UNUSED curlsocktype purpose, struct curl_sockaddr *address)
{
    struct trial *trial = context;
    bool any = trial->destination->allow_private || trial->destination->proxy;
    if (!any && address_is_private(&address->addr)) {
        trial->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* As far as TLS goes; nothing of a job is sent. */
static CURLcode try_connect(struct trial *trial)
{
    const struct destination_config *destination = trial->destination;
    CURL *curl = curl_easy_init();
    if (!curl)
        return CURLE_OUT_OF_MEMORY;
    curl_easy_setopt(curl, CURLOPT_URL, destination->url);
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,smtp,smtps");
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, trial->message);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, trial);
    curl_easy_setopt(curl, CURLOPT_PROXY, destination->proxy ? destination->proxy : "");
    if (destination->tls.ca)
        curl_easy_setopt(curl, CURLOPT_CAINFO, destination->tls.ca);
    if (destination->tls.cert)
        curl_easy_setopt(curl, CURLOPT_SSLCERT, destination->tls.cert);
    if (destination->tls.key)
        curl_easy_setopt(curl, CURLOPT_SSLKEY, destination->tls.key);
    if (!destination->tls.verify) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    CURLcode result = curl_easy_perform(curl);
    curl_easy_cleanup(curl);
    return result;
}

static const char *advice(CURLcode result)
{
    switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return "look at the url and the name service";
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
        return "it is down, or a firewall is between";
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return "look at its certificate and at tls.ca";
    case CURLE_SSL_CERTPROBLEM:
        return "look at tls.cert and tls.key";
    default:
        return "look at the url";
    }
}

static void check_destination(struct doctor *doctor, const struct destination_config *destination)
{
    struct trial trial = { .destination = destination };
    bool reachable = destination->transport == TRANSPORT_HTTP || destination->transport == TRANSPORT_SMTP;
    if (!reachable || !destination->url)
        return;
    CURLcode result = try_connect(&trial);
    if (result == CURLE_OK)
        doctor_tell(doctor, FINDING_OK, "network", "%s answers", destination->name);
    else if (trial.refused)
        doctor_tell(doctor, FINDING_FAIL, "network",
                    "%s: its address is private, and nothing is sent there; set allow_private: true where that is meant",
                    destination->name);
    else
        doctor_tell(doctor, FINDING_FAIL, "network", "%s: %s; %s", destination->name,
                    *trial.message ? trial.message : curl_easy_strerror(result), advice(result));
}

void doctor_network(struct doctor *doctor)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        doctor_tell(doctor, FINDING_FAIL, "network", "the HTTP client cannot be set up");
        return;
    }
    for (size_t i = 0; i < doctor->config->destination_count; i++)
        check_destination(doctor, &doctor->config->destinations[i]);
}
