/* A small server that keeps registers in a log, and its term in a file of its own.

   durable PORT FOLDER [BUG]    A request is a line: `read KEY`, `write KEY VALUE`, `cas KEY OLD NEW` or `vote`.
                                An answer is a line: `ok VALUE`, or `no VALUE` if a register holds another value than OLD.
                                A vote is for the next term, and no term has two.

   A record of the log has two sectors: the key, and the value. BUG plants a bug on purpose: acknowledged-before-sync,
   torn-tail, lost-rename or vote-before-store. */

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REGISTERS = 4096, SECTOR = 512, RECORD = 2 * SECTOR, WORD = 32, LINE = 4 * WORD };

static struct { char key[WORD], value[WORD]; } registers[REGISTERS];
static int used, term, log_file, directory;
static const char *bug = "none";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int has(const char *name) { return strcmp(bug, name) == 0; }

static void end(const char *what) {
    perror(what);
    exit(1);
}

/* Returns the place of a register; a new one is empty. */
static char *place(const char *key) {
    for (int i = 0; i < used; i++)
        if (strcmp(registers[i].key, key) == 0) return registers[i].value;
    if (used == REGISTERS) end("too many registers");
    snprintf(registers[used].key, WORD, "%s", key);
    return registers[used++].value;
}

static void sync_file(int file) {
    if (fsync(file) != 0) end("fsync");
}

static void store(const char *key, const char *value) {
    char record[RECORD] = "";
    snprintf(record, WORD, "%s", key);
    snprintf(record + SECTOR, WORD, "%s", value);
    if (write(log_file, record, RECORD) != RECORD) end("write");
    if (!has("acknowledged-before-sync")) sync_file(log_file);
    snprintf(place(key), WORD, "%s", value);
}

static void store_term(void) {
    char text[WORD];
    int length = snprintf(text, WORD, "%d\n", term), file = openat(directory, "term.new", O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (file < 0 || write(file, text, length) != length) end("term.new");
    sync_file(file);
    close(file);
    if (renameat(directory, "term.new", directory, "term") != 0) end("rename");
    if (!has("lost-rename")) sync_file(directory);
}

/* Reads the files, and cuts off a last record that is not whole. */
static void load(const char *folder) {
    char record[RECORD + 1] = "", text[WORD] = "";
    directory = open(folder, O_RDONLY);
    log_file = openat(directory, "log", O_CREAT | O_RDWR | O_APPEND, 0644);
    if (directory < 0 || log_file < 0) end(folder);
    off_t whole = 0;
    for (ssize_t size; (size = read(log_file, record, RECORD)) > 0; memset(record, 0, RECORD)) {
        if (size < RECORD && !has("torn-tail")) break;
        snprintf(place(record), WORD, "%s", record + SECTOR);
        whole += size;
    }
    if (ftruncate(log_file, whole) != 0) end("log");
    sync_file(log_file);
    sync_file(directory);
    int file = openat(directory, "term", O_RDONLY);
    if (file >= 0 && read(file, text, WORD - 1) > 0) term = atoi(text);
    close(file);
}

/* Carries out one request, and writes the answer. */
static void carry_out(const char *request, char *answer) {
    char function[WORD] = "", key[WORD] = "", first[WORD] = "", second[WORD] = "", held[WORD];
    sscanf(request, "%31s %31s %31s %31s", function, key, first, second);
    int is_cas = strcmp(function, "cas") == 0, changes = is_cas || strcmp(function, "write") == 0;
    pthread_mutex_lock(&lock);
    if (strcmp(function, "vote") == 0) {
        snprintf(held, WORD, "%d", ++term);
        if (!has("vote-before-store")) store_term();
    } else {
        snprintf(held, WORD, "%s", *place(key) ? place(key) : "-");
    }
    int applied = changes && (!is_cas || strcmp(held, first) == 0);
    if (applied) store(key, is_cas ? second : first);
    pthread_mutex_unlock(&lock);
    snprintf(answer, LINE, "%s %s\n", changes && !applied ? "no" : "ok", held);
}

static void *serve(void *connection) {
    int socket = (int)(long)connection;
    FILE *stream = fdopen(socket, "r");
    char request[LINE], answer[LINE];
    while (fgets(request, sizeof request, stream)) {
        carry_out(request, answer);
        if (write(socket, answer, strlen(answer)) < 0) break;
        pthread_mutex_lock(&lock);
        if (has("acknowledged-before-sync")) sync_file(log_file);
        if (has("vote-before-store")) store_term();
        pthread_mutex_unlock(&lock);
    }
    fclose(stream);
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: durable PORT FOLDER [BUG]\n");
        return 2;
    }
    if (count > 3) bug = arguments[3];
    signal(SIGPIPE, SIG_IGN);
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
