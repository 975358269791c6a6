/*
 * trail_place.h - a place in the trail, of one chain or of many, as text that a client keeps and gives back.
 *
 * "4711" is behind that event of the first chain; "1.4711-2.815" names one a chain. A chain that is not named begins with
 * its first event. Within a chain events come in their order; across chains by their time, each of them once, and
 * those of one job never before what they follow.
 */
#ifndef STORE_TRAIL_PLACE_H
#define STORE_TRAIL_PLACE_H

#include "store/trail.h"

enum { PLACE_BYTES = TRAIL_CHAINS_MAX * EVENT_ID_BYTES };

/* The numbers of the last events that were looked at, in the order of their chains. */
struct trail_place {
    size_t count;
    int64_t last[TRAIL_CHAINS_MAX];
};

/* False: it is no place. An empty text is the beginning of all. */
bool trail_place_parse(struct slice text, struct trail_place *ret_place) MUST_CHECK;
void trail_place_format(const struct trail_place *place, char ret_text[PLACE_BYTES]);
/* The last event of that one's chain. */
int64_t trail_place_last(const struct trail_place *place, int64_t number);
/* It is behind that event now. */
void trail_place_advance(struct trail_place *place, int64_t number);

/*
 * The number of the newest event of a store's only chain, not less than `low`: they have no gaps, so few looks find it among
 * any number.
 */
enum status events_newest(struct store_reader *reader, int64_t low, int64_t *ret_newest, struct error *err) MUST_CHECK;

/* Behind all events. `low`: not before that one of a store's only chain. */
enum status trail_place_end(struct store_reader *reader, int64_t low, struct trail_place *ret_place,
                            struct error *err) MUST_CHECK;
/* Moves it forward to at most `newest` events before the end of each chain; *ret_skipped were left out. */
enum status trail_place_skip(struct store_reader *reader, struct trail_place *place, int64_t newest, int64_t *ret_skipped,
                       struct error *err) MUST_CHECK;
/* The events behind it, oldest first. */
enum status trail_place_read(struct store_reader *reader, const struct trail_place *place, size_t max, struct arena *memory,
                       struct event **ret_events, size_t *ret_count, struct error *err) MUST_CHECK;

#endif
