/*
 * postgres_server.h - a PostgreSQL of the test's own, in a folder of its own, on a socket in it.
 *
 * It is started when it is first wanted and ends with the test, also when that fails or is killed. PostgreSQL refuses to run
 * as root: then it runs as postgres or nobody.
 */
#ifndef SUPPORT_POSTGRES_SERVER_H
#define SUPPORT_POSTGRES_SERVER_H

#include <stdbool.h>
#include <stddef.h>

enum { POSTGRES_ADDRESS_BYTES = 256 };

/* NULL: it can be used. Else why not. Where CI is set in the environment nothing may be missing. */
const char *postgres_server_missing(void);
/* A schema of its own: its address, without "postgres:". Aborts when the server cannot be started. */
void postgres_server_schema(char ret_address[POSTGRES_ADDRESS_BYTES]);
/* The folder of the server's socket. */
const char *postgres_server_folder(void);
/* SQL by its superuser, in the schema of an address; what it answers first, if anything. Aborts when it fails. */
void postgres_server_run(const char *address, const char *sql, char *ret_first, size_t size);
/* Ends it at once, as a power cut does, or with all connections (SIGINT); starts it again with what it has. */
void postgres_server_stop(int signal);
void postgres_server_start(void);
/* A PgBouncer before it, in that pool mode, until it is stopped: its address. False: it is not installed. */
bool postgres_pooler_start(const char *mode, char ret_address[POSTGRES_ADDRESS_BYTES]);
void postgres_pooler_stop(void);

#endif
