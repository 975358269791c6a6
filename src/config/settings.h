/*
 * settings.h - every setting is one row of a table.
 *
 * A row says name, kind, where the value goes, default, bounds and meaning. Applying a
 * mapping, giving defaults and printing the reference all read the same rows. Sections nest:
 * a row of kind SETTING_SECTION names another table.
 */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include "config/config.h"
#include "config/document.h"

enum setting_kind {
    SETTING_BOOL,       /* bool */
    SETTING_COUNT,      /* int64_t */
    SETTING_REAL,       /* double */
    SETTING_DURATION,   /* int64_t, milliseconds */
    SETTING_SIZE,       /* int64_t, bytes */
    SETTING_RATE,       /* struct rate */
    SETTING_TEXT,       /* const char *; empty text is the default, or NULL */
    SETTING_PATH,       /* const char *, taken from the folder of the file it stands in */
    SETTING_URL,        /* const char * */
    SETTING_ENUM,       /* an enum, as int */
    SETTING_ADDRESS,    /* struct listen_address */
    SETTING_TEXT_LIST,  /* struct text_list */
    SETTING_COUNT_LIST, /* struct count_list */
    SETTING_RULES,      /* struct rule_list */
    SETTING_HEADERS,    /* struct pair_list; names in any case are the same */
    SETTING_WEIGHTS,    /* struct pair_list of whole numbers */
    SETTING_WORDS,      /* const char *[STATE_COUNT] */
    SETTING_SECTION,    /* the section's own rows, from this row's offset on */
    SETTING_ITEMS,      /* a list of mappings, each by the section's rows: an array and, at `count_at`, their number */
    SETTING_SPECIAL,    /* the row's own function reads it */
    SETTING_KIND_COUNT
};

struct choice {
    const char *name; /* NULL ends */
    int value;
};

/* A rule of an error list, and where it was written. */
struct rule_item {
    struct slice token;
    struct place place;
};

struct rule_list {
    struct rule_item *items;
    size_t count;
};

struct settings;
struct section;

struct setting {
    const char *name;
    enum setting_kind kind;
    size_t offset;
    const char *fallback;  /* the default as it would be written; NULL: none */
    const char *min, *max; /* as written; NULL: no bound. Of a list's numbers too */
    const char *meaning;
    const struct choice *choices;  /* of SETTING_ENUM */
    const struct section *section; /* of SETTING_SECTION and SETTING_ITEMS; of SETTING_SPECIAL for the reference */
    /* NULL, or what is wrong with a text or a list's item: "must be ...". */
    const char *(*check)(struct slice text);
    void (*special)(struct settings *settings, const struct node *node, void *field); /* of SETTING_SPECIAL */
    bool secret;                                                                      /* its value is never shown */
    bool filled; /* a text that may not be empty: without it another store, or nobody's token, would be meant */
    size_t count_at;                                                                  /* of SETTING_ITEMS */
};

struct section {
    const char *name; /* "retry", "dead.auto_redrive"; empty: the file itself */
    const struct setting *rows;
    size_t count;
    const char *meaning; /* an introduction in the reference; NULL: none */
    const char *alone;   /* a single value in place of the mapping is the one of this row; NULL: it must be a mapping */
    const char *same_as; /* a section with the same rows, which the reference shows instead; NULL: none */
    /* The rest may be NULL: `given` is the switch that being there turns on, `after` looks at the whole of one mapping. */
    bool *(*given)(void *base);
    void (*after)(struct settings *settings, const struct node *node, void *base);
    struct {
        const char *example; /* what one looks like */
        size_t size, max;
        bool named; /* it begins with its name, a text that no two may have */
        void (*check)(struct settings *settings, const void *item, struct place place); /* one that was read */
    } item; /* of SETTING_ITEMS */
};

#define SECTION_ROWS(table) .rows = (table), .count = sizeof(table) / sizeof *(table)

/* Where a value was written, by its offset in the whole. The newest is first. */
struct placed {
    size_t offset;
    struct place place;
    bool private; /* it came from a reference */
    const struct placed *next;
};

/* One file being applied to one thing. */
struct settings {
    struct arena *memory;  /* of what outlives the parsing */
    struct arena *scratch; /* of what does not */
    struct problems *problems;
    const char *file;
    struct slice folder;          /* of the file, with its slash; may be empty */
    const char *subject;          /* which thing, in messages: "destination \"claims\""; NULL: the file itself */
    void *root;                   /* the whole: a struct config or a struct destination_draft */
    const struct placed **placed; /* NULL: places are not recorded */
    bool failed;                  /* memory is out; everything from then on is ignored */
    void *context;                /* for SETTING_SPECIAL */
};

/* Gives every row of the section, and of those in it, its default. `base` is zeroed. */
void settings_default(struct settings *settings, const struct section *section, void *base);
/* Puts a mapping's values in place; each thing that is wrong is a problem. */
void settings_apply(struct settings *settings, const struct section *section, const struct node *mapping, void *base);

/* Nothing more is worth reading: memory is out, or more problems were found than are reported. */
bool settings_over(const struct settings *settings);

struct place settings_place(const struct settings *settings, const struct node *node);
/* Of what the file's mapping `root` has under that name; without it the file itself. */
struct place settings_place_under(const struct settings *settings, const struct node *root, struct slice name);
/* Where the value at `field` was written in this very file, or `otherwise`. */
struct place settings_place_of(const struct settings *settings, const void *field, struct place otherwise);
/* Whether the value at `field` came from a reference, so that it may not be shown. */
bool settings_private(const struct settings *settings, const void *field);
/* A terminated copy; "" when memory is out, which is remembered. */
const char *settings_copy(struct settings *settings, struct slice text);
/* Zeroed, in `memory`; NULL when it is out, which is remembered. */
void *settings_alloc(struct settings *settings, size_t count, size_t size);

/* Reads one scalar, or one default, into `field`. False: `ret_why` says what would be right. */
struct value_problem {
    char text[320];
};
bool value_read(struct settings *settings, const struct setting *row, struct slice text, bool show, void *field,
                struct value_problem *ret_why);
/* "a duration such as 30s": what a value of the kind looks like. */
void kind_describe(const struct setting *row, struct buffer *out);
/* Gives the word of the reference's column. */
const char *kind_name(enum setting_kind kind);

#endif
