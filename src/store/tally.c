#include "store/tally.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { NOTES_MAX = 100 }; /* of one redrive */

static const char *const words[REDRIVE_COUNTS] = {
    [REDRIVE_COUNT_NONE] = "",
    [REDRIVE_SENT_BACK] = "redriven",
    [REDRIVE_DELIVERED] = "delivered",
    [REDRIVE_DEAD_AGAIN] = "dead_again",
    [REDRIVE_UNDONE] = "undone",
    [REDRIVE_GONE] = "gone",
};

bool tally_has_room(const struct redrive_tally *tally)
{
    assert(tally->count <= TALLY_ROWS);
    return tally->count < TALLY_ROWS;
}

void tally_note(struct redrive_tally *tally, const struct job *before, const struct job *after)
{
    enum redrive_count count = change_counted(before, after);
    if (count == REDRIVE_COUNT_NONE)
        return;
    struct slice id = redrive_id(count == REDRIVE_SENT_BACK ? after : before);
    char name[TALLY_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s.%s", SLICE_ARG(id), words[count]);
    struct tally_row *row = tally->rows;
    while (row < tally->rows + tally->count && strcmp(row->name, name) != 0)
        row++;
    assert(row < tally->rows + TALLY_ROWS);
    if (row == tally->rows + tally->count) {
        tally->count++;
        memcpy(row->name, name, sizeof name);
        row->more = 0;
    }
    row->more++;
}

/* The count of which a note of SPACE_TALLY is one part, if it is the redrive's. */
static enum redrive_count tally_count_of(struct slice name, struct slice redrive)
{
    assert(redrive.len > 0);
    if (!slice_has_prefix(name, redrive) || name.len == redrive.len || name.data[redrive.len] != '.')
        return REDRIVE_COUNT_NONE;
    struct slice word = slice_from_offset(name, redrive.len + 1);
    word.len = slice_find(word, '.'); /* a store of many writers puts which one behind it */
    size_t i = slice_index(word, words, REDRIVE_COUNTS);
    return i < REDRIVE_COUNTS ? (enum redrive_count)i : REDRIVE_COUNT_NONE;
}

enum status tally_read(struct store_reader *reader, struct slice redrive, int64_t ret_counts[REDRIVE_COUNTS],
                       struct error *err)
{
    struct arena memory = { 0 };
    struct saved *notes;
    size_t count;
    char before[TALLY_NAME_BYTES];
    int64_t number;
    assert(redrive.len > 0);
    snprintf(before, sizeof before, "%.*s/", SLICE_ARG(redrive)); /* the character behind the point */
    enum status status =
        reader->ops->reader_saved_list(reader, SPACE_TALLY, slice_from(before), NOTES_MAX, &memory, &notes, &count, err);
    if (status == STATUS_OK) {
        memset(ret_counts, 0, REDRIVE_COUNTS * sizeof *ret_counts);
        for (size_t i = 0; i < count; i++)
            if (slice_to_int64(notes[i].value, &number))
                ret_counts[tally_count_of(notes[i].name, redrive)] += number;
    }
    arena_release(&memory);
    return status;
}
