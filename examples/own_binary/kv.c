/* A small key-value server: registers in memory and in a log, with one thread for each connection.

   kv PORT FOLDER [BUG]    A request is a line: `read KEY`, `write KEY VALUE` or `cas KEY OLD NEW`.
                           An answer is a line: `ok VALUE`, or `no VALUE` if a register holds another value than OLD.

   BUG plants a bug on purpose: no-sync, answer-before-sync or cas-in-two-steps. */

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REGISTERS = 4096, WORD = 32, LINE = 3 * WORD };

static struct { char key[WORD], value[WORD]; } registers[REGISTERS];
static int used, log_file;
static const char *bug = "none";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int has(const char *name) { return strcmp(bug, name) == 0; }

static void end(const char *what) {
    perror(what);
    exit(1);
}

/* Writes a line of the log for people. */
static void say(const char *form, ...) {
    va_list values;
    va_start(values, form);
    vdprintf(1, form, values);
    va_end(values);
}

/* Returns the place of a register; a new one holds `-`. */
static char *place(const char *key) {
    for (int i = 0; i < used; i++)
        if (strcmp(registers[i].key, key) == 0) return registers[i].value;
    if (used == REGISTERS) end("too many registers");
    snprintf(registers[used].key, WORD, "%s", key);
    snprintf(registers[used].value, WORD, "-");
    return registers[used++].value;
}

static void sync_log(void) {
    if (fsync(log_file) != 0) end("fsync");
}

static void store(const char *key, const char *value) {
    char line[LINE];
    int length = snprintf(line, sizeof line, "%s %s\n", key, value);
    if (write(log_file, line, length) != length) end("write");
    if (!has("no-sync") && !has("answer-before-sync")) sync_log();
    snprintf(place(key), WORD, "%s", value);
}

/* Reads the log, and cuts off a last line that is not whole. */
static void load(const char *folder) {
    char path[4096], line[LINE], key[WORD], value[WORD];
    snprintf(path, sizeof path, "%s/log", folder);
    log_file = open(path, O_CREAT | O_RDWR | O_APPEND, 0644);
    FILE *file = fopen(path, "r");
    if (log_file < 0 || file == NULL) end(path);
    off_t whole = 0;
    while (fgets(line, sizeof line, file) && strchr(line, '\n') && sscanf(line, "%31s %31s", key, value) == 2) {
        snprintf(place(key), WORD, "%s", value);
        whole += strlen(line);
    }
    fclose(file);
    int directory = open(folder, O_RDONLY);
    if (ftruncate(log_file, whole) != 0 || fsync(log_file) != 0 || fsync(directory) != 0) end(path);
    close(directory);
    say("%d registers, %lld bytes\n", used, (long long)whole);
}

/* Carries out one request, and writes the answer. */
static void carry_out(const char *request, char *answer) {
    char function[WORD] = "", key[WORD] = "", first[WORD] = "", second[WORD] = "", held[WORD];
    sscanf(request, "%31s %31s %31s %31s", function, key, first, second);
    int is_cas = strcmp(function, "cas") == 0, changes = is_cas || strcmp(function, "write") == 0;
    pthread_mutex_lock(&lock);
    snprintf(held, WORD, "%s", place(key));
    if (is_cas) {
        if (has("cas-in-two-steps")) pthread_mutex_unlock(&lock); /* another thread may change the register now */
        say("cas of %s from %s to %s: it holds %s\n", key, first, second, held);
        if (has("cas-in-two-steps")) pthread_mutex_lock(&lock);
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
        if (has("answer-before-sync")) sync_log();
    }
    fclose(stream);
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: kv PORT FOLDER [BUG]\n");
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
