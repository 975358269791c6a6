#include "base/json.h"
#include "cli/offline/configuration.h"
#include "cli/offline/offline.h"
#include "cli/options.h"
#include "cli/talk/input.h"

#include <string.h>

/* S1-043, C-16: the three results of the document's function. */
static const char *document_word(const char *label)
{
    return strcmp(label, "UNKNOWN") == 0 ? "UNKNOWN_TRANSIENT" : label;
}

static void append_result(const struct cli *cli, const struct policy *policy, struct evidence evidence, bool documents,
                          struct buffer *out)
{
    struct classification found = classify(policy->classifier, evidence);
    bool known = found.outcome != OUTCOME_NONE;
    enum outcome outcome = known ? found.outcome : policy->unknown;
    const char *label = outcome_label(outcome, known);
    if (documents && !cli->json) {
        buffer_printf(out, "%s\n", document_word(label));
        return;
    }
    if (documents)
        label = document_word(label);
    if (!cli->json) {
        buffer_printf(out, "class  %s\nlabel  %s\nrule   ", outcome_name(outcome), label);
        buffer_append(out, known ? found.rule : SLICE("none matched"));
        buffer_append_byte(out, '\n');
        return;
    }
    struct json_writer json = json_begin(out);
    json_member_text(&json, "class", outcome_name(outcome));
    json_member_text(&json, "label", label);
    if (known)
        json_member_string(&json, "rule", found.rule);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

static int classify_text(const struct cli *cli, struct policy_set *policies, const char *policy_name, const char *code_text,
                         struct slice text, bool documents)
{
    const struct policy *policy;
    int code = policies_find(policies, "classify", policy_name, &policy);
    if (code != EXIT_DONE)
        return code;
    if (slice_is_blank(text) && !code_text)
        return cli_usage("classify", "INVALID_ERROR_MESSAGE: the text is missing or blank");
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    append_result(cli, policy, (struct evidence){ slice_from(code_text), text }, documents, &out);
    return cli_print(&out, EXIT_DONE);
}

int command_classify(struct cli *cli)
{
    const char *policy_name = NULL, *config = NULL, *code_text = NULL;
    bool documents = false;
    const struct option_row rows[] = {
        { "documents", '\0', .flag = &documents },
        { "policy", 'p', .value = &policy_name },
        { "config", 'c', .value = &config },
        { "code", '\0', .value = &code_text },
        { 0 },
    };
    struct policy_set policies;
    if (!command_options(cli, rows, 1))
        return cli->code;
    int code = policies_open(config, &policies);
    if (code != EXIT_DONE)
        return code;
    struct buffer input = buffer_up_to(CLI_STDIN_BYTES_MAX * 2);
    struct slice text = slice_from(cli->arguments.count > 0 ? cli->arguments.items[0] : NULL);
    if (slice_equal(text, SLICE("-"))) {
        code = input_read("-", CLI_STDIN_BYTES_MAX, &input);
        text = buffer_slice(&input);
    }
    if (code == EXIT_DONE)
        code = classify_text(cli, &policies, policy_name, code_text, text, documents);
    buffer_release(&input);
    policy_set_release(&policies);
    return code;
}
