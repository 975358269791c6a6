/* Streams of others whose entries become jobs. */
#include "config/loading.h"

#include "config/checks.h"

#include <string.h>

#define SOURCE(member) offsetof(struct source_config, member)

static const char *check_redis(struct slice text)
{
    bool is = slice_has_prefix(text, SLICE("redis://")) || slice_has_prefix(text, SLICE("rediss://"));
    return is ? NULL : "must be redis://HOST[:PORT][/DATABASE], or rediss:// for TLS";
}

static const struct setting tls_rows[] = {
    { "ca", SETTING_PATH, SOURCE(tls.ca), .meaning = "Certificates to trust, in PEM. Without it the system's." },
    { "cert", SETTING_PATH, SOURCE(tls.cert), .meaning = "The client's certificate, in PEM." },
    { "key", SETTING_PATH, SOURCE(tls.key), .meaning = "The client's private key, in PEM." },
    { "verify", SETTING_BOOL, SOURCE(tls.verify), "true", .meaning = "Whether the server must prove who it is." },
};
static const struct section tls_section = { .name = "sources.tls", SECTION_ROWS(tls_rows) };

static const struct setting source_rows[] = {
    { "name", SETTING_TEXT, SOURCE(name),
      .meaning = "What it is called: in the log, in the ids of jobs whose entry names none, and as the consumer in the "
                 "group where `node` has no name.",
      .check = check_name },
    { "redis", SETTING_URL, SOURCE(redis), .meaning = "The server, as `redis://127.0.0.1/0`; `rediss://` with TLS.",
      .check = check_redis, .secret = true },
    { "username", SETTING_TEXT, SOURCE(username), .meaning = "For the login, where the url has none.",
      .check = check_line },
    { "password", SETTING_TEXT, SOURCE(password), .meaning = "Likewise.", .check = check_line, .secret = true },
    { "tls", SETTING_SECTION, 0, .meaning = "Certificates.", .section = &tls_section },
    { "stream", SETTING_TEXT, SOURCE(stream), .meaning = "The stream that is read.", .check = check_line },
    { "group", SETTING_TEXT, SOURCE(group), "insist",
      .meaning = "The consumer group; it is made, from the first entry on, if it is not there. One group belongs to one "
                 "store.",
      .check = check_line },
    { "destination", SETTING_TEXT, SOURCE(destination), .meaning = "Whose jobs the entries become.", .check = check_name },
    { "tenant", SETTING_TEXT, SOURCE(tenant), .meaning = "Whose they are, all of them. Without it entries may name one.",
      .check = check_line },
    { "batch", SETTING_COUNT, SOURCE(batch), "100", "1", "1000", .meaning = "How many entries are taken at once." },
    { "claim_after", SETTING_DURATION, SOURCE(claim_after_ms), "1m", "1s", "1d",
      .meaning = "What another consumer of the group has left alone for so long is taken over." },
    { "rejected", SETTING_TEXT, SOURCE(rejected),
      .meaning = "The stream that entries are moved to that can be no jobs. Without it, the stream's name and `:rejected`.",
      .check = check_line },
    { "delete", SETTING_BOOL, SOURCE(delete), "false",
      .meaning = "Delete entries when they are acknowledged. Without it whoever adds them must trim the stream." },
};

static void source_check(struct settings *settings, const void *item, struct place place)
{
    const struct source_config *source = item;
    if (!source->name || !source->redis || !source->stream || !source->destination)
        problem_add(settings->problems, place, "an item of sources needs name, redis, stream and destination");
    if (!source->tls.cert != !source->tls.key)
        problem_add(settings->problems, place, "cert and key in tls belong together; give both or none");
    if (source->rejected && source->stream && strcmp(source->rejected, source->stream) == 0)
        problem_add(settings->problems, place, "rejected must be another stream than stream");
}

const struct section sources_section = {
    .name = "sources",
    SECTION_ROWS(source_rows),
    .meaning = "A list: each item makes the entries of a Redis stream to jobs, each to one; see [sources.md](sources.md).\n"
               "\n"
               "```yaml\n"
               "sources:\n"
               "  - { name: outbox, redis: \"redis://127.0.0.1/0\", stream: \"insist:in\", group: insist, "
               "destination: mail }\n"
               "```",
    .item = { "name: outbox, redis: redis://..., stream: insist:in, destination: mail",
              sizeof(struct source_config), SOURCES_MAX, true, source_check },
};
