/*
 * curl_send.h - what sends over libcurl have in common, whatever the protocol: a destination's options, how a failure is
 * reported, and sends that never began.
 */
#ifndef TRANSPORT_CURL_SEND_H
#define TRANSPORT_CURL_SEND_H

#include "base/buffer.h"
#include "transport/transport.h"

#include <curl/curl.h>

/* libcurl copies texts; without memory for one, say for a proxy or a certificate, nothing must be sent: *unset. */
void curl_set_text(CURL *curl, CURLoption option, const char *text, bool *unset);
/* The destination's way there: its proxy and no other, its certificates and whose it believes. */
void curl_set_way(CURL *curl, const struct destination_config *destination, bool *unset);

/* ---- What is reported. ---- */

/* What an answer's slices point to. */
struct words {
    struct buffer code, text, reference;
};

void words_init(struct words *words);
void words_release(struct words *words);
/* The words, and the time since `started_ns` (clock_ticks_ns), into the answer. */
void words_tell(const struct words *words, int64_t started_ns, struct answer *answer);
/* Of a send that was aborted. */
void words_interrupted(struct words *words);
/* Of a destination whose address nobody meant: the configuration must say so. */
void private_judge(struct answer *answer, struct words *words);

/* "TIMEOUT - Connection timed out after 10000 milliseconds". `detail` is libcurl's own text; NULL or empty: none. */
void curl_failure_text(CURLcode result, const char *detail, struct buffer *text);

/*
 * Whether libcurl's text says that the server refused our certificate. In TLS 1.3 our side is done before the server has
 * looked at it, so that its refusal comes as the answer to something that it never read.
 */
bool curl_failure_refused_certificate(CURLcode result, const char *detail);

/* ---- Sends that never began: they are answered from the loop, never from inside start. ---- */

/*
 * What could not be written down is the job's own fault, named by `code` and `word`, or the configuration's; else
 * connections or memory were missing.
 */
void unstarted_judge(const struct error *failure, const char *code, const char *word, struct answer *answer,
                     struct words *words);

/* Those without memory even for what would carry them, linked by `next`. */
void starved_answer_all(struct send **starved);
/* One of them, aborted. */
void starved_abort(struct send **starved, struct send *send);

#endif
