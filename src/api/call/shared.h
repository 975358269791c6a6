/*
 * shared.h - what all calls share: the API itself.
 */
#ifndef API_CALL_SHARED_H
#define API_CALL_SHARED_H

#include "api/api.h"
#include "api/call/call.h"
#include "api/call/measures.h"
#include "api/call/pulse.h"
#include "api/http/server.h"

#include <pthread.h>
#include <stdatomic.h>

struct causes;
struct dead_ages;
struct decisions;

/* Whether the disk has less than limits.disk_free, looked at once a second. */
struct disk_watch {
    instant checked_at;
    bool low;
};

/* A page of the store that cannot be read. */
struct damage {
    int64_t reported_ns;    /* when the log last heard of one; 0: never */
    struct error error; /* that goes to the engine with the next pulse; STATUS_OK: none */
};

struct api {
    struct api_settings settings;
    struct config *config;
    struct tokens *tokens; /* NULL: none are needed */
    struct {
        struct store_reader *here; /* of a store on this machine; NULL: it is read apart */
        struct reads *apart;
        int64_t away_ns; /* when the thread that reads last found the store away; its own */
    } reader;
    struct http_server http;
    struct buffer scratch; /* for the head of an answer */
    struct mailbox *mailbox;
    pthread_t thread;
    bool started;
    atomic_bool ended; /* the thread is through */
    bool stopping; /* only the API's thread reads and writes it */
    bool draining;
    size_t calls; /* under way */
    struct {
        struct stream *first; /* answers in pieces under way */
        struct event *timer;  /* of those that follow the trail; NULL: there was none yet */
    } streams;
    struct pulse pulse;
    struct decisions *decisions; /* made at the first question, anew after a reload */
    int64_t acked;               /* jobs that pull workers completed */
    struct disk_watch disk;
    struct damage damage;
    bool callbacks_noted; /* that some job has a callback is saved, or on its way */
    instant began_at;
    struct request_measures measures;
    struct { /* of whoever reads the store, as is the next */
        struct dead_ages *ages;
        struct causes *causes; /* made when they are first counted by cause */
    } dead;
    _Atomic int64_t last_event; /* the newest, as of the last scrape that read the store */
    bool loopback; /* the address that is bound, which a reload does not change */
};

instant api_now(const struct api *api);
/* Whether new jobs may be taken; false: answered with 503 already. */
bool api_accepts(struct call *call);
bool api_disk_is_low(struct api *api);
/* Ends the loop when it is to end and nothing is under way. */
void api_may_end(struct api *api);

#endif
