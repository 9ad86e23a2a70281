package io.labrys.simjvm.run;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * What the processes do to the world outside: the answer to a frame with the command {@code T}. The other end of these frames is
 * {@code clusters/sim/jvm/pipe.py}. An answer is one write.
 */
public final class Output {
    private static final int MAX_TEXT = 60_000;
    private static final int CAPACITY = 8192;
    private static final int MOST_BYTES = 96 << 20;
    /** The length, the time, the time of the next timer, and the number of commands {@code T}. */
    private static final int HEAD = 2 * Integer.BYTES + 2 * Long.BYTES;

    private final OutputStream out;
    private long sent;
    private ByteBuffer events = ByteBuffer.allocate(CAPACITY).position(HEAD);

    /** Makes an output that writes its frames to a stream without a buffer. */
    public Output(OutputStream out) {
        this.out = out;
    }

    /** Returns whether there are no events since the last call of {@link #flush}. */
    public boolean isEmpty() {
        return events.position() == HEAD;
    }

    /** Writes all events since the last call as one frame, after the time, the time of the next timer, and how many {@code T} are done. */
    public void flush(long now, long next, int advances) {
        int end = events.position();
        events.putInt(0, end - Integer.BYTES).putLong(Integer.BYTES, now).putLong(Integer.BYTES + Long.BYTES, next);
        events.putInt(Integer.BYTES + 2 * Long.BYTES, advances);
        write(events.array(), end);
        events = (events.capacity() > CAPACITY ? ByteBuffer.allocate(CAPACITY) : events).position(HEAD);
    }

    /** Returns how many messages processes have sent so far. */
    long sent() {
        return sent;
    }

    /** Writes a text as one frame. The events so far stay for the next call of {@link #flush}. */
    public void answer(String text) {
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        ByteBuffer frame = ByteBuffer.allocate(Integer.BYTES + encoded.length).putInt(encoded.length).put(encoded);
        write(frame.array(), frame.position());
    }

    private void write(byte[] frame, int size) {
        try {
            out.write(frame, 0, size);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void listen(String node, int port) {
        event('L', node).putInt(port);
    }

    void connect(String node, long connection, String address) {
        event('C', node).putLong(connection);
        text(address);
    }

    void data(String node, long connection, byte[] data) {
        sent++;
        event('D', node).putLong(connection);
        bytes(data);
    }

    /** Tells that a process has closed a connection. */
    public void close(String node, long connection) {
        event('X', node).putLong(connection);
    }

    void log(String node, String lines) {
        event('G', node);
        text(lines);
    }

    /** Tells that a process has ended by itself. */
    void died(String node, String why) {
        event('E', node);
        text(why);
    }

    /** Tells what a loss of power took. */
    public void lost(String node, Disk.Lost lost) {
        event('W', node).putInt(lost.files()).putInt(lost.changed()).putLong(lost.bytes());
    }

    /** Tells whether a disk has room for a small file. */
    public void takes(String node, boolean room) {
        event('M', node).putLong(room ? 1 : 0);
    }

    /** Tells that a process stands still after a step of its disk that the controller waits for. */
    void stepped(String node, long id, String step) {
        event('Y', node).putLong(id);
        text(step);
    }

    /** Tells that a call on a file failed by the rule with a key. */
    void refused(String node, long key, String call) {
        event('I', node).putLong(key);
        text(call);
    }

    /** Tells that the run cannot go on. */
    public void failed(String why) {
        event('F', "");
        text(why);
    }

    /** Tells the digest of the schedule, and how many decisions it has. */
    public void trace(long digest, long decisions) {
        event('T', "").putLong(digest).putLong(decisions);
    }

    /** Begins an event. Returns where its numbers go, with room for them. */
    private ByteBuffer event(char kind, String node) {
        room(1).put((byte) kind);
        text(node);
        return room(2 * Long.BYTES);
    }

    private void text(String text) {
        bytes((text.length() > MAX_TEXT ? text.substring(0, MAX_TEXT) : text).getBytes(StandardCharsets.UTF_8));
    }

    private void bytes(byte[] bytes) {
        room(Integer.BYTES + bytes.length).putInt(bytes.length).put(bytes);
    }

    private ByteBuffer room(int size) {
        if (events.position() > MOST_BYTES) {
            events.position(HEAD);
            throw Scheduler.get().guard().broken("the processes send and log more than " + MOST_BYTES + " bytes in one instant of virtual time."
                + " Code takes no time there, so a loop without a wait does not end. Confirm it on real nodes");
        }
        if (events.remaining() < size) {
            events = ByteBuffer.allocate(Math.max(2 * events.capacity(), events.position() + size)).put(events.flip());
        }
        return events;
    }
}
