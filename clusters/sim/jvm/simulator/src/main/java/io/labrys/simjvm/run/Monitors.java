package io.labrys.simjvm.run;

import java.util.ArrayList;
import java.util.List;

/**
 * The monitors of objects: {@code synchronized}, {@code wait} and {@code notify} of the simulated threads.
 *
 * <p>The weaver calls these methods in the place of the instructions of the JVM. A thread that waits in the JVM would keep the
 * baton for ever. The list has only monitors that a thread holds or waits for, so it is short.
 */
public final class Monitors {
    private Monitors() {}

    /** The state of the monitor of an object. */
    static final class Monitor {
        final Object object;
        final List<SimThread> entering = new ArrayList<>();
        final List<SimThread> waiting = new ArrayList<>();
        SimThread owner;
        int count;

        Monitor(Object object) {
            this.object = object;
        }

        boolean isFree() {
            return owner == null && entering.isEmpty() && waiting.isEmpty();
        }
    }

    /** Enters the monitor of an object; waits while another thread is in it. */
    public static void enter(Object object) {
        if (object == null) {
            throw new NullPointerException();
        }
        Scheduler scheduler = Scheduler.get();
        SimThread me = scheduler.current();
        if (me.process.killed()) {
            throw new Killed();
        }
        scheduler.maybeSwitch();
        acquire(scheduler, me, monitor(object), 1);
    }

    /** Leaves the monitor of an object. */
    public static void exit(Object object) {
        SimThread me = Scheduler.get().current();
        if (me.process.killed()) {
            return;
        }
        Monitor monitor = held(me, object);
        if (--monitor.count == 0) {
            release(monitor);
        }
    }

    /** Waits for {@link #signal}. */
    public static void await(Object object) throws InterruptedException {
        await(object, 0);
    }

    /** Waits for {@link #signal}, or until a time has passed; 0 means no limit. */
    public static void await(Object object, long millis) throws InterruptedException {
        if (millis < 0) {
            throw new IllegalArgumentException("timeout value is negative");
        }
        Scheduler scheduler = Scheduler.get();
        SimThread me = scheduler.current();
        Monitor monitor = held(me, object);
        me.throwIfInterrupted();
        int count = monitor.count;
        monitor.count = 0;
        monitor.waiting.add(me);
        release(monitor);
        long end = millis == 0 ? Scheduler.NEVER : scheduler.after(millis * Scheduler.NANOS_PER_MILLI);
        scheduler.block(me, SimThread.Wait.NOTIFY, end);
        monitor.waiting.remove(me);
        acquire(scheduler, me, monitor, count);
        me.throwIfInterrupted();
    }

    /** Waits for {@link #signal}; the nanoseconds are rounded up to a millisecond. */
    public static void await(Object object, long millis, int nanos) throws InterruptedException {
        await(object, nanos > 0 ? millis + 1 : millis);
    }

    /** Ends the wait of the thread that has waited longest. */
    public static void signal(Object object) {
        Monitor monitor = held(Scheduler.get().current(), object);
        if (!monitor.waiting.isEmpty()) {
            Scheduler.get().wake(monitor.waiting.remove(0));
        }
    }

    /** Ends the wait of all threads. */
    public static void signalAll(Object object) {
        Monitor monitor = held(Scheduler.get().current(), object);
        monitor.waiting.forEach(Scheduler.get()::wake);
        monitor.waiting.clear();
    }

    /** Returns whether the running thread is in the monitor of an object. */
    static boolean holds(Object object) {
        SimThread me = Scheduler.get().current();
        return monitors().stream().anyMatch(monitor -> monitor.object == object && monitor.owner == me);
    }

    /** Forgets the threads of a process. Those of others that wait for its monitors go on. */
    static void forget(SimProcess process) {
        for (Monitor monitor : List.copyOf(monitors())) {
            monitor.entering.removeIf(thread -> thread.process == process);
            monitor.waiting.removeIf(thread -> thread.process == process);
            if (monitor.owner != null && monitor.owner.process == process) {
                monitor.count = 0;
                release(monitor);
            } else if (monitor.isFree()) {
                monitors().remove(monitor);
            }
        }
    }

    private static List<Monitor> monitors() {
        return Scheduler.get().monitors();
    }

    private static Monitor monitor(Object object) {
        for (Monitor monitor : monitors()) {
            if (monitor.object == object) {
                return monitor;
            }
        }
        Monitor made = new Monitor(object);
        monitors().add(made);
        return made;
    }

    private static Monitor held(SimThread me, Object object) {
        if (me.process.killed()) {
            throw new Killed();
        }
        Monitor monitor = monitor(object);
        if (monitor.owner != me) {
            if (monitor.isFree()) {
                monitors().remove(monitor);
            }
            throw new IllegalMonitorStateException("current thread is not owner");
        }
        return monitor;
    }

    private static void acquire(Scheduler scheduler, SimThread me, Monitor monitor, int count) {
        while (monitor.owner != null && monitor.owner != me) {
            monitor.entering.add(me);
            scheduler.block(me, SimThread.Wait.MONITOR, Scheduler.NEVER);
        }
        if (!monitors().contains(monitor)) {
            // it became free meanwhile, and others may have made another one for the same object
            acquire(scheduler, me, monitor(monitor.object), count);
            return;
        }
        monitor.owner = me;
        monitor.count += count;
    }

    private static void release(Monitor monitor) {
        monitor.owner = null;
        monitor.entering.forEach(Scheduler.get()::wake);
        monitor.entering.clear();
        if (monitor.isFree()) {
            monitors().remove(monitor);
        }
    }
}
