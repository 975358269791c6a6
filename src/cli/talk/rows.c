#include "cli/talk/rows.h"

#include <stdlib.h>
#include <string.h>

static int read_page(struct client *client, const struct rows_wish *wish, const char *cursor, json_t **ret_page)
{
    struct url url = url_to(wish->path);
    url_query(&url, wish->name ? wish->name : "", wish->value);
    url_number(&url, "limit", CLIENT_PAGE_MAX);
    url_query(&url, "cursor", cursor);
    return client_json(client, &(struct request){ .method = "GET", .url = &url }, ret_page);
}

int rows_each(struct client *client, const struct rows_wish *wish, void (*visit)(void *context, json_t *row), void *context,
              bool *ret_more)
{
    char *cursor = NULL;
    int64_t count = 0;
    int code = EXIT_DONE;
    bool more = true;
    while (code == EXIT_DONE && more && count < wish->max) {
        json_t *page = NULL;
        code = read_page(client, wish, cursor, &page);
        const json_t *rows = json_object_get(page, wish->member), *next = json_object_get(page, "next");
        size_t taken = 0;
        for (; taken < json_array_size(rows) && count < wish->max; taken++, count++)
            visit(context, json_array_get(rows, taken));
        free(cursor);
        cursor = json_is_string(next) ? strdup(json_string_value(next)) : NULL;
        more = cursor != NULL || taken < json_array_size(rows);
        json_decref(page);
    }
    free(cursor);
    *ret_more = more;
    return code;
}
