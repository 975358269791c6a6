/*
 * certificates.h - certificates for tests, made anew in a folder of their own.
 */
#ifndef TESTS_CERTIFICATES_H
#define TESTS_CERTIFICATES_H

enum { CERTIFICATE_PATH_BYTES = 128 };

/* Paths of PEM files. Each certificate NAME.pem has its key in NAME.key. */
struct certificates {
    char folder[CERTIFICATE_PATH_BYTES];
    char ca[CERTIFICATE_PATH_BYTES];       /* issues all but the last */
    char other_ca[CERTIFICATE_PATH_BYTES];
    char server[CERTIFICATE_PATH_BYTES];   /* localhost and 127.0.0.1 */
    char expired[CERTIFICATE_PATH_BYTES];  /* likewise, until yesterday */
    char elsewhere[CERTIFICATE_PATH_BYTES]; /* elsewhere.example */
    char client[CERTIFICATE_PATH_BYTES];
    char stranger[CERTIFICATE_PATH_BYTES]; /* a client's, of other_ca */
};

void certificates_make(struct certificates *certificates);
void certificates_remove(struct certificates *certificates);
/* NAME.key for NAME.pem, in a buffer that the next call but three overwrites. */
const char *certificate_key(const char *path);

#endif
