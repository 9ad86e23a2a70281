package io.labrys.simjvm.run;

import java.util.function.Supplier;

/**
 * Takes the place of {@link java.lang.ThreadLocal}: a value for each simulated thread. Several of them can share a platform thread.
 *
 * @param <T> the type of the value
 */
public class SimThreadLocal<T> {
    /** Makes a variable whose first value is that of {@link #initialValue}. */
    public SimThreadLocal() {}

    /** Makes a variable whose first value comes from a supplier. */
    public static <S> SimThreadLocal<S> withInitial(Supplier<? extends S> supplier) {
        return new SimThreadLocal<>() {
            @Override
            protected S initialValue() {
                return supplier.get();
            }
        };
    }

    /** Returns the first value. */
    protected T initialValue() {
        return null;
    }

    /** Returns the value of the running thread. */
    @SuppressWarnings("unchecked")
    public T get() {
        SimThread me = SimThread.currentThread();
        Object found = me.locals().get(this);
        if (found == null && !me.locals().containsKey(this)) {
            found = initialValue();
            me.locals().put(this, found);
        }
        return (T) found;
    }

    /** Sets the value of the running thread. */
    public void set(T value) {
        SimThread.currentThread().locals().put(this, value);
    }

    /** Forgets the value of the running thread. */
    public void remove() {
        SimThread.currentThread().locals().remove(this);
    }
}
