package io.labrys.simjvm.inside;

import io.labrys.simjvm.run.SimProcess;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The time-outs of {@code CompletableFuture}. The JDK has one static thread for them. Processes that share a class loader would share
 * this thread, and it would die with the first of them. So each process has its own.
 */
public final class Delays {
    private final ScheduledThreadPoolExecutor executor;

    private Delays() {
        executor = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "CompletableFutureDelayScheduler");
            thread.setDaemon(true);
            return thread;
        });
        executor.setRemoveOnCancelPolicy(true);
    }

    /** Runs a task after a delay, in the process of the running thread. */
    public static ScheduledFuture<?> delay(Runnable task, long delay, TimeUnit unit) {
        return SimProcess.current().local(Delays.class, Delays::new).executor.schedule(task, delay, unit);
    }
}
