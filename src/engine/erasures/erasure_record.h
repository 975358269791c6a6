/*
 * erasure_record.h - an erasure as it is asked for and saved: of whom, how far it has come, what it has found.
 */
#ifndef ENGINE_ERASURES_ERASURE_RECORD_H
#define ENGINE_ERASURES_ERASURE_RECORD_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/instant.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

#define SPACE_ERASURE SLICE("erasure")

enum {
    ERASURE_ID_BYTES = 48,
    ERASURE_PLACE_BYTES = 128,
    ERASURE_RECORD_BYTES_MAX = 16 * 1024,
};

/* A pass goes through these in order. */
enum erasure_phase {
    ERASE_JOBS,
    ERASE_COPIES, /* of payloads that a redrive corrected */
    ERASE_EVENTS,
    ERASURE_PHASES
};

struct erasure_record {
    char id[ERASURE_ID_BYTES];
    bool done;
    struct slice subject; /* empty: it is done */
    struct slice tenant;  /* empty: any */
    struct slice by;
    enum erasure_phase phase;
    int64_t place;                       /* in jobs and events: the number of the last one */
    char name[ERASURE_PLACE_BYTES];      /* in copies: its name */
    instant pass_at;                     /* when this pass began: later events are not looked at */
    int64_t jobs, events, copies, rules; /* erased; rules: of what was learnt about errors */
    int64_t events_left;                 /* of an older form, whose data is part of their hash */
    int64_t names_left;                  /* events whose names tell of the subject, which are part of the hash, too */
    instant started_at, ended_at;
    struct arena memory; /* of its texts */
};

void erasure_record_release(struct erasure_record *record);
/* As it is saved. */
void erasure_record_write(struct buffer *out, const struct erasure_record *record);
enum status erasure_record_read(struct slice value, struct erasure_record *ret_record, struct error *err) MUST_CHECK;
/* Members of the object that is being written, as the API shows it: never of whom. */
void erasure_members(struct json_writer *json, const struct erasure_record *record);

#endif
