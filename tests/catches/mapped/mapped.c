/* A key-value server whose registers are in a mapped file, with one thread for each connection.

   mapped PORT FOLDER [BUG]    Requests and answers are those of examples/own_binary/kv.c.

   BUG plants a bug on purpose: no-msync, answer-before-msync, asynchronous-msync, sync-file-range, msync-again or
   unreadable-is-new. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REGISTERS = 1024, WORD = 32, LINE = 3 * WORD, PAGE = 4096 };

struct slot { char key[WORD], value[WORD]; } __attribute__((aligned(PAGE))); /* a change of one makes no other one durable */
static struct slot *slots;
static const size_t size = REGISTERS * sizeof(struct slot);
static int file;
static const char *bug = "none";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __thread sigjmp_buf unreadable;

static int has(const char *name) { return strcmp(bug, name) == 0; }

static void end(const char *what) {
    perror(what);
    exit(1);
}

/* Returns the slot of a register; a new one holds `-`. */
static struct slot *place(const char *key) {
    for (int i = 0; i < REGISTERS; i++) {
        if (slots[i].key[0] == 0) {
            snprintf(slots[i].value, WORD, "-");
            snprintf(slots[i].key, WORD, "%s", key);
        }
        if (strcmp(slots[i].key, key) == 0) return &slots[i];
    }
    end("too many registers");
    return NULL;
}

static void sync_slot(struct slot *slot) {
    int failed;
    if (has("sync-file-range"))
        failed = sync_file_range(file, (char *)slot - (char *)slots, PAGE, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    else
        failed = msync(slot, PAGE, has("asynchronous-msync") ? MS_ASYNC : MS_SYNC);
    if (failed && has("msync-again")) failed = msync(slot, PAGE, MS_SYNC); /* it works, and writes nothing */
    if (failed) end("sync");
}

/* Writes all registers again: after an msync that failed, Linux has pages in memory that no msync writes. */
static void write_again(void) {
    struct slot slot = {.key = "any"};
    for (off_t at = 0; slot.key[0]; at += sizeof slot)
        if (pread(file, &slot, sizeof slot, at) != sizeof slot || pwrite(file, &slot, sizeof slot, at) != sizeof slot) end("write");
}

/* A page could not be read. */
static void on_bus_error(int signal) {
    (void)signal;
    siglongjmp(unreadable, 1);
}

static void load(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/registers", folder);
    file = open(path, O_CREAT | O_RDWR, 0644);
    int directory = open(folder, O_RDONLY);
    if (file < 0 || directory < 0 || ftruncate(file, size) != 0) end(path);
    write_again();
    if (fsync(file) != 0 || fsync(directory) != 0) end(path);
    slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (slots == MAP_FAILED) end("mmap");
    close(directory);
}

/* Carries out one request, and writes the answer. Returns the slot that is to be synced after it; NULL: none. */
static struct slot *carry_out(const char *request, char *answer) {
    char function[WORD] = "", key[WORD] = "", first[WORD] = "", second[WORD] = "", held[WORD];
    sscanf(request, "%31s %31s %31s %31s", function, key, first, second);
    int is_cas = strcmp(function, "cas") == 0, changes = is_cas || strcmp(function, "write") == 0;
    pthread_mutex_lock(&lock);
    if (has("unreadable-is-new") && sigsetjmp(unreadable, 1)) {
        pthread_mutex_unlock(&lock);
        snprintf(answer, LINE, "ok -\n");
        return NULL;
    }
    struct slot *slot = place(key);
    snprintf(held, WORD, "%s", slot->value);
    int applied = changes && (!is_cas || strcmp(held, first) == 0);
    if (applied) {
        snprintf(slot->value, WORD, "%s", is_cas ? second : first);
        if (!has("no-msync") && !has("answer-before-msync")) sync_slot(slot);
    }
    pthread_mutex_unlock(&lock);
    snprintf(answer, LINE, "%s %s\n", changes && !applied ? "no" : "ok", held);
    return applied && has("answer-before-msync") ? slot : NULL;
}

static void *serve(void *connection) {
    int socket = (int)(long)connection;
    FILE *stream = fdopen(socket, "r");
    char request[LINE], answer[LINE];
    while (fgets(request, sizeof request, stream)) {
        struct slot *slot = carry_out(request, answer);
        if (write(socket, answer, strlen(answer)) < 0) break;
        if (slot) sync_slot(slot);
    }
    fclose(stream);
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: mapped PORT FOLDER [BUG]\n");
        return 2;
    }
    if (count > 3) bug = arguments[3];
    signal(SIGPIPE, SIG_IGN);
    if (has("unreadable-is-new")) signal(SIGBUS, on_bus_error);
    load(arguments[2]);
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1]))};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 128) != 0) end("listen");
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        pthread_t thread;
        if (connection < 0 || pthread_create(&thread, NULL, serve, (void *)(long)connection) != 0) end("accept");
        pthread_detach(thread);
    }
}
