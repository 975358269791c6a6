#include "node/reads.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct reads {
    struct message stop;
    struct mailbox *mailbox;
    struct store_reader *reader;
    pthread_t thread;
    bool stopping; /* the thread's own */
};

static void run_piece(struct store_read *read, struct store_reader *reader)
{
    read->more = false;
    read->status = read->run(read, reader, &read->error);
    if (read->status != STATUS_OK && read->error.status == STATUS_OK) /* whoever hears of it hears of a failure */
        error_set(&read->error, read->status, "the store could not be read: %s", status_name(read->status));
    read->pieces++;
    assert(!read->more || read->status == STATUS_OK);
}

void store_read_run(struct store_read *read, struct store_reader *reader)
{
    do
        run_piece(read, reader);
    while (read->more);
    read->done(read);
}

static void run_done(struct message *message)
{
    struct store_read *read = message_of(message, MESSAGE_READ_DONE);
    read->done(read);
}

static void run_read(struct message *message)
{
    struct store_read *read = message_of(message, MESSAGE_READ);
    run_piece(read, read->reads->reader);
    if (read->more)
        mailbox_post(read->reads->mailbox, message, MESSAGE_READ, run_read);
    else
        mailbox_post(read->reply_to, message, MESSAGE_READ_DONE, run_done);
}

void reads_submit(struct reads *reads, struct store_read *read)
{
    assert(read->run && read->done && read->reply_to);
    read->reads = reads;
    mailbox_post(reads->mailbox, &read->message, MESSAGE_READ, run_read);
}

static void run_stop(struct message *message)
{
    struct reads *reads = message_of(message, MESSAGE_STOP);
    reads->stopping = true;
}

static void *reads_main(void *context)
{
    struct reads *reads = context;
    while (mailbox_drain(reads->mailbox) || !reads->stopping)
        mailbox_wait(reads->mailbox, reads->stopping ? 0 : -1);
    return NULL;
}

enum status reads_new(struct store *store, struct reads **ret_reads, struct error *err)
{
    struct reads *reads = calloc(1, sizeof *reads);
    if (!reads)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the thread that reads");
    enum status status = mailbox_new(&reads->mailbox, err);
    if (status == STATUS_OK)
        status = store->ops->reader(store, &reads->reader, err);
    if (status == STATUS_OK && pthread_create(&reads->thread, NULL, reads_main, reads) != 0)
        status = error_set(err, STATUS_IO, "cannot start the thread that reads");
    if (status != STATUS_OK) {
        if (reads->reader)
            reads->reader->ops->reader_close(reads->reader);
        mailbox_free(reads->mailbox);
        free(reads);
        return status;
    }
    *ret_reads = reads;
    return STATUS_OK;
}

void reads_free(struct reads *reads)
{
    if (!reads)
        return;
    mailbox_post(reads->mailbox, &reads->stop, MESSAGE_STOP, run_stop);
    pthread_join(reads->thread, NULL);
    reads->reader->ops->reader_close(reads->reader);
    mailbox_free(reads->mailbox);
    free(reads);
}
