package io.labrys.simjvm.inside;

import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** What the copy of {@code CompletableFuture} needs of {@link java.util.concurrent.ForkJoinTask}: a type for its tasks. */
public abstract class ForkJoinTask<V> implements Future<V> {
    private short tag;

    /** Changes the tag from a value to another one; returns whether it had this value. Only one thread runs at a time. */
    public final boolean compareAndSetForkJoinTaskTag(short expected, short wanted) {
        boolean fits = tag == expected;
        tag = fits ? wanted : tag;
        return fits;
    }

    /** Returns the result. */
    public abstract V getRawResult();

    /** Sets the result. */
    protected abstract void setRawResult(V value);

    /** Does the task. */
    protected abstract boolean exec();

    @Override
    public final boolean cancel(boolean mayInterrupt) {
        return false;
    }

    @Override
    public final boolean isCancelled() {
        return false;
    }

    @Override
    public final boolean isDone() {
        return false;
    }

    @Override
    public final V get() {
        throw new UnsupportedOperationException("nothing waits for a task of CompletableFuture itself");
    }

    @Override
    public final V get(long time, TimeUnit unit) {
        return get();
    }
}
