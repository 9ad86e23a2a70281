// Computes for long without a call, in ways that the controller meets in loops of programs. Prints the virtual time of each.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile int flag, other;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

// Counts in memory: no register changes from round to round, but for flags, which come again.
static void count_in_memory(unsigned long rounds) {
    unsigned long *left = malloc(sizeof *left);
    *left = rounds;
    __asm__ volatile("1: subq $1, (%0)\n jnz 1b" : : "r"(left) : "memory", "cc");
    free(left);
}

// Saves and restores its flags, as the stubs of a JVM do.
static void save_flags(unsigned long rounds) {
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp\n"
        "1: pushfq\n popfq\n subq $1, %0\n jnz 1b\n"
        "lea 128(%%rsp), %%rsp"
        : "+r"(rounds) : : "memory", "cc");
}

static void *set(void *unused) {
    struct timespec pause = {0, 200000000};
    nanosleep(&pause, NULL);
    flag = 1;
    nanosleep(&pause, NULL);
    other = 1;
    return unused;
}

int main(int count, char **arguments) {
    unsigned long rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 1000000;
    pthread_t setter;
    long began = now();
    count_in_memory(rounds);
    printf("counts in memory: %ld ns\n", now() - began);
    began = now();
    save_flags(rounds);
    printf("saves flags: %ld ns\n", now() - began);
    pthread_create(&setter, NULL, set, NULL);
    began = now();
    // Waits with an inner loop, whose lowest instruction comes many times in a round.
    while (!flag)
        for (int pauses = 0; pauses < 7; pauses++) __asm__ volatile("pause");
    printf("waits: %ld ms\n", (now() - began) / 1000000);
    // Counts up and down in memory and clears some of it, as Go does when it takes a lock.
    static int locks;
    static char area[16] __attribute__((aligned(16)));
    while (!other) __asm__ volatile("incl %0\n movups %%xmm0, %1\n lock decl %0" : "+m"(locks), "=m"(area));
    printf("waits again: %ld ms\n", (now() - began) / 1000000);
    pthread_join(setter, NULL);
    return 0;
}
