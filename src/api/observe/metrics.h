/*
 * metrics.h - GET /metrics: the table of families, and what they are written from.
 *
 * One row a family says its name, type, help, labels and where its value comes from: the answer, docs/metrics.md and the
 * tests read this table. What is now comes from the store, so it is right at once after a restart; what is counted comes
 * from the engine, the writer and the API, since their start.
 *
 * Nothing is written for what never happened: a destination that nobody has used yet is one line, its mode, and a
 * histogram when it has something in it. From its first job on a destination has all of its counters, at 0 too, so that
 * their first increase is seen; and they stay.
 */
#ifndef API_OBSERVE_METRICS_H
#define API_OBSERVE_METRICS_H

#include "api/call/counts.h"
#include "api/call/measures.h"
#include "base/exposition.h"
#include "engine/measures.h"
#include "engine/status.h"
#include "node/source_board.h"

enum { METRICS_LARGEST_MAX = 20 }; /* tenants of a destination that are reported singly by how many jobs they have */

/* A tenant's turn at a destination. */
struct metrics_turn {
    struct slice tenant;
    int64_t lane;
    struct tenant_status view;
};

struct metrics_destination {
    struct slice name;
    struct lane_counts counts;
    int64_t tenants;      /* that have or had jobs; the engine forgets the idle */
    struct lane *largest; /* by jobs that are not done */
    size_t largest_count;
    struct lane_counts rest; /* of all other tenants */
    struct insert_measure inserts;
    const struct destination_measures *measured; /* NULL: the engine does not know it */
    struct metrics_turn *turns; /* of the largest, and of those that the engine measures singly */
    size_t turn_count;
    const struct histogram *dead_ages; /* NULL: it has no dead letters */
    bool in_use; /* it has or had jobs, is or was asked how it is, or is not as usual */
};

struct metrics_scene {
    const struct api *api;
    instant now;
    struct metrics_destination *items; /* in order of name */
    size_t count;
    struct metrics_destination *policies; /* presets that decisions were asked of */
    size_t policy_count;
    struct engine_measures engine;
    struct engine_figures figures;
    struct writer_measures writer;
    size_t looks;       /* at dead letters */
    enum status status; /* of asking the engine */
    int64_t last_event;
    bool away; /* the store: there are no destinations then */
    struct source_figures *sources;
    size_t source_count;
    const struct node_figures *nodes; /* NULL: it has its store for itself */
};

/* Where a value comes from: those before FROM_NUMBER for each destination. */
enum metric_from {
    FROM_STORE,     /* `offset` of a number in struct metrics_destination */
    FROM_MEASURES,  /* in struct measures, by `divisor` */
    FROM_HISTOGRAM, /* in struct measures, written by `scale` */
    FROM_VALUE,     /* `value` */
    FROM_EACH,      /* `each`, for those that the engine knows */
    FROM_TURNS,     /* `offset` in struct turn_figures, of every tenant that is reported singly */
    FROM_NUMBER,    /* `number`: one sample without labels */
    FROM_SOURCES,   /* `of_source`, of each */
    FROM_WHOLE,     /* `whole` */
};

struct metric_source {
    enum metric_from from;
    size_t offset;
    double divisor;
    const struct exposition_scale *scale;
    double (*value)(const struct metrics_scene *scene, const struct metrics_destination *destination); /* NAN: none */
    void (*each)(const struct exposition *out, const struct metrics_destination *destination);
    double (*number)(const struct metrics_scene *scene); /* NAN: none */
    double (*of_source)(const struct source_figures *source); /* likewise */
    void (*whole)(const struct exposition *out, const struct metrics_scene *scene);
};

struct metric_row {
    struct metric_family family;
    const char *labels; /* their names, for the documentation */
    struct metric_source source;
    bool of_decisions; /* POST /v1/decide moves it */
    bool of_unused;    /* written of destinations that nobody has used yet, too */
    struct {
        const char *label, *value; /* label "": none */
    } expired; /* jobs that expired in the queue are written beside the destinations, with that label; NULL: they are not */
};
extern const struct metric_row metric_rows[]; /* family.name NULL ends */

/* metrics_scene.c: destinations and their tenants from the store; all in the call's memory. */
enum status metrics_gather(struct call *call, struct store_reader *reader, struct metrics_scene *scene,
                           struct error *err) MUST_CHECK;
/* What the engine said, put to its place. In the engine's thread. */
enum status metrics_attach(struct call *call, struct metrics_scene *scene, struct engine *engine) MUST_CHECK;

/* These are in metrics_process.c; NAN says that it is not known. */
double metrics_process_cpu(const struct metrics_scene *scene);
double metrics_process_resident(const struct metrics_scene *scene);
double metrics_process_virtual(const struct metrics_scene *scene);
double metrics_process_fds(const struct metrics_scene *scene);
double metrics_process_max_fds(const struct metrics_scene *scene);
double metrics_process_start(const struct metrics_scene *scene);
double metrics_store_bytes(const struct metrics_scene *scene);
double metrics_store_wal_bytes(const struct metrics_scene *scene);
double metrics_disk_free(const struct metrics_scene *scene);

#endif
