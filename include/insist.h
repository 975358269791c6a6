/*
 * insist.h - deciding what to do about a failure: the public library.
 *
 * A policy is loaded once and answers questions: which class an error belongs to, how long
 * to wait, whether to try again. The library reads no clock and draws no random numbers: the
 * time is given to it, and the spread of waits comes from a hash of seed, id and retry. Equal
 * questions have equal answers, in every process and on every machine.
 *
 * Threads: a loaded policy never changes. Any number of threads may ask it at once, without
 * locks, until one of them frees it. There is no global state.
 *
 * Memory: insist_classify, insist_backoff_range, insist_backoff_ms and insist_decide allocate
 * nothing. The functions that load, and insist_decide_json, do.
 *
 * Text: pointer and length; any bytes, not only UTF-8, and no NUL at the end is needed. NULL
 * with length 0 is the empty text.
 *
 * Structures begin with `size`: set it to sizeof the structure before the call. Later versions
 * add members at the end and go on to take the older sizes; on return `size` tells how much
 * was filled in. Zero is a sensible default of every other member of a question.
 *
 * Functions return 0 (INSIST_OK) or one of enum insist_status. Unless it says otherwise,
 * nothing is written to outputs when they fail.
 */
#ifndef INSIST_H
#define INSIST_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define INSIST_API __attribute__((visibility("default")))
#else
#define INSIST_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* All enums travel as int32_t or int, so that other languages need not know their width. */
enum insist_status {
    INSIST_OK = 0,
    INSIST_INVALID = 1,               /* an argument or the configuration is wrong */
    INSIST_NOT_FOUND = 2,             /* no preset, file or destination has that name */
    INSIST_LIMIT = 3,                 /* too large */
    INSIST_NO_MEMORY = 4,
    INSIST_IO = 5,                    /* the system refused to read */
    INSIST_INVALID_ID = 6,            /* blank, too long, or not of the form the policy asks */
    INSIST_INVALID_ERROR_MESSAGE = 7, /* blank */
    INSIST_INVALID_RETRY_COUNT = 8,   /* negative */
    INSIST_INVALID_TIME = 9           /* outside the years 1 to 9998 */
};

enum insist_outcome {
    INSIST_OUTCOME_DELIVERED = 1,
    INSIST_OUTCOME_ACCEPTED = 2,  /* taken, judged later */
    INSIST_OUTCOME_TRANSIENT = 3, /* may work later */
    INSIST_OUTCOME_THROTTLED = 4, /* too fast */
    INSIST_OUTCOME_WAIT = 5,      /* the destination is down */
    INSIST_OUTCOME_IN_DOUBT = 6,  /* sent, the answer is lost */
    INSIST_OUTCOME_DUPLICATE = 7, /* it is there already */
    INSIST_OUTCOME_PERMANENT = 8, /* will never work as it is */
    INSIST_OUTCOME_BLOCKED = 9,   /* credentials, certificate, account */
    INSIST_OUTCOME_PARTIAL = 10   /* parts were taken */
};

enum insist_action {
    INSIST_ACTION_COMPLETE = 0,  /* done */
    INSIST_ACTION_POLL = 1,      /* at next_at_ms ask how it was judged */
    INSIST_ACTION_RETRY = 2,     /* send again at next_at_ms; one retry is spent */
    INSIST_ACTION_HOLD = 3,      /* send again at next_at_ms; nothing is spent */
    INSIST_ACTION_VERIFY = 4,    /* at next_at_ms ask whether it arrived, before sending again */
    INSIST_ACTION_BLOCK = 5,     /* stop sending there until an operator has acted */
    INSIST_ACTION_SPLIT = 6,     /* treat each part by its own outcome */
    INSIST_ACTION_PERMANENT = 7, /* give up: PERMANENT_ERROR */
    INSIST_ACTION_EXHAUSTED = 8, /* give up: MAX_RETRIES_EXCEEDED */
    INSIST_ACTION_EXPIRED = 9,   /* give up: the deadline comes before the next try */
    INSIST_ACTION_PARK = 10      /* give up: it may have arrived, a person must look */
};

enum insist_priority {
    INSIST_PRIORITY_DEFAULT = 0, /* normal */
    INSIST_PRIORITY_CRITICAL = 1,
    INSIST_PRIORITY_HIGH = 2,
    INSIST_PRIORITY_NORMAL = 3
};

enum insist_flag {
    INSIST_FLAG_IN_DOUBT = 1, /* it was sent and no answer came; the rules are not asked */
    INSIST_FLAG_DOUBTED = 2   /* an earlier attempt was in doubt: a duplicate now means that it arrived */
};

#define INSIST_NO_TIME INT64_MIN

/* A loaded policy. Its content is private. */
struct insist_policy;

/* All times are milliseconds since 1970-01-01T00:00:00Z. */
struct insist_question {
    uint32_t size;
    int32_t priority; /* enum insist_priority */
    const char *id;   /* of the job; needed */
    size_t id_len;
    const char *error; /* what went wrong, in the destination's words; needed */
    size_t error_len;
    const char *code; /* "http:503", "smtp:421"; empty: looked for in the error */
    size_t code_len;
    int64_t retry_count;    /* retries scheduled so far; 0 after the first attempt */
    int64_t now_ms;         /* needed; 0 is 1970 */
    int64_t first_at_ms;    /* of the first attempt, for the policy's max_elapsed; 0: unknown */
    int64_t deadline_ms;    /* no try after it; 0: none */
    int64_t retry_after_ms; /* the wait that the destination asked for; 0: none */
    uint64_t seed;          /* spreads the waits of one installation otherwise than another's */
    uint32_t flags;         /* enum insist_flag, or-ed */
    uint32_t reserved;      /* 0 */
};

struct insist_decision {
    uint32_t size;
    int32_t action;       /* enum insist_action */
    int32_t outcome;      /* enum insist_outcome */
    int32_t known;        /* 1: a rule matched; 0: the policy's `unknown` decided */
    int32_t should_retry; /* 1: retry, hold or verify */
    int32_t reserved;
    int64_t retry_count; /* to be passed the next time */
    int64_t retries_max;
    int64_t delay_ms;   /* 0 when nothing follows */
    int64_t next_at_ms; /* INSIST_NO_TIME when nothing follows */
    const char *rule;   /* the rule that matched, as it was written; lives as long as the policy. NULL: none */
    size_t rule_len;
};

struct insist_class {
    uint32_t size;
    int32_t outcome; /* enum insist_outcome; for an unknown error what the policy makes of it */
    int32_t known;   /* 1: a rule matched */
    int32_t reserved;
    const char *label; /* "TRANSIENT", "PERMANENT" or "UNKNOWN"; never freed */
    const char *rule;  /* lives as long as the policy; NULL: none */
    size_t rule_len;
};

/* The version of the library that is running, "0.1.0". */
INSIST_API const char *insist_version(void);

/* A short English text of an enum insist_status; never NULL. */
INSIST_API const char *insist_status_text(int status);
/* "transient", "permanent"...; "none" for a number that is no outcome. */
INSIST_API const char *insist_outcome_name(int outcome);
/* "retry", "hold", "dead"...; "none" for a number that is no action. */
INSIST_API const char *insist_action_name(int action);

/*
 * The three ways to a policy. On success *ret_policy is to be freed with insist_policy_free.
 * On failure it is NULL, and `message` (may be NULL) has up to message_bytes - 1 bytes of what
 * is wrong and what to do, a line a problem, ended with a NUL.
 *
 * A built-in preset: "tiss", "email", "sifen", "provisioning".
 */
INSIST_API int insist_policy_from_preset(const char *name, struct insist_policy **ret_policy, char *message,
                                         size_t message_bytes);
/* A destination of a YAML file. `destination` NULL: the only one there is. */
INSIST_API int insist_policy_from_file(const char *path, const char *destination, struct insist_policy **ret_policy,
                                       char *message, size_t message_bytes);
/*
 * The same with the YAML in memory. A configuration may read the environment and files by
 * ${NAME} and ${file:PATH}: pass only text that you trust with that.
 */
INSIST_API int insist_policy_from_yaml(const char *yaml, size_t yaml_len, const char *destination,
                                       struct insist_policy **ret_policy, char *message, size_t message_bytes);
/* NULL is allowed. No other thread may use the policy any more. */
INSIST_API void insist_policy_free(struct insist_policy *policy);

/* The destination's or preset's name; lives as long as the policy. */
INSIST_API const char *insist_policy_name(const struct insist_policy *policy);
INSIST_API int64_t insist_policy_retries_max(const struct insist_policy *policy);

/*
 * The class of an error. `code` may be empty. INSIST_INVALID_ERROR_MESSAGE: both are blank.
 * ret_class->size must be set.
 */
INSIST_API int insist_classify(const struct insist_policy *policy, const char *code, size_t code_len, const char *error,
                               size_t error_len, struct insist_class *ret_class);

/* The shortest and the longest wait before retry `retry`, which counts from 1. */
INSIST_API int insist_backoff_range(const struct insist_policy *policy, int64_t retry, int priority,
                                    int64_t *ret_low_ms, int64_t *ret_high_ms);
/* The wait of this id before this retry: always the same one inside that range. */
INSIST_API int insist_backoff_ms(const struct insist_policy *policy, uint64_t seed, const char *id, size_t id_len,
                                 int64_t retry, int priority, int64_t *ret_wait_ms);

/* What to do now. The `size` of both structures must be set. */
INSIST_API int insist_decide(const struct insist_policy *policy, const struct insist_question *question,
                             struct insist_decision *ret_decision);

/*
 * The same as text: one JSON object in, one out, as `insist decide --batch` reads and writes.
 * `now_ms` is used when the question has no member `now`. A member `policy`, if there is one,
 * must name this policy.
 *
 * A wrong question is answered too, with {"error":...,"detail":...}, and INSIST_OK returned:
 * only INSIST_INVALID (a NULL argument), INSIST_INVALID_TIME (now_ms) and INSIST_NO_MEMORY
 * leave no answer. *ret_answer ends with a NUL that is not counted and is freed with insist_text_free.
 */
INSIST_API int insist_decide_json(const struct insist_policy *policy, const char *question, size_t question_len,
                                  int64_t now_ms, char **ret_answer, size_t *ret_answer_len);
/* NULL is allowed. */
INSIST_API void insist_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
