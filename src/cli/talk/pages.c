#include "cli/talk/pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_DEFAULT = 100 };

/* Where a list stands. */
struct walk {
    const struct cli *cli;
    const struct pages *pages;
    const struct option_row *rows; /* of the command's options; NULL: none */
    struct client client;
    struct table table;
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct buffer out;
    bool any;     /* row was there */
    int64_t left; /* rows still wanted; negative: all */
    char *cursor; /* of the next page; NULL: it was the last */
};

static char *cursor_of(const json_t *page)
{
    const json_t *next = json_object_get(page, "next");
    char *text = NULL;
    if (json_is_integer(next) && asprintf(&text, "%" PRId64, (int64_t)json_integer_value(next)) < 0)
        text = NULL;
    else if (json_is_string(next) && json_string_length(next) > 0)
        text = strdup(json_string_value(next));
    return text;
}

static int take_page(struct walk *walk, const struct reply *reply)
{
    json_t *page = NULL;
    int code = reply_json(&walk->client, reply, &page);
    if (code != EXIT_DONE)
        return code;
    const json_t *rows = json_object_get(page, walk->pages->member);
    if (!json_is_array(rows)) {
        json_decref(page);
        return cli_fail(EXIT_FAILED, "the daemon's answer has no \"%s\"; is it of another version?", walk->pages->member);
    }
    if (walk->cli->json)
        reply_append(reply, &walk->out);
    for (size_t i = 0; !walk->cli->json && i < json_array_size(rows); i++)
        show_row(&walk->table, json_array_get(rows, i), walk->pages->columns, walk->pages->column_count);
    walk->any = walk->any || json_array_size(rows) > 0;
    if (!walk->cli->json && walk->any)
        table_append(&walk->table, walk->cli, &walk->out);
    if (walk->left > 0)
        walk->left -= (int64_t)json_array_size(rows) < walk->left ? (int64_t)json_array_size(rows) : walk->left;
    free(walk->cursor);
    walk->cursor = cursor_of(page);
    json_decref(page);
    return EXIT_DONE;
}

/* Whether the row chooses among what is listed. */
static bool chooses(const struct pages *pages, const struct option_row *row)
{
    return row->value && *row->value && row->value != &pages->cursor;
}

/* What has a dash here has a low line there. */
static void query_option(struct url *url, const struct option_row *row)
{
    char name[32];
    snprintf(name, sizeof name, "%s", row->name);
    for (char *at = name; *at; at++)
        *at = *at == '-' ? '_' : *at;
    url_query(url, name, *row->value);
}

/* All of the same name are one list there: --id a --id b is ids=a,b. */
static void query_repeated(struct url *url, const struct arguments *arguments)
{
    struct buffer list = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    char name[32];
    for (size_t i = 0; i < arguments->repeated_count; i++) {
        buffer_append_text(&list, i > 0 ? "," : "");
        buffer_append_text(&list, arguments->repeated[i].value);
    }
    buffer_append_byte(&list, '\0');
    snprintf(name, sizeof name, "%ss", arguments->repeated[0].name);
    url_query(url, name, list.data);
    buffer_release(&list);
}

static int next_page(struct walk *walk)
{
    struct reply reply = { 0 };
    struct url url = url_to(walk->pages->path);
    for (const struct option_row *row = walk->rows; row && row->name; row++)
        if (chooses(walk->pages, row))
            query_option(&url, row);
    if (walk->cli->arguments.repeated_count > 0)
        query_repeated(&url, &walk->cli->arguments);
    url_number(&url, "limit", walk->left < 0 || walk->left > CLIENT_PAGE_MAX ? CLIENT_PAGE_MAX : walk->left);
    url_query(&url, "cursor", walk->cursor);
    int code = client_call(&walk->client, &(struct request){ .method = "GET", .url = &url }, &reply);
    if (code == EXIT_DONE)
        code = take_page(walk, &reply);
    reply_release(&reply);
    url_release(&url);
    return code == EXIT_DONE ? cli_print(&walk->out, EXIT_DONE) : code;
}

/* A page may have fewer rows than asked for although more follow. With JSON, who asks for one page gets one. */
static bool wants_more(const struct walk *walk)
{
    if (!walk->cursor || walk->left == 0)
        return false;
    return !walk->cli->json || walk->left < 0 || walk->left > CLIENT_PAGE_MAX;
}

/* In words, and not on standard output: for a program there is nothing. */
static void say_none(const struct pages *pages, const struct option_row *rows)
{
    bool chosen = false;
    for (; rows && rows->name; rows++)
        chosen = chosen || (chooses(pages, rows) && **rows->value);
    fprintf(stderr, "There are no %s%s.\n", pages->what ? pages->what : pages->member, chosen ? " like that" : "");
}

int pages_print(const struct cli *cli, const struct pages *pages, const struct option_row *rows)
{
    struct walk walk = { .cli = cli, .pages = pages, .rows = rows, .left = pages->limit > 0 ? pages->limit : LIMIT_DEFAULT };
    if (pages->all)
        walk.left = -1;
    walk.cursor = pages->cursor ? strdup(pages->cursor) : NULL;
    buffer_init(&walk.out, CLI_OUTPUT_BYTES_MAX);
    show_table_init(&walk.table, walk.columns, pages->columns, pages->column_count);
    int code = options_filled(cli, rows);
    if (code == EXIT_DONE)
        code = client_open(cli, &walk.client);
    if (code == EXIT_DONE)
        code = next_page(&walk);
    while (code == EXIT_DONE && wants_more(&walk))
        code = next_page(&walk);
    if (code == EXIT_DONE && !walk.cursor && !walk.any && !cli->json)
        say_none(pages, rows);
    if (code == EXIT_DONE && walk.cursor && !cli->json)
        fprintf(stderr, "There are more: --all, or go on with --cursor %s\n", walk.cursor);
    client_close(&walk.client);
    table_release(&walk.table);
    buffer_release(&walk.out);
    free(walk.cursor);
    return code;
}
