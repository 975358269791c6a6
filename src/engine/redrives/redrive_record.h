/*
 * redrive_record.h - a redrive as it is asked for and saved: whom it means, how it goes, where it stands.
 */
#ifndef ENGINE_REDRIVES_REDRIVE_RECORD_H
#define ENGINE_REDRIVES_REDRIVE_RECORD_H

#include "base/json.h"
#include "base/units.h"
#include "store/filter.h"
#include "store/tally.h"

#include <jansson.h>

#define SPACE_REDRIVE SLICE("redrive")
#define SPACE_REDRIVE_ACTIVE SLICE("redrive_active") /* the ids of those that somebody must go on with */
#define SPACE_REDRIVE_PAYLOAD SLICE("redrive_payload") /* "ID.SEQ": what a payload was before it was corrected */

enum {
    FILTER_IDS_MAX = 1000,
    FILTER_TEXT_BYTES_MAX = 256, /* of each of its members */
    REDRIVE_ID_BYTES = 48,
    REDRIVE_RECORD_BYTES_MAX = 4 << 20, /* a filter of the most and longest ids, each byte escaped, and a patch */
};

enum redrive_state {
    REDRIVE_CANARY,
    REDRIVE_RUNNING,
    REDRIVE_DONE,
    REDRIVE_CANCELLED,
    REDRIVE_ABORTED,
    REDRIVE_UNDONE_ALL,
    REDRIVE_STATES
};

struct redrive_record {
    char id[REDRIVE_ID_BYTES];
    enum redrive_state state;
    bool undoing;
    struct job_walk walk; /* whom it means, and how far it has come */
    struct slice by;
    int64_t matched;
    int64_t limit; /* 0: all */
    struct rate rate; /* count 0: none */
    int64_t canary;   /* 0: none */
    double abort_at;
    bool abort_given; /* the share is watched after the canary, too */
    json_t *patch;    /* of payloads; NULL: none */
    int64_t patch_failed;
    instant started_at, ended_at;
    struct arena memory; /* of its texts */
};

const char *redrive_state_name(enum redrive_state state);
void redrive_record_release(struct redrive_record *record);

/* Texts live in `memory`. STATUS_INVALID: *err says what is wrong. */
enum status filter_read(const json_t *object, struct arena *memory, struct job_walk *ret_walk, struct error *err) MUST_CHECK;
/* Sets one member by its name; as above. STATUS_NOT_FOUND: there is no such. */
enum status filter_set(struct job_walk *walk, const char *name, struct slice value, struct error *err) MUST_CHECK;
/* Whether it means everything. */
bool filter_is_empty(const struct job_walk *walk);

/* As it is saved: with where it stands. */
void redrive_record_write(struct buffer *out, const struct redrive_record *record);
enum status redrive_record_read(struct slice value, struct redrive_record *ret_record, struct error *err) MUST_CHECK;

/* Of those that were sent back, how many have come to an end; whether a share of them died that ends it. */
int64_t redrive_ended(const int64_t counts[REDRIVE_COUNTS]);
bool redrive_died_too_much(const struct redrive_record *record, const int64_t counts[REDRIVE_COUNTS]);
/* How many more may be sent back in all; the canary's end is not that of the redrive. */
int64_t redrive_left(const struct redrive_record *record, const int64_t counts[REDRIVE_COUNTS]);
/* As the API shows it, with what has become of its jobs. */
void redrive_show(struct json_writer *json, const struct redrive_record *record, const int64_t counts[REDRIVE_COUNTS]);

#endif
