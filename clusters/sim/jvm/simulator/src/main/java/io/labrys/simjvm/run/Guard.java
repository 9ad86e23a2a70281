package io.labrys.simjvm.run;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Ends the run, and this JVM, if code leaves the simulation. Without it, such a run would go on and could not be repeated.
 *
 * <p>It ends the run for: code of a process on a thread that the scheduler does not know; an API that has no hook; an
 * {@link OutOfMemoryError}, a {@link StackOverflowError} or a {@link LinkageError}, even if the program catches it; and a thread that
 * runs for {@value #STUCK_SECONDS} seconds of processor time, or {@value #LATE_SECONDS} seconds, without a decision of the scheduler.
 */
public final class Guard {
    /** The exit status of the JVM. */
    public static final int STATUS = 70;
    private static final int STUCK_SECONDS = 60;
    private static final int LATE_SECONDS = 600;
    private static final int FRAMES = 25;
    private static final long END_MILLIS = 10_000;

    private final Output output;
    private final ThreadGroup group = Thread.currentThread().getThreadGroup();
    private final Thread watch;
    private volatile boolean busy;

    /** Makes the guard, and starts the thread that watches the others. */
    public Guard(Output output) {
        this.output = output;
        watch = new Thread(this::watch, "watch");
        watch.setDaemon(true);
        watch.start();
    }

    /** Notes whether threads of the simulation run now. */
    public void busy(boolean now) {
        busy = now;
    }

    /** Ends the JVM if a thread outlives the run. Such a thread would act in the next run. */
    public void checkThreads() {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getThreadGroup() != group || thread == Thread.currentThread() || thread == watch) {
                continue;
            }
            try {
                thread.join(END_MILLIS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            if (thread.isAlive()) {
                throw fail("the thread " + thread.getName() + " outlives the run", thread.getStackTrace());
            }
        }
    }

    /** Ends the run: a thread outside of the simulation runs code of a process. */
    Error stranger(Thread thread) {
        return fail("the thread " + thread.getName() + " is outside of the simulation and runs code of a process",
            thread.getStackTrace());
    }

    /** Ends the run: the code is about to call an API that has no hook. */
    public Error unhooked(String what) {
        return fail("the simulator has no hook for " + what, Thread.currentThread().getStackTrace());
    }

    /** Ends the run: something is wrong with the simulation itself. */
    public Error broken(String what) {
        return fail(what, Thread.currentThread().getStackTrace());
    }

    /** Ends the run if the error is one of the JVM, which depends on more than the seed. */
    public void endOn(Throwable error) {
        if ((error instanceof VirtualMachineError || error instanceof LinkageError) && !(error instanceof MissingPages.Fault)) {
            throw fail("the JVM has raised " + error, error.getStackTrace());
        }
    }

    private Error fail(String what, StackTraceElement... stack) {
        String frames = Arrays.stream(stack).limit(FRAMES).map(frame -> "\n    at " + frame).collect(Collectors.joining());
        output.failed(what + frames);
        output.flush(0, Scheduler.NEVER, 0);
        Runtime.getRuntime().halt(STATUS);
        return new Error(what);
    }

    private void watch() {
        OperatingSystemMXBean machine = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long decisions = -1;
        long usedBefore = 0;
        int same = 0;
        while (true) {
            try {
                Thread.sleep(1000);
            } catch (InterruptedException e) {
                return;
            }
            Scheduler scheduler = Scheduler.get();
            long seen = scheduler == null ? -1 : scheduler.decisions();
            same = busy && seen == decisions ? same + 1 : 0;
            usedBefore = same == 0 ? machine.getProcessCpuTime() : usedBefore;
            decisions = seen;
            boolean isStuck = same > 0 && TimeUnit.NANOSECONDS.toSeconds(machine.getProcessCpuTime() - usedBefore) >= STUCK_SECONDS;
            if (isStuck || same >= LATE_SECONDS) {
                String stacks = Thread.getAllStackTraces().entrySet().stream()
                    .filter(entry -> entry.getKey().getState() == Thread.State.RUNNABLE
                        || entry.getKey().getState() == Thread.State.BLOCKED)
                    .map(entry -> "\n" + entry.getKey().getName() + Arrays.stream(entry.getValue()).limit(FRAMES)
                        .map(frame -> "\n    at " + frame).collect(Collectors.joining()))
                    .collect(Collectors.joining());
                fail("no thread of the simulation has blocked for " + same + " s:" + stacks);
            }
        }
    }
}
