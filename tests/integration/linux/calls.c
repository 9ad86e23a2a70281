// What a program sees of pipes, threads, sockets and waits. It prints the same natively and in the simulation.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static void say(const char *what, long result) {
  printf("%s = %ld%s%s\n", what, result, result < 0 ? " " : "", result < 0 ? strerror(errno) : "");
  fflush(stdout);
}

static void pipes(void) {
  int ends[2];
  char bytes[8] = {0};
  say("pipe2", pipe2(ends, O_NONBLOCK | O_CLOEXEC));
  say("read of an empty pipe", read(ends[0], bytes, 8));
  say("write", write(ends[1], "hello", 5));
  struct pollfd polled[2] = {{ends[0], POLLIN, 0}, {ends[1], POLLOUT, 0}};
  say("poll", poll(polled, 2, 0));
  say("events of the reader", polled[0].revents);
  say("read", read(ends[0], bytes, 3));
  int waiting;
  ioctl(ends[0], FIONREAD, &waiting);
  say("FIONREAD", waiting);
  int copy = dup(ends[1]);
  close(ends[1]);
  say("read of the rest", read(ends[0], bytes, 8));
  say("read while a copy is open", read(ends[0], bytes, 8));
  close(copy);
  say("read at the end", read(ends[0], bytes, 8));
  say("poll at the end", poll(polled, 1, 0));
  say("events at the end", polled[0].revents);
  say("a big write", (pipe2(ends, O_NONBLOCK), write(ends[1], malloc(100000), 100000)));
  say("a write to a full pipe", write(ends[1], "x", 1));
  signal(SIGPIPE, SIG_IGN);
  close(ends[0]);
  say("a write without a reader", write(ends[1], "x", 1));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void *worker(void *number) {
  for (int round = 0; round < 3; round++) {
    pthread_mutex_lock(&lock);
    while (turn % 3 != (intptr_t)number) pthread_cond_wait(&changed, &lock);
    printf("worker %ld in turn %d\n", (long)(intptr_t)number, turn);
    turn++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
  return number;
}

static void threads(void) {
  pthread_t all[3];
  for (intptr_t number = 0; number < 3; number++) pthread_create(&all[number], NULL, worker, (void *)number);
  void *results[3];
  for (int number = 0; number < 3; number++) pthread_join(all[number], &results[number]);
  for (int number = 0; number < 3; number++) say("joined", (long)(intptr_t)results[number]);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 1000000;
  if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
  pthread_mutex_lock(&lock);
  int result = pthread_cond_timedwait(&changed, &lock, &until);
  say("a wait that ends", result == ETIMEDOUT);
  pthread_mutex_unlock(&lock);
}

static void events(void) {
  int event = eventfd(2, EFD_NONBLOCK | EFD_SEMAPHORE), epoll = epoll_create1(0);
  uint64_t count = 0;
  struct epoll_event watched = {EPOLLIN | EPOLLET, {.u64 = 77}}, ready[4];
  say("epoll_ctl", epoll_ctl(epoll, EPOLL_CTL_ADD, event, &watched));
  say("epoll_ctl again", epoll_ctl(epoll, EPOLL_CTL_ADD, event, &watched));
  say("epoll_wait", epoll_wait(epoll, ready, 4, 0));
  say("its data", (long)ready[0].data.u64);
  say("epoll_wait without a new edge", epoll_wait(epoll, ready, 4, 0));
  say("read of an eventfd", read(event, &count, 8));
  say("its count", (long)count);
  say("a short read", read(event, &count, 4));
  say("another read", read(event, &count, 8));
  say("read at zero", read(event, &count, 8));
  watched.events = EPOLLIN | EPOLLONESHOT;
  epoll_ctl(epoll, EPOLL_CTL_MOD, event, &watched);
  count = 5;
  say("write of an eventfd", write(event, &count, 8));
  say("a one-shot", epoll_wait(epoll, ready, 4, 0));
  say("the one-shot again", epoll_wait(epoll, ready, 4, 0));
  say("forget", epoll_ctl(epoll, EPOLL_CTL_DEL, event, NULL));
  say("forget again", epoll_ctl(epoll, EPOLL_CTL_DEL, event, NULL));
  int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec soon = {{0, 2000000}, {0, 1000000}};
  say("timerfd_settime", timerfd_settime(timer, 0, &soon, NULL));
  say("read of a timer", read(timer, &count, 8));
  fd_set set;
  FD_ZERO(&set);
  FD_SET(timer, &set);
  say("select", select(timer + 1, &set, NULL, NULL, NULL));
  say("the timer is in the set", FD_ISSET(timer, &set) != 0);
  struct timeval none = {0, 1000};
  FD_ZERO(&set);
  FD_SET(event, &set);
  read(event, &count, 8), read(event, &count, 8), read(event, &count, 8), read(event, &count, 8), read(event, &count, 8);
  say("select that ends", select(event + 1, &set, NULL, NULL, &none));
  say("epoll_ctl of a file", epoll_ctl(epoll, EPOLL_CTL_ADD, open("/dev/null", O_RDONLY), &watched));
}

static void sockets(void) {
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(17171), .sin_addr = {htonl(INADDR_LOOPBACK)}}, peer;
  socklen_t size = sizeof peer;
  char bytes[16] = {0};
  say("setsockopt", setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  say("bind", bind(server, (void *)&address, sizeof address));
  say("connect without a listener", connect(client, (void *)&address, sizeof address));
  struct pollfd polled = {client, POLLOUT, 0};
  say("poll of a refused connection", poll(&polled, 1, 1000));
  int error;
  socklen_t length = sizeof error;
  getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length);
  say("SO_ERROR", error);
  close(client);
  say("listen", listen(server, 5));
  client = socket(AF_INET, SOCK_STREAM, 0);
  say("connect", connect(client, (void *)&address, sizeof address));
  int accepted = accept4(server, (void *)&peer, &size, SOCK_CLOEXEC);
  say("the peer's address", ntohl(peer.sin_addr.s_addr));
  say("getpeername", getpeername(client, (void *)&peer, &size));
  say("its port", ntohs(peer.sin_port));
  say("send", send(client, "abcdef", 6, MSG_NOSIGNAL));
  say("peek", recv(accepted, bytes, 3, MSG_PEEK));
  say("recv", recv(accepted, bytes, 16, 0));
  say("recv of nothing", recv(accepted, bytes, 16, MSG_DONTWAIT));
  say("shutdown", shutdown(client, SHUT_WR));
  say("recv at the end", recv(accepted, bytes, 16, 0));
  say("send after shutdown", send(client, "x", 1, MSG_NOSIGNAL));
  say("send to the half-closed side", send(accepted, "answer", 6, 0));
  say("recv of it", recv(client, bytes, 16, 0));
  close(accepted);
  say("recv after both ends", recv(client, bytes, 16, 0));
  int pair[2];
  say("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  say("write of a pair", write(pair[0], "xy", 2));
  say("read of a pair", read(pair[1], bytes, 16));
  close(pair[1]);
  say("read of a lonely end", read(pair[0], bytes, 16));
  say("bind a used port", (close(client), bind(socket(AF_INET, SOCK_STREAM, 0), (void *)&address, sizeof address)));
  say("accept of a file", accept(open("/dev/null", O_RDONLY), NULL, NULL));
  say("recv of a closed descriptor", recv(999, bytes, 1, 0));
  int one = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);
  say("bind for datagrams", bind(one, (void *)&address, sizeof address));
  say("sendto", sendto(other, "datagram", 8, 0, (void *)&address, sizeof address));
  size = sizeof peer;
  say("recvfrom", recvfrom(one, bytes, 4, 0, (void *)&peer, &size));
  say("from", ntohl(peer.sin_addr.s_addr));
}

static void processes(void) {
  int ends[2], status;
  char bytes[64] = {0};
  pipe(ends);
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    dup2(ends[1], 1);
    execl("/bin/sh", "sh", "-c", "echo from a child; exit 7", NULL);
  }
  close(ends[1]);
  say("read from a child", read(ends[0], bytes, 64));
  printf("it said %s", bytes);
  say("waitpid", waitpid(child, &status, 0) == child);
  say("its status", WEXITSTATUS(status));
  say("waitpid without children", waitpid(-1, &status, 0));
  child = fork();
  if (!child) pause(), _exit(0);
  say("kill", kill(child, SIGKILL));
  say("waitpid of a killed child", waitpid(child, &status, 0) == child);
  say("its signal", WTERMSIG(status));
}

static void files(void) {
  struct stat state;
  char bytes[16] = {0};
  int file = open("/tmp/file", O_RDWR | O_CREAT | O_TRUNC, 0644);
  say("write of a file", write(file, "content", 7));
  say("fsync", fsync(file));
  say("pread", pread(file, bytes, 16, 3));
  say("fstat", fstat(file, &state));
  say("its size", state.st_size);
  say("rename", rename("/tmp/file", "/tmp/renamed"));
  say("stat of the old name", stat("/tmp/file", &state));
  say("unlink", unlink("/tmp/renamed"));
  say("open of a missing file", open("/missing", O_RDONLY));
}

// A goroutine has a stack of a few KiB, and those of others lie below it: what a call writes there destroys them.
static ucontext_t outside, inside;

static void open_files(void) {
  const char *paths[] = {"/proc/meminfo", "/proc/self/stat", "/proc/self/maps", "/proc/sys/kernel/random/uuid", "/etc/hosts"};
  for (size_t place = 0; place < sizeof paths / sizeof *paths; place++) close(open(paths[place], O_RDONLY));
}

static void small_stacks(void) {
  enum { BELOW = 16384, STACK = 4096 };
  static unsigned char memory[BELOW + STACK] __attribute__((aligned(64)));
  memset(memory, 0x5a, sizeof memory);
  getcontext(&inside);
  inside.uc_stack.ss_sp = memory + BELOW;
  inside.uc_stack.ss_size = STACK;
  inside.uc_link = &outside;
  makecontext(&inside, open_files, 0);
  say("swapcontext", swapcontext(&outside, &inside));
  long changed = 0;
  for (int place = 0; place < BELOW; place++) changed += memory[place] != 0x5a;
  say("changed bytes below a small stack", changed);
}

int main(void) {
  pipes();
  small_stacks();
  threads();
  events();
  sockets();
  processes();
  files();
  return 0;
}
