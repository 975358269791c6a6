/*
 * alert_script.h - a stage whose destinations fail as told, and what whoever is told of alerts has got.
 */
#ifndef SUPPORT_ALERT_SCRIPT_H
#define SUPPORT_ALERT_SCRIPT_H

#include "engine/alerts/alerts.h"
#include "engine/alerts/notify.h"
#include "support/check.h"
#include "support/stage.h"

static const instant began = INT64_C(1736678400000); /* 2025-01-12T10:40:00Z */

#define TOLD "notify: [{ name: ops, webhook: 'http://127.0.0.1:2/', allow_private: true, on: [all] }]\n"
#define TO(more) TOLD "destinations: { d: { preset: http, url: 'http://127.0.0.1:1/', allow_private: true" more " } }\n"
#define QUICK ", retry: { base: 1s, floor: 1s, cap: 1s, jitter: 0, max_retries: 1 }, contingency: { enabled: false }, breaker: { min_calls: 100000 }"

enum { MESSAGES_MAX = 64 };

/* What the destination does, and what whoever is told has got. */
struct script {
    const char *fails_with; /* a code for destination d; NULL: it delivers */
    bool webhook_fails;
    char messages[MESSAGES_MAX][160]; /* "alert.raised pending d -" */
    size_t count;
    size_t saves; /* of alerts that stand, where a test counts them */
};

/* For stage.answer: destinations fail with script->fails_with, and what is told is noted. */
int64_t alert_answers(struct stage *stage, const struct send *send, struct answer *answer);
/* Exactly these, in this order. */
void alert_messages_check(const struct script *script, const char *const *expected, size_t count, const char *what);
/* How many notes a space has; the newest goes to *ret_first, which lives in `memory`. */
size_t alert_notes(struct stage *stage, struct slice space, struct slice *ret_first, struct arena *memory);
/* How many alerts stand, and how many are over and still kept. */
size_t alert_state(struct stage *stage);
size_t alert_cleared(struct stage *stage);
/* How many events of the trail have that text. */
size_t alert_events(struct stage *stage, const char *note);
void alert_jobs_add(struct stage *stage, const char *destination, const char *tenant, int count);
void status_ok(enum status status);

#define CHECK_MESSAGES(script, what, ...)                                                                                     \
    do {                                                                                                                    \
        static const char *const expected_messages[] = { __VA_ARGS__ };                                                    \
        alert_messages_check(script, expected_messages, COUNT_OF(expected_messages), what);                                       \
    } while (0)

#endif
