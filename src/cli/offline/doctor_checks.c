#include "api/http/auth.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/offline/doctor.h"
#include "store/inspect.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    EXPIRY_WARN_DAYS = 30,
    CLOCK_BEHIND_MAX_MS = 5000,
    CLOCK_YEAR_MIN = 2024,
    CLOCK_YEAR_MAX = 2200,
    DESCRIPTORS_OWN = 64, /* store, log, timers, readers */
};

/* ---- Store and disk ---- */

static void check_schema(struct doctor *doctor, const struct store *store, const struct store_facts *facts)
{
    if (facts->schema_version > facts->schema_newest)
        doctor_tell(doctor, FINDING_FAIL, "store",
                    "schema version %" PRId64 " is newer than this program's %" PRId64 "; use a newer insist",
                    facts->schema_version, facts->schema_newest);
    else if (facts->schema_version < facts->schema_newest)
        doctor_tell(doctor, FINDING_WARN, "store",
                    "schema version %" PRId64 "; the daemon brings it to %" PRId64 " when it starts: make a backup before",
                    facts->schema_version, facts->schema_newest);
    else
        doctor_tell(doctor, FINDING_OK, "store",
                    "%s: schema version %" PRId64 "; %" PRId64 " pending, %" PRId64 " running, %" PRId64 " waiting, %" PRId64
                    " dead",
                    store->place, facts->schema_version, facts->pending, facts->running, facts->waiting, facts->dead);
}

/* The daemon moves what is left to wait for when it starts; but somebody should look at the machine's clock. */
static void check_newest(struct doctor *doctor, const struct store_facts *facts)
{
    char newest[INSTANT_TEXT_BYTES], behind[UNITS_TEXT_BYTES];
    if (facts->newest_at <= doctor->now + CLOCK_BEHIND_MAX_MS)
        return;
    instant_format(facts->newest_at, newest);
    duration_format(facts->newest_at - doctor->now, behind);
    doctor_tell(doctor, FINDING_WARN, "clock",
                "it is %s behind the store's newest event, %s: it went back. Waits keep what was left of them; set the clock if "
                "it is wrong now",
                behind, newest);
}

/* Who has several nodes, or names several servers, means to outlive a machine. */
static void check_standby(struct doctor *doctor, const struct store_facts *facts)
{
    const struct config *config = doctor->config;
    bool several = strchr(config->store, ',') != NULL;
    if (facts->alone && (several || config->node.name))
        doctor_tell(doctor, FINDING_WARN, "standby",
                    "synchronous_standby_names is empty: %s; name a standby there (docs/cluster.md)",
                    several ? "a server that takes over may not have all that was acknowledged"
                            : "what is acknowledged is on the machine of PostgreSQL alone");
}

static void check_content(struct doctor *doctor, struct store *store)
{
    const struct config *config = doctor->config;
    struct trail_check chain;
    struct trail_key key;
    struct trail_reading reading = { .key = config->audit_key ? &key : NULL };
    struct error err;
    enum status status = store_check(store, &err);
    if (status == STATUS_OK)
        doctor_tell(doctor, FINDING_OK, "store", "its quick check finds no fault");
    else if (status != STATUS_UNSUPPORTED)
        doctor_tell(doctor, FINDING_FAIL, "store", "%s; stop the daemon and restore a backup", err.text);
    if (config->audit_key)
        trail_key_init(&key, slice_from(config->audit_key));
    status = store_verify(store, &reading, &chain, &err);
    if (status != STATUS_OK && status != STATUS_CORRUPT)
        doctor_tell(doctor, FINDING_FAIL, "events", "not verified: %s", err.text);
    else if (status == STATUS_CORRUPT)
        doctor_tell(doctor, FINDING_FAIL, "events", "%s; somebody or something changed the store: compare with a backup",
                    err.text);
    else if (trail_check_events(&chain) == 0)
        doctor_tell(doctor, FINDING_OK, "events", "there are none");
    else if (chain.head_count > 1)
        doctor_tell(doctor, FINDING_OK, "events", "%" PRId64 " of %zu chains are what was written",
                    trail_check_events(&chain), chain.head_count - (chain.at.number < chain.first));
    else
        doctor_tell(doctor, FINDING_OK, "events", "%" PRId64 " to %" PRId64 " are what was written", chain.first,
                    chain.at.number);
}

static void check_disk(struct doctor *doctor, struct store *store)
{
    char has[UNITS_TEXT_BYTES], needs[UNITS_TEXT_BYTES];
    struct store_space space;
    struct error err;
    if (store_space(store, &space, &err) != STATUS_OK) {
        doctor_tell(doctor, FINDING_FAIL, "disk", "%s", err.text);
        return;
    }
    if (space.free_bytes < 0)
        return; /* where the store is, others look after the disk */
    int64_t megabytes = space.free_bytes / (1 << 20) * (1 << 20); /* nobody reads single bytes */
    size_format(megabytes > 0 ? megabytes : space.free_bytes, has);
    size_format(doctor->config->disk_free_bytes, needs);
    if (!space.folder_writable)
        doctor_tell(doctor, FINDING_WARN, "disk", "%s cannot be written by this user; the daemon's must be able to",
                    space.folder);
    doctor->disk_is_low = space.free_bytes < doctor->config->disk_free_bytes;
    if (doctor->disk_is_low)
        doctor_tell(doctor, FINDING_FAIL, "disk",
                    "%s has %s free, limits.disk_free is %s: a daemon of this configuration takes no jobs; make room",
                    space.folder, has, needs);
    else if (space.free_bytes / 2 < doctor->config->disk_free_bytes)
        doctor_tell(doctor, FINDING_WARN, "disk", "%s has %s free, and below %s no jobs are taken; make room soon",
                    space.folder, has, needs);
    else
        doctor_tell(doctor, FINDING_OK, "disk", "%s has %s free", space.folder, has);
}

/* Five years have one or two leap days. */
#define AUDIT_MS_ASKED (INT64_C(1826) * DAY_MS)

/* What the rules on claims ask for. Others may keep less, but should know. */
static void check_retention(struct doctor *doctor)
{
    char saved[UNITS_TEXT_BYTES];
    int64_t audit_ms = doctor->config->retention_audit_ms;
    if (audit_ms == 0 || audit_ms >= AUDIT_MS_ASKED)
        return;
    duration_format(audit_ms, saved);
    doctor_tell(doctor, FINDING_WARN, "retention",
                "retention.audit is %s; histories of claims must be kept for five years: leave it out, or set 1827d", saved);
}

void doctor_store(struct doctor *doctor)
{
    struct store *store;
    struct store_facts facts;
    struct error err;
    check_retention(doctor);
    enum status status = store_look(store_backends, slice_from(doctor->config->store), &store, &err);
    if (status == STATUS_UNSUPPORTED)
        doctor_tell(doctor, FINDING_WARN, "store",
                    "%s jobs are lost when the daemon ends; use sqlite:PATH for work that counts", doctor->config->store);
    else if (status != STATUS_OK)
        doctor_tell(doctor, FINDING_FAIL, "store", "%s", err.text);
    if (status != STATUS_OK)
        return;
    status = store_facts(store, &facts, &err);
    if (status == STATUS_NOT_FOUND) {
        doctor_tell(doctor, FINDING_WARN, "store",
                    "there is no store at %s yet; insist serve --init makes it, and its folder. If it should be there, look "
                    "at `store:`; a path counts from the folder that the daemon is started in",
                    store->place);
    } else if (status != STATUS_OK) {
        doctor_tell(doctor, FINDING_FAIL, "store", "%s: %s", store->place, err.text);
    } else {
        if (facts.unwritable)
            doctor_tell(doctor, FINDING_FAIL, "store", "%s may not be written by this user: %s", store->place,
                        facts.unwritable);
        check_schema(doctor, store, &facts);
        check_newest(doctor, &facts);
        check_standby(doctor, &facts);
        check_content(doctor, store);
    }
    check_disk(doctor, store);
    store->ops->close(store);
}

/* ---- Files ---- */

/* Opens it for reading; tells a failure. NULL: it failed. */
static FILE *open_reported(struct doctor *doctor, const char *check, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        doctor_tell(doctor, FINDING_FAIL, check, "cannot read %s: %s; correct the path or its rights", path,
                    strerror(errno));
    return file;
}

/* Of all certificates in the file the one that ends first. */
static void check_certificate(struct doctor *doctor, const char *destination, const char *what, const char *path)
{
    FILE *file = open_reported(doctor, what, path);
    int64_t first_end_s = INT64_MAX;
    int count = 0;
    X509 *certificate;
    if (!file)
        return;
    while ((certificate = PEM_read_X509(file, NULL, NULL, NULL))) {
        struct tm end;
        if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1 && timegm(&end) < first_end_s)
            first_end_s = timegm(&end);
        X509_free(certificate);
        count++;
    }
    fclose(file);
    if (count == 0) {
        doctor_tell(doctor, FINDING_FAIL, what, "%s: %s has no certificate in PEM form", destination, path);
        return;
    }
    int64_t days = (first_end_s - doctor->now / SECOND_MS) / (24 * 3600);
    bool bundle = strcmp(what, "ca") == 0 && count > 1; /* an old root among many does no harm */
    if (first_end_s <= doctor->now / SECOND_MS && !bundle)
        doctor_tell(doctor, FINDING_FAIL, what, "%s: the certificate in %s has expired; renew it", destination, path);
    else if (days < EXPIRY_WARN_DAYS && !bundle)
        doctor_tell(doctor, FINDING_WARN, what, "%s: the certificate in %s ends in %" PRId64 " day%s; renew it", destination,
                    path, days, days == 1 ? "" : "s");
    else if (bundle)
        doctor_tell(doctor, FINDING_OK, what, "%s: %s has %d certificates", destination, path, count);
    else
        doctor_tell(doctor, FINDING_OK, what, "%s: %s is valid for %" PRId64 " days", destination, path, days);
}

static void check_key(struct doctor *doctor, const char *destination, const char *path)
{
    struct stat facts;
    FILE *file = open_reported(doctor, "key", path);
    if (!file)
        return;
    if (fstat(fileno(file), &facts) == 0 && (facts.st_mode & (S_IROTH | S_IWOTH)) != 0)
        doctor_tell(doctor, FINDING_WARN, "key", "%s: %s can be read or changed by everybody; run: chmod o-rw %s",
                    destination, path, path);
    else
        doctor_tell(doctor, FINDING_OK, "key", "%s: %s can be read", destination, path);
    fclose(file);
}

static void check_tokens(struct doctor *doctor)
{
    const char *path = doctor->config->tokens_file;
    struct tokens *tokens = NULL;
    struct error err;
    if (path && tokens_load(path, &tokens, &err) == STATUS_OK)
        doctor_tell(doctor, FINDING_OK, "tokens", "%s is valid", path);
    else if (path)
        doctor_tell(doctor, FINDING_FAIL, "tokens", "%s; `insist token NAME --scope ...` prints a right line", err.text);
    else if (!doctor->config->listen.loopback)
        doctor_tell(doctor, FINDING_FAIL, "tokens", "%s is reachable from elsewhere: name auth.tokens_file",
                    doctor->config->listen.host);
    tokens_free(tokens);
}

void doctor_files(struct doctor *doctor)
{
    check_tokens(doctor);
    for (size_t i = 0; i < doctor->config->destination_count; i++) {
        const struct destination_config *destination = &doctor->config->destinations[i];
        if (destination->tls.ca)
            check_certificate(doctor, destination->name, "ca", destination->tls.ca);
        if (destination->tls.cert)
            check_certificate(doctor, destination->name, "certificate", destination->tls.cert);
        if (destination->tls.key)
            check_key(doctor, destination->name, destination->tls.key);
        if (!destination->tls.verify)
            doctor_tell(doctor, FINDING_WARN, "tls", "%s: tls.verify is off, anybody can pose as it", destination->name);
    }
}

/* ---- Machine ---- */

static void check_descriptors(struct doctor *doctor)
{
    struct rlimit limit;
    int64_t needed = DESCRIPTORS_OWN;
    if (doctor->config) {
        needed += doctor->config->connections_max;
        for (size_t i = 0; i < doctor->config->destination_count; i++)
            needed += doctor->config->destinations[i].concurrency;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        doctor_tell(doctor, FINDING_WARN, "descriptors", "the limit cannot be read: %s", strerror(errno));
    else if (limit.rlim_cur != RLIM_INFINITY && (int64_t)limit.rlim_cur < needed)
        doctor_tell(doctor, FINDING_WARN, "descriptors",
                    "%" PRId64 " here, and all connections at once need %" PRId64 "; set LimitNOFILE=%" PRId64
                    " in the unit, or ulimit -n",
                    (int64_t)limit.rlim_cur, needed, needed);
    else
        doctor_tell(doctor, FINDING_OK, "descriptors", "enough for all connections at once (%" PRId64 ")", needed);
}

/* That it runs evenly cannot be seen in a moment, and the daemon minds it by itself. */
static void check_clock(struct doctor *doctor)
{
    char now[INSTANT_TEXT_BYTES];
    instant_format(doctor->now, now);
    int year = instant_civil(doctor->now).year;
    if (year < CLOCK_YEAR_MIN || year > CLOCK_YEAR_MAX)
        doctor_tell(doctor, FINDING_FAIL, "clock", "it is %s? Set the clock: waits, deadlines and certificates depend on it",
                    now);
    else
        doctor_tell(doctor, FINDING_OK, "clock", "%s", now);
}

void doctor_machine(struct doctor *doctor)
{
    check_descriptors(doctor);
    check_clock(doctor);
}
