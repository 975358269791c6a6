#include "daemon/supervisor.h"

#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A supervisor that does not read must not hold up the daemon, and one that is gone is no reason to stop. */
static void tell(const struct supervisor *supervisor, const char *text)
{
    if (supervisor->fd < 0)
        return;
    const struct sockaddr *address = (const struct sockaddr *)&supervisor->address;
    if (sendto(supervisor->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, address, supervisor->address_len) < 0)
        log_event(LOG_DEBUG, "supervisor_not_told", FIELD_CSTR("error", strerror(errno)));
}

/* A path, or with '@' a name of Linux's own without one. */
static bool take_address(struct supervisor *supervisor, const char *path)
{
    size_t len = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof supervisor->address.sun_path)
        return false;
    supervisor->address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(supervisor->address.sun_path, path, len);
    if (path[0] == '@')
        supervisor->address.sun_path[0] = '\0';
    supervisor->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return true;
}

void supervisor_open(struct supervisor *supervisor)
{
    const char *path = getenv("NOTIFY_SOCKET");
    *supervisor = (struct supervisor){ .fd = -1 };
    if (!path)
        return;
    if (take_address(supervisor, path))
        supervisor->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (supervisor->fd < 0)
        log_event(LOG_WARN, "supervisor_not_told", FIELD_CSTR("socket", path),
                  FIELD_CSTR("advice", "NOTIFY_SOCKET is neither a path nor a name with @; the daemon goes on without"));
    unsetenv("NOTIFY_SOCKET"); /* what the daemon starts does not speak for it */
}

void supervisor_ready(const struct supervisor *supervisor)
{
    tell(supervisor, "READY=1\nSTATUS=takes and delivers jobs");
}

void supervisor_reloading(const struct supervisor *supervisor)
{
    char text[80];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    tell(supervisor, text);
}

void supervisor_stopping(const struct supervisor *supervisor)
{
    tell(supervisor, "STOPPING=1\nSTATUS=lets what is under way end");
}

void supervisor_alive(const struct supervisor *supervisor)
{
    tell(supervisor, "WATCHDOG=1");
}

void supervisor_close(struct supervisor *supervisor)
{
    if (supervisor->fd >= 0)
        close(supervisor->fd);
    supervisor->fd = -1;
}
