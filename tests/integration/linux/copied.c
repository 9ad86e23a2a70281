// Works for five seconds, and prints what it sees of itself: ids, files, locks, memory, signals and its place in /proc.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long turns;
static volatile int handled;
static char *mapped;
static __thread long own;

static void sleep_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void handle(int number) {
    stack_t stack;
    sigaltstack(NULL, &stack);
    handled += number * (stack.ss_flags & SS_ONSTACK ? 1 : 1000);
}

static void *work(void *argument) {
    long number = (long)argument;
    char *memory = malloc(65536);
    stack_t stack = {.ss_sp = memory, .ss_size = 65536};
    sigaltstack(&stack, NULL);
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (turns % 3 != number) pthread_cond_wait(&changed, &mutex);
        turns++;
        own += number + 1;
        mapped[turns % 4096] = (char)turns;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
        unsigned char byte;
        getrandom(&byte, 1, 0);
        sleep_ms(1 + byte % 7);
        if (number == 1 && byte % 16 == 0) pthread_kill(pthread_self(), SIGUSR1);
    }
}

static void *end(void *argument) { return argument; }

static void look(int log) {
    struct stat state;
    char line[256], link[64] = {0};
    DIR *folder = opendir("/root/data");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[512];
        snprintf(path, sizeof path, "/root/data/%s", entry->d_name);
        lstat(path, &state);
        printf("%s %lu %lu %ld;", entry->d_name, state.st_ino, state.st_nlink, (long)state.st_size);
    }
    closedir(folder);
    readlink("/proc/self", link, sizeof link - 1);
    int found = 0;
    folder = opendir("/proc/self/task");
    while (readdir(folder) != NULL) found++;
    closedir(folder);
    pthread_mutex_lock(&mutex);
    printf(" turns %ld own %d pid %d %s tid %ld threads %d group %d session %d place %ld\n", turns, mapped[turns % 4096], getpid(), link,
           syscall(SYS_gettid), found, getpgrp(), getsid(0), (long)lseek(log, 0, SEEK_CUR));
    pthread_mutex_unlock(&mutex);
    snprintf(line, sizeof line, "%ld\n", turns);
    write(log, line, strlen(line));
}

int main(void) {
    signal(SIGUSR1, handle);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    mkdir("/root/data", 0755);
    mkdir("/root/data/sub", 0755);
    for (int number = 0; number < 6; number++) {
        char path[64];
        snprintf(path, sizeof path, "/root/data/file-%d", number);
        close(open(path, O_CREAT | O_WRONLY, 0644));
    }
    symlink("file-1", "/root/data/link");
    int log = open("/root/data/log", O_CREAT | O_RDWR, 0644);
    int memory = open("/root/data/mapped", O_CREAT | O_RDWR, 0644);
    ftruncate(memory, 1 << 20);
    mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};
    fcntl(memory, F_SETLK, &lock);
    flock(log, LOCK_EX);
    pthread_t threads[3], brief;
    for (long number = 0; number < 3; number++) pthread_create(&threads[number], NULL, work, (void *)number);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int round = 0; round < 50; round++) {
        sleep_ms(100);
        look(log);
        if (round == 30) {
            unlink("/root/data/file-3");
            rename("/root/data/file-4", "/root/data/renamed");
            rmdir("/root/data/sub");
            ftruncate(log, 7);
            memset(mapped + 8192, 7, 5000);
            char path[64];
            snprintf(path, sizeof path, "/root/data/new-%d", round);
            int made = open(path, O_CREAT | O_RDWR, 0600);
            write(made, path, strlen(path));
            chmod("/root/data/file-0", 0600);
            pthread_create(&brief, NULL, end, NULL);
            pthread_join(brief, NULL);
        }
        if (round == 35) {
            pid_t child = fork();
            if (child == 0) {
                int other = open("/root/data/mapped", O_RDWR);
                struct flock held = lock;
                fcntl(other, F_GETLK, &held);
                printf("child %d of %d: lock %d of %d, flock %d\n", getpid(), getppid(), held.l_type, held.l_pid,
                       flock(open("/root/data/log", O_RDWR), LOCK_EX | LOCK_NB));
                exit(3);
            }
            int status;
            pid_t ended = waitpid(child, &status, 0);
            lock.l_type = F_UNLCK;
            int freed = fcntl(memory, F_SETLK, &lock);
            printf("waited for %d: %d; freed %d; handled %d\n", ended, WEXITSTATUS(status), freed, handled);
        }
    }
    exit(0);
}
