/*
 * events.h - events in pages, as the table event_page has them: a row for up to some seventy that a batch wrote one behind
 * the other, so that an event costs the server its bytes and little else. This is their SQL; event_append is in work.h.
 *
 * A page says once what is the same for all: the time, the form, and the destination of those that have no lane. The rest is
 * an array, or bytes of one length end to end. Data has its salt in front. A page is found by its last number, which has
 * its chain above 40 bits.
 */
#ifndef STORE_POSTGRES_EVENTS_H
#define STORE_POSTGRES_EVENTS_H

/* What WRITE_EVENTS takes: a value an event, a value for all, and values of one length end to end. */
enum page_column {
    PAGE_LANES,
    PAGE_ATTEMPTS,
    PAGE_PREVIOUS,
    PAGE_JOBS,
    PAGE_DATA,
    PAGE_FIRST,
    PAGE_AT,
    PAGE_FORM,
    PAGE_DESTINATION,
    PAGE_TYPES,
    PAGE_STATES,
    PAGE_HASHES,
};

/*
 * A page with what is asked of all of it: whether its parts are of one length. What somebody has damaged has events of no
 * type, which every reader refuses.
 */
#define PAGE_OF_EVENTS                                                                                                      \
    "*, last - first + 1 = ALL (ARRAY[octet_length(types), octet_length(states), cardinality(lanes),"                       \
    " cardinality(attempts), cardinality(previous), cardinality(jobs), cardinality(data),"                                  \
    " coalesce(cardinality(digests), cardinality(jobs))]) AND octet_length(hashes) = (last - first + 1) * 32 AS whole"
/* One event, the i-th of the page p; the one of a number; and so many behind it, page after page in their order. */
#define EVENT_OF_PAGE                                                                                                       \
    "(p.last >> 40)::int AS chain, p.first + i - 1 AS number, p.at, nullif(p.lanes[i], 0) AS lane,"                         \
    " CASE WHEN p.whole AND num_nulls(p.lanes[i], p.attempts[i], p.previous[i], p.jobs[i], p.data[i]) = 0"                  \
    " THEN get_byte(p.types, i - 1) END AS type,"                                                                           \
    " CASE WHEN p.whole THEN get_byte(p.states, i - 1) END AS state, p.attempts[i] AS attempt,"                             \
    " p.previous[i] AS previous, p.form, substring(p.hashes FROM i * 32 - 31 FOR 32) AS hash,"                              \
    " CASE WHEN p.form > 0 THEN nullif(substring(p.data[i] FROM 1 FOR 16), '') END AS salt, p.digests[i] AS digest,"        \
    " p.destination, p.jobs[i] AS job, CASE WHEN p.form > 0 THEN substring(p.data[i] FROM 17) ELSE p.data[i] END AS data"
/* A place in a page. Where that is damaged, or of the next chain, it would be more than 32 bits hold. */
#define IN_PAGE(PLACE) "least(greatest(" PLACE ", 0), 1 << 20)::int"
#define EVENT_OF_NUMBER(NUMBER)                                                                                             \
    "(SELECT " EVENT_OF_PAGE " FROM (SELECT " PAGE_OF_EVENTS ", " IN_PAGE(NUMBER " - first + 1") " AS i"                    \
    " FROM event_page WHERE last >= " NUMBER " ORDER BY last LIMIT 1) p WHERE p.i > 0)"
#define EVENT_AT(NUMBER) " CROSS JOIN LATERAL " EVENT_OF_NUMBER(NUMBER) " v"
#define EVENTS_AFTER(NUMBER, MAX)                                                                                           \
    "SELECT " EVENT_OF_PAGE " FROM (SELECT " PAGE_OF_EVENTS " FROM event_page WHERE last > " NUMBER                         \
    " ORDER BY last LIMIT " MAX ") p CROSS JOIN LATERAL generate_series(greatest(1, " IN_PAGE(NUMBER " - p.first + 2") ")," \
    " " IN_PAGE("p.last - p.first + 1") ") i LIMIT " MAX

#endif
