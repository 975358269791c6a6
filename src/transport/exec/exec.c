#include "transport/exec/exec.h"

#include "base/clock.h"
#include "transport/curl_send.h"
#include "transport/exec/environment.h"
#include "transport/exec/process.h"
#include "transport/http/answer.h"
#include "transport/http/searcher.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KILL_MS = 5000,            /* what SIGKILL has not ended by then hangs in the kernel */
    READ_BYTES_MAX = 64 * 1024, /* at a time: others' turns come between */
    TEXT_BYTES_MAX = 8 * 1024,  /* how much of the output an error text quotes */
    SEARCHED_HERE_BYTES_MAX = 4 * 1024, /* of an output that the loop itself searches */
    SEARCH_WAIT_MS_MAX = 5000,
    LAST_WAITS_MAX = 200,      /* for those that are being ended, when the daemon stops */
    LAST_WAIT_US = 5000,
};

struct exec_transport {
    struct transport transport; /* first */
    struct event_base *loop;
    struct searcher *searcher;
    struct run *runs; /* all there are */
    size_t count, processes_max;
    struct run *unstarted; /* reported from the loop */
    struct send *starved;  /* likewise, without memory even for a run */
    struct event *unstarted_event;
};

/* How far ending a program has come. */
enum ending {
    ENDING_NONE,
    ENDING_ASKED,  /* SIGTERM */
    ENDING_FORCED, /* SIGKILL */
};

/* One program, from start until it is gone. */
struct run {
    struct exec_transport *exec;
    struct send *send; /* NULL: it was answered, and only its process is not gone yet */
    struct process process;
    struct event *ended, *input, *output, *errors, *clock;
    struct slice left; /* of the payload */
    struct buffer said, complained; /* standard output and standard error */
    bool cut;          /* it wrote more than exec.output */
    enum ending ending;
    const char *ended_for; /* the word of the code, where it was us who ended it; NULL: it was not */
    enum process_end end;
    int number; /* of the end */
    struct words words;
    struct search search;
    bool searching;
    const char *not_searched;
    struct error failure; /* of what failed before it began */
    int64_t started_ns;
    struct run *next_unstarted;
    struct run *next, **link; /* in runs */
};

/* ---- From what was seen to the answer. ---- */

static void search_run(struct search *search)
{
    struct run *run = (struct run *)((char *)search - offsetof(struct run, search));
    const struct destination_config *destination = run->send->destination;
    const struct slice texts[] = { buffer_slice(&run->said), buffer_slice(&run->complained) };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct http_reading reading = { .xml = NULL };
        struct http_response response = { .body = texts[i], .body_cut = run->cut, .reading = &reading };
        if (run->words.code.len == 0)
            (void)!http_code_search(&destination->error_code, &response,
                                    classifier_namespace(destination->policy.classifier), &run->words.code);
        if (run->words.reference.len == 0)
            http_reference_find(&destination->reference, &response, &run->words.reference);
        if (reading.refused)
            run->not_searched = run->cut ? "it is longer than exec.output" : reading.refused;
        http_reading_release(&reading);
    }
}

/* Both, what it complained of first. */
static void tell_output(const struct run *run, struct buffer *text)
{
    const struct slice texts[] = { slice_trim(buffer_slice(&run->complained)), slice_trim(buffer_slice(&run->said)) };
    size_t room = TEXT_BYTES_MAX;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct slice shown = texts[i];
        shown.len = shown.len < room ? shown.len : room;
        room -= shown.len;
        if (slice_is_blank(shown))
            continue;
        buffer_append_text(text, i == 0 ? ": " : " | ");
        buffer_append(text, shown);
    }
}

static void judge_exit(struct run *run, struct answer *answer)
{
    const struct destination_config *destination = run->send->destination;
    struct words *words = &run->words;
    if (words->code.len == 0)
        buffer_printf(&words->code, "exec:%d", run->number);
    struct slice code = buffer_slice(&words->code);
    bool success = slice_equal(code, SLICE("exec:0")) || http_code_is(&destination->success, code);
    bool unreferenced = destination->delivered_when == DELIVERED_BY_REFERENCE && words->reference.len == 0;
    answer->unconfirmed = success && (unreferenced || run->not_searched);
    if (success && !answer->unconfirmed)
        answer->outcome = OUTCOME_DELIVERED;
    buffer_printf(&words->text, "exit code %d", run->number);
    if (run->not_searched)
        buffer_printf(&words->text, " (output not searched: %s)", run->not_searched);
    else if (answer->unconfirmed)
        buffer_append(&words->text, SLICE(" without a reference"));
}

/* It ran, for how long and how far nobody knows. */
static void judge_ended(struct run *run, struct answer *answer)
{
    struct words *words = &run->words;
    const struct destination_config *destination = run->send->destination;
    buffer_clear(&words->code);
    answer->outcome = OUTCOME_IN_DOUBT;
    if (run->ended_for) {
        bool timeout = strcmp(run->ended_for, "timeout") == 0;
        buffer_printf(&words->code, "exec:%s", run->ended_for);
        buffer_printf(&words->text, timeout ? "TIMEOUT - the program took longer than %lld ms and was ended"
                                            : "OUTPUT - the program wrote more than %lld bytes and was ended",
                      (long long)(timeout ? destination->timeout_ms : destination->exec.output_bytes));
        if (run->ending == ENDING_FORCED && timeout)
            buffer_append(&words->text, SLICE(" by SIGKILL"));
        return;
    }
    const char *name = sigabbrev_np(run->number);
    buffer_printf(&words->code, name ? "exec:SIG%s" : "exec:signal", name);
    buffer_printf(&words->text, "SIGNAL - the program was ended by signal %d, %s", run->number, sigdescr_np(run->number));
}

/* Errors of the machine's are nobody's fault; the rest is the configuration's, or a job's that is too large. */
static void judge_not_begun(const struct run *run, struct answer *answer, struct words *words)
{
    struct error failure;
    const char *program = run->send->destination->exec.argv.items[0];
    bool scarce = run->number == EAGAIN || run->number == EMFILE || run->number == ENFILE || run->number == EOWNERDEAD;
    enum status status = run->number == E2BIG    ? STATUS_INVALID
                         : run->number == ENOMEM ? STATUS_NO_MEMORY
                         : scarce                ? STATUS_FULL
                                                 : STATUS_UNSUPPORTED;
    buffer_clear(&words->code);
    error_set(&failure, status, "%s cannot be run: %s", program, strerror(run->number));
    answer->attempted = false;
    unstarted_judge(&failure, "insist:environment", "INVALID_REQUEST", answer, words);
}

/* ---- Runs. ---- */

static void event_drop(struct event **event)
{
    if (*event)
        event_free(*event);
    *event = NULL;
}

static void run_free(struct run *run)
{
    *run->link = run->next;
    if (run->next)
        run->next->link = run->link;
    run->exec->count--;
    event_drop(&run->ended);
    event_drop(&run->input);
    event_drop(&run->output);
    event_drop(&run->errors);
    event_drop(&run->clock);
    process_release(&run->process);
    buffer_release(&run->said);
    buffer_release(&run->complained);
    free(run);
}

/* No pipe is of use any more; what the program still says goes nowhere. */
static void pipes_drop(struct run *run)
{
    event_drop(&run->input);
    event_drop(&run->output);
    event_drop(&run->errors);
    process_close(&run->process.input);
    process_close(&run->process.output);
    process_close(&run->process.errors);
}

/* One whose process is not gone yet lives on until it is. */
static void report(struct run *run, struct answer *answer)
{
    struct send *send = run->send;
    struct words words = run->words;
    words_tell(&words, run->started_ns, answer);
    send->transport = NULL;
    run->send = NULL;
    run->left = SLICE("");
    pipes_drop(run);
    event_drop(&run->clock);
    if (run->process.pidfd < 0)
        run_free(run);
    send->done(send, answer);
    words_release(&words);
}

static void report_end(struct run *run)
{
    struct answer answer = { .attempted = true, .retry_after_ms = -1 };
    if (run->end == PROCESS_NOT_BEGUN) {
        judge_not_begun(run, &answer, &run->words);
    } else {
        if (run->end == PROCESS_EXITED && !run->ended_for)
            judge_exit(run, &answer);
        else
            judge_ended(run, &answer);
        tell_output(run, &run->words.text);
    }
    report(run, &answer);
}

static void on_searched(struct search *search)
{
    struct run *run = (struct run *)((char *)search - offsetof(struct run, search));
    run->searching = false;
    if (search->late)
        run->not_searched = "too many others were waiting to be";
    report_end(run);
}

static void end_judge(struct run *run)
{
    const struct destination_config *destination = run->send->destination;
    bool exited = run->end == PROCESS_EXITED && !run->ended_for;
    bool sought = http_places_search(&destination->error_code) || http_places_search(&destination->reference);
    words_init(&run->words);
    run->search = (struct search){ .owner = destination, .run = search_run, .done = on_searched };
    run->searching = exited && sought && run->said.len + run->complained.len > SEARCHED_HERE_BYTES_MAX;
    if (run->searching) {
        searcher_give(run->exec->searcher, &run->search);
        return;
    }
    if (exited && sought)
        search_run(&run->search);
    report_end(run);
}

/* ---- What the program does. ---- */

static void clock_set(struct run *run, int64_t ms)
{
    struct timeval wait = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
    event_add(run->clock, &wait);
}

static void end_ask(struct run *run, const char *why)
{
    run->ended_for = why;
    run->ending = ENDING_ASKED;
    process_signal(&run->process, SIGTERM);
    clock_set(run, run->send->destination->exec.grace_ms);
}

/* False: there is no more to come for now, or for ever. */
static bool read_some(struct run *run, int *descriptor, struct event **event, struct buffer *into)
{
    size_t used = run->said.len + run->complained.len;
    size_t room = (size_t)run->send->destination->exec.output_bytes - used;
    char *space = buffer_reserve(into, READ_BYTES_MAX);
    ssize_t got = space ? read(*descriptor, space, READ_BYTES_MAX) : -1;
    if (got > 0) {
        run->cut = run->cut || (size_t)got > room;
        buffer_commit(into, (size_t)got < room ? (size_t)got : room);
        return true;
    }
    if (got < 0 && space && (errno == EAGAIN || errno == EINTR))
        return false;
    event_drop(event);
    process_close(descriptor);
    return false;
}

static void read_one(struct run *run, int *descriptor, struct event **event, struct buffer *into)
{
    read_some(run, descriptor, event, into);
    if (!run->cut)
        return;
    event_drop(&run->output); /* a program that writes without end is not listened to */
    event_drop(&run->errors);
    if (run->ending == ENDING_NONE)
        end_ask(run, "output");
}

static void on_output(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct run *run = context;
    read_one(run, &run->process.output, &run->output, &run->said);
}

static void on_errors(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct run *run = context;
    read_one(run, &run->process.errors, &run->errors, &run->complained);
}

/* A program need not read it: that is no failure, and nobody waits for it. */
static void on_input(evutil_socket_t fd, UNUSED short what, void *context)
{
    struct run *run = context;
    ssize_t gone = run->left.len > 0 ? write(fd, run->left.data, run->left.len) : 0;
    if (gone < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (gone > 0)
        run->left = slice_from_offset(run->left, (size_t)gone);
    if (gone > 0 && run->left.len > 0)
        return;
    event_drop(&run->input);
    process_close(&run->process.input);
}

/* What it had said before it ended is in the pipes. Who holds them open after it is not waited for. */
static void on_ended(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct run *run = context;
    if (!process_reap(&run->process, &run->end, &run->number))
        return;
    event_drop(&run->ended);
    if (!run->send) {
        run_free(run);
        return;
    }
    event_drop(&run->clock);
    while (!run->cut && run->process.output >= 0 && read_some(run, &run->process.output, &run->output, &run->said))
        continue;
    while (!run->cut && run->process.errors >= 0 && read_some(run, &run->process.errors, &run->errors, &run->complained))
        continue;
    pipes_drop(run);
    end_judge(run);
}

static void on_clock(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct run *run = context;
    switch (run->ending) {
    case ENDING_NONE:
        end_ask(run, "timeout");
        return;
    case ENDING_ASKED:
        run->ending = ENDING_FORCED;
        process_signal(&run->process, SIGKILL);
        clock_set(run, KILL_MS);
        return;
    case ENDING_FORCED: /* its slot is free again; the process is waited for without it */
        run->end = PROCESS_SIGNALLED;
        words_init(&run->words);
        report_end(run);
    }
}

/* ---- Starting. ---- */

static struct run *run_new(struct exec_transport *exec, struct send *send)
{
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    size_t output_max = (size_t)send->destination->exec.output_bytes + READ_BYTES_MAX;
    run->exec = exec;
    run->send = send;
    run->process = (struct process){ 0, -1, -1, -1, -1, -1 };
    run->started_ns = clock_ticks_ns();
    run->left = send->job->payload;
    buffer_init(&run->said, output_max);
    buffer_init(&run->complained, output_max);
    run->next = exec->runs;
    run->link = &exec->runs;
    if (run->next)
        run->next->link = &run->next;
    exec->runs = run;
    exec->count++;
    return run;
}

static struct event *watch(const struct run *run, int fd, short what, event_callback_fn callback)
{
    struct event *event = event_new(run->exec->loop, fd, (short)(what | EV_PERSIST), callback, (void *)(uintptr_t)run);
    if (event && event_add(event, NULL) != 0)
        event_drop(&event);
    return event;
}

static enum status watch_all(struct run *run, struct error *err)
{
    run->ended = watch(run, run->process.pidfd, EV_READ, on_ended);
    run->input = watch(run, run->process.input, EV_WRITE, on_input);
    run->output = watch(run, run->process.output, EV_READ, on_output);
    run->errors = watch(run, run->process.errors, EV_READ, on_errors);
    run->clock = event_new(run->exec->loop, -1, 0, on_clock, run);
    if (run->ended && run->input && run->output && run->errors && run->clock)
        return STATUS_OK;
    return error_set(err, STATUS_NO_MEMORY, "no memory to watch a program");
}

static enum status run_start(struct run *run, struct error *err)
{
    const struct exec_config *config = &run->send->destination->exec;
    struct environment environment;
    if (run->exec->count > run->exec->processes_max)
        return error_set(err, STATUS_FULL, "all %zu programs that may run at a time are running", run->exec->processes_max);
    enum status status = environment_make(run->send, &environment, err);
    if (status != STATUS_OK)
        return status;
    char **argv = arena_alloc_array(&environment.memory, config->argv.count + 1, sizeof *argv);
    for (size_t i = 0; argv && i < config->argv.count && status == STATUS_OK; i++) {
        argv[i] = arena_copy_text(&environment.memory, slice_from(config->argv.items[i]));
        if (!argv[i])
            status = STATUS_NO_MEMORY;
    }
    if (!argv || status != STATUS_OK)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for the arguments of a program");
    struct process_order order = { .argv = argv, .environment = environment.items, .memory_bytes = config->memory_bytes };
    if (status == STATUS_OK)
        status = process_start(&order, &run->process, err);
    environment_release(&environment); /* the program has its own copy since fork */
    if (status == STATUS_OK)
        status = watch_all(run, err);
    return status;
}

/* A send that could not begin is still answered from the loop, never from inside start. */
static void on_unstarted(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct exec_transport *exec = context;
    while (exec->unstarted) {
        struct run *run = exec->unstarted;
        struct answer answer = { .retry_after_ms = -1 };
        exec->unstarted = run->next_unstarted;
        words_init(&run->words);
        unstarted_judge(&run->failure, "insist:environment", "INVALID_REQUEST", &answer, &run->words);
        report(run, &answer);
    }
    starved_answer_all(&exec->starved);
}

static void exec_start(struct transport *transport, struct send *send)
{
    struct exec_transport *exec = (struct exec_transport *)transport;
    struct run *run = run_new(exec, send);
    assert(send->job->step == STEP_SEND); /* the configuration allows no questions */
    send->transport = run;
    if (!run) {
        send->next = exec->starved;
        exec->starved = send;
        event_active(exec->unstarted_event, EV_TIMEOUT, 0);
        return;
    }
    run->failure.status = run_start(run, &run->failure);
    if (run->failure.status == STATUS_OK) {
        clock_set(run, send->destination->timeout_ms);
        return;
    }
    if (run->process.pidfd >= 0) /* it could not be watched */
        process_signal(&run->process, SIGKILL);
    run->next_unstarted = exec->unstarted;
    exec->unstarted = run;
    event_active(exec->unstarted_event, EV_TIMEOUT, 0);
}

static void exec_abort(struct transport *transport, struct send *send)
{
    struct exec_transport *exec = (struct exec_transport *)transport;
    struct run *run = send->transport;
    struct answer answer = { .retry_after_ms = -1 };
    if (!run) {
        starved_abort(&exec->starved, send);
        return;
    }
    if (run->searching) { /* the answer is there */
        searcher_take_back(exec->searcher, &run->search);
        on_searched(&run->search);
        return;
    }
    for (struct run **link = &exec->unstarted; *link; link = &(*link)->next_unstarted)
        if (*link == run) {
            *link = run->next_unstarted;
            break;
        }
    answer.attempted = run->process.pidfd >= 0;
    answer.outcome = answer.attempted ? OUTCOME_IN_DOUBT : OUTCOME_NONE;
    if (answer.attempted)
        process_signal(&run->process, SIGKILL);
    words_interrupted(&run->words);
    report(run, &answer);
}

static void exec_forget(struct transport *transport)
{
    (void)transport; /* nothing is remembered of a destination */
}

/* Those that are being ended have SIGKILL; one that hangs in the kernel is left to it. */
static void last_wait(struct exec_transport *exec)
{
    enum process_end end;
    int number;
    for (int i = 0; exec->runs && i < LAST_WAITS_MAX; i++) {
        for (struct run *run = exec->runs, *next; run; run = next) {
            next = run->next;
            if (process_reap(&run->process, &end, &number))
                run_free(run);
        }
        if (exec->runs)
            usleep(LAST_WAIT_US);
    }
    while (exec->runs)
        run_free(exec->runs);
}

static void exec_free(struct transport *transport)
{
    struct exec_transport *exec = (struct exec_transport *)transport;
    last_wait(exec);
    searcher_free(exec->searcher);
    if (exec->unstarted_event)
        event_free(exec->unstarted_event);
    free(exec);
}

static const struct transport_ops exec_ops = {
    .name = "exec", .start = exec_start, .abort = exec_abort, .forget = exec_forget, .free = exec_free,
};

enum status exec_transport_new(struct event_base *loop, size_t processes_max, struct transport **ret_transport,
                               struct error *err)
{
    struct exec_transport *exec = calloc(1, sizeof *exec);
    if (!exec)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the transport of programs");
    *exec = (struct exec_transport){ .transport.ops = &exec_ops, .loop = loop, .processes_max = processes_max };
    exec->unstarted_event = event_new(loop, -1, 0, on_unstarted, exec);
    enum status status = exec->unstarted_event
                             ? searcher_new(loop, SEARCH_WAIT_MS_MAX, &exec->searcher, err)
                             : error_set(err, STATUS_NO_MEMORY, "no memory for the transport of programs");
    if (status != STATUS_OK) {
        exec_free(&exec->transport);
        return status;
    }
    *ret_transport = &exec->transport;
    return STATUS_OK;
}

enum status exec_settings_check(const struct destination_config *destination, struct error *err)
{
    const char *program = destination->exec.argv.items[0];
    struct stat facts;
    int reason = stat(program, &facts) != 0         ? errno
                 : S_ISDIR(facts.st_mode)           ? EISDIR
                 : !S_ISREG(facts.st_mode)          ? EACCES
                 : access(program, X_OK) != 0 ? errno
                                                    : 0;
    return reason == 0 ? STATUS_OK
                       : error_set(err, STATUS_UNSUPPORTED, "destination \"%s\": exec.argv: %s: %s", destination->name,
                                   program, strerror(reason));
}
