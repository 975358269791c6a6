#include "store/postgres/params.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

/* Types as PostgreSQL numbers them, for ever. */
enum { OID_BYTEA = 17, OID_INT8 = 20, OID_TID = 27, OID_BYTEA_ARRAY = 1001, OID_TID_ARRAY = 1010, OID_INT8_ARRAY = 1016 };

enum {
    ARRAY_HEADER_BYTES = 20,     /* dimensions, flags, type, length, first index */
    CAPACITY_KEPT_MAX = 1 << 20, /* a buffer that one large batch has made larger is let go */
};

static bool is_rows(const struct postgres_params *params)
{
    return params->types[0] == '(';
}

static bool is_array(const struct postgres_params *params, int column)
{
    assert(column >= 0 && column < params->count);
    return strchr("NIBT(", params->types[column]) != NULL;
}

Oid params_type(char letter)
{
    switch (letter) {
    case 'i':
        return OID_INT8;
    case 'b':
        return OID_BYTEA;
    case 'N':
    case 'I':
        return OID_INT8_ARRAY;
    case 'T':
        return OID_TID_ARRAY;
    case '(':
        return InvalidOid; /* the statement says which rows it takes */
    default:
        assert(letter == 'B');
        return OID_BYTEA_ARRAY;
    }
}

int params_count(const char *types)
{
    return types[0] == '(' ? 1 : (int)strlen(types);
}

static void append_int32(struct buffer *buffer, int32_t value)
{
    uint32_t word = htobe32((uint32_t)value);
    buffer_append(buffer, (struct slice){ (const char *)&word, sizeof word });
}

static void array_begin(struct buffer *buffer, char type)
{
    append_int32(buffer, 1);
    append_int32(buffer, 0);
    /* That of rows is set by params_finish, as the number of elements. */
    append_int32(buffer, type == 'I' || type == 'N' ? OID_INT8 : type == 'T' ? OID_TID : OID_BYTEA);
    append_int32(buffer, 0);
    append_int32(buffer, 1);
}

void params_begin(struct postgres_params *params, const char *types)
{
    params->types = types;
    params->count = params_count(types);
    params->columns = is_rows(params) ? (int)strlen(types + 1) : 0;
    params->column = 0;
    assert(params->count <= POSTGRES_PARAMS_MAX);
    for (int i = 0; i < params->count; i++) {
        struct buffer *buffer = &params->values[i];
        if (buffer->limit == 0)
            buffer_init(buffer, SIZE_MAX / 4);
        if (buffer->capacity > CAPACITY_KEPT_MAX)
            buffer_release(buffer);
        buffer_clear(buffer);
        params->rows[i] = 0;
        if (is_array(params, i))
            array_begin(buffer, types[i]);
    }
}

void params_release(struct postgres_params *params)
{
    for (int i = 0; i < POSTGRES_PARAMS_MAX; i++)
        buffer_release(&params->values[i]);
}

/* The length of a row goes before it, and is known when its last column is there. */
static void append_column(struct postgres_params *params, int column, int32_t len, struct slice bytes)
{
    struct buffer *buffer = &params->values[0];
    assert(column == params->column && column < params->columns);
    if (column == 0) {
        params->row_at = buffer->len;
        append_int32(buffer, 0);
        append_int32(buffer, params->columns);
    }
    const uint32_t head[2] = { htobe32(params->types[1 + column] == 'I' ? OID_INT8 : OID_BYTEA), htobe32((uint32_t)len) };
    buffer_append(buffer, (struct slice){ (const char *)head, sizeof head });
    if (bytes.len > 0)
        buffer_append(buffer, bytes);
    params->column = column + 1;
    if (params->column < params->columns || buffer_status(buffer) != STATUS_OK)
        return;
    uint32_t row_len = htobe32((uint32_t)(buffer->len - params->row_at - sizeof row_len));
    memcpy(buffer->data + params->row_at, &row_len, sizeof row_len);
    params->rows[0]++;
    params->column = 0;
}

static void append_element(struct postgres_params *params, int column, int32_t len, struct slice bytes)
{
    if (is_rows(params)) {
        append_column(params, column, len, bytes);
        return;
    }
    struct buffer *buffer = &params->values[column];
    params->rows[column]++;
    if (is_array(params, column))
        append_int32(buffer, len);
    if (bytes.len > 0)
        buffer_append(buffer, bytes);
}

void params_int(struct postgres_params *params, int column, int64_t value)
{
    uint64_t word = htobe64((uint64_t)value);
    append_element(params, column, sizeof word, (struct slice){ (const char *)&word, sizeof word });
}

/* As append_element has written it; an empty one if there was no memory for that, which is found when it is sent. */
static struct slice element_at(const struct buffer *buffer, size_t at)
{
    uint32_t len = 0;
    if (buffer_status(buffer) != STATUS_OK)
        return SLICE("");
    assert(at + sizeof len <= buffer->len);
    memcpy(&len, buffer->data + at, sizeof len);
    return (struct slice){ buffer->data + at + sizeof len, be32toh(len) };
}

int64_t params_shared(struct postgres_params *params, int column, struct slice bytes)
{
    assert(params->types[column] == 'B' && !is_rows(params));
    const size_t rows = params->rows[column];
    for (size_t row = rows; row > 0 && row + SHARED_KEPT > rows; row--)
        if (slice_equal(element_at(&params->values[column], params->shared_at[row % SHARED_KEPT]), bytes))
            return (int64_t)row;
    params->shared_at[(rows + 1) % SHARED_KEPT] = params->values[column].len;
    params_bytes(params, column, bytes);
    return (int64_t)rows + 1;
}

void params_numbers(struct postgres_params *params, int column, const int64_t *numbers, size_t count)
{
    assert(params->types[column] == 'N');
    for (size_t i = 0; i < count; i++)
        params_int(params, column, numbers[i]);
}

void params_instant(struct postgres_params *params, int column, instant at)
{
    if (at == INSTANT_NONE)
        params_null(params, column);
    else
        params_int(params, column, at);
}

void params_bytes(struct postgres_params *params, int column, struct slice bytes)
{
    assert(bytes.len <= INT32_MAX);
    append_element(params, column, (int32_t)bytes.len, bytes);
}

void params_joined(struct postgres_params *params, int column, struct slice first, struct slice second)
{
    assert(params->types[column] == 'B' && first.len + second.len <= INT32_MAX);
    append_element(params, column, (int32_t)(first.len + second.len), first);
    buffer_append(&params->values[column], second);
}

void params_null(struct postgres_params *params, int column)
{
    assert(is_rows(params) || is_array(params, column));
    append_element(params, column, -1, SLICE(""));
}

size_t params_rows(const struct postgres_params *params)
{
    return params->count > 0 ? params->rows[0] : 0;
}

size_t params_size(const struct postgres_params *params)
{
    size_t size = 0;
    for (int i = 0; i < params->count; i++)
        size += params->values[i].len;
    return size;
}

enum status params_finish(struct postgres_params *params, Oid row_type)
{
    uint32_t of_rows = htobe32(row_type);
    for (int i = 0; i < params->count; i++) {
        struct buffer *buffer = &params->values[i];
        if (buffer_status(buffer) != STATUS_OK)
            return STATUS_NO_MEMORY;
        if (!buffer->data && !buffer_reserve(buffer, 1)) /* libpq takes no pointer for NULL */
            return STATUS_NO_MEMORY;
        assert(!is_array(params, i) || params->types[0] == 'N' || params->rows[i] == params->rows[0]);
        uint32_t rows = htobe32((uint32_t)params->rows[i]);
        if (is_array(params, i))
            memcpy(buffer->data + ARRAY_HEADER_BYTES - 8, &rows, sizeof rows);
    }
    assert(params->column == 0);
    if (is_rows(params))
        memcpy(params->values[0].data + ARRAY_HEADER_BYTES - 12, &of_rows, sizeof of_rows);
    return STATUS_OK;
}

int64_t value_int(const PGresult *answer, int row, int column)
{
    const unsigned char *bytes = (const unsigned char *)PQgetvalue(answer, row, column);
    int len = PQgetlength(answer, row, column);
    uint64_t value = len > 0 && bytes[0] & 0x80 && len > 1 ? UINT64_MAX : 0;
    for (int i = 0; i < len && len <= 8; i++)
        value = value << 8 | bytes[i];
    return (int64_t)value;
}

instant value_instant(const PGresult *answer, int row, int column)
{
    return PQgetisnull(answer, row, column) ? INSTANT_NONE : value_int(answer, row, column);
}

struct slice value_bytes(const PGresult *answer, int row, int column)
{
    return (struct slice){ PQgetvalue(answer, row, column), (size_t)PQgetlength(answer, row, column) };
}

enum status value_copy(const PGresult *answer, int row, int column, struct arena *memory, struct slice *ret_bytes)
{
    struct slice copy = arena_copy(memory, value_bytes(answer, row, column));
    if (!copy.data)
        return STATUS_NO_MEMORY;
    *ret_bytes = copy;
    return STATUS_OK;
}
