// Calls that a program may answer itself, with all registers around them. It prints the same whether they stop or not.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct state { uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15, flags, below[4], vector[2]; };

// Makes a call from one place, with a pattern in all other registers, in the flags and below the stack pointer.
#define MAKES(name, number)                                                                                              \
    void name(struct state *state);                                                                                      \
    __asm__(".text\n" #name ":\n"                                                                                        \
            "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rdi\n"                        \
            "mov 128(%rdi), %rax\n mov %rax, -8(%rsp)\n mov 136(%rdi), %rax\n mov %rax, -128(%rsp)\n"                    \
            "movups 160(%rdi), %xmm3\n"                                                                                  \
            "mov 8(%rdi), %rbx\n mov 24(%rdi), %rdx\n mov 32(%rdi), %rsi\n mov 48(%rdi), %rbp\n mov 56(%rdi), %r8\n"     \
            "mov 64(%rdi), %r9\n mov 72(%rdi), %r10\n mov 88(%rdi), %r12\n mov 96(%rdi), %r13\n mov 104(%rdi), %r14\n"   \
            "mov 112(%rdi), %r15\n mov 40(%rdi), %rdi\n"                                                                 \
            "cmp %rbx, %r15\n stc\n"                                                                                     \
            "mov $" #number ", %eax\n syscall\n movq -8(%rsp), %xmm4\n"                                                 \
            "push %rdi\n pushf\n mov 16(%rsp), %rdi\n"                                                                   \
            "mov %rax, (%rdi)\n mov %rbx, 8(%rdi)\n mov %rcx, 16(%rdi)\n mov %rdx, 24(%rdi)\n mov %rsi, 32(%rdi)\n"      \
            "pop 120(%rdi)\n pop 40(%rdi)\n mov %rbp, 48(%rdi)\n mov %r8, 56(%rdi)\n mov %r9, 64(%rdi)\n"                \
            "mov %r10, 72(%rdi)\n mov %r11, 80(%rdi)\n mov %r12, 88(%rdi)\n mov %r13, 96(%rdi)\n mov %r14, 104(%rdi)\n"  \
            "mov %r15, 112(%rdi)\n mov -128(%rsp), %rax\n mov %rax, 136(%rdi)\n movups %xmm3, 160(%rdi)\n"               \
            "movq %xmm4, 128(%rdi)\n"                                                                                   \
            "pop %rdi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n")

MAKES(sleeps, 35);
MAKES(wakes, 202);
MAKES(reads, 228);
MAKES(looks, 232);
MAKES(looks_patiently, 281);

static uint64_t call(void (*make)(struct state *), uint64_t one, uint64_t two, uint64_t three, uint64_t four) {
    struct state state;
    for (size_t word = 0; word < sizeof state / 8; word++) ((uint64_t *)&state)[word] = 0x0123456789abcdeful * (word + 1);
    state.rdi = one;
    state.rsi = two;
    state.rdx = three;
    state.r10 = four;
    make(&state);
    uint64_t sum = 14695981039346656037ul;
    for (size_t word = 0; word < sizeof state / 8; word++) sum = (sum ^ ((uint64_t *)&state)[word]) * 1099511628211ul;
    printf(" %ld#%08x", (long)state.rax, (uint32_t)(sum >> 32));
    return state.rax;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t used(clockid_t clock) {
    struct timespec time;
    call(reads, (uint64_t)(int64_t)clock, (uint64_t)&time, 0, 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint32_t word, others[600];
static volatile sig_atomic_t signals;

static void *wait_for(void *at) {
    syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return NULL;
}

static void count(int signal) {
    (void)signal;
    signals++;
}

static void sleep_often(void) {
    static struct timespec elsewhere = {0, 30000};
    for (int round = 0; round < 300; round++) {
        struct timespec pause = {0, 1000 * (round % 40)};
        call(sleeps, (uint64_t)&pause, 0, 0, 0);
        if (round % 50 == 0) {
            struct timespec longer[] = {{0, 9999000}, {0, 20000000}, {1, 200000000}, {-1, 0}, {0, -1}, {0, 2000000000}};
            for (int place = 0; place < 6; place++) call(sleeps, (uint64_t)&longer[place], 0, 0, 0);
            call(sleeps, (uint64_t)&elsewhere, 0, 0, 0);
            call(sleeps, 8, 0, 0, 0);
        }
        if (round % 10 == 0) printf(" at %lu\n", now());
    }
}

static void wake_often(void) {
    pthread_t threads[40];
    for (int round = 0; round < 20; round++) {
        for (int place = 0; place < 40; place++) {
            pthread_create(&threads[place], NULL, wait_for, place % 4 == 0 ? &word : &others[place * 10 + round]);
        }
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        call(wakes, (uint64_t)&word, FUTEX_WAKE_PRIVATE, 0, 0);
        call(wakes, (uint64_t)&word, FUTEX_WAKE_PRIVATE, 1, 0);
        call(wakes, (uint64_t)&word, FUTEX_WAKE, 3, 0);
        call(sleeps, (uint64_t)&pause, 0, 0, 0);
        call(wakes, (uint64_t)&word + 1, FUTEX_WAKE_PRIVATE, 1, 0);
        for (int place = 0; place < 600; place++) {
            others[place] = 1; // a thread that comes late does not wait
            call(wakes, (uint64_t)&others[place], FUTEX_WAKE_PRIVATE, INT_MAX, 0);
        }
        word = 1;
        call(wakes, (uint64_t)&word, FUTEX_WAKE_PRIVATE, INT_MAX, 0);
        call(wakes, (uint64_t)&word, FUTEX_WAKE_PRIVATE, INT_MAX, 0);
        for (int place = 0; place < 40; place++) pthread_join(threads[place], NULL);
        memset(others, 0, sizeof others);
        word = 0;
        printf(" at %lu\n", now());
    }
}

static void look_often(void) {
    int epoll = epoll_create1(0), event = eventfd(0, EFD_NONBLOCK);
    struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = 7}, reports[4];
    epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted);
    for (int round = 0; round < 50; round++) {
        uint64_t one = 1;
        call(looks, (uint64_t)epoll, (uint64_t)reports, 4, 0);
        call(looks_patiently, (uint64_t)epoll, (uint64_t)reports, 4, 0);
        call(looks, (uint64_t)epoll, (uint64_t)reports, 0, 0);
        if (round % 5 == 0) {
            (void)!write(event, &one, 8);
            call(looks, (uint64_t)epoll, (uint64_t)reports, 4, 0);
            call(looks, (uint64_t)epoll, (uint64_t)reports, 4, 0);
            (void)!read(event, &one, 8);
        }
        call(looks, (uint64_t)epoll, (uint64_t)reports, 4, 0);
    }
    close(epoll);
    call(looks, (uint64_t)epoll, (uint64_t)reports, 4, 0);
    close(event);
    printf(" at %lu\n", now());
}

static void read_often(void) {
    for (int round = 0; round < 100; round++) {
        for (clockid_t clock = -3; clock < 5; clock++) {
            uint64_t time = used(clock);
            if (clock < 0 || clock == 2 || clock == 3) printf(" %lu", time);
        }
        call(reads, CLOCK_THREAD_CPUTIME_ID, 8, 0, 0);
    }
    printf(" at %lu\n", now());
}

static volatile int is_set;

static void *set_later(void *nothing) {
    struct timespec pause = {0, 3000000};
    nanosleep(&pause, NULL);
    is_set = 1;
    return nothing;
}

static void spin(void) {
    for (int round = 0; round < 2; round++) {
        pthread_t thread;
        is_set = 0;
        pthread_create(&thread, NULL, set_later, NULL);
        for (int place = 0; place < 5; place++) call(wakes, (uint64_t)&others[place], FUTEX_WAKE_PRIVATE, 1, 0);
        while (!is_set) continue;
        pthread_join(thread, NULL);
    }
    printf(" at %lu\n", now());
}

static void all(void) {
    spin();
    sleep_often();
    wake_often();
    look_often();
    read_often();
}

int main(int count_of_words, char **words) {
    if (count_of_words > 1 && strcmp(words[1], "wait") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, wait_for, &word);
    }
    signal(SIGUSR1, count);
    all();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        all();
        kill(getppid(), SIGUSR1);
        if (count_of_words == 2) execl(words[0], words[0], "once", "more", NULL);
        exit(0);
    }
    sleep_often();
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    printf("\nsignals %d, status %d, at %lu\n", (int)signals, status, now());
    return 0;
}
