package io.labrys.simjvm.run;

import java.lang.StackWalker.StackFrame;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * Lets threads fall behind at drawn points of the program, and orders threads by priorities, as probabilistic concurrency testing
 * does (Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, 2010).
 *
 * <p>Each thread has a random priority. Of the threads that are ready at one time, the one with the highest priority runs first. At
 * a change point, a thread gets the lowest priority of all.
 *
 * <p>Two things differ from that paper, because code takes no time here. A thread with the lowest priority would be late only for
 * others that are ready at the same time. So it also stalls for a time from {@link #LEAST_NANOS} to {@link #MOST_NANOS}, as on a busy
 * machine. And most steps of a program poll, so change points are drawn by time: after a drawn time, the next event from the network
 * chooses the process, and one of the next points of this process is the change point. Points are the accesses of fields, locks,
 * unparks, and the starts of threads.
 */
public final class Stalls {
    private static final double LEAST_NANOS = Scheduler.NANOS_PER_MILLI;
    private static final double MOST_NANOS = 1_000 * Scheduler.NANOS_PER_MILLI;
    private static final double MOST_POINTS = 5_000;
    private static final double NANOS_PER_SECOND = 1e9;
    private static final String OWN = "io.labrys.simjvm.";
    private static final StackWalker STACK = StackWalker.getInstance();

    /** Whether a thread of {@link #where} stalls at one of its next points. It is static so that a point costs one look. */
    private static boolean armed;

    private final Scheduler scheduler;
    private final Random choices;
    private final double perSecond;
    private SimProcess where;
    private long points;
    private long next;
    private long lowest;

    /**
     * Makes the stalls of a run.
     *
     * @param scheduler the scheduler of the run
     * @param seed draws the change points and the priorities
     * @param perSecond the mean number of change points in a second; 0 for threads without priorities
     */
    Stalls(Scheduler scheduler, long seed, double perSecond) {
        this.scheduler = scheduler;
        this.choices = new Random(seed);
        this.perSecond = perSecond;
        armed = false;
        if (areUsed()) {
            drawNext();
        }
    }

    /** Comes before an access of a field. */
    public static void point() {
        if (armed) {
            Scheduler.get().stalls().reach(Scheduler.get().current());
        }
        MissingPages.point();
    }

    /** Returns whether threads have priorities. */
    boolean areUsed() {
        return perSecond > 0;
    }

    /** Draws the priority of a new thread. */
    long priority() {
        return areUsed() ? choices.nextLong() >>> 1 : 0;
    }

    /** Returns the index of the thread with the highest priority. */
    static int first(List<SimThread> ready) {
        int found = 0;
        for (int i = 1; i < ready.size(); i++) {
            if (ready.get(i).rank > ready.get(found).rank) {
                found = i;
            }
        }
        return found;
    }

    /** Notes that an event from the network comes to a process. */
    void happens(SimProcess process) {
        if (areUsed() && scheduler.now() >= next && !(armed && !where.killed())) {
            where = process;
            points = (long) Math.pow(MOST_POINTS, choices.nextDouble());
            armed = true;
        }
    }

    /** Notes that a thread is at a point. */
    void reach(SimThread me) {
        if (!armed || me.process != where || me.initializes() || me.looks() || me.process.killed() || --points > 0) {
            return;
        }
        StackFrame place = placeOfProgram();
        if (place == null) {
            points = 1;
            return;
        }
        armed = false;
        drawNext();
        me.rank = --lowest;
        long nanos = (long) (LEAST_NANOS * Math.pow(MOST_NANOS / LEAST_NANOS, choices.nextDouble()));
        me.process.note(String.format(Locale.ROOT, "the simulator stalls the thread %s for %.1f ms in %s", me.getName(),
            nanos / (double) Scheduler.NANOS_PER_MILLI, place.toStackTraceElement()));
        scheduler.block(me, SimThread.Wait.STALL, scheduler.after(nanos));
    }

    private void drawNext() {
        next = scheduler.after((long) (-Math.log(1 - choices.nextDouble()) / perSecond * NANOS_PER_SECOND));
    }

    /** Returns where the program is; null if the JDK has called it, e.g. a map that holds a lock of the JVM meanwhile. */
    private static StackFrame placeOfProgram() {
        return STACK.walk(frames -> {
            List<StackFrame> called = frames.takeWhile(frame -> !frame.getClassName().equals(SimThread.class.getName())).toList();
            boolean isCalledByJdk = called.stream().anyMatch(frame -> frame.getClassName().startsWith("java.util."));
            return isCalledByJdk ? null
                : called.stream().filter(frame -> !frame.getClassName().startsWith(OWN)).findFirst().orElse(null);
        });
    }
}
