package io.labrys.simjvm.run;

import java.util.ArrayDeque;
import java.util.Deque;

/** The events of some connections of one process, in their order. One thread of the process takes them. */
public final class Mailbox {
    private final Deque<NetEvent> events = new ArrayDeque<>();
    private SimThread taker;

    /** Adds an event. The driver calls this. */
    void put(NetEvent event) {
        events.add(event);
        if (taker != null) {
            Scheduler.get().wake(taker);
        }
    }

    /** Waits for the next event, and takes it. */
    public NetEvent take() throws InterruptedException {
        SimThread me = SimThread.currentThread();
        while (events.isEmpty()) {
            taker = me;
            Scheduler.get().block(me, SimThread.Wait.MAILBOX, Scheduler.NEVER);
            taker = null;
            me.throwIfInterrupted();
        }
        return events.poll();
    }
}
