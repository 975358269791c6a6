#include "config/checks.h"
#include "config/loading.h"

#define AT(member) offsetof(struct config, member)

static const struct choice durabilities[] = {
    { "always", DURABILITY_ALWAYS }, { "everysec", DURABILITY_EVERYSEC }, { NULL, 0 },
};

static const struct setting limits_rows[] = {
    { "payload", SETTING_SIZE, AT(payload_bytes_max), "1MB", "1KB", "64MB", .meaning = "The largest payload of a job." },
    { "pending", SETTING_COUNT, AT(pending_max), "10000000", "1", "1000000000", .meaning = "Jobs not done yet; more are refused with 429." },
    { "pending_per_tenant", SETTING_COUNT, AT(pending_per_tenant), "0", "0", "1000000000",
      .meaning = "The same of one tenant, so that none takes the others' room. 0: all of them while one tenant is known, "
                 "else half." },
    { "disk_free", SETTING_SIZE, AT(disk_free_bytes), "256MB", "0", "1024TB", .meaning = "With less free disk no job is taken." },
    { "connections", SETTING_COUNT, AT(connections_max), "1024", "1", "100000",
      .meaning = "Connections of clients at the same time. When all are open, the one that has been longest without "
                 "completing a request is closed for the next. Never more than half of the process's open files." },
    { "connections_per_address", SETTING_COUNT, AT(connections_per_address), "0", "0", "100000",
      .meaning = "Of these from one address, or one network /64 of IPv6. 0: no limit. Loopback has none." },
    { "streams", SETTING_COUNT, AT(streams_max), "64", "1", "10000", .meaning = "Clients that follow the events at the same time." },
    { "streams_per_token", SETTING_COUNT, AT(streams_per_token), "8", "1", "10000", .meaning = "Of these with one token." },
    { "body_budget", SETTING_SIZE, AT(body_budget_bytes), "128MB", "1MB", "1024GB",
      .meaning = "Memory for requests that are not complete and answers that are not read, of all clients; as much again "
                 "for answers on their way from other nodes. Who does not fit waits; who does not go on is cut off." },
};
static const struct section limits_section = { .name = "limits", SECTION_ROWS(limits_rows) };

static const struct setting retention_rows[] = {
    { "completed", SETTING_DURATION, AT(retention_completed_ms), "24h", "0s", "36500d", .meaning = "How long completed jobs are kept." },
    { "audit", SETTING_DURATION, AT(retention_audit_ms), "1827d", "0s", "36500d",
      .meaning = "How long the audit trail is kept: five years with their leap days. 0s: for ever." },
    { "undo", SETTING_DURATION, AT(retention_undo_ms), "7d", "0s", "36500d",
      .meaning = "How long the payloads that a redrive corrected are kept as they were, from its beginning, so that it "
                 "can be undone. 0s: for ever." },
};
static const struct section retention_section = { .name = "retention", SECTION_ROWS(retention_rows) };

static const struct setting auth_rows[] = {
    { "tokens_file", SETTING_PATH, AT(tokens_file),
      .meaning = "The file with the tokens that clients must send. Required when listening beyond loopback.",
      .filled = true },
};
static const struct section auth_section = { .name = "auth", SECTION_ROWS(auth_rows) };

static const struct setting audit_rows[] = {
    { "key", SETTING_TEXT, AT(audit_key),
      .meaning = "A secret outside the store, as `${file:/path}`: the trail's hashes are made with it, so that who has the "
                 "store alone cannot write a trail that holds. It is never changed.",
      .secret = true, .filled = true },
};
static const struct section audit_section = { .name = "audit", SECTION_ROWS(audit_rows) };

static const struct setting node_rows[] = {
    { "name", SETTING_TEXT, AT(node.name),
      .meaning = "What this node is called among those that share a store on PostgreSQL. Without one a daemon has the store "
                 "for itself.", .check = check_name, .filled = true },
    { "url", SETTING_TEXT, AT(node.url),
      .meaning = "Where the other nodes reach this one, as `http://10.0.0.1:7878`; without it, as it listens." },
    { "token", SETTING_TEXT, AT(node.token),
      .meaning = "A secret that all nodes share, as `${file:/path}`: they pass calls on to each other with it.",
      .secret = true, .filled = true },
};
static const struct section node_section = { .name = "node", SECTION_ROWS(node_rows) };

static const struct setting file_rows[] = {
    { "listen", SETTING_ADDRESS, AT(listen), "127.0.0.1:7878", .meaning = "Where the HTTP interface listens." },
    { "store", SETTING_TEXT, AT(store), "sqlite:data/insist.db",
      .meaning = "Where jobs are kept: `sqlite:PATH`, `postgres://USER@HOST/DATABASE` or `memory`.", .check = check_store,
      .secret = true, .filled = true },
    { "durability", SETTING_ENUM, AT(durability), "always",
      .meaning = "`always`: synced to disk before the answer. `everysec`: once a second; a crash can lose the last second.",
      .choices = durabilities },
    { "hosts", SETTING_TEXT_LIST, AT(hosts),
      .meaning = "Names by which clients may call, as `[insist.example.org]`, besides addresses and localhost. Any other "
                 "may be somebody's who lets it point here." },
    { "limits", SETTING_SECTION, 0, .meaning = "What is refused.", .section = &limits_section },
    { "retention", SETTING_SECTION, 0, .meaning = "What is kept.", .section = &retention_section },
    { "auth", SETTING_SECTION, 0, .meaning = "Who may call.", .section = &auth_section },
    { "audit", SETTING_SECTION, 0, .meaning = "The trail of events.", .section = &audit_section },
    { "node", SETTING_SECTION, 0, .meaning = "One of several daemons that share a store.", .section = &node_section },
    { "notify", SETTING_ITEMS, AT(notify), .count_at = AT(notify_count), .meaning = "Who is told about alerts.",
      .section = &notify_section },
    { "reports", SETTING_ITEMS, AT(reports), .count_at = AT(report_count),
      .meaning = "Daily and weekly reports that are sent.", .section = &reports_section },
    { "events", SETTING_ITEMS, AT(events), .count_at = AT(event_count), .meaning = "Events as jobs of a destination.",
      .section = &events_section },
    { "callbacks", SETTING_SECTION, 0, .meaning = "Who may be told of the end of jobs.", .section = &callbacks_section },
    { "sources", SETTING_ITEMS, AT(sources), .count_at = AT(source_count),
      .meaning = "Streams of Redis whose entries become jobs.", .section = &sources_section },
    { "camunda", SETTING_ITEMS, AT(camunda), .count_at = AT(camunda_count),
      .meaning = "Camundas whose processes ask for decisions.", .section = &camunda_section },
    { "tiers", SETTING_SPECIAL, AT(tiers),
      .meaning =
          "Tenants in tiers, as `{ gold: [acme, globex] }`. A destination gives a tier its weight in fairness.weights.",
      .special = tiers_apply },
    { "destinations", SETTING_SPECIAL, AT(destinations), .meaning = "Where jobs go, by name.",
      .section = &destination_section, .special = destinations_apply },
};

const struct section file_section = { .name = "", SECTION_ROWS(file_rows) };
