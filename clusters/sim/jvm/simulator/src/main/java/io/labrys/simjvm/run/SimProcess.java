package io.labrys.simjvm.run;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.MappedByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * A process of a node, from its start to its end: its threads, its clock, its random numbers and its connections.
 *
 * <p>All processes share one class loader, so they share static fields; see {@link Statics}.
 */
public final class SimProcess {
    /** The wall time at the beginning of a run: 2026-01-01T00:00:00Z, as in the simulator's other half. */
    static final long EPOCH_MILLIS = 1_767_225_600_000L;

    private static final Logger LOG = Logger.getLogger("process");

    private final String name;
    private final int order;
    private final Scheduler scheduler;
    private final Random random;
    private final List<SimThread> threads = new ArrayList<>();
    private final Deque<SimThread> held = new ArrayDeque<>();
    private final Map<Integer, Mailbox> listening = new HashMap<>();
    private final Map<Long, Mailbox> connections = new HashMap<>();
    private final Map<Class<?>, Object> locals = new HashMap<>();
    private final List<MappedByteBuffer> mapped = new ArrayList<>();
    private final List<byte[]> scratch = new ArrayList<>();
    private final ClassLoader loader;
    private final Disk disk;
    private final long began;
    private Function<String, String> state;
    private long lastThread;
    private long unnamed;
    private boolean paused;
    private boolean killed;
    private String ended = "";
    private long aheadNanos;
    private long periodNanos;
    private long setAt;
    private long lastEvent;

    /**
     * Makes a process without threads.
     *
     * @param name the name of its node
     * @param order the number of the process in the run, from 1
     * @param seed the seed of its random numbers
     * @param loader the loader of its classes
     * @param disk the disk of its node
     */
    public SimProcess(String name, int order, long seed, ClassLoader loader, Disk disk) {
        this.name = name;
        this.order = order;
        this.scheduler = Scheduler.get();
        this.random = new Random(seed);
        this.loader = loader;
        this.disk = disk;
        this.began = scheduler.now();
        this.lastEvent = began;
    }

    /** Returns the process of the running thread. */
    public static SimProcess current() {
        return Scheduler.get().current().process;
    }

    /** Starts the process with the method {@code main} of a class. The driver calls this. */
    public void start(String main, String... arguments) {
        start(() -> runMain(main, arguments));
    }

    /** Starts the process with a task. The driver calls this. */
    public void start(Runnable task) {
        new SimThread(this, task, loader).begin();
    }

    @SuppressWarnings("unchecked")
    private void runMain(String main, String... arguments) {
        try {
            Class<?> type = loader.loadClass(main);
            Method method = startOf(type);
            if (method.invoke(null, (Object) arguments) instanceof Function<?, ?> told) {
                state = key -> String.valueOf(((Function<Object, ?>) told).apply(key));
            }
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Killed end) {
                throw end;
            }
            scheduler.guard().endOn(e.getCause());
            log("an exception ended the program", e.getCause());
            end("its method main ended with " + e.getCause());
        } catch (ReflectiveOperationException e) {
            throw scheduler.guard().broken("the class " + main + " has no public static method begin or main: " + e);
        }
    }

    /** Returns the method that starts the program: {@code begin}, which returns what {@link #state} asks, or {@code main}. */
    private static Method startOf(Class<?> type) throws NoSuchMethodException {
        try {
            return type.getMethod("begin", String[].class);
        } catch (NoSuchMethodException e) {
            return type.getMethod("main", String[].class);
        }
    }

    /**
     * Returns the state of the program, as JSON; an empty text if it tells none. No time passes, no thread of the program runs, and
     * no random number is drawn. The driver calls this.
     *
     * @param key the key whose value is wanted; an empty text for none
     */
    public String state(String key) {
        return state == null || killed ? "" : scheduler.looking(this, () -> state.apply(key));
    }

    /** Ends the process from within, and the calling thread with it. */
    void end(String why) {
        ended = why;
        scheduler.end(this);
        scheduler.block(scheduler.current(), SimThread.Wait.NOTHING, Scheduler.NEVER);
    }

    /** Ends all threads, as SIGKILL does: none of them runs any further code of the program. The driver calls this. */
    public void kill() {
        if (killed) {
            return;
        }
        killed = true;
        paused = false;
        for (SimThread thread : List.copyOf(threads)) {
            scheduler.end(thread);
        }
        held.clear();
        Monitors.forget(this);
        mapped.forEach(Hooks::unmap);
        mapped.clear();
        Scratch.free(scratch);
        scratch.clear();
        disk.closeAll();
    }

    /** Stops all threads, as SIGSTOP does. Time goes on, and what comes for them waits. */
    public void pause() {
        paused = true;
        scheduler.hold(this);
    }

    /** Ends a pause. */
    public void resume() {
        paused = false;
        scheduler.release(this);
    }

    /** Sets the wall clock ahead of the true time; with a period it alternates between that and the true time, from a time on. */
    public void setClock(long ahead, long period, long since) {
        aheadNanos = ahead;
        periodNanos = period;
        setAt = since;
    }

    /** Returns the wall clock. */
    long wallMillis() {
        boolean isAhead = periodNanos == 0 || (scheduler.now() - setAt) / periodNanos % 2 == 0;
        return EPOCH_MILLIS + Math.floorDiv(scheduler.now() + (isAhead ? aheadNanos : 0), Scheduler.NANOS_PER_MILLI);
    }

    /** Returns when it began, after the beginning of the run. */
    long beganMillis() {
        return began / Scheduler.NANOS_PER_MILLI;
    }

    /** Returns how long it has run. */
    long uptimeMillis() {
        return (scheduler.now() - began) / Scheduler.NANOS_PER_MILLI;
    }

    /** Returns an object that the process has once, as a static field of a real process would hold it. */
    public <T> T local(Class<T> type, Supplier<T> made) {
        Object found = locals.get(type);
        if (found == null) {
            found = made.get();
            locals.put(type, found);
        }
        return type.cast(found);
    }

    /** Notes that something happens to the process from outside, and lets its short waits end in time. */
    public void rouse() {
        lastEvent = scheduler.now();
        scheduler.rouse(this);
        scheduler.stalls().happens(this);
    }

    boolean quietSince(long time) {
        return lastEvent < time;
    }

    /** Gives an event of the network to the listener of a port. Returns whether there is one. */
    public boolean accept(int port, long connection, String peer) {
        Mailbox mailbox = listening.get(port);
        if (mailbox == null) {
            return false;
        }
        connections.put(connection, mailbox);
        deliver(connection, new NetEvent(NetEvent.Kind.ACCEPTED, connection, peer, null));
        return true;
    }

    /** Gives an event of the network to the owner of its connection. Without one, the event is lost. */
    public void deliver(long connection, NetEvent event) {
        Mailbox mailbox = connections.get(connection);
        if (mailbox != null) {
            if (event.kind() == NetEvent.Kind.CLOSED) {
                connections.remove(connection);
            }
            rouse();
            mailbox.put(event);
        }
    }

    /** Notes who accepts connections to a port; null for nobody any more. */
    void listen(int port, Mailbox mailbox) {
        listening.put(port, mailbox);
    }

    boolean listens(int port) {
        return listening.get(port) != null;
    }

    void connect(long connection, Mailbox mailbox) {
        connections.put(connection, mailbox);
    }

    boolean isOpen(long connection) {
        return connections.containsKey(connection);
    }

    void close(long connection) {
        connections.remove(connection);
    }

    void add(MappedByteBuffer buffer) {
        mapped.add(buffer);
    }

    /** Notes a buffer that is free when the process has ended. */
    void add(byte[] buffer) {
        scratch.add(buffer);
    }

    /** Writes lines into the node's log. */
    public void log(String lines) {
        if (!scheduler.current().initializes()) {
            scheduler.output().log(name, lines);
            scheduler.acted();
        }
    }

    /** Logs what the simulator does to the process. */
    void note(String text) {
        LOG.info(text);
    }

    /** Logs an exception that nobody has caught. */
    void log(String text, Throwable error) {
        LOG.log(Level.SEVERE, text, error);
    }

    /** Returns the name of the node. */
    public String name() {
        return name;
    }

    Disk disk() {
        return disk;
    }

    int order() {
        return order;
    }

    Random random() {
        return random;
    }

    String ended() {
        return ended;
    }

    boolean paused() {
        return paused;
    }

    /** Returns whether the process has ended. */
    public boolean killed() {
        return killed;
    }

    Deque<SimThread> held() {
        return held;
    }

    List<SimThread> threads() {
        return threads;
    }

    void add(SimThread thread) {
        threads.add(thread);
    }

    void remove(SimThread thread) {
        threads.remove(thread);
    }

    long nextThread() {
        return ++lastThread;
    }

    long nextUnnamed() {
        return unnamed++;
    }
}
