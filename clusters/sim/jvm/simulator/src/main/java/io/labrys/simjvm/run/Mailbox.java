package io.labrys.simjvm.run;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** The events of some connections of one process, in their order. Threads of the process take them. */
public class Mailbox {
    private final Deque<NetEvent> events = new ArrayDeque<>();
    private final List<SimThread> takers = new ArrayList<>();

    /** Adds an event. The driver calls this, and a process that closes a connection. */
    void put(NetEvent event) {
        events.add(event);
        takers.forEach(Scheduler.get()::wake);
    }

    /** Waits for the next event, and takes it. */
    public NetEvent take() throws InterruptedException {
        while (events.isEmpty()) {
            await(Scheduler.NEVER);
            SimThread.currentThread().throwIfInterrupted();
        }
        return events.poll();
    }

    /**
     * Waits for the next event, and takes it. An interrupt does not end the wait, as it does not end that of a socket.
     *
     * @param millis how long it waits at most; 0 for no limit
     * @return the event; null if none came in time
     */
    NetEvent take(int millis) {
        long end = millis == 0 ? Scheduler.NEVER : Scheduler.get().after(millis * Scheduler.NANOS_PER_MILLI);
        while (events.isEmpty() && Scheduler.get().now() < end) {
            await(end);
        }
        return events.poll();
    }

    private void await(long end) {
        SimThread me = SimThread.currentThread();
        takers.add(me);
        Scheduler.get().block(me, SimThread.Wait.MAILBOX, end);
        takers.remove(me);
    }
}
