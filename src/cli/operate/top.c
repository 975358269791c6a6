/*
 * Destinations as they stand, worst first, again and again: the page's first screen in a terminal.
 */
#include "base/array.h"
#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/rows.h"
#include "cli/talk/show.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { TOP_DESTINATIONS_MAX = 100000, TOP_LINES_DEFAULT = 24, TOP_HEAD_LINES = 5 };

enum sort { SORT_WORST, SORT_NAME, SORT_PENDING, SORT_DEAD, SORT_RATE, SORT_COUNT };
static const char *const sort_names[SORT_COUNT] = { "worst", "name", "pending", "dead", "rate" };

static int64_t open_of(const json_t *row)
{
    return member_int(row, "pending") + member_int(row, "waiting") + member_int(row, "running");
}

/* ---- order ---- */

/* What holds it, what dies there, what fails there, then what waits. */
static int64_t badness(const json_t *row)
{
    const char *mode = member_text(row, "mode"), *held = member_text(row, "held_by");
    int64_t rank = 0;
    if (mode && strcmp(mode, "contingency") == 0)
        rank = 5;
    else if (held)
        rank = 4;
    else if (mode && strcmp(mode, "normal") != 0)
        rank = 3;
    else if (member_int(row, "failed_last_minute") > 0)
        rank = 2;
    else if (member_int(row, "dead") > 0)
        rank = 1;
    return rank;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return a == b ? 0 : a < b ? 1 : -1;
}

static enum sort sorted_by;

static int by_wish(const void *a, const void *b)
{
    json_t *const *rows[] = { a, b };
    const json_t *x = *rows[0], *y = *rows[1];
    int order = 0;
    if (sorted_by == SORT_WORST)
        order = compare_numbers(badness(x), badness(y));
    if (sorted_by == SORT_DEAD || (sorted_by == SORT_WORST && order == 0))
        order = compare_numbers(member_int(x, "dead"), member_int(y, "dead"));
    if (sorted_by == SORT_RATE)
        order = compare_numbers(member_int(x, "delivered_last_minute"), member_int(y, "delivered_last_minute"));
    if (sorted_by == SORT_PENDING || (sorted_by == SORT_WORST && order == 0))
        order = compare_numbers(open_of(x), open_of(y));
    if (order != 0 || !member_text(x, "name") || !member_text(y, "name"))
        return order;
    return strcmp(member_text(x, "name"), member_text(y, "name"));
}

/* ---- one picture ---- */

struct picture {
    json_t **rows;
    size_t count, capacity;
    int64_t pending, running, waiting, dead, delivered, failed;
    bool no_memory;
};

static void take_row(void *context, json_t *row)
{
    struct picture *picture = context;
    json_t **rows = array_grow(picture->rows, picture->count, &picture->capacity, sizeof *rows);
    picture->no_memory = picture->no_memory || !rows;
    if (!rows)
        return;
    picture->rows = rows;
    picture->rows[picture->count++] = json_incref(row);
    picture->pending += member_int(row, "pending");
    picture->running += member_int(row, "running");
    picture->waiting += member_int(row, "waiting");
    picture->dead += member_int(row, "dead");
    picture->delivered += member_int(row, "delivered_last_minute");
    picture->failed += member_int(row, "failed_last_minute");
}

static void picture_release(struct picture *picture)
{
    for (size_t i = 0; i < picture->count; i++)
        json_decref(picture->rows[i]);
    free(picture->rows);
}

static void append_picture(const struct cli *cli, const struct picture *picture, size_t lines, struct buffer *out)
{
    static const struct shown columns[] = {
        { "DESTINATION", "name", SHOW_BRIEF },          { "MODE", "mode", SHOW_STATE },
        { "HELD BY", "held_by", SHOW_BRIEF },           { "PENDING", "pending", SHOW_NUMBER },
        { "RUN", "running", SHOW_NUMBER },              { "WAIT", "waiting", SHOW_NUMBER },
        { "DEAD", "dead", SHOW_NUMBER },                { "OK/M", "delivered_last_minute", SHOW_NUMBER },
        { "BAD/M", "failed_last_minute", SHOW_NUMBER },
    };
    enum { COLUMNS = sizeof columns / sizeof *columns };
    struct table_column table_columns[TABLE_COLUMNS_MAX];
    struct table table;
    buffer_printf(out, "%zu destinations; in the last minute %lld delivered, %lld failed\n", picture->count,
                  (long long)picture->delivered, (long long)picture->failed);
    buffer_printf(out, "%lld pending, %lld running, %lld waiting, %lld dead\n", (long long)picture->pending,
                  (long long)picture->running, (long long)picture->waiting, (long long)picture->dead);
    show_table_init(&table, table_columns, columns, COLUMNS);
    for (size_t i = 0; i < picture->count && i < lines; i++)
        show_row(&table, picture->rows[i], columns, COLUMNS);
    table_append(&table, cli, out);
    table_release(&table);
    if (picture->count > lines)
        buffer_printf(out, "and %zu more\n", picture->count - lines);
}

static void append_json(const struct picture *picture, struct buffer *out)
{
    buffer_append_text(out, "{\"destinations\":[");
    for (size_t i = 0; i < picture->count; i++) {
        buffer_append_text(out, i > 0 ? "," : "");
        show_value(picture->rows[i], SHOW_TEXT, out);
    }
    buffer_append_text(out, "]}\n");
}

static int draw(const struct cli *cli, struct client *client, size_t lines, struct buffer *out)
{
    const struct rows_wish wish = { "/v1/destinations", "destinations", NULL, NULL, TOP_DESTINATIONS_MAX };
    struct picture picture = { 0 };
    bool more;
    int code = rows_each(client, &wish, take_row, &picture, &more);
    if (code == EXIT_DONE && picture.no_memory)
        code = cli_fail(EXIT_FAILED, "no memory for so many destinations");
    if (code == EXIT_DONE) {
        if (picture.count > 0)
            qsort(picture.rows, picture.count, sizeof *picture.rows, by_wish);
        if (cli->json)
            append_json(&picture, out);
        else
            append_picture(cli, &picture, lines, out);
    }
    picture_release(&picture);
    return code;
}

/* ---- the terminal ---- */

static volatile sig_atomic_t ended;

static void on_signal(int signal)
{
    (void)signal;
    ended = 1;
}

static size_t terminal_lines(void)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > TOP_HEAD_LINES + 1;
    return known ? size.ws_row : TOP_LINES_DEFAULT;
}

static void take_keys(void)
{
    char keys[32];
    ssize_t count = read(STDIN_FILENO, keys, sizeof keys);
    if (count == 0)
        ended = 1; /* nobody is there any more */
    for (ssize_t i = 0; i < count; i++) {
        if (keys[i] == 'q' || keys[i] == '\x03')
            ended = 1;
        if (keys[i] == 's')
            sorted_by = (sorted_by + 1) % SORT_COUNT;
        for (int sort = 0; sort < SORT_COUNT; sort++)
            if (keys[i] == sort_names[sort][0])
                sorted_by = (enum sort)sort;
    }
}

/* The picture is made whole before the old one goes, so that nothing flickers. */
static int draw_on(struct cli *cli, struct client *client)
{
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        cli->width = size.ws_col;
    buffer_append_text(&out, "\033[H\033[J");
    int code = draw(cli, client, terminal_lines() - TOP_HEAD_LINES, &out);
    buffer_printf(&out, "by %s   q quit   s next order   w worst  n name  p pending  d dead  r rate", sort_names[sorted_by]);
    if (code == EXIT_DONE)
        return cli_print(&out, EXIT_DONE);
    buffer_release(&out);
    return code;
}

static int watch(struct cli *cli, struct client *client, int64_t every_ms)
{
    static const char enter[] = "\033[?1049h\033[?25l", leave[] = "\033[?25h\033[?1049l";
    struct sigaction action = { .sa_handler = on_signal };
    struct termios before, raw;
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return cli_fail(EXIT_FAILED, "the terminal does not say how it is set");
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    int code = write(STDOUT_FILENO, enter, sizeof enter - 1) < 0 ? EXIT_FAILED : EXIT_DONE;
    while (!ended && code == EXIT_DONE) {
        struct pollfd keys = { .fd = STDIN_FILENO, .events = POLLIN };
        code = draw_on(cli, client);
        if (code == EXIT_DONE && poll(&keys, 1, (int)every_ms) > 0)
            take_keys();
    }
    if (write(STDOUT_FILENO, leave, sizeof leave - 1) < 0)
        code = EXIT_FAILED;
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return code;
}

static int once(const struct cli *cli, struct client *client)
{
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    int code = draw(cli, client, SIZE_MAX, &out);
    if (code == EXIT_DONE)
        return cli_print(&out, EXIT_DONE);
    buffer_release(&out);
    return code;
}

int command_top(struct cli *cli)
{
    const char *sort = NULL;
    bool only_once = false;
    int64_t every_ms = 2000;
    const struct option_row rows[] = {
        { "sort", 's', .value = &sort },
        { "every", '\0', .duration = &every_ms, .low = 200, .high = 3600000 },
        { "once", '1', .flag = &only_once },
        { 0 },
    };
    struct client client;
    if (!command_options(cli, rows, 0))
        return cli->code;
    int wanted = 0;
    while (sort && wanted < SORT_COUNT && strcmp(sort_names[wanted], sort) != 0)
        wanted++;
    if (wanted == SORT_COUNT)
        return cli_usage("top", "--sort is worst, name, pending, dead or rate, not \"%s\"", sort);
    sorted_by = (enum sort)wanted;
    int code = client_open(cli, &client);
    if (code == EXIT_DONE)
        code = only_once || cli->json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ? once(cli, &client)
                                                                                          : watch(cli, &client, every_ms);
    client_close(&client);
    return code;
}
