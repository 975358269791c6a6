/* Programs as destinations: what they are given, what their ends mean, and that nobody waits for a bad one. */
#include "support/check.h"
#include "support/http_rig.h"

#include "transport/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES_MAX = 6, GONE_CHECKS_MAX = 6000, LARGE_BYTES = 1 << 20 };

static struct rig rig;
static struct rig_send sends[PROCESSES_MAX + 2];

static void open_rig(void)
{
    struct error err;
    signal(SIGPIPE, SIG_IGN); /* as the daemon does */
    rig = (struct rig){ .loop = event_base_new() };
    assert_int_equal(exec_transport_new(rig.loop, PROCESSES_MAX, &rig.transport, &err), STATUS_OK);
}

/* A shell's script, for the tests; `more` are further settings. */
static void configure(const char *script, const char *more)
{
    rig_configure(&rig, "transport: exec, exec: { argv: [/bin/sh, -c, %s], grace: 100ms%s", script, more);
}

static void run(const char *script, const char *more)
{
    configure(script, more);
    rig_send(&rig, &sends[0]);
}

static bool process_is_there(pid_t pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *state = strrchr(line, ')');
    return read && state && state[2] != 'Z'; /* a zombie waits for its parent only */
}

static void wait_gone(pid_t pid)
{
    for (int i = 0; i < GONE_CHECKS_MAX && process_is_there(pid); i++)
        usleep(10000);
    check(!process_is_there(pid), "process %d is still there", (int)pid);
}

/* The number behind `word` in what a program said. */
static pid_t number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    check(at != NULL, "no %s in: %s", word, text);
    return (pid_t)atoi(at + strlen(word));
}

/* ---- What its end means. ---- */

static void test_ends(void **state)
{
    (void)state;
    static const struct {
        const char *script, *more, *code, *text;
        enum outcome outcome;
    } cases[] = {
        { "'cat >/dev/null'", "}", "exec:0", "exit code 0", OUTCOME_DELIVERED },
        { "'exit 75'", "}", "exec:75", "exit code 75", OUTCOME_NONE },
        { "'echo no room >&2; exit 73'", "}", "exec:73", "exit code 73: no room", OUTCOME_NONE },
        { "'echo out; echo err >&2; exit 1'", "}", "exec:1", "exit code 1: err | out", OUTCOME_NONE },
        { "'kill -SEGV $$'", "}", "exec:SIGSEGV", "signal 11", OUTCOME_IN_DOUBT },
        { "'kill -KILL $$'", "}", "exec:SIGKILL", "signal 9", OUTCOME_IN_DOUBT },
        { "'sleep 60'", "}, timeout: 50ms", "exec:timeout", "TIMEOUT - the program took longer than 50 ms", OUTCOME_IN_DOUBT },
        { "'exec yes'", ", output: 4KB }", "exec:output", "wrote more than 4096 bytes", OUTCOME_IN_DOUBT },
        { "'exec yes >&2'", ", output: 4KB }", "exec:output", "wrote more than 4096 bytes", OUTCOME_IN_DOUBT },
        { "'exec python3 -c \"bytearray(1 << 30)\"'", ", memory: 256MB }", "exec:1", "MemoryError", OUTCOME_NONE },
        /* a code in what it says is its answer, whatever its exit code */
        { "'echo \"{\\\"error\\\":\\\"E7\\\"}\"'", "}, error_code: ['json:/error']", "exec:E7", "exit code 0", OUTCOME_NONE },
        { "'echo failed: ERR-42 >&2; exit 3'", "}, error_code: ['pattern:/ERR-(\\d+)/']", "exec:42", "ERR-42", OUTCOME_NONE },
        { "'echo DONE-42 >&2; exit 3'", "}, error_code: ['pattern:/(DONE)/'], success: [DONE]", "exec:DONE", "", OUTCOME_DELIVERED },
        { "'exit 4'", "}, error_code: ['json:/error', exec.status]", "exec:4", "exit code 4", OUTCOME_NONE },
    };
    open_rig();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        run(cases[i].script, cases[i].more);
        const struct rig_send *send = &sends[0];
        check(strcmp(send->code, cases[i].code) == 0, "%s: %s, %s", cases[i].script, send->code, send->text);
        check(strstr(send->text, cases[i].text) != NULL, "%s: %s", cases[i].script, send->text);
        check(send->answer.outcome == cases[i].outcome && send->answer.attempted, "%s: outcome %d", cases[i].script,
              (int)send->answer.outcome);
    }
    rig_close(&rig);
}

static void test_programs_that_cannot_run(void **state)
{
    (void)state;
    static const struct { const char *program, *why; } cases[] = {
        { "/no/such/program", "No such file" }, { "/etc/passwd", "Permission denied" }, { "/usr/bin", "Permission denied" },
    };
    struct error err;
    open_rig();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct destination_config *config = rig_configure(&rig, "exec: { argv: [%s] }, transport: exec", cases[i].program);
        rig_send(&rig, &sends[0]);
        check(sends[0].answer.outcome == OUTCOME_BLOCKED, "%s: %s", cases[i].program, sends[0].text);
        assert_string_equal(sends[0].code, "insist:configuration");
        check(strstr(sends[0].text, cases[i].why) != NULL, "%s", sends[0].text);
        assert_int_equal(exec_settings_check(config, &err), STATUS_UNSUPPORTED);
        check(strstr(err.text, "exec.argv") != NULL, "%s", err.text);
    }
    assert_int_equal(exec_settings_check(rig_configure(&rig, "transport: exec, exec: { argv: [/bin/true] }"), &err), STATUS_OK);
    rig_close(&rig);
}

static void test_reference(void **state)
{
    (void)state;
    open_rig();
    run("'echo \"{\\\"id\\\":\\\"P-1\\\"}\"'", "}, reference: ['json:/id'], delivered_when: reference");
    assert_string_equal(sends[0].reference, "P-1");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    run("'echo \"{}\"'", "}, reference: ['json:/id'], delivered_when: reference");
    assert_true(sends[0].answer.unconfirmed);
    assert_int_equal(sends[0].answer.outcome, OUTCOME_NONE);
    /* a long output is searched elsewhere, one that was cut off is not */
    run("'head -c 20000 /dev/zero | tr \"\\0\" \" \"; echo \"{\\\"id\\\":\\\"P-2\\\"}\"'", "}, reference: ['json:/id']");
    assert_string_equal(sends[0].reference, "P-2");
    rig_close(&rig);
}

/* ---- What it is given. ---- */

static void test_input(void **state)
{
    (void)state;
    char *payload = malloc(LARGE_BYTES);
    assert_non_null(payload);
    memset(payload, 'x', LARGE_BYTES);
    open_rig();
    static const struct { const char *script, *said; } cases[] = {
        { "'wc -c'", "1048576" },                   /* the whole of it, and its end */
        { "'head -c 3; exit 0'", "xxx" },           /* who does not read on is not sent on to */
        { "'exec true'", "exit code 0" },
        { "'exec <&-; sleep 0.05'", "exit code 0" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        configure(cases[i].script, "}");
        rig_prepare(&rig, &sends[0]);
        sends[0].job.payload = (struct slice){ payload, LARGE_BYTES };
        rig_start(&rig, &sends[0]);
        rig_wait(&rig, &sends[0]);
        check(strstr(sends[0].text, cases[i].said) != NULL, "%s: %s", cases[i].script, sends[0].text);
        assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    }
    configure("'wc -c'", "}");
    rig_prepare(&rig, &sends[0]);
    sends[0].job.payload = SLICE("");
    rig_start(&rig, &sends[0]);
    rig_wait(&rig, &sends[0]);
    assert_string_equal(sends[0].text, "exit code 0 | 0");
    rig_close(&rig);
    free(payload);
}

static void test_environment(void **state)
{
    (void)state;
    static const char *const there[] = {
        "INSIST_JOB_ID=j-1\n", "INSIST_TENANT=acme\n", "INSIST_ATTEMPT=2\n", "INSIST_DESTINATION=d\n", "INSIST_PRIORITY=",
        "INSIST_IDEMPOTENCY_KEY=acme/j-1\n", "INSIST_CONTENT_TYPE=application/json\n", "INSIST_METADATA={\"a\":1}",
        "INSIST_CREATED_AT=2025-01-12T10:40:00.000Z\n", "GREETING=hello $HOME `id`\n", "PATH=/usr/local/bin:/usr/bin:/bin\n",
    };
    static const char *const absent[] = { "A_SECRET_OF_THE_DAEMON", "HOME=", "INSIST_DEADLINE" };
    setenv("A_SECRET_OF_THE_DAEMON", "1", 1);
    open_rig();
    rig_configure(&rig, "transport: exec, exec: { argv: [/usr/bin/env], environment: { GREETING: 'hello $HOME `id`' } }");
    rig_prepare(&rig, &sends[0]);
    sends[0].job.attempts = 2;
    sends[0].job.deadline = INSTANT_NONE;
    sends[0].job.metadata = SLICE("{\"a\":1}");
    assert_int_equal(instant_parse(SLICE("2025-01-12T10:40:00Z"), &sends[0].job.created_at, NULL), STATUS_OK);
    rig_start(&rig, &sends[0]);
    rig_wait(&rig, &sends[0]);
    for (size_t i = 0; i < COUNT_OF(there); i++)
        check(strstr(sends[0].text, there[i]) != NULL, "no %s in %s", there[i], sends[0].text);
    for (size_t i = 0; i < COUNT_OF(absent); i++)
        check(strstr(sends[0].text, absent[i]) == NULL, "%s in %s", absent[i], sends[0].text);
    /* what cannot be a variable's value is the job's fault */
    rig_prepare(&rig, &sends[0]);
    sends[0].job.correlation_id = (struct slice){ "a\0b", 3 };
    rig_start(&rig, &sends[0]);
    rig_wait(&rig, &sends[0]);
    assert_int_equal(sends[0].answer.outcome, OUTCOME_PERMANENT);
    assert_string_equal(sends[0].code, "insist:environment");
    rig_close(&rig);
}

/* The C library keeps these two to itself and lets nobody set them: as whoever started the test had them, so they stay. */
#define THREAD_SIGNALS (3ULL << 31)

/* Descriptors of ours, even such as nobody marked, and signals that we ignore are not the program's. */
static void test_nothing_is_inherited(void **state)
{
    (void)state;
    int leaking = open("/dev/null", O_RDONLY);
    assert_true(leaking >= 0 && fcntl(leaking, F_DUPFD, 700) == 700);
    open_rig();
    run("'ls /proc/self/fd; grep SigIgn /proc/self/status; pwd; ps -o sid= -p $$ | tr -d \" \"; echo pid=$$ limits=$(ulimit -c)'", "}");
    const char *text = sends[0].text;
    check(strstr(text, "700") == NULL, "%s", text);
    check(strncmp(text, "exit code 0 | 0\n1\n2\n3\n", 22) == 0, "%s", text); /* the fourth is ls's own */
    const char *ignored = strstr(text, "SigIgn:");
    unsigned long long signals = ignored ? strtoull(ignored + strlen("SigIgn:"), NULL, 16) : ~0ULL;
    check((signals & ~THREAD_SIGNALS) == 0, "%s", text);
    check(strstr(text, "\n/\n") != NULL, "%s", text);
    pid_t pid = number_after(text, "pid=");
    char session[32];
    snprintf(session, sizeof session, "\n%d\n", (int)pid);
    check(strstr(text, session) != NULL, "no session of its own: %s", text);
    check(strstr(text, "limits=0") != NULL, "%s", text);
    rig_close(&rig);
    close(leaking);
    close(700);
}

/* ---- Nobody waits for it. ---- */

static void test_who_will_not_end(void **state)
{
    (void)state;
    static const char *const times[] = { "}, timeout: 200ms", "}, timeout: 3s", "}, timeout: 15s" };
    open_rig();
    for (size_t i = 0; i < COUNT_OF(times); i++) { /* a busy machine may not begin it in so short a time */
        run("'trap \"\" TERM; echo pid=$$; while :; do sleep 60 & echo child=$!; wait; done'", times[i]);
        if (strstr(sends[0].text, "child="))
            break;
    }
    assert_string_equal(sends[0].code, "exec:timeout");
    check(strstr(sends[0].text, "by SIGKILL") != NULL, "%s", sends[0].text);
    wait_gone(number_after(sends[0].text, "pid="));
    wait_gone(number_after(sends[0].text, "child="));
    rig_close(&rig);
}

/* Its end is its end, whoever holds its pipes; what it leaves in its group goes with it. */
static void test_who_leaves_children(void **state)
{
    (void)state;
    open_rig();
    run("'sleep 600 & echo child=$!'", "}");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    wait_gone(number_after(sends[0].text, "child="));
    run("'trap \"exit 0\" USR1; setsid sh -c \"echo escaped=\\$\\$; kill -USR1 $$; exec sleep 600\" & while :; do sleep 0.05; done'",
        "}");
    assert_int_equal(sends[0].answer.outcome, OUTCOME_DELIVERED);
    pid_t escaped = number_after(sends[0].text, "escaped=");
    check(process_is_there(escaped), "a daemon of its own was ended");
    kill(escaped, SIGKILL);
    rig_close(&rig);
}

static void test_others_go_on(void **state)
{
    (void)state;
    open_rig();
    configure("'case $INSIST_JOB_ID in bad) exec yes;; deaf) exec sleep 600;; esac; cat'", ", output: 16MB }");
    for (size_t i = 0; i < PROCESSES_MAX + 2; i++) {
        rig_prepare(&rig, &sends[i]);
        sends[i].job.id = i == 0 ? SLICE("bad") : i == 1 ? SLICE("deaf") : SLICE("good");
        rig_start(&rig, &sends[i]);
    }
    for (size_t i = 2; i < PROCESSES_MAX + 2; i++)
        rig_wait(&rig, &sends[i]);
    for (size_t i = 2; i < PROCESSES_MAX; i++)
        assert_int_equal(sends[i].answer.outcome, OUTCOME_DELIVERED);
    for (size_t i = PROCESSES_MAX; i < PROCESSES_MAX + 2; i++) { /* there was no room for these */
        assert_false(sends[i].answer.attempted);
        check(strstr(sends[i].text, "all 6 programs") != NULL, "%s", sends[i].text);
    }
    rig_wait(&rig, &sends[0]);
    assert_string_equal(sends[0].code, "exec:output");
    assert_int_equal(sends[1].times, 0);
    rig.transport->ops->abort(rig.transport, &sends[1].send);
    assert_int_equal(sends[1].times, 1);
    assert_int_equal(sends[1].answer.outcome, OUTCOME_IN_DOUBT);
    rig_close(&rig);
}

static void test_nothing_is_left_open(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    open_rig();
    configure("'exit 0'", "}");
    rig_send(&rig, &sends[0]);
    size_t before = rig_descriptors();
    for (int i = 0; i < ROUNDS; i++) {
        configure(i % 2 == 0 ? "'exit 0'" : "'sleep 600'", "}, timeout: 10ms");
        rig_send(&rig, &sends[0]);
        rig_prepare(&rig, &sends[1]);
        rig_start(&rig, &sends[1]);
        rig.transport->ops->abort(rig.transport, &sends[1].send);
        assert_int_equal(sends[1].times, 1);
    }
    for (int i = 0; i < GONE_CHECKS_MAX && rig_descriptors() > before; i++)
        rig_run(&rig, 5);
    check(rig_descriptors() <= before, "%zu descriptors were %zu", rig_descriptors(), before);
    rig_close(&rig);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie either */
    assert_int_equal(errno, ECHILD);
}

/* The daemon is killed: its programs go with it. */
static void test_daemon_dies(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* it takes no threads after a fork of one that has some */
#endif
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t daemon = fork();
    if (daemon == 0) {
        open_rig();
        configure("'echo pid=$$ >&2; exec sleep 600'", "}");
        dup2(ends[1], STDERR_FILENO);
        rig_prepare(&rig, &sends[0]);
        rig_start(&rig, &sends[0]);
        char path[64], line[64];
        snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
        FILE *file = fopen(path, "re");
        if (file && fgets(line, sizeof line, file))
            dprintf(ends[1], "pid=%s\n", line);
        kill(getpid(), SIGKILL);
        _exit(1);
    }
    close(ends[1]);
    char text[128] = "";
    ssize_t len = read(ends[0], text, sizeof text - 1);
    assert_true(daemon > 0 && len > 0);
    waitpid(daemon, NULL, 0);
    wait_gone(number_after(text, "pid="));
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_programs_that_cannot_run),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_nothing_is_inherited),
        cmocka_unit_test(test_who_will_not_end),
        cmocka_unit_test(test_who_leaves_children),
        cmocka_unit_test(test_others_go_on),
        cmocka_unit_test(test_nothing_is_left_open),
        cmocka_unit_test(test_daemon_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
