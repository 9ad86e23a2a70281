package io.labrys.simjvm.inside;

/**
 * What the copies of the JDK's classes need of {@link java.util.concurrent.ForkJoinPool}. A pool with work stealing cannot be made:
 * the JVM raises a {@link NoSuchMethodError}, and the guard ends the run.
 */
public final class ForkJoinPool {
    /** A blocking call that may end early. */
    public interface ManagedBlocker {
        /** Blocks; returns whether no further blocking is necessary. */
        boolean block() throws InterruptedException;

        /** Returns whether no blocking is necessary. */
        boolean isReleasable();
    }

    private static final ForkJoinPool COMMON = new ForkJoinPool();

    private ForkJoinPool() {}

    /** Returns 1, as on a machine with two processors. A {@code CompletableFuture} then makes a thread for each task. */
    public static int getCommonPoolParallelism() {
        return 1;
    }

    /** Returns an object that is no executor. {@code CompletableFuture} only compares executors with it. */
    public static ForkJoinPool commonPool() {
        return COMMON;
    }

    /** Blocks until the blocker is released. */
    public static void managedBlock(ManagedBlocker blocker) throws InterruptedException {
        while (!blocker.isReleasable()) {
            if (blocker.block()) {
                return;
            }
        }
    }
}
