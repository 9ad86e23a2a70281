package io.labrys.simjvm.run;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.function.Supplier;

/**
 * Runs the threads of all simulated processes, one at a time, in virtual time.
 *
 * <p>One thread holds the baton and runs until it blocks. It then draws the next one among those that are ready, from the seed, and
 * hands the baton over. If none is ready, the time jumps to the next timer. Code takes no time. The driver holds the baton between
 * two calls of {@link #advance}. So there is never more than one thread that runs, and the fields here need no locks.
 *
 * <p>A thread can also lose the baton where it does not block: at a monitor, an unpark or the start of a thread, with the
 * probability {@code preempt}. If threads stall, they have priorities instead; see {@link Stalls}.
 *
 * <p>Programs poll. While nothing happens to a process, a wait of at most {@link #SHORT_NANOS} takes up to {@code stretch} longer,
 * as on a busy machine. A message or a request ends that at once, and the wait then ends at its true time.
 *
 * <p>For half of all seeds, disks are slow: {@link #SLOW_SHARE} of the operations on files take time. The mean is the same in the
 * whole run, and is drawn from 1 to 30 ms. A write into a mapped file takes time with the probability {@code pageFaults}, 10 ms in
 * the mean, before it changes a byte.
 *
 * <p>A thread that sends or logs {@link #MOST_ACTS} times in one instant waits for {@link #ACTS_NANOS}. So a loop without a wait
 * takes time, as it does on a real machine, and others run meanwhile.
 */
public final class Scheduler {
    /** The end of a wait without a limit. */
    public static final long NEVER = Long.MAX_VALUE;
    static final long NANOS_PER_MILLI = 1_000_000;
    private static final long PASS_NANOS = 1_000;
    private static final long SHORT_NANOS = 10 * NANOS_PER_MILLI;
    private static final long QUIET_NANOS = 3 * NANOS_PER_MILLI;
    private static final double SLOW_SHARE = 0.3;
    private static final double LEAST_SLOW_NANOS = NANOS_PER_MILLI;
    private static final double SLOW_RANGE = 30;
    private static final double PAGE_FAULT_NANOS = 10 * NANOS_PER_MILLI;
    private static final int MOST_ACTS = 2_000;
    private static final long ACTS_NANOS = 400 * NANOS_PER_MILLI;

    private static Scheduler one;

    private final Guard guard;
    private final Output output;
    private final long seed;
    private final Random choices;
    private final double preempt;
    private final long stretchNanos;
    private final Random disks;
    private final double slowNanos;
    private final double pageFaults;
    private final Random pages;
    private final Random faults;
    private final Stalls stalls;
    private final ThreadGroup group = Thread.currentThread().getThreadGroup();
    private final Carrier.Maker carriers;
    private final List<SimThread> ready = new ArrayList<>();
    private final PriorityQueue<Timer> timers = new PriorityQueue<>();
    private final Deque<SimProcess> ending = new ArrayDeque<>();
    private final List<Monitors.Monitor> monitors = new ArrayList<>();
    private long now;
    private long limit;
    private long lastTimer;
    private long lastConnection;
    private long decisions;
    private long trace;
    private SimThread running;

    /** The end of a wait. Ends at the same time come in the order of their making. */
    private record Timer(long at, long order, SimThread thread, long ofWait) implements Comparable<Timer> {
        @Override
        public int compareTo(Timer other) {
            return at != other.at ? Long.compare(at, other.at) : Long.compare(order, other.order);
        }
    }

    /**
     * Makes the scheduler of a run, in the place of the one of the run before.
     *
     * @param guard ends the run if code leaves the simulation
     * @param output receives what the processes send and log
     * @param seed draws the next thread
     * @param preempt the probability with which a thread loses the baton where it does not block
     * @param pageFaults the probability with which a write into a mapped file takes time
     * @param stalls the mean number of times in a second that a thread stalls
     * @param stretchNanos how much longer a short wait of an idle process takes
     */
    public Scheduler(Guard guard, Output output, long seed, double preempt, double pageFaults, double stalls, long stretchNanos) {
        this.guard = guard;
        this.output = output;
        this.seed = seed;
        this.choices = new Random(seed);
        this.preempt = preempt;
        this.stretchNanos = stretchNanos;
        this.carriers = ContinuationCarrier.areUsed() ? new ContinuationCarrier.Continuations() : new PlatformCarrier.Platform();
        this.disks = new Random(seed + 1);
        this.slowNanos = disks.nextBoolean() ? LEAST_SLOW_NANOS * Math.pow(SLOW_RANGE, disks.nextDouble()) : 0;
        this.pageFaults = pageFaults;
        this.pages = new Random(seed + 2);
        this.faults = new Random(seed + 3);
        MissingPages.reset();
        this.stalls = new Stalls(this, seed + 3, stalls);
        one = this;
    }

    /** Returns the scheduler of the run. */
    public static Scheduler get() {
        return one;
    }

    /** Returns the time in nanoseconds since the beginning of the run. */
    public long now() {
        return now;
    }

    /** Returns the guard. */
    public Guard guard() {
        return guard;
    }

    /** Returns the seed of the run. */
    public long seed() {
        return seed;
    }

    /** Returns the number of the next connection that a process begins. */
    long nextConnection() {
        return ++lastConnection;
    }

    /** Returns the monitors that threads hold or wait for. */
    List<Monitors.Monitor> monitors() {
        return monitors;
    }

    Stalls stalls() {
        return stalls;
    }

    /** Makes the carrier of a thread. */
    Carrier carrier(SimThread thread) {
        return carriers.carrier(thread);
    }

    Output output() {
        return output;
    }

    ThreadGroup group() {
        return group;
    }

    /** Returns a digest of all decisions so far: the time and the thread of each. Equal digests mean equal schedules. */
    public long trace() {
        return trace;
    }

    /** Returns the number of decisions so far. */
    public long decisions() {
        return decisions;
    }

    /** Returns the thread that holds the baton. Ends the run if the caller is another one. */
    public SimThread current() {
        SimThread thread = running;
        if (thread == null || !thread.isCarriedHere()) {
            throw guard.stranger(Thread.currentThread());
        }
        return thread;
    }

    /** Returns the thread that holds the baton; null if the caller is none of the simulation. */
    public SimThread currentOrNull() {
        return running != null && running.isCarriedHere() ? running : null;
    }

    /** Returns the time after a number of nanoseconds; {@link #NEVER} if it is beyond all times. */
    long after(long nanos) {
        long at = now + Math.max(nanos, 0);
        return at < now ? NEVER : at;
    }

    /** Sets the time of an event from outside. All earlier timers have fired. */
    public void reach(long time) {
        now = Math.max(now, time);
    }

    /**
     * Lets threads run until a time, or until the end of the first instant with output.
     *
     * @return the time of the next timer; {@link #NEVER} if no thread waits for a time
     */
    public long advance(long until) {
        limit = until;
        SimThread next = pick();
        if (next != null) {
            give(next);
            carriers.awaitDriversTurn();
        }
        while (!ending.isEmpty()) {
            SimProcess process = ending.poll();
            output.died(process.name(), process.ended());
            process.kill();
            return now;
        }
        if (output.isEmpty() && !ready.isEmpty()) {
            throw guard.broken("threads are ready, and the scheduler has stopped");
        }
        dropStale();
        return output.isEmpty() && timers.isEmpty() ? NEVER : output.isEmpty() ? timers.peek().at : now;
    }

    /** Draws when the error for a write into a missing page comes, from 0 to 1. */
    double drawFault() {
        return faults.nextDouble();
    }

    /** Notes that a process ends itself. The driver kills it before any other thread runs. */
    void end(SimProcess process) {
        ending.add(process);
    }

    /**
     * Blocks the running thread.
     *
     * @param until the time at which the wait ends by itself
     * @return whether another thread ended the wait
     */
    boolean block(SimThread me, SimThread.Wait why, long until) {
        if (me.process.killed()) {
            throw new Killed();
        }
        me.life = SimThread.Life.BLOCKED;
        me.wait = why;
        me.woken = false;
        me.waits++;
        me.trueEnd = NEVER;
        if (until != NEVER) {
            long end = until;
            if (stretchNanos > 0 && !why.isExact() && until - now <= SHORT_NANOS && until > now && me.process.quietSince(now - QUIET_NANOS)) {
                me.trueEnd = until;
                end = until + stretchNanos;
            }
            timers.add(new Timer(end, lastTimer++, me, me.waits));
        }
        leave(me);
        return me.woken;
    }

    /** Ends the wait of a blocked thread. */
    void wake(SimThread thread) {
        if (thread.life == SimThread.Life.BLOCKED) {
            thread.woken = true;
            makeReady(thread);
        }
    }

    /** Lets the other ready threads run first, and takes a microsecond. */
    void pass() {
        SimThread me = current();
        block(me, SimThread.Wait.NOTHING, now + PASS_NANOS);
    }

    /** Comes after a thread has sent or logged. It takes time only for a thread that does so again and again in one instant. */
    void acted() {
        SimThread me = current();
        me.acts = me.actedAt == now ? me.acts + 1 : 1;
        me.actedAt = now;
        if (me.acts >= MOST_ACTS && !me.initializes() && !me.looks()) {
            block(me, SimThread.Wait.BUSY, after(ACTS_NANOS));
        }
    }

    /** Comes before an operation on a file, which takes time on a slow disk. A kill at that time comes before the operation. */
    void fileOperation() {
        SimThread me = current();
        if (me.process.killed()) {
            throw new Killed();
        }
        if (slowNanos > 0 && !me.initializes() && !me.looks() && disks.nextDouble() < SLOW_SHARE) {
            long nanos = (long) (-Math.log(1 - disks.nextDouble()) * slowNanos);
            block(me, SimThread.Wait.DISK, after(Math.max(1, nanos)));
        }
    }

    /** Comes before a write into a mapped file, which takes time if the page is not in memory. */
    void mappedWrite() {
        if (pageFaults == 0) {
            return;
        }
        SimThread me = current();
        if (me.process.killed()) {
            throw new Killed();
        }
        if (!me.initializes() && !me.looks() && pages.nextDouble() < pageFaults) {
            long nanos = (long) (-Math.log(1 - pages.nextDouble()) * PAGE_FAULT_NANOS);
            block(me, SimThread.Wait.DISK, after(Math.max(1, nanos)));
        }
    }

    /**
     * Lets another ready thread run first, with the probability {@code preempt}. If threads have priorities, it may stall instead.
     *
     * <p>In the initializer of a class it does nothing, and draws nothing: what runs there depends on the version of the JVM.
     */
    void maybeSwitch() {
        MissingPages.point();
        SimThread me = current();
        if (stalls.areUsed()) {
            stalls.reach(me);
        } else if (!me.initializes() && !me.looks() && !me.process.killed() && preempt > 0 && choices.nextDouble() < preempt) {
            makeReady(me);
            leave(me);
        }
    }

    /** Ends the wait of a thread, or begins its life. A thread of a paused process waits for the end of the pause. */
    void makeReady(SimThread thread) {
        thread.waits++;
        thread.life = SimThread.Life.READY;
        thread.wait = SimThread.Wait.NOTHING;
        thread.trueEnd = NEVER;
        (thread.process.paused() ? thread.process.held() : ready).add(thread);
    }

    /** Lets the short waits of a process end at their true times, because something happens to it. */
    void rouse(SimProcess process) {
        for (SimThread thread : process.threads()) {
            if (thread.trueEnd != NEVER) {
                timers.add(new Timer(Math.max(now, thread.trueEnd), lastTimer++, thread, thread.waits));
                thread.trueEnd = NEVER;
            }
        }
    }

    /** Moves the ready threads of a process away, because it is paused. */
    void hold(SimProcess process) {
        ready.removeIf(thread -> thread.process == process && process.held().add(thread));
    }

    /** Ends the pause of a process. */
    void release(SimProcess process) {
        ready.addAll(process.held());
        process.held().clear();
    }

    /** Lets the process of the running thread stand still, until the controller resumes or kills it. */
    void standStill() {
        SimThread me = current();
        if (me.process.killed()) {
            throw new Killed();
        }
        if (!me.initializes() && !me.looks()) {
            me.process.pause();
            makeReady(me);
            leave(me);
        }
    }

    /** Ends the life of the running thread, and gives the baton away for good. */
    void finish(SimThread me) {
        me.life = SimThread.Life.DEAD;
        me.process.remove(me);
        if (me.process.killed()) {
            running = null;
            carriers.resumeDriver();
            return;
        }
        me.wakeJoining(this);
        giveAway();
    }

    /** Ends a thread whose process is dead; none of its code runs any more. The driver calls this. */
    void end(SimThread thread) {
        ready.remove(thread);
        thread.waits++;
        if (thread.drop()) {
            thread.life = SimThread.Life.DEAD;
            thread.process.remove(thread);
            return;
        }
        running = thread;
        thread.resume();
        carriers.awaitDriversTurn();
    }

    /** Carries out what only reads the objects of a process, on the thread of the driver, as a thread that is not scheduled. */
    <T> T looking(SimProcess process, Supplier<T> read) {
        running = SimThread.looking(process, Thread.currentThread());
        try {
            return read.get();
        } finally {
            running = null;
        }
    }

    private void leave(SimThread me) {
        if (me.looks()) {
            throw guard.broken("what tells the state of the process " + me.process.name() + " has waited");
        }
        SimThread next = pick();
        if (next == me) {
            run(next);
            return;
        }
        running = null;
        if (next == null) {
            carriers.resumeDriver();
        } else {
            give(next);
        }
        me.awaitTurn();
        if (me.process.killed()) {
            throw new Killed();
        }
    }

    private void giveAway() {
        SimThread next = pick();
        running = null;
        if (next == null) {
            carriers.resumeDriver();
        } else {
            give(next);
        }
    }

    private void give(SimThread next) {
        run(next);
        next.resume();
    }

    private void run(SimThread next) {
        next.life = SimThread.Life.RUNNING;
        running = next;
    }

    /** Returns the thread that runs next; null if the driver has to act first. */
    private SimThread pick() {
        while (ending.isEmpty()) {
            if (!ready.isEmpty()) {
                SimThread next = ready.remove(ready.size() == 1 ? 0 : stalls.areUsed() ? Stalls.first(ready) : choices.nextInt(ready.size()));
                decisions++;
                trace = (trace * 31 + now) * 31 + next.process.order() * 1_000L + next.number;
                return next;
            }
            if (!output.isEmpty()) {
                return null;
            }
            dropStale();
            Timer timer = timers.peek();
            if (timer == null || timer.at > limit) {
                return null;
            }
            now = Math.max(now, timer.at);
            makeReady(timers.poll().thread);
        }
        return null;
    }

    /** Removes timers of waits that have ended. */
    private void dropStale() {
        while (!timers.isEmpty() && !isDue(timers.peek())) {
            timers.poll();
        }
    }

    private static boolean isDue(Timer timer) {
        return timer.thread.waits == timer.ofWait && timer.thread.life == SimThread.Life.BLOCKED;
    }
}
