#include "support/certificates.h"

#include "support/check.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DAY_S = 24 * 60 * 60 };

struct issuer {
    X509 *certificate;
    EVP_PKEY *key;
};

const char *certificate_key(const char *path)
{
    static char keys[4][CERTIFICATE_PATH_BYTES];
    static unsigned next;
    char *key = keys[next++ % 4];
    snprintf(key, CERTIFICATE_PATH_BYTES, "%.*s.key", (int)(strlen(path) - strlen(".pem")), path);
    return key;
}

static void add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void write_files(const char *path, X509 *certificate, EVP_PKEY *key)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    file = fopen(certificate_key(path), "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

/* `names` NULL: an authority, issued by itself and returned. */
static struct issuer make(const char *path, const struct issuer *issuer, const char *names, long from_s, long until_s)
{
    static long serial = 1;
    struct issuer made = { X509_new(), EVP_EC_gen("P-256") };
    assert_true(made.certificate && made.key);
    X509_NAME *name = X509_get_subject_name(made.certificate);
    X509_set_version(made.certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), from_s);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), until_s);
    X509_set_pubkey(made.certificate, made.key);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)path, -1, -1, 0);
    const struct issuer *by = issuer ? issuer : &made;
    X509_set_issuer_name(made.certificate, X509_get_subject_name(by->certificate));
    add_extension(made.certificate, by->certificate, NID_basic_constraints, names ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (names)
        add_extension(made.certificate, by->certificate, NID_subject_alt_name, names);
    assert_true(X509_sign(made.certificate, by->key, EVP_sha256()) > 0);
    write_files(path, made.certificate, made.key);
    return made;
}

static void issuer_free(struct issuer issuer)
{
    X509_free(issuer.certificate);
    EVP_PKEY_free(issuer.key);
}

void certificates_make(struct certificates *certificates)
{
    static const char here[] = "DNS:localhost,IP:127.0.0.1";
    struct certificates *made = certificates;
    snprintf(made->folder, sizeof made->folder, "/tmp/insist-certificates-XXXXXX");
    assert_non_null(mkdtemp(made->folder));
    char *const paths[] = { made->ca, made->other_ca, made->server, made->expired, made->elsewhere, made->client, made->stranger };
    static const char *const names[] = { "ca", "other_ca", "server", "expired", "elsewhere", "client", "stranger" };
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        snprintf(paths[i], CERTIFICATE_PATH_BYTES, "%.64s/%s.pem", made->folder, names[i]);
    struct issuer ca = make(made->ca, NULL, NULL, -DAY_S, DAY_S);
    struct issuer other = make(made->other_ca, NULL, NULL, -DAY_S, DAY_S);
    issuer_free(make(made->server, &ca, here, -DAY_S, DAY_S));
    issuer_free(make(made->expired, &ca, here, -2 * DAY_S, -DAY_S));
    issuer_free(make(made->elsewhere, &ca, "DNS:elsewhere.example", -DAY_S, DAY_S));
    issuer_free(make(made->client, &ca, "DNS:client.example", -DAY_S, DAY_S));
    issuer_free(make(made->stranger, &other, "DNS:stranger.example", -DAY_S, DAY_S));
    issuer_free(ca);
    issuer_free(other);
}

void certificates_remove(struct certificates *certificates)
{
    const char *const paths[] = { certificates->ca,        certificates->other_ca, certificates->server,  certificates->expired,
                                  certificates->elsewhere, certificates->client,   certificates->stranger };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        unlink(paths[i]);
        unlink(certificate_key(paths[i]));
    }
    rmdir(certificates->folder);
}
