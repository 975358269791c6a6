/*
 * digest.h - what a job was when it was written, so that one that was changed on disk is not sent.
 *
 * It begins with the digest that OP_INSERT compares with, which stays whatever comes. Behind it stands a hash of what is to
 * be sent now, which a corrected payload changes: a quick one, since every claim makes it again, and all it must find is
 * damage.
 */
#ifndef STORE_DIGEST_H
#define STORE_DIGEST_H

#include "store/store.h"

enum { JOB_DIGEST_BYTES = 16, JOB_CHECK_BYTES = 8, JOB_DIGEST_BYTES_MAX = JOB_DIGEST_BYTES + JOB_CHECK_BYTES };

void job_digest_make(const struct op_insert *insert, unsigned char ret_digest[JOB_DIGEST_BYTES_MAX]);
/* Of destination, content type, headers and payload. */
void job_check_make(const struct job *job, unsigned char ret_check[JOB_CHECK_BYTES]);
/* Whether the job, with its payload, is another than what was written. */
bool job_check_differs(const struct job *job, const unsigned char digest[JOB_DIGEST_BYTES_MAX]);

#endif
