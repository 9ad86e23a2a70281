/* Answers some system calls within a program, as the controller would; src/fast.rs says which, and what both share.
 *
 * A call site jumps here before its `syscall`. If the call is not one of these now, the thread goes on at its `syscall` with
 * the same registers, and the controller answers. One thread of all programs runs at a time, so plain reads and writes are enough,
 * and all can have one stack here. Nothing here uses memory of the program but times on the page of its stack pointer, so nothing
 * here can fail. */
#include <stdint.h>

enum { NANOSLEEP = 35, FUTEX = 202, CLOCK_GETTIME = 228, EPOLL_WAIT = 232, EPOLL_PWAIT = 281 };
enum { FUTEX_WAKE = 1, FUTEX_PRIVATE = 128, OF_PROCESS = 2, OF_THREAD = 3 };
#define SECOND 1000000000ul
#define RED_ZONE 128
#define PAGE 4096ul
#define BUCKETS 2048
#define MOST_WAKES 16
#define ADDRESS_BITS 48
#define NO_WORD UINT64_MAX

/* The first words of the page that all share; see vdso.c. */
struct shared { volatile uint64_t now, limit; };

/* The next page: its layout is that of `Place` in src/fast.rs. */
struct fast {
  volatile uint64_t before, next, low, high, thread, memory, cost, later, quiet, brief, has_waited, epoll, quanta, begun, wakes, sleeps,
      waits, pwaits, has_answered, ends, woken, clocks, processor;
  volatile uint64_t spare[9];
  volatile uint64_t quantum[64];
  volatile struct { uint64_t address, count; } wake[MOST_WAKES];
};

/* The words of a bucket that threads wait for: how many, and if it is one, which, and for how many threads. */
struct words { uint64_t word; uint32_t words, threads; };

/* The addresses are those of src/start.rs. */
#define SHARED ((struct shared *)0x6fff00000000ul)
#define FAST ((struct fast *)0x6fff00002000ul)
#define WAITED_FOR ((volatile struct words *)0x6fff00003000ul)

/* The registers of the thread, as the code below saves them. */
struct frame { uint64_t r15, r14, r13, r12, rbp, rbx, r10, r9, r8, rdx, rsi, rdi, rax, rip, flags, rsp; };

__asm__(
    ".section .entry,\"ax\"\n"
    "  movabs $0x6fff00003000, %r11\n" /* the end of the page of `fast`, where the stack begins */
    "  mov %rsp, -8(%r11)\n"
    "  lea -8(%r11), %rsp\n"
    "  pushfq\n  push %rcx\n  push %rax\n  push %rdi\n  push %rsi\n  push %rdx\n  push %r8\n  push %r9\n  push %r10\n"
    "  push %rbx\n  push %rbp\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, %rdi\n"
    "  cld\n"
    "  call answer\n"
    "  test %eax, %eax\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbp\n  pop %rbx\n"
    "  pop %r10\n  pop %r9\n  pop %r8\n  pop %rdx\n  pop %rsi\n  pop %rdi\n  pop %rax\n  pop %rcx\n"
    "  jnz 1f\n"
    "  lea -2(%rcx), %rcx\n" /* at the `syscall` itself */
    "1:\n"
    "  pop %r11\n" /* as after a call: the flags are here, and the address of the next instruction in rcx */
    "  push %r11\n"
    "  popfq\n"
    "  pop %rsp\n"
    "  jmp *%rcx\n"
    ".text\n");

static inline void number(uint64_t number) {
  uint64_t low = (FAST->low ^ number) * 0x9E3779B97F4A7C15ul, high = FAST->high;
  FAST->low = low ^ low >> 29;
  high = ((high << 23 | high >> 41) ^ number) * 0xD6E8FEB86659FD93ul;
  FAST->high = high ^ high >> 32;
}

/* Puts a call with its result into the digest, and ends it. */
static inline int done(struct frame *frame, uint64_t now, uint64_t result) {
  uint64_t call = frame->rax;
  SHARED->now = now;
  number(now);
  number(FAST->thread);
  number(call);
  number(result);
  number(frame->rdi);
  number(frame->rsi);
  number(frame->rdx);
  number(frame->r10);
  number(frame->rip);
  number(frame->rsp);
  frame->rax = result;
  return 1;
}

static inline int done_at_once(struct frame *frame, uint64_t now, uint64_t result) {
  FAST->has_waited = 0;
  FAST->has_answered = 1;
  return done(frame, now, result);
}

/* Returns whether 16 bytes are on the page of the stack pointer, and so are there. */
static inline int is_near(struct frame *frame, uint64_t at) {
  return at >= frame->rsp - RED_ZONE && at / PAGE == frame->rsp / PAGE && (at + 15) / PAGE == at / PAGE;
}

/* A sleep of the only thread that can run: the time comes to its end. */
static inline int sleeps(struct frame *frame, uint64_t now) {
  uint64_t place = FAST->begun, at = frame->rdi;
  if (place >= FAST->quanta || !is_near(frame, at)) return 0;
  int64_t seconds = ((volatile int64_t *)at)[0], nanos = ((volatile int64_t *)at)[1];
  if (seconds < 0 || seconds > 1000 || nanos < 0 || nanos >= (int64_t)SECOND) return 0;
  uint64_t until = now + (uint64_t)seconds * SECOND + (uint64_t)nanos;
  if (!FAST->has_waited && until <= now + FAST->brief && now >= FAST->quiet) until += FAST->later;
  if (until >= FAST->next) return 0;
  FAST->has_waited = 0;
  FAST->has_answered = 1;
  FAST->begun = place + 1;
  FAST->sleeps++;
  number(FAST->thread);
  uint64_t ends = until + FAST->quantum[place];
  FAST->ends = ends;
  SHARED->limit = ends < FAST->before ? ends : FAST->before;
  return done(frame, until, 0);
}

/* Wakes threads that wait for a word. The controller does it later; so from now on, the thread is not alone. */
static inline int wakes(struct frame *frame, uint64_t now) {
  if ((int)frame->rsi != (FUTEX_WAKE | FUTEX_PRIVATE) || frame->rdi % 4 || frame->rdi >> ADDRESS_BITS) return 0;
  uint64_t word = FAST->memory << ADDRESS_BITS | frame->rdi, place = FAST->woken, count = 0;
  volatile struct words *words = &WAITED_FOR[(frame->rdi / 4 ^ FAST->memory * 0x9E5) % BUCKETS];
  if (words->words > 1 || (words->words == 1 && words->word == NO_WORD)) return 0;
  if (words->words == 1 && words->word == word) count = (uint32_t)frame->rdx < words->threads ? (uint32_t)frame->rdx : words->threads;
  if (count > 0) {
    if (place == MOST_WAKES) return 0;
    FAST->wake[place].address = frame->rdi;
    FAST->wake[place].count = count;
    FAST->woken = place + 1;
    words->threads -= (uint32_t)count;
    FAST->quanta = 0;
    if (FAST->ends < FAST->next) FAST->next = FAST->ends;
  }
  FAST->wakes++;
  return done_at_once(frame, now, count);
}

/* Reads a clock of processor time, which counts calls. */
static inline int reads_clock(struct frame *frame, uint64_t now) {
  int clock = (int)frame->rdi;
  uint64_t at = frame->rsi;
  if ((clock != OF_PROCESS && clock != OF_THREAD && clock >= 0) || !is_near(frame, at)) return 0;
  FAST->clocks++;
  uint64_t calls = FAST->wakes + FAST->sleeps + FAST->waits + FAST->pwaits + FAST->clocks;
  uint64_t time = FAST->processor + calls * FAST->cost;
  ((volatile uint64_t *)at)[0] = time / SECOND;
  ((volatile uint64_t *)at)[1] = time % SECOND;
  return done_at_once(frame, now, 0);
}

__attribute__((used)) int answer(struct frame *frame) {
  uint64_t now = SHARED->now + FAST->cost;
  if (now >= FAST->next) return 0;
  switch (frame->rax) {
    case NANOSLEEP:
      return sleeps(frame, now);
    case FUTEX:
      return wakes(frame, now);
    case CLOCK_GETTIME:
      return reads_clock(frame, now);
    case EPOLL_WAIT:
    case EPOLL_PWAIT:
      if ((int)frame->r10 != 0 || (int)frame->rdx <= 0 || (uint32_t)frame->rdi != FAST->epoll) return 0;
      if (frame->rax == EPOLL_WAIT) FAST->waits++;
      else FAST->pwaits++;
      return done_at_once(frame, now, 0);
    default:
      return 0;
  }
}
