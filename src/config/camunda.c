#include "config/loading.h"

#include "config/checks.h"

#define CAMUNDA(member) offsetof(struct camunda_config, member)

static const struct choice on_terminals[] = { { "error", ON_TERMINAL_ERROR },
                                              { "incident", ON_TERMINAL_INCIDENT },
                                              { NULL, 0 } };

static const struct setting camunda_rows[] = {
    { "name", SETTING_TEXT, CAMUNDA(name), .meaning = "What it is called, in the log and as the worker's name.",
      .check = check_name },
    { "engine", SETTING_COUNT, CAMUNDA(engine), "8", "7", "8",
      .meaning = "8: jobs of the Orchestration Cluster's REST API. 7: external tasks of the engine's." },
    { "url", SETTING_URL, CAMUNDA(url),
      .meaning = "Of engine 8 without `/v2`, as `http://127.0.0.1:8080`; of engine 7 with `/engine-rest`.",
      .check = check_http_url },
    { "types", SETTING_HEADERS, CAMUNDA(types),
      .meaning = "Which types of job, or topics, as `{ analyze-retry: tiss }`, and the policy of each: a preset or a "
                 "destination." },
    { "max", SETTING_COUNT, CAMUNDA(jobs_max), "50", "1", "1000", .meaning = "How many of a type are taken at once." },
    { "timeout", SETTING_DURATION, CAMUNDA(timeout_ms), "10s", "1s", "1h",
      .meaning = "For how long a job is locked; one that is not answered by then is given out again." },
    { "on_terminal", SETTING_ENUM, CAMUNDA(on_terminal), "error",
      .meaning =
          "When nothing is to be tried again: `error` throws the BPMN error `MAX_RETRIES_EXCEEDED` or `PERMANENT_ERROR`, "
          "`incident` fails the job without retries left.",
      .choices = on_terminals },
    { "tenants", SETTING_TEXT_LIST, CAMUNDA(tenants), "",
      .meaning = "Only jobs of these tenants of Camunda's. Empty: as it sees fit." },
    { "username", SETTING_TEXT, CAMUNDA(username), .meaning = "For basic authentication.", .check = check_line },
    { "password", SETTING_TEXT, CAMUNDA(password), .meaning = "Likewise.", .check = check_line, .secret = true },
    { "token", SETTING_TEXT, CAMUNDA(token), .meaning = "For `Authorization: Bearer`.", .check = check_line,
      .secret = true },
};

static void item_check(struct settings *settings, const void *item, struct place place)
{
    const struct camunda_config *camunda = item;
    if (!camunda->name || !camunda->url || camunda->types.count == 0)
        problem_add(settings->problems, place, "an item of camunda needs name, url and types");
    if (camunda->token && camunda->username)
        problem_add(settings->problems, place, "an item of camunda has either a token or a username");
}

const struct section camunda_section = {
    .name = "camunda",
    SECTION_ROWS(camunda_rows),
    .meaning =
        "A list: each item fetches the jobs of a Camunda and answers each with the decision; see [camunda.md](camunda.md).\n"
        "\n"
        "```yaml\n"
        "camunda:\n"
        "  - { name: c8, engine: 8, url: \"http://127.0.0.1:8080\", types: { retry-submission-backoff: tiss, analyze-retry: "
        "tiss } }\n"
        "  - { name: c7, engine: 7, url: \"http://127.0.0.1:8090/engine-rest\", types: { analyze-retry: tiss } }\n"
        "```",
    .item = { "name: c8, url: http://..., types: { analyze-retry: tiss }",
              sizeof(struct camunda_config), CAMUNDA_MAX, true, item_check },
};

void camunda_finish(struct settings *settings, const struct node *root, const struct map *by_name)
{
    const struct config *config = settings->root;
    struct place place = settings_place_under(settings, root, SLICE("camunda"));
    for (size_t i = 0; i < config->camunda_count; i++)
        for (size_t j = 0; j < config->camunda[i].types.count; j++) {
            struct slice policy = slice_from(config->camunda[i].types.items[j].value), text;
            struct error unknown;
            if (!map_get(by_name, policy) && preset_text(policy, &text, &unknown) != STATUS_OK)
                problem_add(settings->problems, place,
                            "camunda %s: type %s has the policy \"%.*s\", which is neither a destination nor a "
                            "preset",
                            config->camunda[i].name ? config->camunda[i].name : "?", config->camunda[i].types.items[j].name,
                            SLICE_ARG(policy));
        }
}
