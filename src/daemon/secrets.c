#include "daemon/secrets.h"

#include "base/hash.h"
#include "config/problems.h"

#include <errno.h>
#include <event2/event.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SETTLE_MS = 250, /* who changes one file may be changing others */
    EVENTS_BYTES = 16 * 1024,
    PATH_BYTES = 4096,
};

struct secrets {
    struct event_base *loop;
    void (*changed)(void *context);
    void *context;
    const struct config *config; /* whose files they are; the caller keeps it */
    int notify;
    struct event *noticed, *settled;
    uint64_t known; /* what tells the files from others */
};

/* Another file, a longer one, or one that was written again is another. */
static uint64_t look(const struct config *config)
{
    uint64_t known = 0;
    for (const struct secret_file *file = config ? config->secret_files : NULL; file; file = file->next) {
        struct stat facts;
        int64_t marks[5] = { 0 };
        if (stat(file->path, &facts) == 0) {
            const int64_t found[5] = { (int64_t)facts.st_dev, (int64_t)facts.st_ino, facts.st_size, facts.st_mtim.tv_sec,
                                       facts.st_mtim.tv_nsec };
            memcpy(marks, found, sizeof marks);
        }
        known = hash_slice(known, 1, (struct slice){ (const char *)marks, sizeof marks });
    }
    return known;
}

static void on_settled(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct secrets *secrets = context;
    uint64_t known = look(secrets->config);
    if (known == secrets->known)
        return; /* something else in the folder */
    secrets->known = known;
    secrets->changed(secrets->context);
}

static void on_noticed(evutil_socket_t fd, UNUSED short what, void *context)
{
    struct secrets *secrets = context;
    char events[EVENTS_BYTES];
    struct timeval wait = { .tv_usec = SETTLE_MS * 1000 };
    while (read(fd, events, sizeof events) > 0)
        continue;
    if (!event_pending(secrets->settled, EV_TIMEOUT, NULL)) /* a busy folder must not put it off for ever */
        event_add(secrets->settled, &wait);
}

static void close_notify(struct secrets *secrets)
{
    if (secrets->noticed)
        event_free(secrets->noticed);
    secrets->noticed = NULL;
    if (secrets->notify >= 0)
        close(secrets->notify);
    secrets->notify = -1;
}

/* The folders: a file is mostly replaced by another, and a name may lead through links that are changed. */
static enum status watch_folders(struct secrets *secrets, struct error *err)
{
    enum status status = STATUS_OK;
    for (const struct secret_file *file = secrets->config->secret_files; file; file = file->next) {
        char path[PATH_BYTES];
        if (strlen(file->path) >= sizeof path)
            continue;
        strcpy(path, file->path);
        if (inotify_add_watch(secrets->notify, dirname(path), IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE) < 0)
            status = error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    }
    return status;
}

enum status secrets_watch(struct secrets *secrets, const struct config *config, struct error *err)
{
    close_notify(secrets);
    secrets->config = config;
    secrets->known = look(config);
    if (!config->secret_files)
        return STATUS_OK;
    secrets->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (secrets->notify < 0)
        return error_set(err, STATUS_IO, "inotify: %s", strerror(errno));
    secrets->noticed = event_new(secrets->loop, secrets->notify, EV_READ | EV_PERSIST, on_noticed, secrets);
    if (!secrets->noticed || event_add(secrets->noticed, NULL) != 0)
        return error_set(err, STATUS_NO_MEMORY, "no memory to watch files");
    return watch_folders(secrets, err);
}

enum status secrets_new(struct event_base *loop, void (*changed)(void *context), void *context, struct secrets **ret_secrets,
                        struct error *err)
{
    struct secrets *secrets = calloc(1, sizeof *secrets);
    if (!secrets)
        return error_set(err, STATUS_NO_MEMORY, "no memory to watch files");
    *secrets = (struct secrets){ .loop = loop, .changed = changed, .context = context, .notify = -1 };
    secrets->settled = event_new(loop, -1, 0, on_settled, secrets);
    if (!secrets->settled) {
        free(secrets);
        return error_set(err, STATUS_NO_MEMORY, "no memory to watch files");
    }
    *ret_secrets = secrets;
    return STATUS_OK;
}

void secrets_free(struct secrets *secrets)
{
    if (!secrets)
        return;
    close_notify(secrets);
    event_free(secrets->settled);
    free(secrets);
}
