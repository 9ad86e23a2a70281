package io.labrys.simjvm.run;

/** {@link java.util.concurrent.locks.LockSupport} for simulated threads. All locks, queues and executors rest on it. */
public final class Parking {
    private Parking() {}

    /** Gives a thread its permit, and ends its park. */
    public static void unpark(SimThread thread) {
        if (thread == null) {
            return;
        }
        thread.permit = true;
        if (thread.wait == SimThread.Wait.PARK) {
            Scheduler.get().wake(thread);
        }
        Scheduler.get().maybeSwitch();
    }

    /** Waits for a permit. */
    public static void park() {
        parkUntil(Scheduler.NEVER);
    }

    /** Waits for a permit. */
    public static void park(Object blocker) {
        parkFor(blocker, Scheduler.NEVER);
    }

    /** Waits for a permit, or until a time has passed. */
    public static void parkNanos(long nanos) {
        if (nanos > 0) {
            parkUntil(Scheduler.get().after(nanos));
        }
    }

    /** Waits for a permit, or until a time has passed. */
    public static void parkNanos(Object blocker, long nanos) {
        if (nanos > 0) {
            parkFor(blocker, Scheduler.get().after(nanos));
        }
    }

    /** Returns the object that a thread is parked for; null if there is none. */
    public static Object getBlocker(SimThread thread) {
        return thread.blocker();
    }

    /** Changes the object that the running thread is parked for. */
    public static void setCurrentBlocker(Object blocker) {
        SimThread.currentThread().setBlocker(blocker);
    }

    private static void parkFor(Object blocker, long end) {
        SimThread me = SimThread.currentThread();
        me.setBlocker(blocker);
        parkUntil(end);
        me.setBlocker(null);
    }

    private static void parkUntil(long end) {
        SimThread me = SimThread.currentThread();
        if (!me.permit && !me.interrupted) {
            Scheduler.get().block(me, SimThread.Wait.PARK, end);
        }
        me.permit = false;
    }
}
