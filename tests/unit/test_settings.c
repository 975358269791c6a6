/* Every setting by itself: each kind of problem with its exact words and place, the edges that are allowed, the defaults. */
#include "config/checks.h"
#include "support/configs.h"

#include <stdlib.h>

/* All the problems of a text, as they are printed for a file called "f". */
#define D2(url) "destinations: { x: { url: '" url "' } }"
#define NEEDS_URL "f:1:17: destination \"x\" needs a url, or transport: pull, exec or ses\n"
static const struct {
    const char *text, *problems;
} problem_cases[] = {
    /* names */
    { "retrys: 1\n", "f:1:1: unknown setting \"retrys\"\n" },
    { "durabilty: always\n", "f:1:1: unknown setting \"durabilty\"; did you mean \"durability\"?\n" },
    { D "    retry: { max_retrys: 3 }\n",
      "f:4:14: unknown setting \"max_retrys\" in retry; did you mean \"max_retries\"?\n" },
    { D "    tiemout: 3s\n", "f:4:5: unknown setting \"tiemout\" in destination \"x\"; did you mean \"timeout\"?\n" },
    { D "    dead: { auto_redrive: { affter: 1h } }\n",
      "f:4:29: unknown setting \"affter\" in dead.auto_redrive; did you mean \"after\"?\n" },
    { D "    \"a\\nb\": 1\n", "f:4:5: unknown setting \"a?b\" in destination \"x\"\n" },
    { D "    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: 1\n",
      "f:4:5: unknown setting \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\" in destination "
      "\"x\"\n" },
    { D "    Url: x\n", "f:4:5: unknown setting \"Url\" in destination \"x\"; did you mean \"url\"?\n" },
    /* kinds */
    { D "    timeout: soon\n", "f:4:14: timeout is \"soon\"; write a duration such as 250ms, 30s, 5m, 2h or 7d\n" },
    { D "    timeout: 30\n", "f:4:14: timeout is \"30\"; write a duration such as 250ms, 30s, 5m, 2h or 7d\n" },
    { D "    timeout: [30s]\n", "f:4:14: timeout must be a duration such as 250ms, 30s, 5m, 2h or 7d, not a list\n" },
    { D "    timeout: { a: b }\n", "f:4:14: timeout must be a duration such as 250ms, 30s, 5m, 2h or 7d, not a mapping\n" },
    { D "    timeout:\n",
      "f:4:13: timeout has no value; write a duration such as 250ms, 30s, 5m, 2h or 7d, or remove the line\n" },
    { D "    concurrency: ten\n", "f:4:18: concurrency is \"ten\"; write a whole number such as 5\n" },
    { D "    concurrency: 0\n", "f:4:18: concurrency is \"0\"; allowed is 1 to 10000, for example 10\n" },
    { D "    concurrency:\n", "f:4:17: concurrency has no value; write a whole number such as 5, or remove the line\n" },
    { D "    concurrency: { max: 0 }\n", "f:4:25: max is \"0\"; allowed is 1 to 10000, for example 10\n" },
    { D "    concurrency: { adaptiv: true }\n",
      "f:4:20: unknown setting \"adaptiv\" in concurrency; did you mean \"adaptive\"?\n" },
    { D "    concurrency: [5]\n", "f:4:18: concurrency must be settings such as { name: value }, not a list\n" },
    { D "    rate: { total: 5/m, burst: -1 }\n", "f:4:32: burst is \"-1\"; allowed is 0 to 1000000, for example 0\n" },
    { D "    concurrency: 1.5\n", "f:4:18: concurrency is \"1.5\"; write a whole number such as 5\n" },
    { D "    allow_private: yes\n", "f:4:20: allow_private is \"yes\"; write true or false\n" },
    { D "    response_max: 1XB\n", "f:4:19: response_max is \"1XB\"; write a size such as 64KB or 1MB\n" },
    { D "    rate: { total: 100 }\n", "f:4:20: total is \"100\"; write a rate such as 20/s, 100/m or 1000/h\n" },
    { D "    rate: { total: 0/s }\n", "f:4:20: total is \"0/s\"; write a rate such as 20/s, 100/m or 1000/h\n" },
    { D "    retry: { factor: two }\n", "f:4:22: factor is \"two\"; write a number such as 0.5\n" },
    { D "    retry: { factor: nan }\n", "f:4:22: factor is \"nan\"; write a number such as 0.5\n" },
    { D "    retry: { clamp: middle }\n", "f:4:21: clamp is \"middle\"; write one of after, before or saturate\n" },
    { D "    retry: 5\n", "f:4:12: retry must be settings such as { name: value }, not text\n" },
    { D "    success: 2xx\n", "f:4:14: success must be a list such as [a, b], not text\n" },
    { D "    success:\n", "f:4:13: success has no items; write [] for an empty list, or remove the line\n" },
    { D "    success: [[2xx]]\n", "f:4:15: an item of success must be text, not a list\n" },
    { D "    success: [~]\n", "f:4:15: an item of success has no value; put it in quotes if the word is meant\n" },
    { D "    success: ['']\n", "f:4:15: an item of success is empty\n" },
    { D "    headers: [a]\n", "f:4:14: headers must be names and texts such as { Name: value }, not a list\n" },
    { D "    headers: { A: [b] }\n", "f:4:19: \"A\" in headers must have a value\n" },
    { D "    headers: { 'A B': c }\n", "f:4:16: the name \"A B\" in headers must have only letters, digits and -\n" },
    { D "    headers: { A: \"b\\r\\nC: d\" }\n", "f:4:19: the value of \"A\" in headers has a line break\n" },
    { D "    headers: { A: \"b\\0c\" }\n", "f:4:19: the value has a NUL character\n" },
    { D "    fairness: { weights: { gold: much } }\n",
      "f:4:34: in weights gold is \"much\"; write a whole number such as 5\n" },
    { D "    fairness: { weights: { gold: 0 } }\n", "f:4:34: in weights gold is \"0\"; allowed is 1 to 1000\n" },
    { D "    status_words: { sleeping: Z }\n", "f:4:21: \"sleeping\" in status_words is no state; they are pending, "
                                               "running, waiting, completed, dead and cancelled\n" },
    { D "    contingency: { ramp: [5, x] }\n", "f:4:30: an item of ramp is \"x\"; write a whole number such as 5\n" },
    { D "    contingency: { ramp: [5, 0] }\n", "f:4:30: an item of ramp is \"0\"; allowed is 1 to 1000000\n" },
    { D "    proxy: localhost\n", "f:4:12: proxy has a value that does not fit; write a URL such as https://host/path\n" },
    { D "    method: get\n", "f:4:13: method is \"get\"; it must be a method in capitals such as POST or PUT\n" },
    { D "    description: \"a\\nb\"\n", "f:4:18: description is \"a?b\"; it must be one line without control characters\n" },
    { D "    error_code: [body]\n",
      "f:4:18: an item of error_code is \"body\"; it must be xpath:..., json:/..., header:Name, "
      "pattern:/.../, http.status, smtp.reply or exec.status\n" },
    { D "    error_code: ['pattern:/(/']\n",
      "f:4:18: an item of error_code is \"pattern:/(/\"; it must be a PCRE2 pattern\n" },
    /* bounds */
    { D "    retry: { jitter: 1.5 }\n", "f:4:22: jitter is \"1.5\"; allowed is 0 to 1, for example 0.2\n" },
    { D "    retry: { jitter: -0.1 }\n", "f:4:22: jitter is \"-0.1\"; allowed is 0 to 1, for example 0.2\n" },
    { D "    retry: { factor: 0 }\n", "f:4:22: factor is \"0\"; allowed is 0.001 to 1000, for example 2\n" },
    { D "    retry: { max_retries: -1 }\n", "f:4:27: max_retries is \"-1\"; allowed is 0 to 1000000, for example 5\n" },
    { D "    retry: { max_retries: 1000001 }\n",
      "f:4:27: max_retries is \"1000001\"; allowed is 0 to 1000000, for example 5\n" },
    { D "    retry: { max_attempts: 0 }\n", "f:4:28: max_attempts is \"0\"; allowed is 1 to 1000001\n" },
    { D "    timeout: 0s\n", "f:4:14: timeout is \"0s\"; allowed is 1ms to 1h, for example 30s\n" },
    { D "    timeout: 61m\n", "f:4:14: timeout is \"61m\"; allowed is 1ms to 1h, for example 30s\n" },
    { D "    concurrency: 99999999999999999999\n",
      "f:4:18: concurrency is \"99999999999999999999\"; write a whole number such as 5\n" },
    { "limits: { payload: 65MB }\n", "f:1:20: payload is \"65MB\"; allowed is 1KB to 64MB, for example 1MB\n" },
    /* several values together */
    { D "    retry: { floor: 2h, cap: 1h }\n", "f:4:21: floor is longer than cap in retry; floor must be cap or less\n" },
    { D "    retry: { max_retries: 5, max_attempts: 5 }\n",
      "f:4:44: max_attempts counts the first attempt too, so it must be max_retries + 1; give only one of them\n" },
    { D "    breaker: { open: 10m }\n", "f:4:22: open is longer than open_max in breaker; open must be open_max or less\n" },
    { D "    concurrency: { max: 51, limit: 50 }\n",
      "f:4:25: concurrency is more than the 50 that the destination takes\n" },
    { D "    preset: sifen\n    verify: { url: https://a/ }\n    concurrency: 51\n",
      "f:6:18: concurrency is more than the 50 that the destination takes\n" },
    { D "    preset: sifen\n    verify: { url: https://a/ }\n    contingency: { ramp: [5, 51] }\n",
      "f:6:26: ramp goes beyond the 50 that the destination takes\n" },
    { D "    preset: sifen\n    verify: { url: https://a/ }\n    cycle: { every: 1m, batch: 51 }\n",
      "f:6:32: batch in cycle is more than the 50 that the destination takes\n" },
    { D "    tls: { cert: a.pem }\n", "f:4:18: cert and key in tls belong together; give both or none\n" },
    { D "    contingency: { ramp: [5, 5] }\n", "f:4:26: each step of ramp must be larger than the one before\n" },
    { D "    contingency: { ramp: [] }\n", "f:4:26: ramp needs at least one step, such as [5, 10, 25]\n" },
    { D "    contingency: { maintenance: [Sunday] }\n", "f:4:34: an item of maintenance is \"Sunday\"; it must be days and "
                                                        "times in UTC such as \"Sun 02:00-04:00\", \"Mon-Fri "
                                                        "22:00-23:30\" or \"daily 02:00-04:00\"\n" },
    { D "    in_doubt: verify\n",
      "f:4:15: in_doubt is verify, but nothing tells where to ask; give verify.url, or set in_doubt: "
      "resend or park\n" },
    { D "    id_pattern: '('\n", "f:4:17: id_pattern does not work: pattern: missing closing parenthesis at character 2\n" },
    { D "    errors:\n      permanent: [A, '/(/', B]\n      transient: [C]\n      exceptions:\n        wait:\n          - "
        "/x[/\n",
      "f:9:13: this rule does not work: pattern: missing terminating ] for character class at character 3\n"
      "f:5:22: this rule does not work: pattern: missing closing parenthesis at character 2\n" },
    { D "    errors: { namespace: 'a b' }\n",
      "f:4:26: namespace is \"a b\"; it must be one word of up to 32 letters, digits and -\n" },
    { D "    health: { every: 5s }\n", "f:4:13: health needs a url\n" },
    { D "    health: { url: ftp://h/ }\n",
      "f:4:20: the url of health must start with http://, https://, tcp:// or smtp://\n" },
    { D "    health: { url: tcp://h:1, kind: json }\n",
      "f:4:20: the url of health starts with tcp://, which does not fit its kind\n" },
    /* where dead letters go */
    { D "    dead: { export: nowhere }\n", "f:4:21: dead.export of \"x\" is \"nowhere\", which is no destination\n" },
    { D "    dead: { export: x }\n", "f:4:21: dead.export of \"x\" is itself: its dead letters would have no end\n" },
    { D "    dead: { export: y }\n  y: { url: https://b/, dead: { export: z } }\n  z: { url: https://c/, dead: { export: x } }\n",
      "f:4:21: dead.export of \"x\" leads back to it, over 3 destinations: dead letters would have no end\n"
      "f:5:41: dead.export of \"y\" leads back to it, over 3 destinations: dead letters would have no end\n"
      "f:6:41: dead.export of \"z\" leads back to it, over 3 destinations: dead letters would have no end\n" },
    { "destinations:\n"
      "  a: { transport: pull, dead: { export: b } }\n  b: { transport: pull, dead: { export: c } }\n"
      "  c: { transport: pull, dead: { export: d } }\n  d: { transport: pull, dead: { export: e } }\n"
      "  e: { transport: pull, dead: { export: f } }\n  f: { transport: pull, dead: { export: g } }\n"
      "  g: { transport: pull, dead: { export: h } }\n  h: { transport: pull, dead: { export: i } }\n"
      "  i: { transport: pull, dead: { export: j } }\n  j: { transport: pull }\n",
      "f:2:41: dead.export of \"a\" leads over more than 8 destinations\n" },
    { D "    dead: { export: y }\n  y: { url: smtp://b }\n",
      "f:4:21: dead.export of \"x\" is \"y\", which sends mail: a dead letter is no message; export to http, exec, redis, amqp or "
      "pull\n" },
    { D "    dead: { export: y }\n  y: { url: https://b/, dead: { ttl: 90d } }\n",
      "f:5:38: \"y\" gets the dead letters of \"x\", and would throw those away that it cannot deliver: leave ttl out here, set it "
      "to 0s, or give it an export too\n" },
    { "notify:\n  - { name: ops, webhook: https://h/ }\n" D "    dead: { export: notify.ops }\n",
      "f:6:21: dead.export of \"x\" is \"notify.ops\", which is no destination\n" },
    { D "    permanent: [A]\n", "f:4:5: unknown setting \"permanent\" in destination \"x\"\n" },
    { D "    timeout+: 3s\n", "f:4:5: \"timeout+\": only lists take a +; write timeout\n" },
    { D "    success: [a]\n    success+: [b]\n", "f:5:5: success is there beside success+; write one of them\n" },
    { D "    extends: http\n", "f:4:14: a destination starts from a preset with preset, not extends\n" },
    { D "    preset: htp\n", "f:4:13: there is no preset \"htp\"; did you mean \"http\"?\n" },
    { D "    preset: nothing-like-it\n", "f:4:13: there is no preset \"nothing-like-it\"; \"insist presets\" lists them\n" },
    { D "    preset: ./no.yaml\n", "f:4:13: the preset file \"./no.yaml\" cannot be read: No such file or directory\n" },
    { D "    sign: { secrets: [hunter2hunter2] }\n",
      "f:4:23: an item of secrets must be whsec_ and 24 to 64 bytes in Base64\n" },
    { "node: { name: \"\" }\n", "f:1:15: name is empty; write a text, or remove the line\n" },
    { "node: { name: a, token: '' }\n", "f:1:25: token is empty; write a text, or remove the line\n" },
    { "node: { name: a b }\n", "f:1:15: name is \"a b\"; it must have up to 64 letters, digits, _, - and ., and not start with a .\n" },
    { "store: ''\n", "f:1:8: store is empty; write a text, or remove the line\n" },
    { "auth: { tokens_file: '' }\n", "f:1:22: tokens_file is empty; write a text, or remove the line\n" },
    { "audit: { key: '' }\n", "f:1:15: key is empty; write a text, or remove the line\n" },
    { "callbacks: { allow: ['https://a.example/told'] }\n",
      "f:1:21: callbacks: who may be called must be able to tell these requests from others; give callbacks.sign.secrets\n" },
    { D "    fallback: { url: smtp://b.example }\n    breaker: {}\n",
      "f:4:22: fallback.url must start with http:// or https://, because the transport is http\n" },
    { D "    fallback: { url: https://b.example }\n", "f:4:22: fallback.url would never be used: without contingency and "
                                                      "breaker nothing tells that the destination is down; add one of "
                                                      "them, or remove it\n" },
    /* transports */
    { "destinations: { x: }\n", "f:1:17: destination \"x\" needs a url, or transport: pull, exec or ses\n" },
    { "destinations: { x: { transport: http } }\n",
      "f:1:17: destination \"x\" needs a url that starts with http:// or https://\n" },
    { "destinations: { x: { transport: exec } }\n",
      "f:1:17: destination \"x\" needs exec.argv, such as [/usr/local/bin/deliver, --quiet]\n" },
    { "destinations: { x: { transport: exec, exec: { argv: [deliver] } } }\n",
      "f:1:53: the first of exec.argv must be the absolute path of a program; no PATH is searched\n" },
    { "destinations: { x: { transport: exec, url: 'http://a', exec: { argv: [/bin/x], environment: { INSIST_TENANT: a, 1A: "
      "b } } } }\n",
      "f:1:44: url has no meaning with transport exec; remove it\n"
      "f:1:93: the name \"INSIST_TENANT\" in environment is one of those that insist sets itself\n"
      "f:1:93: the name \"1A\" in environment must have only letters, digits and _, and not begin with a digit\n" },
    { "destinations: { x: { transport: exec, exec: { argv: [/bin/x] }, verify: { url: 'http://a' }, in_doubt: verify } }\n",
      "f:1:80: verify has no meaning with transport exec; use in_doubt: resend or park\n" },
    { "destinations: { x: { url: 'http://a', exec: { argv: [/bin/x] } } }\n",
      "f:1:53: exec.argv has no meaning with transport http; set transport: exec\n" },
    { "destinations: { x: { transport: ses } }\n",
      "f:1:17: destination \"x\" needs ses.region, such as sa-east-1\n"
      "f:1:17: destination \"x\" needs username, the access key's id, and password, its secret\n" },
    { "destinations: { x: { url: 'redis://a' } }\n", "f:1:17: destination \"x\" needs redis.stream, the key of a stream\n" },
    { "destinations: { x: { url: 'amqps://a' } }\n",
      "f:1:17: destination \"x\" needs amqp.routing_key, the name of a queue, or amqp.exchange\n" },
    { "destinations: { x: { url: 'http://a', oauth2: { token_url: 'http://b' }, password: p } }\n",
      "f:1:60: oauth2 needs client_id and client_secret\n"
      "f:1:84: password stands beside oauth2, which logs in with a token; remove one\n" },
    { "destinations: { x: { url: 'smtp://a', oauth2: { token_url: 'http://b', client_id: i, client_secret: s } } }\n",
      "f:1:60: oauth2 of smtp needs username, whose mailbox the token is for\n" },
    { "destinations: { x: { transport: pull, tenants: { a: { username: u } } } }\n",
      "f:1:48: tenants have no accounts where the transport is pull or exec; remove them\n" },
    { "destinations: { x: { url: 'http://a', tenants: { a: { timeout: 1s }, b: 5 } } }\n",
      "f:1:55: unknown setting \"timeout\" in tenants\n"
      "f:1:73: tenant \"b\" of destination \"x\" must be settings such as { url: ... }, not text\n" },
    { "destinations: { x: { transport: fax } }\n", /* nor is there any other that the reference does not have */
      "f:1:33: transport is \"fax\"; write one of http, smtp, pull, exec, ses, redis or amqp\n"
      "f:1:17: destination \"x\" needs a url, or transport: pull, exec or ses\n" },
    { D2("https://a.example:99999/x") "\n",
      "f:1:27: url has a value that does not fit; its port must be a number from 1 to 65535\n" NEEDS_URL },
    { D2("http://u:p:0@a.example:0") "\n",
      "f:1:27: url has a value that does not fit; its port must be a number from 1 to 65535\n" NEEDS_URL },
    { D2("http://[::1]:80x/") "\n",
      "f:1:27: url has a value that does not fit; its port must be a number from 1 to 65535\n" NEEDS_URL },
    { "destinations: { x: { transport: smtp, url: http://a.example } }\n",
      "f:1:44: url must start with smtp:// or smtps://, because the transport is smtp\n" },
    { "destinations: { x: { preset: email, url: smtp://a.example, in_doubt: verify, verify: { url: http://a.example } } }\n",
      "f:1:93: verify has no meaning with transport smtp; use in_doubt: resend or park\n" },
    { "destinations: { x: { preset: email, url: smtp://a.example, poll: { url: http://a.example } } }\n",
      "f:1:73: poll has no meaning with transport smtp; remove it\n" },
    { "destinations: { x: { preset: email, url: smtp://a.example, username: u } }\n",
      "f:1:70: username and password belong together; give both or none\n" },
    { "destinations: { x: { preset: email, url: smtp://a.example, smtp: { helo: 'a b' } } }\n",
      "f:1:74: helo is \"a b\"; it must be a host name such as mail.example.org, or [192.0.2.1]\n" },
    { "destinations: { x: { preset: email, url: smtp://a.example, smtp: { from: nobody } } }\n",
      "f:1:74: from is \"nobody\"; it must be one address such as ops@example.org\n" },
    { "destinations: { x: { preset: email, url: smtp://a.example, smtp: { starttls: yes } } }\n",
      "f:1:78: starttls is \"yes\"; write one of auto, required, opportunistic or none\n" },
    { "destinations: { x: { transport: pull, url: http://a.example } }\n",
      "f:1:44: url has no meaning with transport pull; remove it\n" },
    { "destinations: { x: { url: gopher://a.example } }\n",
      "f:1:27: url must start with http://, https://, smtp://, smtps://, redis://, rediss://, amqp:// or amqps://\n" },
    { "destinations: { x: { url: 'http://user:hunter2@ a' } }\n",
      "f:1:27: url has a value that does not fit; write a URL such as https://host/path\n"
      "f:1:17: destination \"x\" needs a url, or transport: pull, exec or ses\n" },
    { "destinations: { 'a b': { transport: pull } }\n",
      "f:1:17: the destination's name \"a b\" must have up to 64 letters, digits, _, - and ., and not start with a .\n" },
    { "destinations: { x: http://a.example }\n",
      "f:1:20: destination \"x\" must be settings such as { url: ... }, not text\n" },
    { "destinations: [x]\n",
      "f:1:15: destinations must be names and settings such as { claims: { url: ... } }, not a list\n" },
    /* the file's own */
    { "listen: 7878\n", "f:1:9: listen is \"7878\"; write an address such as 127.0.0.1:7878 or [::1]:7878\n" },
    { "listen: 127.0.0.1:65536\n",
      "f:1:9: listen is \"127.0.0.1:65536\"; write an address such as 127.0.0.1:7878 or [::1]:7878\n" },
    { "listen: ::1:80\n", "f:1:9: listen is \"::1:80\"; write an address such as 127.0.0.1:7878 or [::1]:7878\n" },
    { "listen: 0.0.0.0:80\n", "f:1:9: listening beyond loopback needs auth.tokens_file; or listen on 127.0.0.1\n" },
    { "listen: 0.0.0.0:80\nauth: { tokens_file: t }\nnode: { name: a }\n",
      "f:1:9: other nodes cannot call 0.0.0.0: node.url says where they reach this one, as http://10.0.0.1:80\n" },
    { "store: mysql://root:hunter2@h/d\n",
      "f:1:8: store has a value that does not fit; it must be sqlite:PATH, postgres://USER@HOST/DATABASE or memory\n" },
    { "store: 'sqlite:'\n", "f:1:8: store has a value that does not fit; it must be sqlite:PATH, postgres://USER@HOST/DATABASE or memory\n" },
    { "%TAG ! x\n---\nstore: a\n", "f: a line starts with %TAG; tags are not supported\n" },
    { "notify: { name: a }\n",
      "f:1:9: notify must be a list such as [{ name: ops, webhook: https://... }], not a mapping\n" },
    { "notify: [a]\n",
      "f:1:10: an item of notify must be settings such as { name: ops, webhook: https://... }, not text\n" },
    { "notify: [{ name: a }]\n", "f:1:10: an item of notify needs either webhook, email or to\n" },
    { "notify: [{ name: a, email: a@b.example }]\n", "f:1:10: email needs through: the name of an smtp destination\n" },
    { "notify: [{ name: a, email: nobody, through: m }]\n",
      "f:1:28: email is \"nobody\"; it must be one address such as ops@example.org\n"
      "f:1:10: an item of notify needs either webhook, email or to\n" },
    { "notify: [{ name: a, to: '+1' }]\n", "f:1:10: to needs through: the name of the destination that delivers it\n" },
    { "notify: [{ name: a, to: '+1', through: m, allow_private: true }]\n",
      "f:1:10: headers, sign and allow_private are only for a webhook; the destination has its own\n" },
    { "notify: [{ name: a, webhook: 'https://a.example', through: m }]\n", "f:1:10: through is only for email and to\n" },
    { "notify: [{ name: a, webhook: 'https://a.example', from: a@b.example }]\n", "f:1:10: from is only for email\n" },
    { "notify: [{ name: a, webhook: 'https://a.example', on: [contingencia] }]\n",
      "f:1:56: an item of on is \"contingencia\"; it must be all, a severity (critical, warning, info) or the name of an "
      "alert "
      "such as contingency; docs/alerts.md has them all\n" },
    { "notify: [{ name: a, webhook: 'https://a.example' }, { name: a, webhook: 'https://b.example' }]\n",
      "f:1:53: two items of notify are called \"a\"\n" },
    { "notify: [{ name: a2345678901234567890123456789012345678901234567890123456789, webhook: 'https://a.example' }]\n",
      "f:1:10: the name of an item of notify has at most 57 bytes\n" },
    { "destinations: { notify.x: { url: 'https://a.example' } }\n",
      "f:1:17: names that begin with notify. are those of notify; choose another\n" },
    { "notify: [{ webhook: 'https://a.example' }]\n", "f:1:10: an item of notify needs a name\n" },
    { "reports: [{ every: day }]\n", "f:1:11: an item of reports needs to: the name of an item of notify\n" },
    { "reports: [{ to: ops, at: '24:00' }]\n", "f:1:26: at is \"24:00\"; it must be a time of day, as 07:00\n"
      "f:1:10: reports: there is no item of notify called \"ops\"\n" },
    { "notify: [{ name: a, webhook: 'https://a.example' }]\nreports: [{ to: b }]\n",
      "f:2:10: reports: there is no item of notify called \"b\"\n" },
    { "notify: [{ name: a, webhook: 'https://a.example', onn: [x] }]\n",
      "f:1:51: unknown setting \"onn\" in notify; did you mean \"on\"?\n" },
    { D "notify: [{ name: a, email: a@b.example, through: x }]\n",
      "f:4:9: notify sends mail through \"x\", which is neither smtp nor ses\n" },
    /* YAML */
    { "store: memory:\n",
      "f:1:14: mapping values are not allowed in this context; a value with a colon at its end or before a "
      "space must be in quotes\n" },
    { "listen: [a\n", "f:2:1: did not find expected ',' or ']', while parsing a flow sequence that starts on line 1\n" },
    { "limits:\n\tpayload: 1MB\n",
      "f:2:1: found character that cannot start any token, while scanning for the next token that starts on line 2; it is a "
      "tab: indent with spaces\n" },
    { "store: memory\nlimits: { payload: @ }\n",
      "f:2:20: found character that cannot start any token, while scanning for the next token that starts on line 2\n" },
    { "store: caf\xe9\n\n\n", "f:1:12: invalid trailing UTF-8 octet\n" },
    { "store: caf\xe9", "f:1:11: incomplete UTF-8 octet sequence\n" },
    { "store: a\n# \x01\n", "f:2:3: control characters are not allowed\n" },
    { "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", "f:2:1: \"listen\" is given twice; it stands on line 1 too\n" },
    { "- a\n", "f:1:1: the file must be a mapping such as \"name: value\", not a list\n" },
    { "hello\n", "f:1:1: the file must be a mapping such as \"name: value\", not text\n" },
    { "store: 'memory:'\n---\nstore: 'memory:'\n", "f:2:1: a second document starts here; a file has only one\n" },
    { "limits: &a { payload: 1MB }\n",
      "f:1:9: anchors (&name) are not supported; put shared settings into a preset file\n" },
    { "limits: *a\n", "f:1:9: aliases (*name) are not supported; put shared settings into a preset file\n" },
    { "store: !!str x\n", "f:1:8: tags (!name) are not supported; write the plain value\n" },
    { "? [a]\n: b\n", "f:1:3: a key must be a plain word, not a list or a mapping\n" },
    /* references */
    { "store: ${INSIST_TEST_ABSENT}\n",
      "f:1:8: the environment has no INSIST_TEST_ABSENT; set it, or write ${INSIST_TEST_ABSENT:-default}\n" },
    { D "    concurrency: ${INSIST_TEST_SECRET}\n",
      "f:4:18: concurrency has a value that does not fit; write a whole number such as 5\n" },
    { D "    success: ['${INSIST_TEST_LINES}']\n    headers: { A: '${INSIST_TEST_LINES}' }\n",
      "f:5:19: the value of \"A\" in headers has a line break\n" },
    { "store: ${a b}\n",
      "f:1:8: \"${a b}\" is no reference; write ${NAME}, ${NAME:-default} or ${file:PATH}, or $${ for a literal ${\n" },
    { "store: ${9}\n",
      "f:1:8: \"${9}\" is no reference; write ${NAME}, ${NAME:-default} or ${file:PATH}, or $${ for a literal ${\n" },
    { "store: 'a${b'\n", "f:1:8: a ${ has no }; write $${ for a literal ${\n" },
    { "store: '${file:}'\n", "f:1:8: ${file:} needs a path of up to 4095 bytes\n" },
    { "store: '${file:/}'\n", "f:1:8: ${file:/} cannot be read: it is a folder\n" },
    { "store: '${file:/dev/zero}'\n", "f:1:8: ${file:/dev/zero} cannot be read: it is not a regular file\n" },
    { "store: '${file:/no/such}'\n", "f:1:8: ${file:/no/such} cannot be read: No such file or directory\n" },
    { "${HOME}: a\n", "f:1:1: unknown setting \"${HOME}\"\n" },
    /* more than one at once, in the order of the file */
    { "listne: 1\nlimits: { payload: big, pending: 0 }\n" D "    timeout: x\n",
      "f:1:1: unknown setting \"listne\"; did you mean \"listen\"?\n"
      "f:2:20: payload is \"big\"; write a size such as 64KB or 1MB\n"
      "f:2:34: pending is \"0\"; allowed is 1 to 1000000000, for example 10000000\n"
      "f:6:14: timeout is \"x\"; write a duration such as 250ms, 30s, 5m, 2h or 7d\n" },
};

static void test_problems(void **state)
{
    (void)state;
    setenv("INSIST_TEST_SECRET", "hunter2", 1);
    setenv("INSIST_TEST_LINES", "a\nb", 1);
    unsetenv("INSIST_TEST_ABSENT");
    int wrong = 0;
    for (size_t i = 0; i < sizeof problem_cases / sizeof *problem_cases; i++) {
        struct config *config = NULL;
        struct buffer problems;
        buffer_init(&problems, PROBLEMS_BYTES);
        enum status status = config_parse(slice_from(problem_cases[i].text), "f", &config, &problems);
        const char *seen = problems.data ? problems.data : "";
        if (status != STATUS_INVALID || strcmp(seen, problem_cases[i].problems) != 0 || strstr(seen, "hunter2")) {
            print_error("--- %s\nsaid (%s)\n%sand not\n%s", problem_cases[i].text, status_name(status), seen,
                        problem_cases[i].problems);
            wrong++;
        }
        config_unref(config);
        buffer_release(&problems);
    }
    assert_int_equal(wrong, 0);
}

/* Texts that are right at the edge of being wrong. */
static const char *const good_texts[] = {
    "",
    "# only a comment\n",
    "---\n...\n",
    "~\n",
    "\xef\xbb\xbfstore: 'memory:'\n",
    "destinations:\n",
    "notify:\nlimits:\n",
    "listen: '[::1]:7878'\n",
    "listen: localhost:0\n",
    "listen: 0.0.0.0:80\nauth: { tokens_file: t }\n",
    "store: memory\n",
    "store: ${INSIST_TEST_ABSENT:-memory:}\n",
    "limits: { payload: 64MB, pending: 1, disk_free: 0, connections: 1 }\n",
    D "    retry: { jitter: 0, factor: 0.001, max_retries: 0 }\n",
    D "    retry: { jitter: 1, factor: 1000, max_retries: 1000000, floor: 1h, cap: 1h }\n",
    D "    retry: { max_retries: 5, max_attempts: 6 }\n",
    D "    retry:\n",
    D "    timeout: 1ms\n",
    D "    timeout: 1h\n",
    D "    errors: { transient: [503, 5.7.1, yes, 'http:5xx'] }\n",
    D "    content_type: \"\"\n    method: \"\"\n",
    D "    health: { url: 'tcp://h:1' }\n",
    D "    sign: { secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw] }\n",
    D "    contingency: { maintenance: ['daily 02:00-04:00', 'Mon-Fri 22:00-23:30', 'Sat,Sun 23:00-01:00', 'Fri-Mon 00:00-24:00'] }\n",
    "destinations: { a.b-c_D9: { transport: pull } }\n",
    "destinations: { x: { url: 'http://user:pa:ss@[::1]:65535/a:b?c:d' }, y: { url: 'http://h:/' }, z: { url: 'smtps://m.example:465' } }\n",
};

static void test_edges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good_texts / sizeof *good_texts; i++)
        config_unref(config_from(slice_from(good_texts[i]), "f"));
}

static void test_defaults(void **state)
{
    (void)state;
    struct config *config;
    assert_int_equal(config_default(&config), STATUS_OK);
    assert_null(config->path);
    assert_int_equal(config->destination_count, 0);
    assert_string_equal(config->listen.host, "127.0.0.1");
    assert_string_equal(config->store, "sqlite:data/insist.db");
    assert_int_equal(config->connections_max, 1024);
    assert_null(config->tokens_file);
    config_unref(config);
    config = config_from(SLICE("store: memory\n"), "f");
    assert_string_equal(config->store, "memory:"); /* the colon at the end is hard to write in YAML */
    assert_null(config_destination(config, SLICE("x")));
    config_unref(config);

    config = config_from(slice_from(D), "f");
    const struct destination_config *x = config_destination(config, SLICE("x"));
    assert_string_equal(x->method, "POST");
    assert_int_equal(x->timeout_ms, 30 * SECOND_MS);
    assert_int_equal(x->success.count, 1);
    assert_string_equal(x->success.items[0], "2xx");
    assert_int_equal(x->contingency.ramp_count, 3);
    assert_false(x->contingency.enabled);
    assert_false(x->breaker.enabled);
    assert_int_equal(x->health.kind, HEALTH_NONE);
    assert_int_equal(x->policy.in_doubt, DOUBT_RESEND);
    assert_false(x->policy.can_verify);
    assert_int_equal(x->policy.unknown, OUTCOME_TRANSIENT);
    assert_int_equal(x->policy.retry.retries_max, 5);
    assert_int_equal(x->policy.retry.retry_after_max_ms, HOUR_MS);
    assert_true(x->policy.retry.throttled_spends);
    assert_true(x->tls.verify);
    assert_int_equal(x->rate_total.count, 0);
    assert_non_null(x->policy.classifier);
    assert_string_equal(x->policy.name, "x");
    config_unref(config);
}

/* A number, or more than that: what a preset says of the rest stays. */
static void test_concurrency(void **state)
{
    static const struct { const char *yaml; int64_t max; bool adaptive; } cases[] = {
        { D, 10, true },
        { D "    concurrency: 64\n", 64, true },
        { D "    concurrency: { max: 64 }\n", 64, true },
        { D "    concurrency: { max: 64, adaptive: false }\n", 64, false },
        { D "    concurrency: { adaptive: false }\n", 10, false },
        { "destinations: { x: { preset: email, url: 'smtp://m.example', concurrency: { adaptive: false } } }\n", 5, false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct config *config = config_from(slice_from(cases[i].yaml), "f");
        const struct destination_config *x = config_destination(config, SLICE("x"));
        check(x->concurrency == cases[i].max && x->concurrency_adaptive == cases[i].adaptive, "row %zu", i);
        config_unref(config);
    }
}

static void test_derived(void **state)
{
    (void)state;
    struct config *config = config_from(SLICE("destinations:\n"
                                           "  c: { url: 'smtp://m.example', health: { url: 'smtp://m.example' } }\n"
                                           "  d: { transport: pull, health: { url: 'tcp://h:1' }, breaker: }\n"
                                           "  e: { url: 'http://h', health: { url: 'http://h', kind: wsdl }, retry: { max_attempts: 3 },\n"
                                           "       breaker: { enabled: false }, contingency: {} }\n"),
                                     "f");
    assert_int_equal(config_destination(config, SLICE("c"))->transport, TRANSPORT_SMTP);
    assert_int_equal(config_destination(config, SLICE("c"))->health.kind, HEALTH_SMTP);
    const struct destination_config *d = config_destination(config, SLICE("d"));
    assert_int_equal(d->transport, TRANSPORT_PULL);
    assert_int_equal(d->health.kind, HEALTH_TCP);
    assert_true(d->breaker.enabled);
    const struct destination_config *e = config_destination(config, SLICE("e"));
    assert_int_equal(e->health.kind, HEALTH_WSDL);
    assert_int_equal(e->policy.retry.retries_max, 2);
    assert_false(e->breaker.enabled);
    assert_true(e->contingency.enabled);
    config_unref(config);
}

static void test_listen(void **state)
{
    static const struct {
        const char *text, *host;
        int port;
        bool loopback;
    } cases[] = {
        { "listen: '[::1]:80'\nauth: { tokens_file: t }\n", "::1", 80, true },
        { "listen: '[::]:80'\nauth: { tokens_file: t }\n", "::", 80, false },
        { "listen: 127.9.9.9:80\n", "127.9.9.9", 80, true },
        { "listen: LocalHost:0\n", "LocalHost", 0, true },
        { "listen: host.example:65535\nauth: { tokens_file: t }\n", "host.example", 65535, false },
        { "listen: 127.0.0.1.example:1\nauth: { tokens_file: t }\n", "127.0.0.1.example", 1, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config *config = config_from(slice_from(cases[i].text), "f");
        assert_string_equal(config->listen.host, cases[i].host);
        assert_int_equal(config->listen.port, cases[i].port);
        assert_int_equal(config->listen.loopback, cases[i].loopback);
        config_unref(config);
    }
}

static void test_problem_count(void **state)
{
    (void)state;
    struct buffer text, problems;
    struct config *config;
    size_t lines = 0;
    buffer_init(&text, 1 << 20);
    buffer_init(&problems, PROBLEMS_BYTES);
    for (int i = 0; i < 200; i++)
        buffer_printf(&text, "unknown%d: 1\n", i);
    assert_int_equal(config_parse(buffer_slice(&text), "f", &config, &problems), STATUS_INVALID);
    for (size_t i = 0; i < problems.len; i++)
        lines += problems.data[i] == '\n';
    assert_int_equal(lines, 51);
    assert_non_null(strstr(problems.data, "f: there are more problems; the first 50 are above\n"));
    buffer_release(&text);
    buffer_release(&problems);
}

static void test_warnings(void **state)
{
    static const struct {
        const char *text, *warning;
    } cases[] = {
        { D "    tls: { verify: false }\n", "f:4:20: tls.verify is off: anybody in between can read and change what is sent" },
        { D "    errors: { accepted: [LATER] }\n",
          "f:2:3: some answers are accepted and judged later, but poll has no url: nobody asks how" },
        { "destinations:\n  x: { preset: email, url: smtp://a.example, username: u, password: p, smtp: { starttls: none } }\n",
          "f:2:90: without smtp.starttls: required the password may go over the network for anybody to read" },
        { "notify:\n  - { name: a, email: a@b.example, through: m }\n",
          "f:2:3: notify sends mail through a destination that is not there" },
        { D "    dead: { export: y, ttl: 0s }\n  y: { transport: pull }\n",
          "f:4:21: dead.export waits for the end of dead.ttl, which is 0s: nothing is exported" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config *config = config_from(slice_from(cases[i].text), "f");
        assert_int_equal(config->warnings.count, 1);
        assert_string_equal(config->warnings.items[0], cases[i].warning);
        config_unref(config);
    }
}

/* What a destination cannot deliver of what others export to it stays, whatever its preset says, unless it exports on. */
static void test_exports(void **state)
{
    struct config *config = config_from(SLICE("destinations:\n"
                                              "  a: { preset: email, url: smtp://a.example, dead: { export: b } }\n"
                                              "  b: { preset: http, url: https://b/, dead: { export: c } }\n"
                                              "  c: { preset: sifen, url: https://c/, verify: { url: https://c/ } }\n"
                                              "  d: { url: https://d/ }\n"), "f");
    (void)state;
    assert_string_equal(config_destination(config, SLICE("a"))->dead.export, "b");
    assert_int_equal(config_destination(config, SLICE("a"))->dead.ttl_ms, 7 * DAY_MS);
    assert_int_equal(config_destination(config, SLICE("b"))->dead.ttl_ms, INT64_C(30) * DAY_MS);
    assert_int_equal(config_destination(config, SLICE("c"))->dead.ttl_ms, 0);
    assert_null(config_destination(config, SLICE("d"))->dead.export);
    config_unref(config);
}

static void test_maintenance(void **state)
{
    /* 2025-01-12 is a Sunday. */
    static const struct {
        const char *window, *at;
        bool inside;
    } cases[] = {
        { "Sun 02:00-04:00", "2025-01-12T02:00:00Z", true },
        { "Sun 02:00-04:00", "2025-01-12T03:59:59Z", true },
        { "Sun 02:00-04:00", "2025-01-12T04:00:00Z", false },
        { "Sun 02:00-04:00", "2025-01-12T01:59:59Z", false },
        { "Sun 02:00-04:00", "2025-01-13T03:00:00Z", false },
        { "daily 02:00-04:00", "2025-01-15T03:00:00Z", true },
        { "mon-fri 22:00-23:30", "2025-01-17T22:00:00Z", true },
        { "Mon-Fri 22:00-23:30", "2025-01-18T22:00:00Z", false },
        { "Sun 23:00-01:00", "2025-01-13T00:30:00Z", true },
        { "Sun 23:00-01:00", "2025-01-12T00:30:00Z", false },
        { "Sat,Sun 00:00-24:00", "2025-01-12T23:59:59Z", true },
        { "Sat-Mon 00:00-24:00", "2025-01-13T12:00:00Z", true },
        { "Sat-Mon 00:00-24:00", "2025-01-14T12:00:00Z", false },
    };
    static const char *const wrong[] = { "Sun", "Sun 02:00", "Sun 2:00-4:00", "Sun 02:00-02:00", "Sun 02:60-03:00", "Sun 24:00-01:00",
                                         "Sun 23:00-24:01", "Sun, 02:00-04:00", "Sunday 02:00-04:00", "02:00-04:00", "Sun-02:00-04:00",
                                         "Sun 02:00-04:00 x", "Sun -1:00-04:00", "" };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct maintenance_window window;
        instant at;
        assert_true(maintenance_parse(slice_from(cases[i].window), &window));
        assert_int_equal(instant_parse(slice_from(cases[i].at), &at, NULL), STATUS_OK);
        if ((maintenance_end(&window, 1, at) != INSTANT_NONE) != cases[i].inside)
            fail_msg("%s at %s", cases[i].window, cases[i].at);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct maintenance_window window;
        if (maintenance_parse(slice_from(wrong[i]), &window))
            fail_msg("%s was read", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problems),      cmocka_unit_test(test_edges),    cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_concurrency),
        cmocka_unit_test(test_derived),       cmocka_unit_test(test_listen),   cmocka_unit_test(test_problem_count),
        cmocka_unit_test(test_warnings),      cmocka_unit_test(test_exports),  cmocka_unit_test(test_maintenance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
