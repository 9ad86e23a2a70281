// What a program sees of signals between processes, of timers that send them, and of memory that processes share. It prints the
// same natively and in the simulation.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long result) {
  printf("%s = %ld%s%s\n", what, result, result < 0 ? " " : "", result < 0 ? strerror(errno) : "");
  fflush(stdout);
}

static volatile sig_atomic_t count, last, code;

static void noticed(int signal, siginfo_t *information, void *context) {
  (void)context;
  count++;
  last = signal;
  code = information->si_code;
}

static void handle(int signal, int flags) {
  struct sigaction action = {.sa_sigaction = noticed, .sa_flags = SA_SIGINFO | flags};
  sigaction(signal, &action, NULL);
}

static sigset_t set_of(int signal) {
  sigset_t set;
  sigemptyset(&set);
  if (signal) sigaddset(&set, signal);
  return set;
}

static void nap(int millis) {
  struct timespec time = {millis / 1000, millis % 1000 * 1000000};
  while (nanosleep(&time, &time) < 0) {
  }
}

// Starts a process that sends a signal to this one after a while, and maybe writes a byte after another while.
static pid_t sender(int signal, int millis, int end) {
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    nap(millis);
    kill(parent, signal);
    if (end >= 0) {
      nap(millis);
      if (write(end, "x", 1) != 1) _exit(1);
    }
    nap(millis);
    _exit(0);
  }
  return child;
}

static void calls_that_are_interrupted(void) {
  for (int restarts = 0; restarts < 2; restarts++) {
    handle(SIGUSR1, restarts ? SA_RESTART : 0);
    printf("%s SA_RESTART\n", restarts ? "with" : "without");
    int ends[2];
    char byte;
    if (pipe(ends) < 0) exit(1);
    pid_t child = sender(SIGUSR1, 30, ends[1]);
    say("read", read(ends[0], &byte, 1));
    say("waitpid", waitpid(child, NULL, 0) == child ? 1 : -1);
    waitpid(child, NULL, 0);
    child = sender(SIGUSR1, 30, -1);
    int status = 0;
    say("waitpid of a child that runs", waitpid(child, &status, 0) == child ? 1 : -1);
    waitpid(child, NULL, 0);
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    child = sender(SIGUSR1, 30, -1);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    say("sem_timedwait", sem_timedwait(&semaphore, &until));
    waitpid(child, NULL, 0);
    child = sender(SIGUSR1, 30, -1);
    say("nanosleep", nanosleep(&(struct timespec){1, 0}, NULL));
    waitpid(child, NULL, 0);
    child = sender(SIGUSR1, 30, -1);
    say("select", select(0, NULL, NULL, NULL, &(struct timeval){1, 0}));
    waitpid(child, NULL, 0);
    child = sender(SIGUSR1, 30, -1);
    say("poll", poll(NULL, 0, 1000));
    waitpid(child, NULL, 0);
    child = sender(SIGUSR1, 30, -1);
    int epoll = epoll_create1(0);
    struct epoll_event event;
    say("epoll_wait", epoll_wait(epoll, &event, 1, 1000));
    waitpid(child, NULL, 0);
    close(epoll);
    child = sender(SIGUSR1, 30, -1);
    say("pause", pause());
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
  }
  say("handled", count);
}

static void masks_of_waits(void) {
  handle(SIGUSR2, SA_RESTART);
  count = 0;
  sigset_t set = set_of(SIGUSR2), none = set_of(0);
  sigprocmask(SIG_BLOCK, &set, NULL);
  kill(getpid(), SIGUSR2);
  say("blocked", count);
  say("sigsuspend", sigsuspend(&none));
  say("let in", count);
  sigset_t now;
  sigprocmask(SIG_BLOCK, NULL, &now);
  say("blocked again", sigismember(&now, SIGUSR2));
  kill(getpid(), SIGUSR2);
  say("ppoll without time", ppoll(NULL, 0, &(struct timespec){0, 0}, &none));
  say("let in", count);
  kill(getpid(), SIGUSR2);
  say("pselect", pselect(0, NULL, NULL, NULL, &(struct timespec){1, 0}, &none));
  say("let in", count);
  say("ppoll", ppoll(NULL, 0, &(struct timespec){0, 1000000}, &none));
  int ends[2];
  if (pipe(ends) < 0 || write(ends[1], "x", 1) != 1) exit(1);
  struct pollfd polled = {ends[0], POLLIN, 0};
  kill(getpid(), SIGUSR2);
  say("ppoll of something ready", ppoll(&polled, 1, NULL, &none));
  say("not let in", count);
  int epoll = epoll_create1(0);
  struct epoll_event event;
  say("epoll_pwait", epoll_pwait(epoll, &event, 1, -1, &none));
  say("let in", count);
  pid_t child = sender(SIGUSR2, 30, -1);
  say("sigsuspend", sigsuspend(&none));
  say("let in", count);
  waitpid(child, NULL, 0);
  siginfo_t information;
  say("sigtimedwait", sigtimedwait(&set, &information, &(struct timespec){0, 1000000}));
  child = sender(SIGUSR2, 30, -1);
  say("sigtimedwait", sigtimedwait(&set, &information, &(struct timespec){1, 0}));
  say("from the child", information.si_pid == child);
  say("not handled", count);
  waitpid(child, NULL, 0);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  close(epoll);
  close(ends[0]);
  close(ends[1]);
}

static void descriptors_of_signals(void) {
  sigset_t set = set_of(SIGUSR1);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  int signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN | EPOLLERR | EPOLLHUP, .data.u64 = 7};
  say("epoll_ctl", epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &event));
  struct signalfd_siginfo got[2];
  say("read of nothing", read(signals, got, sizeof got));
  say("epoll_wait of nothing", epoll_wait(epoll, &event, 1, 0));
  kill(getpid(), SIGUSR1);
  say("epoll_wait", epoll_wait(epoll, &event, 1, 1000));
  say("events", event.events);
  say("again", epoll_wait(epoll, &event, 1, 1000));
  say("read", read(signals, got, sizeof got));
  say("signal", got[0].ssi_signo);
  say("from itself", got[0].ssi_pid == (uint32_t)getpid());
  say("code", got[0].ssi_code);
  say("epoll_wait after the read", epoll_wait(epoll, &event, 1, 0));
  say("a read of too little", read(signals, got, 8));
  pid_t child = sender(SIGUSR1, 30, -1);
  say("epoll_wait for the child", epoll_wait(epoll, &event, 1, 1000));
  say("read", read(signals, got, sizeof got));
  say("from the child", got[0].ssi_pid == (uint32_t)child);
  struct pollfd polled = {signals, POLLIN, 0};
  say("poll for its end", poll(&polled, 1, 1000));
  say("read", read(signals, got, sizeof got));
  say("signal", got[0].ssi_signo);
  say("status", got[0].ssi_status);
  say("code", got[0].ssi_code);
  waitpid(child, NULL, 0);
  int waits = signalfd(-1, &set, 0);
  child = sender(SIGUSR1, 30, -1);
  say("a read that waits", read(waits, got, sizeof got[0]));
  say("signal", got[0].ssi_signo);
  waitpid(child, NULL, 0);
  say("both", (kill(getpid(), SIGUSR1), read(waits, got, sizeof got)));
  say("first", got[0].ssi_signo);
  say("second", got[1].ssi_signo);
  sigset_t other = set_of(SIGUSR2);
  sigprocmask(SIG_BLOCK, &other, NULL);
  say("another set", signalfd(waits, &other, 0) == waits);
  say("a set for a pipe", signalfd(epoll, &other, 0));
  say("a set for nothing", signalfd(99, &other, 0));
  kill(getpid(), SIGUSR2);
  say("read", read(waits, got, sizeof got));
  say("signal", got[0].ssi_signo);
  // A descriptor tells each process of its own signals.
  child = fork();
  if (child == 0) {
    polled.fd = waits;
    int before = poll(&polled, 1, 0);
    kill(getpid(), SIGUSR2);
    _exit(10 * before + poll(&polled, 1, 0));
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("what a child sees", WEXITSTATUS(status));
  polled.fd = waits;
  say("what its parent sees", poll(&polled, 1, 0));
  close(waits);
  close(signals);
  close(epoll);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void timers(void) {
  handle(SIGALRM, 0);
  count = 0;
  struct itimerval timer = {.it_value = {0, 50000}}, left;
  say("setitimer", setitimer(ITIMER_REAL, &timer, NULL));
  say("getitimer", getitimer(ITIMER_REAL, &left));
  say("some is left", left.it_value.tv_sec == 0 && left.it_value.tv_usec > 0 && left.it_value.tv_usec <= 50000);
  say("pause", pause());
  say("signal", last);
  say("code", code);
  getitimer(ITIMER_REAL, &left);
  say("nothing is left", left.it_value.tv_sec + left.it_value.tv_usec);
  timer.it_interval.tv_usec = 20000;
  setitimer(ITIMER_REAL, &timer, NULL);
  while (count < 4) pause();
  say("with an interval", count);
  getitimer(ITIMER_REAL, &left);
  say("its interval", left.it_interval.tv_usec);
  memset(&timer, 0, sizeof timer);
  say("off", setitimer(ITIMER_REAL, &timer, NULL));
  nap(60);
  say("no more", count);
  say("alarm", alarm(5));
  say("alarm off", alarm(0));
  timer.it_value.tv_usec = 1000000;
  say("a wrong time", setitimer(ITIMER_REAL, &timer, NULL));
  pid_t child;
  timer.it_value = (struct timeval){0, 30000};
  setitimer(ITIMER_REAL, &timer, NULL);
  if ((child = fork()) == 0) {
    getitimer(ITIMER_REAL, &left);
    _exit(left.it_value.tv_sec || left.it_value.tv_usec ? 1 : 0);
  }
  int status;
  while (waitpid(child, &status, 0) < 0) {
  }
  say("a child has none", WEXITSTATUS(status));
  while (count < 5) pause();
  char byte;
  int ends[2];
  if (pipe(ends) < 0) exit(1);
  // A read that follows a sleep has no time limit.
  child = sender(SIGURG, 50, ends[1]);
  nanosleep(&(struct timespec){0, 5000000}, NULL);
  say("a read after a sleep", read(ends[0], &byte, 1));
  waitpid(child, NULL, 0);
  close(ends[0]);
  close(ends[1]);
}

static void groups(void) {
  pid_t children[3];
  for (int place = 0; place < 3; place++) {
    if ((children[place] = fork()) == 0) {
      for (;;) pause();
    }
    setpgid(children[place], children[0]);
  }
  nap(30);
  say("kill of a group", kill(-children[0], SIGTERM));
  for (int place = 0; place < 3; place++) {
    int status = 0;
    say("waitpid", waitpid(children[place], &status, 0) == children[place]);
    say("its signal", WTERMSIG(status));
  }
  say("kill of no group", kill(-children[0], SIGTERM));
  pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() == 0) {
      for (;;) pause();
    }
    nap(30);
    kill(0, SIGKILL);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("its own group", WTERMSIG(status));
  say("kill of nobody", kill(child, 0));
}

static void ends_of_parents(void) {
  int ends[2];
  if (pipe(ends) < 0) exit(1);
  pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      sigset_t set = set_of(SIGUSR1);
      sigprocmask(SIG_BLOCK, &set, NULL);
      prctl(PR_SET_PDEATHSIG, SIGUSR1);
      if (write(ends[1], "r", 1) != 1) _exit(1);
      int got = sigwaitinfo(&set, NULL);
      if (write(ends[1], got == SIGUSR1 ? "y" : "n", 1) != 1) _exit(1);
      _exit(0);
    }
    nap(60);
    _exit(0);
  }
  char byte = 0;
  say("ready", read(ends[0], &byte, 1));
  waitpid(child, NULL, 0);
  read(ends[0], &byte, 1);
  printf("a child hears of the end of its parent: %c\n", byte);
  close(ends[0]);
  close(ends[1]);
}

static void shared_memory(void) {
  int id = shmget(0x4c414259, 4096, IPC_CREAT | IPC_EXCL | 0600);
  say("shmget", id >= 0);
  say("shmget again", shmget(0x4c414259, 4096, IPC_CREAT | IPC_EXCL | 0600));
  say("shmget of it", shmget(0x4c414259, 56, 0) == id);
  say("shmget of more", shmget(0x4c414259, 8192, 0));
  say("shmget of none", shmget(0x4c414260, 8192, 0));
  volatile int *memory = shmat(id, NULL, 0);
  *memory = 5;
  pid_t child = fork();
  if (child == 0) {
    *memory += 2;
    for (;;) pause();
  }
  nap(30);
  struct shmid_ds state;
  say("IPC_STAT", shmctl(id, IPC_STAT, &state));
  say("attached", state.shm_nattch);
  say("size", state.shm_segsz);
  say("made by", state.shm_cpid == getpid());
  say("written by the child", *memory);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  shmctl(id, IPC_STAT, &state);
  say("attached after its end", state.shm_nattch);
  say("shmdt", shmdt((void *)memory));
  say("shmdt again", shmdt((void *)memory));
  shmctl(id, IPC_STAT, &state);
  say("attached", state.shm_nattch);
  say("IPC_RMID", shmctl(id, IPC_RMID, NULL));
  say("IPC_STAT of none", shmctl(id, IPC_STAT, &state));
}

struct shared {
  sem_t semaphore;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int turns, done;
};

static void locks_in_shared_memory(void) {
  struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  // The second process sees it at another address.
  char name[] = "/labrys-XXXXXX";
  int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  say("shm_open", file >= 0);
  if (ftruncate(file, 4096) < 0) exit(1);
  sem_t *first = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  sem_t *second = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  shm_unlink(name);
  sem_init(&shared->semaphore, 1, 0);
  sem_init(first, 1, 0);
  pthread_mutexattr_t of_mutex;
  pthread_mutexattr_init(&of_mutex);
  pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &of_mutex);
  pthread_condattr_t of_changed;
  pthread_condattr_init(&of_changed);
  pthread_condattr_setpshared(&of_changed, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&shared->changed, &of_changed);
  pid_t child = fork();
  if (child == 0) {
    sem_wait(&shared->semaphore);
    sem_post(second);
    for (int turn = 0; turn < 100; turn++) {
      pthread_mutex_lock(&shared->mutex);
      while (shared->turns % 2 == 0) pthread_cond_wait(&shared->changed, &shared->mutex);
      shared->turns++;
      pthread_cond_broadcast(&shared->changed);
      pthread_mutex_unlock(&shared->mutex);
    }
    _exit(0);
  }
  nap(30);
  say("sem_post", sem_post(&shared->semaphore));
  say("sem_wait", sem_wait(first));
  for (int turn = 0; turn < 100; turn++) {
    pthread_mutex_lock(&shared->mutex);
    while (shared->turns % 2 == 1) pthread_cond_wait(&shared->changed, &shared->mutex);
    shared->turns++;
    pthread_cond_broadcast(&shared->changed);
    pthread_mutex_unlock(&shared->mutex);
  }
  waitpid(child, NULL, 0);
  say("turns", shared->turns);
  // A semaphore in memory of its own is another one in each process.
  static sem_t own;
  sem_init(&own, 1, 0);
  if ((child = fork()) == 0) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    _exit(sem_timedwait(&own, &until) < 0 ? errno == ETIMEDOUT : 2);
  }
  nap(20);
  sem_post(&own);
  int status = 0;
  waitpid(child, &status, 0);
  say("of its own", WEXITSTATUS(status));
}

static void other_users(void) {
  pid_t child = fork();
  if (child == 0) {
    if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0) _exit(9);
    int denied = kill(getppid(), 0) < 0 && errno == EPERM;
    int file = open("/tmp", O_RDONLY);
    _exit(10 * denied + (file >= 0) + (getuid() == 65534 ? 2 : 0) + (setuid(0) < 0 ? 4 : 0));
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("nobody", WEXITSTATUS(status));
}

int main(void) {
  calls_that_are_interrupted();
  masks_of_waits();
  descriptors_of_signals();
  timers();
  groups();
  ends_of_parents();
  shared_memory();
  locks_in_shared_memory();
  other_users();
  return 0;
}
