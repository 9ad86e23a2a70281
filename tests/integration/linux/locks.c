// Waits for locks of a file. It prints the same natively and in the simulation: all others wait while one goes on.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long result) {
    printf("%s = %ld%s%s\n", what, result, result < 0 ? " " : "", result < 0 ? strerror(errno) : "");
    fflush(stdout);
}

static void rest(void) {
    struct timespec pause = {0, 200000000};
    nanosleep(&pause, NULL);
}

static void tell(const int *ends) { (void)!write(ends[1], "x", 1); }

static void hear(const int *ends) {
    char byte;
    (void)!read(ends[0], &byte, 1);
}

static int opened(void) { return open("lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600); }

static int record(int file, int command, int kind) {
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};
    return fcntl(file, command, &lock);
}

enum way { FLOCK, RECORD, OWN };

static int take(enum way way, int file, int waits) {
    if (way == FLOCK) return flock(file, LOCK_EX | (waits ? 0 : LOCK_NB));
    if (way == RECORD) return record(file, waits ? F_SETLKW : F_SETLK, F_WRLCK);
    return record(file, waits ? F_OFD_SETLKW : F_OFD_SETLK, F_WRLCK);
}

static int give(enum way way, int file) {
    if (way == FLOCK) return flock(file, LOCK_UN);
    return record(file, way == RECORD ? F_SETLK : F_OFD_SETLK, F_UNLCK);
}

static void interrupted(int signal) { (void)signal; }

int main(int count, char **arguments) {
    (void)count;
    if (!strcmp(arguments[0], "again")) return 0;
    const char *names[] = {"flock", "a record", "a record of the open file"};
    struct sigaction action = {.sa_handler = interrupted};
    sigaction(SIGUSR1, &action, NULL);
    for (enum way way = FLOCK; way <= OWN; way++)
        for (int end = 0; end < 4; end++) { // given back, closed, ended with the process, and a wait that a signal ends
            printf("-- %s, %d\n", names[way], end);
            fflush(stdout);
            int file = opened(), ready[2], go[2];
            if (pipe(ready) < 0 || pipe(go) < 0) return 1;
            pid_t third = 0;
            if (end != 2) {
                say("the first takes it", take(way, file, 0));
            } else if ((third = fork()) == 0) {
                close(go[1]);
                say("the third takes it", take(way, file, 0));
                tell(ready);
                hear(go); // the end of the pipe
                _exit(4);
            } else {
                hear(ready);
                close(file);
            }
            pid_t other = fork();
            if (other == 0) {
                close(file);
                close(go[1]);
                int own = opened();
                say("the other one does not get it", take(way, own, 0));
                tell(ready);
                say("the other one waits for it", take(way, own, 1));
                say("the other one gives it back", give(way, own));
                _exit(3);
            }
            hear(ready);
            rest();
            say("before the lock is free", end);
            int given = end == 0 ? give(way, file) : 0;
            if (end == 1) close(file);
            close(go[1]);
            int status;
            while (waitpid(other, &status, end == 3 ? WNOHANG : 0) == 0) {
                kill(other, SIGUSR1);
                rest();
            }
            if (end == 0) say("the first gave it back", given); // after the other one's lines, in either world
            say("status of the other one", status);
            if (third) {
                waitpid(third, &status, 0);
                say("status of the third", status);
            }
            close(ready[0]);
            close(ready[1]);
            close(go[0]);
            close(file);
        }
    int file = opened();
    say("a lock that an exec ends", flock(file, LOCK_EX));
    fflush(stdout);
    pid_t other = fork();
    if (other == 0) {
        rest();
        execl("/proc/self/exe", "again", NULL);
        _exit(1);
    }
    close(file);
    say("the lock after the exec", flock(opened(), LOCK_EX));
    wait(NULL);
    return 0;
}
