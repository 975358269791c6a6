/*
 * process.h - a program of its own process group and session, and the pipes to it.
 *
 * It inherits nothing of the daemon's: no descriptor, no environment, no signal that is ignored. It dies with the daemon.
 */
#ifndef TRANSPORT_EXEC_PROCESS_H
#define TRANSPORT_EXEC_PROCESS_H

#include "base/status.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_order {
    char *const *argv;        /* the first is the program's absolute path; NULL ends */
    char *const *environment; /* NULL ends */
    int64_t memory_bytes;     /* of address space; 0: no limit */
};

struct process {
    pid_t pid; /* of its group too */
    int pidfd; /* readable once it has ended; -1: there is no process */
    int input, output, errors; /* our ends, which never block; -1: closed */
    int failure;               /* has the reason where the program could not be begun */
};

enum process_end {
    PROCESS_EXITED,    /* `number` is its exit code */
    PROCESS_SIGNALLED, /* the signal that ended it */
    PROCESS_NOT_BEGUN, /* the errno of execve */
};

/*
 * STATUS_FULL or STATUS_NO_MEMORY: there is no descriptor, process or memory for it. A program that cannot be begun, say
 * because it is not there, is reported at its end.
 */
enum status process_start(const struct process_order *order, struct process *ret_process, struct error *err) MUST_CHECK;

/* To all of its group that has not ended. */
void process_signal(const struct process *process, int number);

/* What has ended is taken off the system's list, and what is left of its group is killed. False: it has not. */
bool process_reap(struct process *process, enum process_end *ret_end, int *ret_number);

/* Closes what is open; it does not end the program. */
void process_release(struct process *process);
/* One of the pipes. */
void process_close(int *descriptor);

#endif
