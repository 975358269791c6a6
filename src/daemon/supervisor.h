/*
 * supervisor.h - tells systemd, or whoever has set NOTIFY_SOCKET, how the daemon is (sd_notify's protocol).
 *
 * Without that variable nothing is said.
 */
#ifndef DAEMON_SUPERVISOR_H
#define DAEMON_SUPERVISOR_H

#include <sys/socket.h>
#include <sys/un.h>

struct supervisor {
    int fd; /* -1: there is none */
    struct sockaddr_un address;
    socklen_t address_len;
};

/* Reads NOTIFY_SOCKET; what cannot be used is logged and the daemon goes on without. */
void supervisor_open(struct supervisor *supervisor);
/* It answers; after a reload, again. */
void supervisor_ready(const struct supervisor *supervisor);
void supervisor_reloading(const struct supervisor *supervisor);
void supervisor_stopping(const struct supervisor *supervisor);
/* Every thread makes progress: the watchdog waits anew. From any thread. */
void supervisor_alive(const struct supervisor *supervisor);
void supervisor_close(struct supervisor *supervisor);

#endif
