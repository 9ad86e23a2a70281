// What a program sees of a full disk: `full FOLDER begin` makes files, and `full FOLDER look` uses them when it is full.
// It prints the same natively, on ext4 with blocks of a page, and in the simulation.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 16 };
static sigjmp_buf back;
static char bytes[PAGES * PAGE];

static void say(const char *what, long result) {
  printf("%s = %ld%s%s\n", what, result, result < 0 ? " " : "", result < 0 ? strerror(errno) : "");
  fflush(stdout);
}

static void on_bus(int number) { siglongjmp(back, number); }

static void store(const char *what, volatile char *place) {
  int number = sigsetjmp(back, 1);
  if (number == 0) *place = 'x';
  printf("%s: %s\n", what, number ? strsignal(number) : "done");
}

static void load(const char *what, volatile char *place) {
  int number = sigsetjmp(back, 1);
  int value = number ? 0 : *place;
  printf("%s: %s %d\n", what, number ? strsignal(number) : "done", value);
}

static void add(const char *what, int *place) {
  int number = sigsetjmp(back, 1);
  if (number == 0) __atomic_add_fetch(place, 1, __ATOMIC_SEQ_CST);
  printf("%s: %s\n", what, number ? strsignal(number) : "done");
}

static void copy(const char *what, char *to, const char *from) {
  int number = sigsetjmp(back, 1);
  if (number == 0) memcpy(to, from, PAGE);
  printf("%s: %s\n", what, number ? strsignal(number) : "done");
}

static void begin(void) {
  int file = open("old", O_CREAT | O_RDWR, 0644);
  say("write", write(file, bytes, 2 * PAGE));
  file = open("partial", O_CREAT | O_RDWR, 0644);
  say("write of a part", write(file, bytes, 100));
  file = open("kept", O_CREAT | O_RDWR, 0644);
  say("fallocate", fallocate(file, 0, 0, 4 * PAGE));
  file = open("mapped", O_CREAT | O_RDWR, 0644);
  say("ftruncate", ftruncate(file, PAGES * PAGE));
  say("pwrite", pwrite(file, bytes, PAGE, PAGE));
  sync();
}

static void look(void) {
  int file = open("old", O_RDWR);
  say("overwrite", pwrite(file, bytes, PAGE, 0));
  say("overwrite over the end", pwrite(file, bytes, 2 * PAGE, PAGE));
  say("append", (lseek(file, 0, SEEK_END), write(file, bytes, PAGE)));
  file = open("partial", O_RDWR);
  say("fill the last block", (lseek(file, 0, SEEK_END), write(file, bytes, 200)));
  say("write into a new block", pwrite(file, bytes, 100, 2 * PAGE));
  file = open("kept", O_RDWR);
  say("write into kept space", pwrite(file, bytes, 4 * PAGE, 0));
  say("write behind kept space", pwrite(file, bytes, PAGE, 4 * PAGE));
  say("fallocate", fallocate(file, 0, 0, PAGES * PAGE));
  say("posix_fallocate", -(errno = posix_fallocate(file, 0, PAGES * PAGE)));
  say("ftruncate to a larger size", ftruncate(file, 4 * PAGES * PAGE));
  file = open("new", O_CREAT | O_RDWR, 0644);
  say("a new file", file < 0 ? -1 : 0);
  say("its first write", write(file, "x", 1));
  say("fsync", fsync(file));
  say("rename", rename("new", "renamed"));
  say("unlink", unlink("renamed"));
  file = open("mapped", O_RDWR);
  char *memory = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  char *shown = mmap(0, PAGES * PAGE, PROT_READ, MAP_SHARED, file, 0);
  load("load from a page", memory + PAGE);
  store("store into a page", memory + PAGE);
  load("load from a hole", memory + 4 * PAGE);
  load("load from a hole that cannot be written", shown + 5 * PAGE);
  store("store into a hole", memory + 8 * PAGE);
  store("store into the hole again", memory + 8 * PAGE);
  load("load from that hole", memory + 8 * PAGE);
  add("add in a hole", (int *)(memory + 10 * PAGE));
  copy("copy from hole to hole", memory + 13 * PAGE, memory + 12 * PAGE);
  copy("copy from hole to page", memory + PAGE, memory + 14 * PAGE);
  load("load of what was copied", memory + PAGE + 7);
  load("load behind the end", mmap(0, 2 * PAGE, PROT_READ, MAP_SHARED, open("partial", O_RDONLY), 0) + PAGE);
  say("msync", msync(memory, PAGES * PAGE, MS_SYNC));
  struct statvfs state;
  statvfs(".", &state);
  say("free blocks", state.f_bavail);
  say("ftruncate to a smaller size", ftruncate(open("kept", O_RDWR), 0));
  say("an append into freed space", pwrite(open("old", O_RDWR), bytes, PAGE, 2 * PAGE));
}

int main(int count, char **arguments) {
  if (count < 3 || chdir(arguments[1]) != 0) return 2;
  signal(SIGBUS, on_bus);
  memset(bytes, 'b', sizeof bytes);
  (strcmp(arguments[2], "begin") == 0 ? begin : look)();
  return 0;
}
