/*
 * params.h - values on their way to the server and back, in PostgreSQL's binary forms.
 *
 * There are two kinds, numbers of 64 bits and bytes, alone or in arrays; and places of rows, which go back as they came.
 * The server builds a table of its own from every array that is a column. So what is all numbers goes in one array, row
 * behind row ("N"), where a number may say which of another array's bytes it means; and what has many columns of both in
 * an array of a row type. Names are bytes too: they may hold anything, and PostgreSQL's text holds neither NUL nor what is
 * not UTF-8.
 */
#ifndef STORE_POSTGRES_PARAMS_H
#define STORE_POSTGRES_PARAMS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/instant.h"

#include <libpq-fe.h>

enum {
    POSTGRES_PARAMS_MAX = 29,
    POSTGRES_PLACE_BYTES = 6, /* its block, and which it is there */
    SHARED_KEPT = 8,
};

struct postgres_params {
    const char *types; /* a letter each: i number, b bytes; I, B, T columns of them and of places; N and ( as above */
    int count;
    size_t rows[POSTGRES_PARAMS_MAX]; /* elements so far */
    int column;                       /* of rows: the next, and how many there are; and where the row begins */
    int columns;
    size_t row_at;
    size_t shared_at[SHARED_KEPT]; /* of params_shared: the last ones */
    struct buffer values[POSTGRES_PARAMS_MAX];
};

/* Zeroed memory is ready for the first call. Empties it. */
void params_begin(struct postgres_params *params, const char *types);
void params_release(struct postgres_params *params);

/* The next element of an array, or the value of one that stands alone; of rows column by column. Failures stick. */
void params_int(struct postgres_params *params, int column, int64_t value);
void params_instant(struct postgres_params *params, int column, instant at); /* INSTANT_NONE: NULL */
void params_bytes(struct postgres_params *params, int column, struct slice bytes);
void params_joined(struct postgres_params *params, int column, struct slice first, struct slice second); /* of an array */
/*
 * Which element of the array it is, from 1 on: one of the last few, if it is the same, or a new one. One column a statement.
 * The server walks to an element from the first on: who adds many sends the statement before they are too many.
 */
int64_t params_shared(struct postgres_params *params, int column, struct slice bytes);
/* A row of numbers, in the array of these. */
void params_numbers(struct postgres_params *params, int column, const int64_t *numbers, size_t count);
void params_null(struct postgres_params *params, int column);

size_t params_rows(const struct postgres_params *params);
size_t params_size(const struct postgres_params *params);
/* STATUS_NO_MEMORY. Finishes the arrays; what follows is only sending. `row_type`: as the server numbers that of rows. */
enum status params_finish(struct postgres_params *params, Oid row_type) MUST_CHECK;
Oid params_type(char letter);
/* How many parameters a statement of these types takes. */
int params_count(const char *types);

/* A value of an answer; numbers of any width. NULL is 0, INSTANT_NONE, or an empty slice. */
int64_t value_int(const PGresult *answer, int row, int column);
instant value_instant(const PGresult *answer, int row, int column);
struct slice value_bytes(const PGresult *answer, int row, int column);
/* The same as a copy. STATUS_NO_MEMORY. */
enum status value_copy(const PGresult *answer, int row, int column, struct arena *memory,
                       struct slice *ret_bytes) MUST_CHECK;

#endif
