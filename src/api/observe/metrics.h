/*
 * metrics.h - GET /metrics: the table of families, and what they are written from.
 *
 * One row a family: the answer, docs/metrics.md and the tests read this table. What is now comes from the store, so it is
 * right at once after a restart; what is counted comes from the engine, the writer and the API, since their start.
 */
#ifndef API_OBSERVE_METRICS_H
#define API_OBSERVE_METRICS_H

#include "api/call/measures.h"
#include "base/exposition.h"
#include "engine/measures.h"

struct api;
struct call;

enum { METRICS_LARGEST_MAX = 20 }; /* tenants of a destination that are told singly by how many jobs they have */

/* A tenant at a destination, as of now. */
struct metrics_tenant {
    struct slice tenant;
    int64_t lane;
    struct lane_counts counts;
    struct tenant_status standing;
};

/* One number each; not a number: there is none. */
struct metrics_values {
    double retried, exhausted, permanent, died, dead, ready, enqueued, duplicates, completed, cancelled;
    double unsent, recovered, capped, success, queue_mean_s, queue_oldest_s;
    double in_flight, limit, up, available_s, observed_s, availability, contingency_s, contingency_total_s;
    double leases, workers, tenants, tenants_with_work, tenants_paused;
    double cycle_s, cycle_age_s;
};

struct metrics_destination {
    struct slice name;
    struct lane_counts counts;
    struct metrics_tenant largest[METRICS_LARGEST_MAX]; /* by jobs that are not done */
    size_t largest_count;
    struct lane_counts rest; /* of all other tenants */
    size_t tenants;          /* that have or had jobs; the engine forgets the idle */
    const struct destination_measures *measured; /* NULL: the engine does not know it */
    struct metrics_tenant *turns; /* the largest, and those that the engine measures singly */
    size_t turn_count;
    const struct histogram *dead_ages; /* NULL: it has no dead letters */
    struct metrics_values values;
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
    enum status status; /* of asking the engine */
    int64_t last_event;
};

struct metric_row {
    struct metric_family family;
    const char *labels; /* their names, for the documentation */
    size_t value;       /* offset in metrics_values: one sample a destination */
    size_t histogram;   /* or offset in struct measures, told by `scale` */
    const struct exposition_scale *scale;
    void (*write)(const struct exposition *out, const struct metrics_scene *scene); /* NULL: one of the above */
    bool of_decisions; /* POST /v1/decide moves it */
};
extern const struct metric_row metric_rows[]; /* family.name NULL ends */

/* All families, in order of the table. */
void metrics_write(struct buffer *out, const struct metrics_scene *scene);

/* metrics_scene.c: destinations and their tenants from the store; all in the call's memory. */
enum status metrics_gather(struct call *call, struct metrics_scene *scene, struct error *err) MUST_CHECK;
/* What the engine said, put to its place. In the engine's thread. */
enum status metrics_attach(struct call *call, struct metrics_scene *scene, struct engine *engine) MUST_CHECK;

/* metrics_process.c */
void metrics_process_cpu(const struct exposition *out, const struct metrics_scene *scene);
void metrics_process_resident(const struct exposition *out, const struct metrics_scene *scene);
void metrics_process_virtual(const struct exposition *out, const struct metrics_scene *scene);
void metrics_process_fds(const struct exposition *out, const struct metrics_scene *scene);
void metrics_process_max_fds(const struct exposition *out, const struct metrics_scene *scene);
void metrics_process_start(const struct exposition *out, const struct metrics_scene *scene);
void metrics_store_bytes(const struct exposition *out, const struct metrics_scene *scene);
void metrics_store_wal_bytes(const struct exposition *out, const struct metrics_scene *scene);
void metrics_disk_free(const struct exposition *out, const struct metrics_scene *scene);

#endif
