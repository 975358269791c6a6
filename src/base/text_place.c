#include "base/text_place.h"

#include <assert.h>

struct text_place text_place_of(struct text_place start, struct slice text, size_t offset)
{
    assert(offset <= text.len && start.line > 0);
    for (size_t i = 0; i < offset; i++) {
        if (text.data[i] == '\n')
            start = (struct text_place){ start.line + 1, 1 };
        else
            start.column += ((unsigned char)text.data[i] & 0xc0) != 0x80; /* a character's first byte only */
    }
    return start;
}

struct text_place text_place_within(struct text_place start, struct text_place place)
{
    assert(start.line > 0);
    if (place.line == 1)
        return (struct text_place){ start.line, start.column + place.column - 1 };
    return place.line == 0 ? place : (struct text_place){ start.line + place.line - 1, place.column };
}
