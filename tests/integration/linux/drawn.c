// Makes calls that a seed draws, and prints what each returns. It prints the same natively and in the simulation.
// Usage: drawn FIRST LAST: the seeds. Each has a process and a folder of its own.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <poll.h>
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
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 14, STEPS = 120, MOST = 300 };

static uint64_t state;
static unsigned seeded;
static int slots[SLOTS], signals;
static struct sockaddr_in listening, named; // of the last listener, and of the last socket of datagrams
static uint32_t word;

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void show(const char *what, int slot, long result) {
    int error = errno;
    printf("%s %d = %ld", what, slot, result);
    if (result == -1) printf(" %s", strerrorname_np(error));
    printf("\n");
}

static void bytes(const char *from, long count) {
    unsigned sum = 7;
    for (long place = 0; place < count; place++) sum = sum * 31 + (unsigned char)from[place];
    if (count > 0) printf("  bytes %u %.*s\n", sum, (int)(count < 8 ? count : 8), from[0] >= 'a' && from[0] <= 'z' ? from : "");
}

// Lets all that is on its way come to its end.
static void settle(void) {
    struct timespec pause = {0, 1500000};
    nanosleep(&pause, NULL);
}

static void keep(int file) {
    if (file < 0) return;
    int slot = (int)draw(SLOTS);
    if (slots[slot] >= 0) {
        close(slots[slot]);
        settle();
    }
    slots[slot] = file;
}

static void noticed(int signal) { signals += signal == SIGPIPE ? 1 : 100; }

// The address of one of a few Unix sockets, by a path or an abstract name.
static socklen_t path_of(struct sockaddr_un *address) {
    unsigned number = draw(5);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (number == 4) {
        socklen_t size = sizeof address->sun_family + 1 + (socklen_t)snprintf(address->sun_path + 1, 30, "drawn-%u", seeded);
        return size;
    }
    snprintf(address->sun_path, sizeof address->sun_path, number == 3 ? "./u%u" : "u%u", number % 3);
    return sizeof *address;
}

static void make(void) {
    int ends[2], file = -1;
    unsigned kind = draw(12);
    switch (kind) {
    case 0: file = pipe2(ends, O_NONBLOCK); break;
    case 1: file = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends); break;
    case 2: file = eventfd(draw(3), EFD_NONBLOCK | (draw(3) ? 0 : EFD_SEMAPHORE)); break;
    case 3: file = epoll_create1(draw(2) ? EPOLL_CLOEXEC : 0); break;
    case 4: file = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK); break;
    case 5: file = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); break;
    case 6: {
        file = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof address;
        if (draw(4)) {
            bind(file, (struct sockaddr *)&address, size);
            getsockname(file, (struct sockaddr *)&named, &size);
        }
        break;
    }
    case 7: {
        file = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof address;
        bind(file, (struct sockaddr *)&address, size);
        listen(file, 8);
        getsockname(file, (struct sockaddr *)&listening, &size);
        break;
    }
    case 9:
    case 10: {
        struct sockaddr_un address;
        file = socket(AF_UNIX, (kind == 9 ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK, 0);
        if (draw(3)) {
            show("bind", (int)kind, bind(file, (struct sockaddr *)&address, path_of(&address)));
            if (draw(3)) show("listen", (int)kind, listen(file, (int)draw(3)));
        }
        break;
    }
    case 11: {
        file = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
        struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = draw(2) ? in6addr_any : in6addr_loopback};
        socklen_t size = sizeof address;
        int alone = (int)draw(2);
        if (draw(3)) {
            setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &alone, sizeof alone);
            show("bind", (int)kind, bind(file, (struct sockaddr *)&address, size));
            listen(file, 8);
            getsockname(file, (struct sockaddr *)&address, &size);
            listening = (struct sockaddr_in){AF_INET, address.sin6_port, {htonl(INADDR_LOOPBACK)}, {0}};
        }
        break;
    }
    default: {
        static const int flags[] = {O_RDWR, O_RDONLY, O_WRONLY | O_APPEND, O_RDWR | O_TRUNC, O_RDWR | O_EXCL};
        char name[8];
        snprintf(name, sizeof name, "f%u", draw(4));
        file = open(name, flags[draw(5)] | (draw(3) ? O_CREAT : 0), 0640);
    }
    }
    show("make", (int)kind, file < 0 ? -1 : 0);
    if (kind < 2 && file == 0) {
        keep(ends[0]);
        keep(ends[1]);
    } else {
        keep(file);
    }
}

static void transfer(int slot, int file) {
    static char buffer[MOST + 1];
    unsigned count = draw(8) ? draw(24) : draw(MOST);
    uint64_t number = draw(4);
    struct iovec parts[2] = {{buffer, count / 2}, {buffer + count / 2, count - count / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    memset(buffer, 'a' + (int)draw(20), sizeof buffer);
    long result;
    switch (draw(11)) {
    case 0: result = read(file, buffer, count); show("read", slot, result); bytes(buffer, result); return;
    case 1: result = readv(file, parts, 2); show("readv", slot, result); bytes(buffer, result); return;
    case 2: {
        int flags = (draw(2) ? MSG_PEEK : 0) | (draw(2) ? MSG_DONTWAIT : 0);
        result = recv(file, buffer, count, flags);
        show(flags & MSG_PEEK ? "peek" : "recv", slot, result);
        bytes(buffer, result);
        return;
    }
    case 3: result = recvmsg(file, &message, 0); show("recvmsg", slot, result); bytes(buffer, result);
        if (result >= 0) printf("  flags %d\n", message.msg_flags & MSG_TRUNC);
        return;
    case 4: show("write", slot, write(file, buffer, count)); break;
    case 5: show("writev", slot, writev(file, parts, 2)); break;
    case 6: show("send", slot, send(file, buffer, count, draw(2) ? MSG_NOSIGNAL : 0)); break;
    case 7: show("sendmsg", slot, sendmsg(file, &message, MSG_NOSIGNAL)); break;
    case 8: show("write of a number", slot, write(file, &number, 8)); break;
    case 9: result = read(file, &number, 8); show("read of a number", slot, result);
        if (result == 8) printf("  %lu\n", number > 1000 ? 1000 : number);
        break;
    case 10: {
        if (!named.sin_port) return;
        show("sendto", slot, sendto(file, buffer, count, MSG_NOSIGNAL, (struct sockaddr *)&named, sizeof named));
        break;
    }
    }
    settle();
}

static void address_of(const char *what, int slot, int (*ask)(int, struct sockaddr *, socklen_t *), int file) {
    union {
        struct sockaddr_in one;
        struct sockaddr_un all;
    } both = {.all = {0}};
    socklen_t size = sizeof both;
    int result = ask(file, (struct sockaddr *)&both, &size);
    show(what, slot, result);
    if (result == 0) {
        printf("  family %d size %u", both.one.sin_family, size);
        if (both.one.sin_family == AF_INET)
            printf(" %s port %s", inet_ntoa(both.one.sin_addr), both.one.sin_port ? "some" : "none");
        if (both.one.sin_family == AF_INET6) {
            char text[INET6_ADDRSTRLEN];
            printf(" %s", inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&both)->sin6_addr, text, sizeof text));
        }
        if (both.one.sin_family == AF_UNIX && size > sizeof both.one.sin_family)
            printf(" %.8s", both.all.sun_path);
        printf("\n");
    }
}

static void use_socket(int slot, int file) {
    switch (draw(13)) {
    case 0: {
        int how = (int)draw(4), type = 0;
        socklen_t size = sizeof type;
        // Of a socket of datagrams without a remote end, Linux refuses it, and keeps a part of it.
        if (getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM) return;
        show("shutdown", slot, shutdown(file, how));
        settle();
        break;
    }
    case 1:
    case 2:
        if (!listening.sin_port) return;
        show("connect", slot, connect(file, (struct sockaddr *)&listening, sizeof listening));
        settle();
        break;
    case 3: {
        struct sockaddr_in nobody = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        show("connect to nobody", slot, connect(file, (struct sockaddr *)&nobody, sizeof nobody));
        settle();
        break;
    }
    case 4: {
        int accepted = accept4(file, NULL, NULL, SOCK_NONBLOCK);
        show("accept", slot, accepted < 0 ? -1 : 0);
        keep(accepted);
        break;
    }
    case 5: address_of("getsockname", slot, getsockname, file); break;
    case 6: address_of("getpeername", slot, getpeername, file); break;
    case 7: {
        static const int names[] = {SO_ERROR, SO_TYPE, SO_ACCEPTCONN, SO_PROTOCOL, SO_DOMAIN, SO_REUSEADDR, SO_KEEPALIVE};
        unsigned name = draw(7);
        int value = -1;
        socklen_t size = sizeof value;
        show("getsockopt", (int)name, getsockopt(file, SOL_SOCKET, names[name], &value, &size));
        printf("  %d %u\n", value, size);
        break;
    }
    case 8: show("listen", slot, listen(file, 4)); break;
    case 9:
    case 10: {
        struct sockaddr_un address;
        show("connect to a path", slot, connect(file, (struct sockaddr *)&address, path_of(&address)));
        break;
    }
    case 11: {
        struct sockaddr_un address;
        socklen_t size = path_of(&address);
        show("send to a path", slot, sendto(file, "word", 1 + draw(4), MSG_NOSIGNAL, (struct sockaddr *)&address, size));
        settle();
        break;
    }
    case 12: {
        struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = listening.sin_port};
        inet_pton(AF_INET6, draw(2) ? "::1" : "::ffff:127.0.0.1", &address.sin6_addr);
        if (!listening.sin_port) return;
        show("connect by IPv6", slot, connect(file, (struct sockaddr *)&address, sizeof address));
        settle();
        break;
    }
    }
}

static void peer(int slot, int file) {
    struct ucred found = {-2, 0, 0};
    socklen_t size = sizeof found;
    show("SO_PEERCRED", slot, getsockopt(file, SOL_SOCKET, SO_PEERCRED, &found, &size));
    printf("  %s %d %d %u\n", found.pid == getpid() ? "this" : found.pid == 0 ? "none" : "other", (int)found.uid, (int)found.gid, size);
}

static void use_descriptor(int slot, int file) {
    int waiting = -1;
    switch (draw(11)) {
    case 10: peer(slot, file); break;
    case 0: show("close", slot, close(file)); slots[slot] = -1; settle(); break;
    case 1: {
        int copy = draw(2) ? dup(file) : fcntl(file, F_DUPFD_CLOEXEC, 0);
        show("dup", slot, copy < 0 ? -1 : 0);
        keep(copy);
        break;
    }
    case 2: show("F_GETFL", slot, fcntl(file, F_GETFL)); break;
    case 3: show("F_GETFD", slot, fcntl(file, F_GETFD)); break;
    case 4: show("F_SETFD", slot, fcntl(file, F_SETFD, (int)draw(2))); break;
    case 5: show("FIONREAD", slot, ioctl(file, FIONREAD, &waiting)); printf("  %d\n", waiting); break;
    case 6: {
        struct stat found;
        show("fstat", slot, fstat(file, &found));
        printf("  mode %o size %ld\n", found.st_mode & S_IFMT, (long)found.st_size);
        break;
    }
    case 7: {
        int other = (int)draw(SLOTS);
        if (slots[other] < 0) return;
        show("dup3", slot, dup3(file, slots[other], 0) < 0 ? -1 : 0);
        settle();
        break;
    }
    case 8: show("lseek", slot, lseek(file, draw(40), SEEK_SET)); break;
    case 9: {
        // Of others, the controller lets the call pass.
        struct stat found;
        if (fstat(file, &found) < 0 || !S_ISREG(found.st_mode)) return;
        char buffer[32];
        long result = pread(file, buffer, draw(32), draw(60));
        show("pread", slot, result);
        bytes(buffer, result);
        break;
    }
    }
}

static void watch(int slot, int file) {
    static const uint32_t flags[] = {0, 0, EPOLLET, EPOLLONESHOT, EPOLLET | EPOLLONESHOT};
    struct epoll_event events[6], event = {0};
    int epoll = slots[draw(SLOTS)];
    if (epoll < 0) return;
    switch (draw(6)) {
    case 0:
    case 1:
        event.events = (draw(2) ? EPOLLIN : 0) | (draw(2) ? EPOLLOUT : 0) | (draw(3) ? 0 : EPOLLRDHUP) | flags[draw(5)];
        event.data.u64 = (uint64_t)slot;
        show("epoll add", slot, epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event));
        break;
    case 2:
        event.events = (draw(2) ? EPOLLIN : 0) | (draw(2) ? EPOLLOUT : 0) | flags[draw(5)];
        event.data.u64 = 100 + (uint64_t)slot;
        show("epoll mod", slot, epoll_ctl(epoll, EPOLL_CTL_MOD, file, &event));
        break;
    case 3: show("epoll del", slot, epoll_ctl(epoll, EPOLL_CTL_DEL, file, &event)); break;
    default: {
        int count = epoll_wait(epoll, events, 1 + (int)draw(6), 0);
        show("epoll_wait", slot, count);
        for (int place = 0; place < count; place++)
            printf("  %x of %lu\n", events[place].events, (unsigned long)events[place].data.u64);
    }
    }
}

static void look(void) {
    struct pollfd polled[SLOTS];
    fd_set sets[3];
    int most = -1;
    for (int set = 0; set < 3; set++) FD_ZERO(&sets[set]);
    for (int slot = 0; slot < SLOTS; slot++) {
        polled[slot] = (struct pollfd){slots[slot], (short)(draw(2) ? POLLIN | POLLOUT : POLLRDHUP), 0};
        if (slots[slot] >= 0) {
            for (int set = 0; set < 3; set++) FD_SET(slots[slot], &sets[set]);
            if (slots[slot] > most) most = slots[slot];
        }
    }
    if (draw(2)) {
        show("poll", 0, poll(polled, SLOTS, 0));
        for (int slot = 0; slot < SLOTS; slot++)
            if (slots[slot] >= 0) printf("  %d: %x\n", slot, polled[slot].revents);
        return;
    }
    struct timeval none = {0, 0};
    show("select", 0, select(most + 1, &sets[0], &sets[1], &sets[2], &none));
    for (int slot = 0; slot < SLOTS; slot++)
        if (slots[slot] >= 0)
            printf("  %d: %d%d\n", slot, FD_ISSET(slots[slot], &sets[0]) != 0, FD_ISSET(slots[slot], &sets[1]) != 0);
}

static void names(void) {
    char one[8], other[8], text[64] = {0};
    snprintf(one, sizeof one, "f%u", draw(5));
    snprintf(other, sizeof other, "f%u", draw(5));
    struct stat found;
    switch (draw(10)) {
    case 9: snprintf(one, sizeof one, "u%u", draw(3)); show("unlink", 1, unlink(one)); break;
    case 0: show("rename", 0, rename(one, other)); break;
    case 1: show("unlink", 0, unlink(one)); break;
    case 2: show("mkdir", 0, mkdir(one, 0700)); break;
    case 3: show("rmdir", 0, rmdir(one)); break;
    case 4: show("link", 0, link(one, other)); break;
    case 5: show("symlink", 0, symlink(one, other)); break;
    case 6: show("readlink", 0, readlink(one, text, sizeof text - 1)); printf("  %s\n", text); break;
    case 7: show("truncate", 0, truncate(one, draw(50))); break;
    case 8: {
        int result = lstat(one, &found);
        show("lstat", 0, result);
        if (result == 0 && !S_ISDIR(found.st_mode))
            printf("  %o %ld %lu\n", found.st_mode, (long)found.st_size, (unsigned long)found.st_nlink);
        break;
    }
    }
}

static long futex(uint32_t *where, int what, uint32_t value, const struct timespec *time, uint32_t *other, uint32_t more) {
    return syscall(SYS_futex, where, what, value, time, other, more);
}

static void others(void) {
    struct timespec little = {0, 1000000};
    uint32_t away = 0;
    int status = 0;
    switch (draw(9)) {
    case 0: show("futex wait", 0, futex(&word, FUTEX_WAIT, draw(2), &little, NULL, 0)); break;
    case 1: show("futex wake", 0, futex(&word, FUTEX_WAKE, draw(3), NULL, NULL, 0)); break;
    case 2:
        show("futex requeue", 0, futex(&word, FUTEX_CMP_REQUEUE, 1, (void *)(uintptr_t)draw(3), &away, draw(2)));
        break;
    case 3: show("futex bits", 0, futex(&word, FUTEX_WAIT_BITSET, 0, &little, NULL, draw(2))); break;
    case 4: show("futex aside", 0, futex((uint32_t *)((char *)&word + 1), FUTEX_WAKE, 1, NULL, NULL, 0)); break;
    case 5: show("wait without a child", 0, waitpid(-1, &status, draw(2) ? WNOHANG : 0)); break;
    case 6: {
        unsigned how = draw(3), code = draw(5);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            if (how == 1) kill(getpid(), code ? SIGKILL : SIGTERM);
            if (how == 2) abort();
            _exit((int)code);
        }
        show("wait", (int)how, waitpid(child, &status, 0) == child);
        printf("  status %x\n", status & 0xff7f);
        break;
    }
    case 7: {
        sigset_t set, pending;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, NULL);
        kill(getpid(), SIGUSR1);
        sigpending(&pending);
        show("pending", 0, sigismember(&pending, SIGUSR1));
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        break;
    }
    case 8: {
        int slot = (int)draw(SLOTS);
        struct itimerspec when = {.it_value.tv_nsec = (long)draw(2) * 100000};
        if (slots[slot] < 0) return;
        show("timerfd_settime", slot, timerfd_settime(slots[slot], 0, &when, NULL));
        settle();
        break;
    }
    }
    printf("  signals %d\n", signals);
}

static void run(unsigned seed) {
    char name[24];
    state = seed * 0x9E3779B97F4A7C15u + 1;
    seeded = seed;
    snprintf(name, sizeof name, "drawn-%u", seed);
    if (mkdir(name, 0700) < 0 || chdir(name) < 0) exit(9);
    for (int slot = 0; slot < SLOTS; slot++) slots[slot] = -1;
    struct sigaction action = {.sa_handler = noticed};
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int step = 0; step < STEPS; step++) {
        int slot = (int)draw(SLOTS), file = slots[slot];
        unsigned what = draw(20);
        printf("%u/%d ", seed, step);
        if (what < 4 || file < 0) make();
        else if (what < 9) transfer(slot, file);
        else if (what < 12) use_socket(slot, file);
        else if (what < 14) use_descriptor(slot, file);
        else if (what < 17) watch(slot, file);
        else if (what == 17) look();
        else if (what == 18) names();
        else others();
        printf(".\n");
    }
    fflush(stdout);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    for (unsigned seed = (unsigned)atoi(arguments[1]); seed <= (unsigned)atoi(arguments[2]); seed++) {
        pid_t child = fork();
        if (child == 0) {
            run(seed);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        printf("end of %u: %x\n", seed, status);
        fflush(stdout);
    }
    return 0;
}
