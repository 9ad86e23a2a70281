// Waits for another thread in a loop without a call, as queues without locks do.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static volatile int flag;

static void *set(void *unused) {
    struct timespec pause = {2, 0};
    nanosleep(&pause, NULL);
    flag = 1;
    return unused;
}

int main(void) {
    struct timespec begin, end;
    pthread_t setter;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pthread_create(&setter, NULL, set, NULL);
    while (!flag) {
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%ld ms\n", (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
    pthread_join(setter, NULL);
    return 0;
}
