#include "core/decision/token_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/*
 * While tokens are added, the states form a trie whose children are linked lists. Finishing
 * turns it into a table of transitions over the bytes that occur in tokens; all other bytes
 * share one column, so the table stays small enough for the cache.
 */
enum { ROOT = 0, NO_STATE = 0, STATES_FIRST = 64 };

struct state {
    size_t value; /* of the token that ends here, if `ends` */
    bool ends;
    unsigned char byte;
    uint16_t first_child, sibling;
    uint16_t fail;   /* the longest proper suffix that is a state */
    uint16_t output; /* the nearest state down the fail links where a token ends; NO_STATE: none */
};

struct token_index {
    struct state *states;
    size_t count;
    size_t capacity;
    uint16_t *next;  /* [state * columns + column] */
    uint16_t *first; /* of each state the nearest where a token ends, itself or down the fail links; NO_STATE: none */
    size_t columns;
    unsigned char column[256]; /* 0: in no token */
};

enum status token_index_new(struct token_index **ret_index)
{
    struct token_index *index = calloc(1, sizeof *index);
    if (!index)
        return STATUS_NO_MEMORY;
    index->states = calloc(STATES_FIRST, sizeof *index->states);
    if (!index->states) {
        free(index);
        return STATUS_NO_MEMORY;
    }
    index->capacity = STATES_FIRST;
    index->count = 1;
    *ret_index = index;
    return STATUS_OK;
}

void token_index_free(struct token_index *index)
{
    if (!index)
        return;
    free(index->states);
    free(index->next);
    free(index->first);
    free(index);
}

static uint16_t child_find(const struct token_index *index, uint16_t parent, unsigned char byte)
{
    assert(parent < index->count);
    uint16_t child = index->states[parent].first_child;
    while (child != NO_STATE && index->states[child].byte != byte)
        child = index->states[child].sibling;
    return child;
}

static enum status child_add(struct token_index *index, uint16_t parent, unsigned char byte, uint16_t *ret_child)
{
    assert(parent < index->count && index->count <= index->capacity);
    if (index->count == TOKEN_STATES_MAX)
        return STATUS_LIMIT;
    if (index->count == index->capacity) {
        struct state *states = realloc(index->states, index->capacity * 2 * sizeof *states);
        if (!states)
            return STATUS_NO_MEMORY;
        index->states = states;
        index->capacity *= 2;
    }
    uint16_t child = (uint16_t)index->count++;
    index->states[child] = (struct state){ .byte = byte, .sibling = index->states[parent].first_child };
    index->states[parent].first_child = child;
    *ret_child = child;
    return STATUS_OK;
}

enum status token_index_add(struct token_index *index, struct slice token, size_t value, size_t *ret_value)
{
    uint16_t state = ROOT;
    assert(token.len > 0 && !index->next);
    for (size_t i = 0; i < token.len; i++) {
        unsigned char byte = (unsigned char)token.data[i];
        uint16_t child = child_find(index, state, byte);
        if (child == NO_STATE) {
            enum status status = child_add(index, state, byte, &child);
            if (status != STATUS_OK)
                return status;
        }
        state = child;
    }
    struct state *end = &index->states[state];
    if (!end->ends) {
        end->ends = true;
        end->value = value;
    }
    *ret_value = end->value;
    return STATUS_OK;
}

static void assign_columns(struct token_index *index)
{
    assert(index->count > 0);
    index->columns = 1;
    for (size_t i = 1; i < index->count; i++) {
        unsigned char byte = index->states[i].byte;
        if (index->column[byte] == 0)
            index->column[byte] = (unsigned char)index->columns++;
    }
    for (int upper = 'A'; upper <= 'Z'; upper++)
        index->column[upper] = index->column[(unsigned char)ascii_lower((char)upper)];
}

/* Fills the row of `state`: its own children, and elsewhere what its fail state does. */
static void fill_row(struct token_index *index, uint16_t state)
{
    assert(state < index->count && index->columns > 0);
    uint16_t *row = index->next + state * index->columns;
    const uint16_t *fail_row = index->next + index->states[state].fail * index->columns;
    if (state != ROOT)
        memcpy(row, fail_row, index->columns * sizeof *row);
    for (uint16_t child = index->states[state].first_child; child != NO_STATE; child = index->states[child].sibling) {
        unsigned char column = index->column[index->states[child].byte];
        uint16_t fail = state == ROOT ? ROOT : fail_row[column];
        index->states[child].fail = fail;
        index->states[child].output = index->states[fail].ends ? fail : index->states[fail].output;
        row[column] = child;
    }
}

enum status token_index_finish(struct token_index *index)
{
    assert(!index->next);
    assign_columns(index);
    index->next = calloc(index->count * index->columns, sizeof *index->next);
    index->first = calloc(index->count, sizeof *index->first);
    uint16_t *queue = calloc(index->count, sizeof *queue); /* breadth first: a fail state is filled before it is needed */
    if (!index->next || !index->first || !queue) {
        free(queue);
        return STATUS_NO_MEMORY;
    }
    size_t tail = 1;
    for (size_t head = 0; head < tail; head++) {
        uint16_t state = queue[head];
        fill_row(index, state);
        index->first[state] = index->states[state].ends ? state : index->states[state].output;
        for (uint16_t child = index->states[state].first_child; child != NO_STATE; child = index->states[child].sibling)
            queue[tail++] = child;
    }
    assert(tail == index->count);
    free(queue);
    return STATUS_OK;
}

void token_index_search(const struct token_index *index, struct slice text,
                        void (*found)(void *context, size_t value, size_t end), void *context)
{
    uint16_t state = ROOT;
    assert(index->next);
    for (size_t i = 0; i < text.len; i++) {
        state = index->next[state * index->columns + index->column[(unsigned char)text.data[i]]];
        for (uint16_t end = index->first[state]; end != NO_STATE; end = index->states[end].output)
            found(context, index->states[end].value, i + 1);
    }
}
