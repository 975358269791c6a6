/*
 * api_private.h - what the API's files share.
 */
#ifndef API_API_PRIVATE_H
#define API_API_PRIVATE_H

#include "api/api.h"
#include "api/auth.h"
#include "api/call.h"
#include "api/client.h"
#include "api/dead_ages.h"
#include "api/door.h"
#include "api/request_measures.h"
#include "api/room.h"
#include "api/rota.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum {
    BODY_OVERHEAD_BYTES = 64 * 1024, /* of a job's JSON around its payload */
    SMALL_BODY_BYTES_MAX = 64 * 1024, /* of most calls, and of who has no token where one is needed */
    MIDDLE_BODY_BYTES_MAX = 1 << 20,
    BATCH_BODY_BYTES_MAX = 64 << 20,
    SMALL_ANSWER_BYTES_MAX = 1 << 20, /* of most lists */
    DISK_CHECK_EVERY_MS = 1000,
    RETRY_AFTER_S = 1,
    STUCK_AFTER_MS = 30 * 1000, /* no progress for this long means not alive */
    PULSE_EVERY_MS = 1000,      /* how often the engine is asked whether it runs */
};

/* A question that is always on its way to the engine and back: its age says whether the engine's thread lives. */
struct pulse {
    struct message message; /* first */
    struct api *api;
    struct event *timer;
    struct error damage; /* of the store, that the engine is to tell people of; STATUS_OK: none */
    bool out;         /* with the engine */
    instant asked_at; /* when it went out */
    instant answer;   /* written by the engine's thread, read when it is back */
    instant ran_at;   /* when the engine last ran, as of the last answer; 0: it has not started */
};

struct api {
    struct api_settings settings;
    struct config *config;
    struct tokens *tokens; /* NULL: none are needed */
    struct store_reader *reader;
    struct event_base *loop;
    struct door door;
    struct rota rota;
    struct room room;
    struct http_head head; /* of the request that is being looked at */
    struct buffer scratch; /* for the head of an answer */
    struct mailbox *mailbox;
    pthread_t thread;
    bool started;
    atomic_bool ended; /* the thread is through */
    bool stopping; /* only the API's thread reads and writes it */
    bool draining;
    size_t calls; /* under way */
    struct stream *streams; /* answers in pieces under way */
    struct event *stream_timer; /* of those that follow the trail; NULL: there was none yet */
    struct pulse pulse;
    struct decisions *decisions; /* made at the first question, anew after a reload */
    int64_t acked;               /* jobs that pull workers completed */
    instant disk_checked_at;
    int64_t damage_told_ns; /* when the log last heard of a page that cannot be read; 0: never */
    struct error damage;    /* that goes to the engine with the next pulse; STATUS_OK: none */
    bool disk_low;
    instant began_at;
    time_t date_s; /* the second that `date` tells */
    char date[40];
    struct request_measures measures;
    struct dead_ages dead_ages;
    int64_t last_event; /* the newest, as of the last scrape */
    int port;
    bool loopback; /* the address that is bound, which a reload does not change */
};

/* One row a route: the server, /openapi.json's test and the authorisation read this table. */
struct route {
    const char *method;
    const char *pattern; /* {name} stands for one segment */
    unsigned scope;      /* enum scope; SCOPE_NONE: open */
    void (*handle)(struct call *call);
    const char *const *query; /* names of its parameters behind ?, ended by NULL; NULL: none */
};
extern const struct route api_routes[]; /* method NULL ends */

/* server.c */
instant api_now(const struct api *api);
/* For deadlines of connections: never goes back. */
int64_t api_ticks_ms(const struct api *api);
/* Whether new jobs may be taken; false: answered with 503 already. */
bool api_accepts(struct call *call);
/* Whether the disk has less than limits.disk_free, looked at once a second. */
bool api_disk_is_low(struct api *api);
/* Ends the loop when it is to end and nothing is under way. */
void api_may_end(struct api *api);

/* A request is complete; `head` and `body` are in the client's memory until it is answered. */
void api_request(struct api *api, struct client *client, const struct http_head *head, struct slice body);
/*
 * Whether a body that is not small is read at all, of `length` bytes; -1: not known. Else what to answer instead.
 */
struct body_verdict {
    size_t max;
    int status;
    const char *type;
    char detail[256];
};
bool api_takes_body(struct api *api, const struct http_head *head, int64_t length, struct body_verdict *ret_verdict);

/* stream.c: ends those who follow the trail; `reason` is a constant word that they are told. */
void event_streams_end(struct api *api, const char *reason);

/* handlers, one file a matter */
void handle_alerts_list(struct call *call);
void handle_alert_ack(struct call *call);
void handle_jobs_post(struct call *call);
void handle_jobs_batch(struct call *call);
void handle_jobs_list(struct call *call);
void handle_job_get(struct call *call);
void handle_job_why(struct call *call);
void handle_job_retry(struct call *call);
void handle_job_resend(struct call *call);
void handle_job_cancel(struct call *call);
void handle_job_patch(struct call *call);
void handle_dead_list(struct call *call);
void handle_dead_export(struct call *call);
void handle_dead_summary(struct call *call);
void handle_destinations_list(struct call *call);
void handle_destination_get(struct call *call);
void handle_destination_pause(struct call *call);
void handle_destination_resume(struct call *call);
void handle_destination_contingency(struct call *call);
void handle_incidents_list(struct call *call);
void handle_incident_get(struct call *call);
void handle_incident_report(struct call *call);
void handle_incident_patch(struct call *call);
void handle_leases_post(struct call *call);
void handle_leases_ack(struct call *call);
void handle_leases_nack(struct call *call);
void handle_leases_extend(struct call *call);
void handle_errors_list(struct call *call);
void handle_error_forget(struct call *call);
void handle_events_list(struct call *call);
void handle_events_stream(struct call *call);
void handle_tenants_list(struct call *call);
void handle_stats(struct call *call);
void handle_metrics(struct call *call);
void handle_decide(struct call *call);
void handle_openapi(struct call *call);
void handle_livez(struct call *call);
void handle_readyz(struct call *call);
void handle_root(struct call *call);
void handle_page_style(struct call *call);
void handle_page_script(struct call *call);

#endif
