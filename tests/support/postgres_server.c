#include "support/postgres_server.h"

#include "support/folder.h"

#include <libpq-fe.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START_TRIES = 1200, PAUSE_MS = 50 };

static struct {
    char folder[FOLDER_BYTES];
    char bin[128];
    pid_t pid, pooler;
    pid_t owner; /* of the folder: a child that was forked does not end the server */
    int schemas;
} server;

static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

/* The newest version that is installed. */
static const char *bin_find(void)
{
    glob_t found;
    if (!server.bin[0] && glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0) {
        const char *last = found.gl_pathv[found.gl_pathc - 1];
        snprintf(server.bin, sizeof server.bin, "%.*s", (int)(strrchr(last, '/') - last), last);
        globfree(&found);
    }
    return server.bin[0] ? server.bin : NULL;
}

const char *postgres_server_missing(void)
{
    if (bin_find())
        return NULL;
    if (getenv("CI"))
        die("PostgreSQL's programs are missing; tools/deps test installs them");
    return "PostgreSQL's programs are not installed (tools/deps test installs them)";
}

/* Never root: PostgreSQL refuses. */
static void become_nobody(void)
{
    const struct passwd *user = getpwnam("postgres");
    if (geteuid() != 0)
        return;
    if (!user)
        user = getpwnam("nobody");
    if (!user || setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
        _exit(126);
}

static void folder_give(void)
{
    const struct passwd *user = getpwnam("postgres");
    if (geteuid() != 0)
        return;
    if (!user)
        user = getpwnam("nobody");
    if (!user || chown(server.folder, user->pw_uid, user->pw_gid) != 0)
        die("the folder of a PostgreSQL server cannot be given to its user");
}

static pid_t spawn(const char *const *arguments)
{
    char log[FOLDER_BYTES + 8];
    snprintf(log, sizeof log, "%s.log", server.folder);
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600), nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(out, 1);
    dup2(out, 2);
    become_nobody();
    if (chdir(server.folder) != 0 || prctl(PR_SET_PDEATHSIG, SIGQUIT) != 0 || getppid() != parent)
        _exit(125);
    setenv("LC_ALL", "C", 1);
    execv(arguments[0], (char *const *)(uintptr_t)arguments); /* which takes what it does not change */
    _exit(127);
}

static void log_show(void)
{
    char command[FOLDER_BYTES + 32];
    snprintf(command, sizeof command, "tail -20 '%s.log' >&2", server.folder);
    if (system(command) != 0)
        fprintf(stderr, "the server left no log\n");
}

static void cluster_make(void)
{
    char program[160], data[FOLDER_BYTES + 8];
    int result;
    snprintf(program, sizeof program, "%s/initdb", server.bin);
    snprintf(data, sizeof data, "%s/data", server.folder);
    const char *const arguments[] = { program,  "-D", data,   "-A",          "trust",     "-U",
                                      "insist", "-E", "UTF8", "--no-locale", "--no-sync", NULL };
    pid_t pid = spawn(arguments);
    if (pid < 0 || waitpid(pid, &result, 0) != pid || !WIFEXITED(result) || WEXITSTATUS(result) != 0) {
        log_show();
        die("initdb failed");
    }
}

static void pause_ms(int ms)
{
    struct timespec wait = { .tv_nsec = ms * 1000000L };
    nanosleep(&wait, NULL);
}

void postgres_server_stop(int signal)
{
    if (server.pid <= 0)
        return;
    kill(server.pid, signal);
    waitpid(server.pid, NULL, 0);
    server.pid = 0;
}

static void finish(void)
{
    char log[FOLDER_BYTES + 8];
    if (server.owner != getpid())
        return;
    postgres_pooler_stop();
    postgres_server_stop(SIGQUIT);
    snprintf(log, sizeof log, "%s.log", server.folder);
    unlink(log);
    folder_remove(server.folder);
}

void postgres_server_start(void)
{
    char program[160], data[FOLDER_BYTES + 8], sockets[FOLDER_BYTES + 32], target[FOLDER_BYTES + 64];
    snprintf(program, sizeof program, "%s/postgres", server.bin);
    snprintf(data, sizeof data, "%s/data", server.folder);
    snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", server.folder);
    snprintf(target, sizeof target, "host=%s user=insist dbname=postgres", server.folder);
    const char *const arguments[] = { program,
                                      "-D",
                                      data,
                                      "-c",
                                      "listen_addresses=",
                                      "-c",
                                      sockets,
                                      "-c",
                                      "shared_buffers=32MB",
                                      "-c",
                                      "max_connections=40",
                                      "-c",
                                      "autovacuum=off",
                                      "-c",
                                      "checkpoint_timeout=1h",
                                      "-c",
                                      "synchronous_commit=off",
                                      NULL };
    server.pid = 0;
    for (int i = 0; i < START_TRIES; i++) {
        if (server.pid == 0)
            server.pid = spawn(arguments);
        if (PQping(target) == PQPING_OK)
            return;
        if (waitpid(server.pid, NULL, WNOHANG) != 0)
            server.pid = 0; /* of one that was killed some processes may still be there, and it refuses to be beside them */
        pause_ms(PAUSE_MS);
    }
    log_show();
    die("PostgreSQL did not start");
}

const char *postgres_server_folder(void)
{
    if (server.folder[0])
        return server.folder;
    if (!bin_find() || folder_make(server.folder) != 0)
        die("there is no place or no program for a PostgreSQL server");
    server.owner = getpid();
    atexit(finish);
    folder_give();
    cluster_make();
    postgres_server_start();
    return server.folder;
}

void postgres_server_run(const char *address, const char *sql, char *ret_first, size_t size)
{
    char whole[POSTGRES_ADDRESS_BYTES + 16];
    snprintf(whole, sizeof whole, "postgres:%s", address);
    PGconn *conn = PQconnectdb(whole);
    PGresult *answer = PQexec(conn, sql);
    ExecStatusType is = PQresultStatus(answer);
    if (is != PGRES_TUPLES_OK && is != PGRES_COMMAND_OK)
        die("%s: %s", sql, PQerrorMessage(conn));
    if (ret_first)
        snprintf(ret_first, size, "%s", PQntuples(answer) > 0 ? PQgetvalue(answer, 0, 0) : "");
    PQclear(answer);
    PQfinish(conn);
}

void postgres_server_schema(char ret_address[POSTGRES_ADDRESS_BYTES])
{
    char sql[64];
    int number = ++server.schemas;
    const char *folder = postgres_server_folder();
    snprintf(ret_address, POSTGRES_ADDRESS_BYTES, "///postgres?host=%s&user=insist", folder);
    snprintf(sql, sizeof sql, "CREATE SCHEMA test_%d", number);
    postgres_server_run(ret_address, sql, NULL, 0);
    snprintf(ret_address, POSTGRES_ADDRESS_BYTES, "///postgres?host=%s&user=insist&options=-csearch_path%%3Dtest_%d", folder,
             number);
}

void postgres_pooler_stop(void)
{
    if (server.pooler <= 0)
        return;
    kill(server.pooler, SIGKILL);
    waitpid(server.pooler, NULL, 0);
    server.pooler = 0;
}

bool postgres_pooler_start(const char *mode, char ret_address[POSTGRES_ADDRESS_BYTES])
{
    char path[FOLDER_BYTES + 16];
    static const char program[] = "/usr/sbin/pgbouncer";
    if (access(program, X_OK) != 0 && !getenv("CI"))
        return false;
    snprintf(path, sizeof path, "%s/pooler.ini", postgres_server_folder());
    FILE *file = fopen(path, "we");
    if (!file)
        die("%s: %s", path, strerror(errno));
    fprintf(file,
            "[databases]\npostgres = host=%s user=insist\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
            "unix_socket_dir = %s\nauth_type = any\npool_mode = %s\ndefault_pool_size = 5\n",
            server.folder, server.folder, mode);
    fclose(file);
    chmod(path, 0644);
    const char *const arguments[] = { program, path, NULL };
    server.pooler = spawn(arguments);
    snprintf(ret_address, POSTGRES_ADDRESS_BYTES, "///postgres?host=%s&port=6432&user=insist", server.folder);
    char target[POSTGRES_ADDRESS_BYTES + 16];
    snprintf(target, sizeof target, "postgres:%s", ret_address);
    for (int i = 0; i < START_TRIES; i++) {
        if (PQping(target) == PQPING_OK)
            return true;
        if (waitpid(server.pooler, NULL, WNOHANG) != 0)
            break;
        pause_ms(PAUSE_MS);
    }
    log_show();
    die("PgBouncer did not start");
    return false;
}
