/*
 * What each preset makes of the errors of its destination: every code of the services'
 * tables, and the texts that tell more than their code.
 */
#include "support/presets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct row {
    const char *preset, *code, *text;
    enum outcome outcome; /* OUTCOME_NONE: no rule */
};

static int wrong; /* rows of the running test that did not hold */

static void check(const char *preset, const char *code, const char *text, enum outcome expected)
{
    struct evidence evidence = { slice_from(code), slice_from(text) };
    struct classification found = classify(preset_policy(preset)->classifier, evidence);
    if (found.outcome == expected)
        return;
    print_error("%s: code \"%s\", text \"%s\": %s by rule \"%.*s\", expected %s\n", preset, code, text,
                outcome_name(found.outcome), SLICE_ARG(found.rule), outcome_name(expected));
    wrong++;
}

static void check_rows(const struct row *rows, size_t count)
{
    wrong = 0;
    for (size_t i = 0; i < count; i++)
        check(rows[i].preset, rows[i].code, rows[i].text, rows[i].outcome);
    assert_int_equal(wrong, 0);
}

/* A span of codes that are all of one class. */
struct span {
    int low, high;
    enum outcome outcome;
};

static void check_spans(const char *preset, const char *format, const struct span *spans, size_t count)
{
    wrong = 0;
    for (size_t i = 0; i < count; i++)
        for (int number = spans[i].low; number <= spans[i].high; number++) {
            char code[32];
            snprintf(code, sizeof code, format, number);
            check(preset, code, "respuesta", spans[i].outcome);
        }
    assert_int_equal(wrong, 0);
}

static void http_statuses(void **state)
{
    static const struct span spans[] = {
        { 200, 299, OUTCOME_DELIVERED }, { 300, 399, OUTCOME_PERMANENT }, { 400, 400, OUTCOME_PERMANENT },
        { 401, 401, OUTCOME_BLOCKED },   { 402, 402, OUTCOME_PERMANENT }, { 403, 403, OUTCOME_BLOCKED },
        { 404, 406, OUTCOME_PERMANENT }, { 407, 407, OUTCOME_BLOCKED },   { 408, 408, OUTCOME_TRANSIENT },
        { 409, 409, OUTCOME_DUPLICATE }, { 410, 422, OUTCOME_PERMANENT }, { 423, 423, OUTCOME_TRANSIENT },
        { 424, 424, OUTCOME_PERMANENT }, { 425, 425, OUTCOME_TRANSIENT }, { 426, 428, OUTCOME_PERMANENT },
        { 429, 429, OUTCOME_THROTTLED }, { 430, 499, OUTCOME_PERMANENT }, { 500, 500, OUTCOME_TRANSIENT },
        { 501, 501, OUTCOME_PERMANENT }, { 502, 504, OUTCOME_TRANSIENT }, { 505, 505, OUTCOME_PERMANENT },
        { 506, 599, OUTCOME_TRANSIENT },
    };
    (void)state;
    check_spans("http", "http:%d", spans, COUNT(spans));
    check_spans("provisioning", "http:%d", spans, COUNT(spans));
    check_spans("email", "http:%d", spans, COUNT(spans)); /* of SES */
    check_spans("tiss", "http:%d", spans, COUNT(spans));
}

static void curl_codes(void **state)
{
    static const struct span spans[] = {
        { 1, 1, OUTCOME_PERMANENT },   { 2, 2, OUTCOME_WAIT },        { 3, 4, OUTCOME_PERMANENT },   { 5, 9,
          OUTCOME_TRANSIENT },
        { 16, 16, OUTCOME_TRANSIENT }, { 18, 18, OUTCOME_TRANSIENT }, { 22, 22, OUTCOME_TRANSIENT }, { 27, 27,
          OUTCOME_WAIT },
        { 28, 28, OUTCOME_TRANSIENT }, { 35, 35, OUTCOME_TRANSIENT }, { 42, 42, OUTCOME_WAIT },      { 43, 43,
          OUTCOME_PERMANENT },
        { 47, 49, OUTCOME_PERMANENT }, { 52, 52, OUTCOME_TRANSIENT }, { 55, 56, OUTCOME_TRANSIENT }, { 58, 60,
          OUTCOME_BLOCKED },
        { 61, 61, OUTCOME_PERMANENT }, { 63, 63, OUTCOME_PERMANENT }, { 64, 64, OUTCOME_BLOCKED },   { 66, 67,
          OUTCOME_BLOCKED },
        { 77, 77, OUTCOME_BLOCKED },   { 80, 83, OUTCOME_BLOCKED },   { 90, 91, OUTCOME_BLOCKED },   { 92, 92,
          OUTCOME_TRANSIENT },
        { 95, 96, OUTCOME_TRANSIENT }, { 98, 98, OUTCOME_BLOCKED },   { 100, 100, OUTCOME_PERMANENT },
    };
    (void)state;
    check_spans("http", "curl:%d", spans, COUNT(spans));
    check_spans("tiss", "curl:%d", spans, COUNT(spans));
    check_spans("smtp", "curl:%d", spans, COUNT(spans));
    check_spans("sifen", "curl:%d", spans, COUNT(spans));
    check_spans("provisioning", "curl:%d", spans, COUNT(spans));
}

static void exec_codes(void **state)
{
    static const struct span spans[] = {
        { 1, 2, OUTCOME_NONE },       { 64, 64, OUTCOME_BLOCKED },   { 65, 68, OUTCOME_PERMANENT }, { 69, 75, OUTCOME_TRANSIENT },
        { 76, 76, OUTCOME_PERMANENT }, { 77, 78, OUTCOME_BLOCKED },  { 126, 127, OUTCOME_BLOCKED }, { 128, 140, OUTCOME_NONE },
    };
    (void)state;
    check_spans("exec", "exec:%d", spans, COUNT(spans));
}

static void queue_codes(void **state)
{
    static const struct row rows[] = {
        { "redis", "redis:LOADING", "Redis: LOADING Redis is loading the dataset in memory", OUTCOME_WAIT },
        { "redis", "redis:OOM", "Redis: OOM command not allowed when used memory > 'maxmemory'.", OUTCOME_WAIT },
        { "redis", "redis:READONLY", "Redis: READONLY You can't write against a read only replica.", OUTCOME_WAIT },
        { "redis", "redis:NOAUTH", "Redis: NOAUTH Authentication required.", OUTCOME_BLOCKED },
        { "redis", "redis:WRONGPASS", "Redis: WRONGPASS invalid username-password pair", OUTCOME_BLOCKED },
        { "redis", "redis:MOVED", "Redis: MOVED 3999 127.0.0.1:6381", OUTCOME_BLOCKED },
        { "redis", "redis:WRONGTYPE", "Redis: WRONGTYPE Operation against a key", OUTCOME_BLOCKED },
        { "redis", "redis:ERR", "Redis: ERR max number of clients reached", OUTCOME_TRANSIENT },
        { "redis", "redis:ERR", "Redis: ERR DB index is out of range", OUTCOME_BLOCKED },
        { "redis", "redis:ERR", "Redis: ERR Invalid stream ID specified as stream command argument", OUTCOME_PERMANENT },
        { "redis", "curl:7", "CONNECTION_ERROR - Connection refused", OUTCOME_TRANSIENT },
        { "amqp", "amqp:312", "AMQP 312: NO_ROUTE", OUTCOME_BLOCKED },
        { "amqp", "amqp:nack", "the broker could not take the message", OUTCOME_TRANSIENT },
        { "amqp", "amqp:blocked", "the broker takes no messages: low on memory", OUTCOME_WAIT },
        { "amqp", "amqp:320", "AMQP 320: CONNECTION_FORCED - broker forced connection closure", OUTCOME_WAIT },
        { "amqp", "amqp:403", "AMQP 403: ACCESS_REFUSED - Login was refused", OUTCOME_BLOCKED },
        { "amqp", "amqp:404", "AMQP 404: NOT_FOUND - no exchange 'x' in vhost '/'", OUTCOME_BLOCKED },
        { "amqp", "amqp:530", "AMQP 530: NOT_ALLOWED - vhost x not found", OUTCOME_BLOCKED },
        { "amqp", "amqp:541", "AMQP 541: INTERNAL_ERROR", OUTCOME_TRANSIENT },
    };
    (void)state;
    check_rows(rows, COUNT(rows));
}

static void sifen_codes(void **state)
{
    static const struct span spans[] = {
        { 1, 3, OUTCOME_BLOCKED },         { 4, 4, OUTCOME_TRANSIENT },       { 5, 7, OUTCOME_BLOCKED },
        { 100, 107, OUTCOME_PERMANENT },   { 120, 123, OUTCOME_BLOCKED },     { 124, 124, OUTCOME_TRANSIENT },
        { 125, 126, OUTCOME_BLOCKED },     { 140, 141, OUTCOME_PERMANENT },   { 142, 142, OUTCOME_BLOCKED },
        { 160, 160, OUTCOME_PERMANENT },   { 161, 161, OUTCOME_TRANSIENT },   { 162, 162, OUTCOME_WAIT },
        { 163, 163, OUTCOME_BLOCKED },     { 180, 180, OUTCOME_PERMANENT },   { 183, 183, OUTCOME_BLOCKED },
        { 200, 200, OUTCOME_PERMANENT },   { 260, 260, OUTCOME_DELIVERED },   { 270, 270, OUTCOME_PERMANENT },
        { 300, 300, OUTCOME_ACCEPTED },    { 301, 301, OUTCOME_IN_DOUBT },    { 320, 320, OUTCOME_PERMANENT },
        { 340, 340, OUTCOME_BLOCKED },     { 360, 360, OUTCOME_IN_DOUBT },    { 361, 361, OUTCOME_ACCEPTED },
        { 362, 362, OUTCOME_PARTIAL },     { 363, 363, OUTCOME_PERMANENT },   { 364, 364, OUTCOME_IN_DOUBT },
        { 380, 380, OUTCOME_PERMANENT },   { 420, 420, OUTCOME_TRANSIENT },   { 421, 421, OUTCOME_BLOCKED },
        { 422, 422, OUTCOME_DELIVERED },   { 460, 460, OUTCOME_PERMANENT },   { 502, 502, OUTCOME_DELIVERED },
        { 560, 560, OUTCOME_PERMANENT },   { 600, 600, OUTCOME_DELIVERED },   { 1000, 1000, OUTCOME_PERMANENT },
        { 1001, 1002, OUTCOME_DUPLICATE }, { 1003, 1003, OUTCOME_PERMANENT }, { 1004, 1004, OUTCOME_TRANSIENT },
        { 1005, 1005, OUTCOME_DELIVERED }, { 1050, 1050, OUTCOME_PERMANENT }, /* C-63 */ { 1100, 1110, OUTCOME_PERMANENT },
        { 1150, 1151, OUTCOME_PERMANENT }, { 1156, 1156, OUTCOME_PERMANENT }, { 1250, 1263, OUTCOME_PERMANENT },
        { 1264, 1264, OUTCOME_BLOCKED },   { 1300, 2699, OUTCOME_PERMANENT }, { 4000, 4002, OUTCOME_PERMANENT },
        { 4003, 4003, OUTCOME_DUPLICATE }, { 4004, 4323, OUTCOME_PERMANENT },
        /* C-78: not in the manual, but an answer of the service: a decision */
        { 302, 305, OUTCOME_PERMANENT },   { 999, 999, OUTCOME_PERMANENT },   { 9999, 9999, OUTCOME_PERMANENT },
    };
    (void)state;
    check_spans("sifen", "sifen:%04d", spans, COUNT(spans));
}

/* S1-077: the codes of TISS are classified. */
static void tiss_glosas(void **state)
{
    static const struct span spans[] = {
        { 1001, 1002, OUTCOME_PERMANENT }, { 1011, 1011, OUTCOME_PERMANENT }, { 1014, 1014, OUTCOME_PERMANENT },
        { 1016, 1018, OUTCOME_PERMANENT }, { 1206, 1206, OUTCOME_PERMANENT }, { 1308, 1308, OUTCOME_DUPLICATE },
        { 1400, 1499, OUTCOME_PERMANENT }, { 1702, 1702, OUTCOME_DUPLICATE }, { 1801, 1801, OUTCOME_PERMANENT },
        { 2601, 2601, OUTCOME_PERMANENT }, { 5001, 5002, OUTCOME_PERMANENT }, { 5014, 5014, OUTCOME_PERMANENT },
        { 5027, 5027, OUTCOME_PERMANENT }, { 5028, 5028, OUTCOME_BLOCKED },
        { 3000, 3010, OUTCOME_PERMANENT }, /* any other glosa */
    };
    (void)state;
    check_spans("tiss", "tiss:%04d", spans, COUNT(spans));
}

static void smtp_replies(void **state)
{
    static const struct span spans[] = {
        { 250, 250, OUTCOME_DELIVERED }, { 421, 421, OUTCOME_TRANSIENT }, { 450, 452, OUTCOME_TRANSIENT },
        { 454, 454, OUTCOME_THROTTLED }, { 455, 499, OUTCOME_TRANSIENT }, { 400, 420, OUTCOME_TRANSIENT },
        { 500, 504, OUTCOME_PERMANENT }, { 521, 521, OUTCOME_PERMANENT }, { 530, 530, OUTCOME_BLOCKED },
        { 534, 535, OUTCOME_BLOCKED },   { 538, 538, OUTCOME_BLOCKED },   { 550, 556, OUTCOME_PERMANENT },
        { 559, 599, OUTCOME_PERMANENT }, /* C-42: by the first digit */
    };
    (void)state;
    check_spans("smtp", "smtp:%d", spans, COUNT(spans));
    check_spans("email", "smtp:%d", spans, COUNT(spans));
    check_spans("email-relay", "smtp:%d", spans, COUNT(spans));
}

static void tiss_answers(void **state)
{
    static const struct row rows[] = {
        { "tiss", "", "timeout - connection timeout after 30s", OUTCOME_TRANSIENT },
        { "tiss", "", "INVALID_PATIENT_DATA - CPF inv\xc3\xa1lido (TIMEOUT)", OUTCOME_PERMANENT },
        { "tiss", "", "CLM-5030-1 weird", OUTCOME_NONE },
        { "tiss", "", "took 1503 ms", OUTCOME_NONE },
        { "tiss", "", "HTTP 503 from operadora", OUTCOME_TRANSIENT },
        { "tiss", "http:500", "HTTP 500 <soap:Fault><detail><tissFaultWS><tissFault>ErroInesperadoServidor</tissFault>",
          OUTCOME_TRANSIENT },
        { "tiss", "tiss:ErroInesperadoServidor", "HTTP 500", OUTCOME_TRANSIENT },
        { "tiss", "http:500", "HTTP 500 <ans:tissFault>LoginInvalido</ans:tissFault>", OUTCOME_BLOCKED },
        { "tiss", "", "<tissFault>LoginInvalido</tissFault>", OUTCOME_BLOCKED },
        { "tiss", "tiss:LoginInvalido", "HTTP 500", OUTCOME_BLOCKED },
        { "tiss", "tiss:RemetenteInvalido", "HTTP 500", OUTCOME_BLOCKED },
        { "tiss", "tiss:VersaoInvalida", "HTTP 500", OUTCOME_BLOCKED },
        { "tiss", "tiss:DestinatarioInvalido", "HTTP 500", OUTCOME_PERMANENT },
        { "tiss", "http:500", "<tissFault>SchemaInvalido</tissFault>", OUTCOME_PERMANENT },
        { "tiss", "http:500", "<tissFault>HashInvalido</tissFault>", OUTCOME_PERMANENT },
        { "tiss", "http:500", "<faultcode>soap:Server</faultcode>", OUTCOME_TRANSIENT },
        { "tiss", "tiss:Server", "HTTP 200", OUTCOME_TRANSIENT },
        { "tiss", "http:500", "<faultcode>soap:Client</faultcode>", OUTCOME_PERMANENT },
        { "tiss", "", "Problems creating SAAJ object model (faultcode soap:Client)", OUTCOME_PERMANENT },
        { "tiss", "http:500", "<faultcode>soap:Client</faultcode><detail><tissFault>ErroInesperadoServidor</tissFault>",
          OUTCOME_TRANSIENT },
        { "tiss", "http:500", "<faultcode>soap:Client</faultcode><detail><tissFault>LoginInvalido</tissFault>",
          OUTCOME_BLOCKED },
        { "tiss", "", "1308 GUIA J\xc3\x81 APRESENTADA", OUTCOME_DUPLICATE },
        { "tiss", "", "1801 PROCEDIMENTO INV\xc3\x81LIDO", OUTCOME_PERMANENT },
        { "tiss", "tiss:protocoloRecebimento", "HTTP 200", OUTCOME_ACCEPTED },
        { "tiss", "", "Read timed out", OUTCOME_TRANSIENT },
        { "tiss", "", "O tempo limite da opera\xc3\xa7\xc3\xa3o foi atingido", OUTCOME_TRANSIENT },
        { "tiss", "", "O tempo limite da opera\xc3\x83\xc2\xa7\xc3\x83\xc2\xa3o foi atingido", OUTCOME_TRANSIENT },
        { "tiss", "", "Error Fetching http headers", OUTCOME_TRANSIENT },
        { "tiss", "", "A connection that was expected to be kept alive was closed by the server", OUTCOME_TRANSIENT },
        { "tiss", "", "Operation timed out after 40001 milliseconds with 0 bytes received", OUTCOME_TRANSIENT },
    };
    (void)state;
    check_rows(rows, COUNT(rows));
}

static void sifen_answers(void **state)
{
    static const struct row rows[] = {
        { "sifen", "sifen:0260", "Aprobado", OUTCOME_DELIVERED }, /* S3-003 */
        { "sifen", "sifen:1005", "Transmisi\xc3\xb3n extempor\xc3\xa1nea del DE", OUTCOME_DELIVERED },
        { "sifen", "sifen:0300", "<dProtConsLote>154307038997720012</dProtConsLote>", OUTCOME_ACCEPTED },
        { "sifen", "", "0161 Servidor de procesamiento moment\xc3\x83\xc2\xa1neamente sin respuesta", OUTCOME_TRANSIENT },
        { "sifen", "", "0162 Servidor de procesamiento paralizado, sin tiempo de regreso", OUTCOME_WAIT },
        { "sifen", "", "0160 XML Mal Formado.", OUTCOME_PERMANENT },
        { "sifen", "sifen:0160", "HTTP 400 XML Mal Formado.", OUTCOME_PERMANENT },
        { "sifen", "http:200", "<html><title>BIG-IP logout page</title></html>", OUTCOME_TRANSIENT },
        { "sifen", "http:200", "<html>Welcome</html>", OUTCOME_IN_DOUBT },
        { "sifen", "sifen:0422", "CDC encontrado <xContenDE>servicio de mantenimiento, documento invalido</xContenDE>",
          OUTCOME_DELIVERED },
        { "sifen", "sifen:1301", "item: mantenimiento", OUTCOME_PERMANENT },
        { "sifen", "http:503", "HTTP 503: sistema en mantenimiento programado", OUTCOME_WAIT },
        { "sifen", "http:503", "HTTP 503", OUTCOME_TRANSIENT },
        { "sifen", "http:500", "HTTP 500", OUTCOME_TRANSIENT },
        { "sifen", "", "Error de conexi\xc3\x83\xc2\xb3n con SIFEN", OUTCOME_TRANSIENT },
        { "sifen", "", "Error de conexi\xf3n con SIFEN", OUTCOME_TRANSIENT },
        { "sifen", "", "SIFEN en mantenimiento", OUTCOME_WAIT },
        { "sifen", "", "Error de validaci\xc3\x83\xc2\xb3n del documento", OUTCOME_PERMANENT },
        { "sifen", "", "certificado vencido", OUTCOME_BLOCKED },
        { "sifen", "", "algo raro", OUTCOME_NONE },
    };
    (void)state;
    check_rows(rows, COUNT(rows));
}

static void smtp_texts(void **state)
{
    static const struct row rows[] = {
        { "smtp", "", "421 4.7.0 Try again later", OUTCOME_TRANSIENT },
        { "smtp", "", "450 4.2.1", OUTCOME_TRANSIENT },
        { "smtp", "", "451 4.7.1 greylisting", OUTCOME_TRANSIENT },
        { "smtp", "", "452 4.5.3 Too many recipients", OUTCOME_TRANSIENT },
        { "smtp", "", "552 Too many recipients", OUTCOME_TRANSIENT },
        { "smtp", "", "552 5.2.2 Mailbox full", OUTCOME_PERMANENT },
        { "smtp", "", "552 5.3.4 Message too large, make it smaller and try again", OUTCOME_PERMANENT },
        { "smtp", "", "550 5.1.1 User unknown", OUTCOME_PERMANENT },
        { "smtp", "", "550-5.1.1 The email account that you tried to reach does not exist, try again", OUTCOME_PERMANENT },
        { "smtp", "", "450 4.1.1 User unknown in local recipient table", OUTCOME_TRANSIENT },
        { "smtp", "", "550 5.1.10 RecipientNotFound", OUTCOME_PERMANENT },
        { "smtp", "", "550 5.7.1 Service unavailable; client host [192.0.2.1] blocked using zen.spamhaus.org",
          OUTCOME_TRANSIENT },
        { "smtp", "", "554 5.7.1 192.0.2.1 listed at bl.example", OUTCOME_TRANSIENT },
        { "smtp", "", "554 Your IP is blacklisted", OUTCOME_TRANSIENT },
        { "smtp", "", "554 Denied, Poor Reputation Sender", OUTCOME_TRANSIENT },
        { "smtp", "", "550 5.7.606 Access denied, banned sending IP [192.0.2.1]", OUTCOME_TRANSIENT },
        { "smtp", "", "553 5.7.1 [BL21] Connections will not be accepted", OUTCOME_TRANSIENT },
        { "smtp", "", "554 5.7.1 blocked using dbl.spamhaus.org", OUTCOME_PERMANENT },
        { "smtp", "", "554 5.7.1 Blacklisted URL, see uribl.com", OUTCOME_PERMANENT },
        { "smtp", "", "550 5.7.1 Our system has detected unsolicited mail", OUTCOME_PERMANENT },
        { "smtp", "", "550 5.7.26 Unauthenticated email: DMARC policy", OUTCOME_PERMANENT },
        { "smtp", "", "550 Greylisted, please try again", OUTCOME_TRANSIENT },
        { "smtp", "", "550 refused by grey.rbl.example", OUTCOME_TRANSIENT },
        { "smtp", "", "554 5.7.1 Relay access denied", OUTCOME_PERMANENT },
        { "smtp", "", "554 Transaction failed", OUTCOME_PERMANENT },
        { "smtp", "curl:8", "Got unexpected smtp-server response: 554", OUTCOME_TRANSIENT },
        { "smtp", "", "535 5.7.8 Username and Password not accepted, try again", OUTCOME_BLOCKED },
        { "smtp", "", "454 Throttling failure: Maximum sending rate exceeded", OUTCOME_THROTTLED },
        { "smtp", "", "454 Throttling failure: Daily message quota exceeded", OUTCOME_WAIT },
        { "smtp", "", "454 4.7.0 Temporary authentication failure", OUTCOME_THROTTLED },
        { "smtp", "", "421 4.7.0 Our system has detected an unusual rate of unsolicited mail", OUTCOME_THROTTLED },
        { "smtp", "", "421 4.7.0 [TS01] Messages from 192.0.2.1 temporarily deferred", OUTCOME_THROTTLED },
        { "smtp", "", "421 RP-001 Unfortunately, some messages were not sent", OUTCOME_THROTTLED },
        { "smtp", "", "450 4.2.1 The user is receiving mail too quickly", OUTCOME_THROTTLED },
        { "smtp", "", "450 4.2.1 Peak SMTP relay limit exceeded", OUTCOME_THROTTLED },
        { "smtp", "", "451 4.7.500 Server busy. Please try again later", OUTCOME_THROTTLED },
        { "smtp", "", "554 RLY:B1", OUTCOME_THROTTLED },
        { "smtp", "", "421 4.3.2 Too many connections, slow down", OUTCOME_THROTTLED },
        { "smtp", "", "421 Too many concurrent SMTP connections", OUTCOME_THROTTLED },
        { "smtp", "", "451 Temporary service failure", OUTCOME_TRANSIENT },
        { "smtp", "", "451 Timeout waiting for data from client", OUTCOME_TRANSIENT },
        { "smtp", "", "554 Message rejected: Email address is not verified", OUTCOME_BLOCKED },
        { "smtp", "", "SMTP 550: Mailbox not found", OUTCOME_PERMANENT },
        { "smtp", "", "Mailbox sleeping", OUTCOME_NONE },
    };
    (void)state;
    check_rows(rows, COUNT(rows));
}

static void ses_errors(void **state)
{
    static const struct row rows[] = {
        { "email", "http:429", "TooManyRequestsException", OUTCOME_THROTTLED },
        { "email", "http:400", "ThrottlingException: Maximum sending rate exceeded.", OUTCOME_THROTTLED },
        { "email", "http:400", "Throttling", OUTCOME_THROTTLED },
        { "email", "ses:ThrottlingException", "HTTP 400", OUTCOME_THROTTLED },
        { "email", "http:400", "ThrottlingException: Daily message quota exceeded.", OUTCOME_WAIT },
        { "email", "http:400", "com.amazonaws#MessageRejected", OUTCOME_PERMANENT },
        { "email", "ses:MessageRejected", "HTTP 400", OUTCOME_PERMANENT },
        { "email", "http:400", "MessageRejected: try again", OUTCOME_PERMANENT },
        { "email", "http:400",
          "MessageRejected: Email address is not verified. The following identities failed the check", OUTCOME_BLOCKED },
        { "email", "http:400", "MailFromDomainNotVerifiedException", OUTCOME_PERMANENT },
        { "email", "", "MailFromDomainNotVerified", OUTCOME_PERMANENT },
        { "email", "http:400", "AccountSuspendedException", OUTCOME_BLOCKED },
        { "email", "http:400", "SendingPausedException", OUTCOME_BLOCKED },
        { "email", "http:400", "LimitExceededException", OUTCOME_PERMANENT },
        { "email", "http:400", "BadRequestException", OUTCOME_PERMANENT },
        { "email", "http:404", "NotFoundException", OUTCOME_PERMANENT },
        { "email", "http:500", "InternalServiceErrorException", OUTCOME_TRANSIENT },
        { "email", "ses:InternalFailure", "HTTP 500", OUTCOME_TRANSIENT },
        { "email", "http:503", "ServiceUnavailable", OUTCOME_TRANSIENT },
        { "email", "http:400", "RequestExpired", OUTCOME_BLOCKED },
        { "email", "http:403", "ExpiredTokenException", OUTCOME_BLOCKED },
        { "email", "http:400", "InvalidClientTokenId", OUTCOME_BLOCKED },
        { "email", "http:403", "SignatureDoesNotMatch", OUTCOME_BLOCKED },
        { "email", "http:400", "AccessDeniedException", OUTCOME_BLOCKED },
        { "email", "http:400", "IncompleteSignature", OUTCOME_BLOCKED },
        { "email", "http:400", "MESSAGE_REJECTED", OUTCOME_PERMANENT },
        { "email", "http:200", "ACCOUNT_THROTTLED", OUTCOME_THROTTLED },
        /* C-41, C-42: 500 is final in SMTP only; an unknown SES name goes by its status */
        { "email", "http:500", "HTTP 500", OUTCOME_TRANSIENT },
        { "email", "smtp:500", "500 5.5.1 Syntax error", OUTCOME_PERMANENT },
        { "email", "http:429", "SomethingNewException", OUTCOME_THROTTLED },
        { "email", "http:503", "SomethingNewException", OUTCOME_TRANSIENT },
        { "email", "http:418", "SomethingNewException", OUTCOME_PERMANENT },
    };
    (void)state;
    check_rows(rows, COUNT(rows));
}

static void http_texts(void **state)
{
    static const struct row rows[] = {
        { "http", "", "HTTP 503 Service Unavailable", OUTCOME_TRANSIENT },
        { "http", "", "HTTP/1.1 422 Unprocessable", OUTCOME_PERMANENT },
        { "http", "", "HTTP 409", OUTCOME_DUPLICATE },
        { "http", "", "HTTP 425 Too Early", OUTCOME_TRANSIENT },
        { "http", "", "HTTP 429", OUTCOME_THROTTLED },
        { "http", "", "Connection refused", OUTCOME_TRANSIENT },
        { "http", "", "Could not resolve host: example.org", OUTCOME_TRANSIENT },
        { "http", "", "SSL certificate problem: certificate has expired", OUTCOME_BLOCKED },
        { "http", "http:500", "<faultcode>SOAP-ENV:Server</faultcode>", OUTCOME_TRANSIENT },
        { "http", "http:500", "<faultcode>SOAP-ENV:Client</faultcode>", OUTCOME_PERMANENT },
        { "http", "http:500", "<env:Code><env:Value>env:Sender</env:Value></env:Code>", OUTCOME_PERMANENT },
        { "http", "", "<env:Code><env:Value>env:Receiver</env:Value></env:Code>", OUTCOME_TRANSIENT },
        { "http", "", "operaci\xc3\x83\xc2\xb3n: connection reset by peer", OUTCOME_TRANSIENT },
        { "http", "", "something else", OUTCOME_NONE },
        { "provisioning", "http:409", "HTTP 409: account already exists", OUTCOME_DELIVERED },
        { "provisioning", "http:409", "HTTP 409: version conflict", OUTCOME_DUPLICATE },
    };
    (void)state;
    check_rows(rows, COUNT(rows));
}

/* C-15, C-56, S0-004, S1-002, S1-004: what the documents call passing and lasting, in their own words. */
static void the_documents_phrases(void **state)
{
    (void)state;
    static const struct { const char *preset, *text; enum outcome expected; } rows[] = {
        { "tiss", "Timeout de rede", OUTCOME_TRANSIENT },
        { "tiss", "Indisponibilidade tempor\xc3\xa1ria do sistema TISS", OUTCOME_TRANSIENT },
        { "tiss", "Erro de conex\xc3\xa3o", OUTCOME_TRANSIENT },
        { "tiss", "Sobrecarga moment\xc3\xa2nea (rate limit)", OUTCOME_TRANSIENT },
        { "tiss", "Dados de paciente inv\xc3\xa1lidos", OUTCOME_PERMANENT },
        { "tiss", "Dados do paciente inv\xc3\x83\xc2\xa1lidos", OUTCOME_PERMANENT },
        { "tiss", "C\xc3\xb3""digo de procedimento inexistente", OUTCOME_PERMANENT },
        { "tiss", "Autoriza\xc3\xa7\xc3\xa3o expirada", OUTCOME_PERMANENT },
        { "tiss", "AUTORIZA\xc3\x87\xc3\x83O NEGADA", OUTCOME_PERMANENT },
        { "tiss", "autorizacao negada", OUTCOME_PERMANENT },
        { "tiss", "Conta duplicada", OUTCOME_PERMANENT },
        { "tiss", "operadora n\xc3\xa3o encontrada", OUTCOME_PERMANENT },
        { "tiss", "operadora n\xc3\x83\xc2\xa3o encontrada", OUTCOME_PERMANENT },
        { "tiss", "cobertura negada", OUTCOME_PERMANENT },
        { "sifen", "Timeout de SIFEN", OUTCOME_TRANSIENT },
        { "sifen", "sobrecarga", OUTCOME_TRANSIENT },
        { "sifen", "Error de Conectividad", OUTCOME_TRANSIENT },
        { "sifen", "Problemas de red o DNS", OUTCOME_TRANSIENT },
        { "sifen", "Error de Servicio", OUTCOME_TRANSIENT },
        { "sifen", "Mantenimiento programado", OUTCOME_WAIT },
        { "sifen", "degradaci\xc3\xb3n de servicio", OUTCOME_WAIT },
        { "sifen", "Documento inv\xc3\xa1lido", OUTCOME_PERMANENT },
        { "sifen", "certificado vencido", OUTCOME_BLOCKED },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i].preset, "", rows[i].text, rows[i].expected); /* by a rule: none is left to chance */
}

/* S3-098: whatever bytes stand around it, a token is found: accents may arrive decoded twice, or cut. */
static void broken_encodings(void **state)
{
    static const char *const noise[] = { "operaci\xc3\xb3n ", "operaci\xc3\x83\xc2\xb3n ", "operaci\xf3n ", "\xc3",
      "\xff\xfe", "\xe2\x82" };
    static const struct { const char *preset, *token; enum outcome outcome; } tokens[] = {
        { "tiss", "INVALID_PATIENT_DATA", OUTCOME_PERMANENT }, { "tiss", "TIMEOUT", OUTCOME_TRANSIENT },
        { "sifen", "certificado vencido", OUTCOME_BLOCKED },   { "sifen", "mantenimiento", OUTCOME_WAIT },
        { "smtp", "MessageRejected", OUTCOME_PERMANENT },      { "provisioning", "connection refused", OUTCOME_TRANSIENT },
    };
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < COUNT(tokens); i++)
        for (size_t j = 0; j < COUNT(noise); j++) {
            char text[128];
            snprintf(text, sizeof text, "%s%s%s", noise[j], tokens[i].token, noise[j]);
            check(tokens[i].preset, "", text, tokens[i].outcome);
        }
    assert_int_equal(wrong, 0);
}

/* Rules of a preset are plain ASCII: they do not depend on how an accent was written. */
static void rules_are_ascii(void **state)
{
    (void)state;
    for (size_t i = 0; preset_name(i); i++) {
        struct slice text;
        struct error err;
        assert_int_equal(preset_text(slice_from(preset_name(i)), &text, &err), STATUS_OK);
        for (size_t at = 0; at < text.len; at++)
            assert_in_range((unsigned char)text.data[at], 1, 127);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_statuses), cmocka_unit_test(curl_codes),       cmocka_unit_test(exec_codes),
        cmocka_unit_test(queue_codes),
        cmocka_unit_test(sifen_codes),
        cmocka_unit_test(tiss_glosas),   cmocka_unit_test(smtp_replies),     cmocka_unit_test(tiss_answers),
        cmocka_unit_test(sifen_answers), cmocka_unit_test(smtp_texts),       cmocka_unit_test(ses_errors),
        cmocka_unit_test(http_texts),    cmocka_unit_test(the_documents_phrases), cmocka_unit_test(broken_encodings), cmocka_unit_test(rules_are_ascii),
    };
    return cmocka_run_group_tests(tests, NULL, presets_release);
}
