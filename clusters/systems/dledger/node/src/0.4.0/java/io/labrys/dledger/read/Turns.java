package io.labrys.dledger.read;

import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs tasks one after the other, now or later. No two tasks run at once, so their shared state needs no lock. */
public interface Turns {
    /** Runs {@code task} after the earlier tasks. */
    void soon(Runnable task);

    /** Runs {@code task} in {@code millis} milliseconds. */
    void later(long millis, Runnable task);

    /** Returns milliseconds of a clock that never goes back. */
    long nowMillis();

    /** Runs all tasks on one own thread. A failure ends only its task, and is logged. */
    final class Thread implements Turns, AutoCloseable {
        private static final Logger LOG = LoggerFactory.getLogger(Turns.class);

        private final ScheduledThreadPoolExecutor executor;

        /** Starts the thread with this name. */
        public Thread(String name) {
            executor = new ScheduledThreadPoolExecutor(1, task -> {
                java.lang.Thread thread = new java.lang.Thread(task, name);
                thread.setDaemon(true);
                return thread;
            });
            executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
        }

        @Override
        public void soon(Runnable task) {
            later(0, task);
        }

        @Override
        public void later(long millis, Runnable task) {
            try {
                executor.schedule(() -> guarded(task), millis, TimeUnit.MILLISECONDS);
            } catch (RejectedExecutionException e) {
                LOG.info("a task came after the end and is dropped");
            }
        }

        private static void guarded(Runnable task) {
            try {
                task.run();
            } catch (Throwable e) { // the executor would swallow it
                LOG.error("a task failed", e);
            }
        }

        @Override
        public long nowMillis() {
            return System.nanoTime() / 1_000_000;
        }

        @Override
        public void close() {
            executor.shutdown();
        }
    }
}
