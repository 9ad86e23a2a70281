package io.labrys.simjvm.run;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/**
 * A thread of a simulated process. The weaver puts this class in the place of {@link java.lang.Thread} in all code of the process.
 *
 * <p>A {@link Carrier} has its stack. Only the one that holds the baton runs; see {@link Scheduler}. It has no method that a program
 * could use to leave the simulation, such as {@code suspend}: a program that calls one ends with a {@link NoSuchMethodError}.
 */
public class SimThread implements Runnable {
    /** Takes the place of {@link java.lang.Thread.UncaughtExceptionHandler}. */
    @FunctionalInterface
    public interface UncaughtExceptionHandler {
        /** Handles the end of a thread by an exception. */
        void uncaughtException(SimThread thread, Throwable error);
    }

    /** What a blocked thread waits for. */
    enum Wait {
        NOTHING, PARK, SLEEP, NOTIFY, MONITOR, MAILBOX, DISK, BUSY, STALL, END;

        /** Returns whether the wait takes just as long as the simulator has drawn. */
        boolean isExact() {
            return this == DISK || this == BUSY || this == STALL;
        }
    }

    /** Where a thread is in its life. */
    enum Life { NEW, READY, RUNNING, BLOCKED, DEAD }

    /** The lowest priority, as in {@link java.lang.Thread}. Priorities have no effect. */
    public static final int MIN_PRIORITY = 1;
    /** The ordinary priority. */
    public static final int NORM_PRIORITY = 5;
    /** The highest priority. */
    public static final int MAX_PRIORITY = 10;

    final SimProcess process;
    final long number;
    Life life = Life.NEW;
    Wait wait = Wait.NOTHING;
    /** Counts the waits of this thread, so that the timer of an earlier wait has no effect. */
    long waits;
    /** Whether another thread ended the last wait; if not, its time was up. */
    boolean woken;
    boolean permit;
    /** The class initializers on the stack, the innermost first. */
    final Deque<Statics.Initializer> initializers = new ArrayDeque<>(2);
    boolean interrupted;
    /** How many points there are until the error for a write into a missing page; 0 if none comes. See {@link MissingPages}. */
    int pointsToFault;
    /** How many times this thread has sent or logged in the instant {@link #actedAt}. */
    int acts;
    long actedAt;
    /** The order among the threads that are ready, the highest first, if threads have priorities; see {@link Stalls}. */
    long rank;
    /** The end of a wait that the scheduler has prolonged; see {@link Scheduler}. */
    long trueEnd = Scheduler.NEVER;

    private final Runnable target;
    private final List<SimThread> joining = new ArrayList<>();
    private final Map<SimThreadLocal<?>, Object> locals = new IdentityHashMap<>(4);
    private Carrier carrier;
    private volatile String name;
    private boolean daemon;
    private int priority = NORM_PRIORITY;
    private Object blocker;
    private UncaughtExceptionHandler handler;
    private ClassLoader loader;

    /** Makes a thread that does what {@link #run} of the subclass does. */
    public SimThread() {
        this(null, null, null, 0, true);
    }

    /** Makes a thread for a task. */
    public SimThread(Runnable target) {
        this(null, target, null, 0, true);
    }

    /** Makes a thread with a name. */
    public SimThread(String name) {
        this(null, null, name, 0, true);
    }

    /** Makes a thread for a task, with a name. */
    public SimThread(Runnable target, String name) {
        this(null, target, name, 0, true);
    }

    /** Makes a thread; groups have no effect. */
    public SimThread(ThreadGroup group, Runnable target) {
        this(group, target, null, 0, true);
    }

    /** Makes a thread; groups have no effect. */
    public SimThread(ThreadGroup group, String name) {
        this(group, null, name, 0, true);
    }

    /** Makes a thread; groups have no effect. */
    public SimThread(ThreadGroup group, Runnable target, String name) {
        this(group, target, name, 0, true);
    }

    /** Makes a thread; groups and sizes of stacks have no effect. */
    public SimThread(ThreadGroup group, Runnable target, String name, long stackSize) {
        this(group, target, name, stackSize, true);
    }

    /** Makes a thread; groups, sizes of stacks and inherited thread locals have no effect. */
    public SimThread(ThreadGroup group, Runnable target, String name, long stackSize, boolean inheritThreadLocals) {
        SimThread maker = currentThread();
        if (maker.initializes()) {
            throw Scheduler.get().guard().broken("the initializer of " + maker.initializers.peek()
                + " makes a thread, which would belong to the process that uses the class first");
        }
        this.process = maker.process;
        this.number = process.nextThread();
        this.rank = Scheduler.get().stalls().priority();
        this.target = target;
        this.name = name == null ? "Thread-" + process.nextUnnamed() : name;
        this.daemon = maker.daemon;
        this.loader = maker.loader;
    }

    /** Makes the first thread of a process. */
    SimThread(SimProcess process, Runnable target, ClassLoader loader) {
        this.process = process;
        this.number = process.nextThread();
        this.rank = Scheduler.get().stalls().priority();
        this.target = target;
        this.name = "main";
        this.loader = loader;
    }

    /** Makes a thread that only reads the objects of a process. No scheduler knows it. */
    private SimThread(SimProcess process, Thread driver) {
        this.process = process;
        this.number = 0;
        this.target = null;
        this.name = "looking";
        this.carrier = new Carrier.OfDriver(driver);
        this.life = Life.RUNNING;
    }

    /** Returns a thread that reads the objects of a process, on the thread of the driver. */
    static SimThread looking(SimProcess process, Thread driver) {
        return new SimThread(process, driver);
    }

    /** Returns whether this thread only reads. */
    boolean looks() {
        return number == 0;
    }

    /** Returns the thread that runs. */
    public static SimThread currentThread() {
        return Scheduler.get().current();
    }

    /** Lets the others run for a while, as {@link java.lang.Thread#sleep(long)} does. */
    public static void sleep(long millis) throws InterruptedException {
        if (millis < 0) {
            throw new IllegalArgumentException("timeout value is negative");
        }
        currentThread().sleepNanos(millis * Scheduler.NANOS_PER_MILLI);
    }

    /** Lets the others run for a while. */
    public static void sleep(long millis, int nanos) throws InterruptedException {
        currentThread().sleepNanos(millis * Scheduler.NANOS_PER_MILLI + nanos);
    }

    /** Lets the others run, and takes a microsecond, so that a loop around it has an end in virtual time. */
    public static void yield() {
        Scheduler.get().pass();
    }

    /** Does what {@link #yield} does. */
    public static void onSpinWait() {
        Scheduler.get().pass();
    }

    /** Returns whether this thread is interrupted, and clears that. */
    public static boolean interrupted() {
        SimThread me = currentThread();
        boolean was = me.interrupted;
        me.interrupted = false;
        return was;
    }

    /** Returns whether this thread holds the monitor of an object. */
    public static boolean holdsLock(Object object) {
        return Monitors.holds(object);
    }

    private void sleepNanos(long nanos) throws InterruptedException {
        Scheduler scheduler = Scheduler.get();
        throwIfInterrupted();
        if (nanos == 0) {
            scheduler.pass();
            return;
        }
        scheduler.block(this, Wait.SLEEP, scheduler.after(nanos));
        throwIfInterrupted();
    }

    /** Throws and clears the interruption. */
    void throwIfInterrupted() throws InterruptedException {
        if (interrupted) {
            interrupted = false;
            throw new InterruptedException();
        }
    }

    @Override
    public void run() {
        if (target != null) {
            target.run();
        }
    }

    /** Starts the thread. */
    public void start() {
        if (life != Life.NEW) {
            throw new IllegalThreadStateException();
        }
        begin();
        Scheduler.get().maybeSwitch();
    }

    /** Starts the thread, and lets the caller go on. */
    void begin() {
        carrier = Scheduler.get().carrier(this);
        carrier.setContextClassLoader(loader);
        carrier.begin();
        process.add(this);
        Scheduler.get().makeReady(this);
    }

    /** What the thread does from its first turn to its end. */
    void live() {
        Scheduler scheduler = Scheduler.get();
        try {
            if (!process.killed()) {
                run();
            }
        } catch (Killed end) {
            // the process is dead
        } catch (Throwable error) {
            scheduler.guard().endOn(error);
            if (!process.killed()) {
                uncaught(error);
            }
        }
        scheduler.finish(this);
    }

    private void uncaught(Throwable error) {
        try {
            if (handler != null) {
                handler.uncaughtException(this, error);
            } else {
                process.log("an exception ended the thread " + name, error);
            }
        } catch (Killed end) {
            // the process is dead
        } catch (Throwable worse) {
            Scheduler.get().guard().endOn(worse);
            process.log("an exception ended the handler of exceptions of the thread " + name, worse);
        }
    }

    /** Returns whether the initializer of a class is on the stack. */
    boolean initializes() {
        return !initializers.isEmpty();
    }

    /** Gives the baton to this thread. */
    void resume() {
        carrier.resume();
    }

    /** Waits for the baton; the thread itself calls this. */
    void awaitTurn() {
        carrier.awaitTurn();
    }

    /** Returns whether the caller runs on the stack of this thread, if it holds the baton. */
    boolean isCarriedHere() {
        return carrier.isHere();
    }

    /** Forgets the stack of the thread. Returns false if it has to be unwound instead. */
    boolean drop() {
        return carrier.drop();
    }

    /** Returns the values of {@link SimThreadLocal}. */
    Map<SimThreadLocal<?>, Object> locals() {
        return locals;
    }

    /** Wakes those who wait for the end. */
    void wakeJoining(Scheduler scheduler) {
        joining.forEach(scheduler::wake);
        joining.clear();
    }

    /** Waits for the end of the thread. */
    public final void join() throws InterruptedException {
        join(0);
    }

    /** Waits for the end of the thread, or until a time has passed; 0 means no limit. */
    public final void join(long millis) throws InterruptedException {
        SimThread me = currentThread();
        Scheduler scheduler = Scheduler.get();
        long end = millis == 0 ? Scheduler.NEVER : scheduler.after(millis * Scheduler.NANOS_PER_MILLI);
        me.throwIfInterrupted();
        while (isAlive() && scheduler.now() < end) {
            joining.add(me);
            scheduler.block(me, Wait.END, end);
            joining.remove(me);
            me.throwIfInterrupted();
        }
    }

    /** Interrupts the thread: it ends a sleep, a park, a wait or a join. */
    public void interrupt() {
        interrupted = true;
        if (wait == Wait.SLEEP || wait == Wait.PARK || wait == Wait.NOTIFY || wait == Wait.END || wait == Wait.MAILBOX) {
            Scheduler.get().wake(this);
        }
    }

    /** Returns whether the thread is interrupted. */
    public boolean isInterrupted() {
        return interrupted;
    }

    /** Returns whether the thread has started and not ended. */
    public final boolean isAlive() {
        return life != Life.NEW && life != Life.DEAD;
    }

    /** Returns the state of the thread. */
    public Thread.State getState() {
        return switch (life) {
            case NEW -> Thread.State.NEW;
            case READY, RUNNING -> Thread.State.RUNNABLE;
            case BLOCKED -> wait == Wait.MONITOR ? Thread.State.BLOCKED : Thread.State.WAITING;
            case DEAD -> Thread.State.TERMINATED;
        };
    }

    /** Returns the name. */
    public final String getName() {
        return name;
    }

    /** Changes the name. */
    public final void setName(String name) {
        this.name = name;
    }

    /** Returns the number of the thread in its process. */
    public long getId() {
        return number;
    }

    /** Returns the number of the thread in its process. */
    public final long threadId() {
        return number;
    }

    /** Returns whether the thread is a daemon. A kill ends all threads alike. */
    public final boolean isDaemon() {
        return daemon;
    }

    /** Changes whether the thread is a daemon. */
    public final void setDaemon(boolean daemon) {
        this.daemon = daemon;
    }

    /** Returns the priority, which has no effect. */
    public final int getPriority() {
        return priority;
    }

    /** Changes the priority, which has no effect. */
    public final void setPriority(int priority) {
        this.priority = priority;
    }

    /** Returns the one group of all threads. */
    public final ThreadGroup getThreadGroup() {
        return Scheduler.get().group();
    }

    /** Returns the class loader of the process. */
    public ClassLoader getContextClassLoader() {
        return loader;
    }

    /** Changes the class loader. */
    public void setContextClassLoader(ClassLoader loader) {
        this.loader = loader;
        if (carrier != null) {
            carrier.setContextClassLoader(loader);
        }
    }

    /** Returns the handler of exceptions that end the thread; null if there is none. */
    public UncaughtExceptionHandler getUncaughtExceptionHandler() {
        return handler;
    }

    /** Changes the handler of exceptions that end the thread. */
    public void setUncaughtExceptionHandler(UncaughtExceptionHandler handler) {
        this.handler = handler;
    }

    /** Returns the stack of the thread that runs; of another one, an empty array, because not every carrier tells its stack. */
    public StackTraceElement[] getStackTrace() {
        return this == currentThread() ? new Throwable().getStackTrace() : new StackTraceElement[0];
    }

    /** Returns the object that the thread is parked for; null if there is none. */
    Object blocker() {
        return blocker;
    }

    /** Changes the object that the thread is parked for. */
    void setBlocker(Object object) {
        blocker = object;
    }

    @Override
    public String toString() {
        return "Thread[" + name + ",5," + process.name() + "]";
    }
}
