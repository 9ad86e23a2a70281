package io.labrys.simjvm.run;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/**
 * What the processes do to the world outside: the answer to one command {@code T}. The other end of these frames is
 * {@code clusters/sim/jvm/pipe.py}.
 */
public final class Output {
    private static final int MAX_TEXT = 60_000;

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final DataOutputStream events = new DataOutputStream(bytes);
    private final DataOutputStream out;

    /** Makes an output that writes its frames to a stream. */
    public Output(OutputStream out) {
        this.out = new DataOutputStream(out);
    }

    boolean isEmpty() {
        return bytes.size() == 0;
    }

    /** Writes all events since the last call as one frame, after the time and the time of the next timer. */
    public void flush(long now, long next) {
        try {
            out.writeInt(2 * Long.BYTES + bytes.size());
            out.writeLong(now);
            out.writeLong(next);
            bytes.writeTo(out);
            out.flush();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        bytes.reset();
    }

    /** Writes a text as one frame. The events so far stay for the next call of {@link #flush}. */
    public void answer(String text) {
        try {
            byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
            out.writeInt(encoded.length);
            out.write(encoded);
            out.flush();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void listen(String node, int port) {
        event('L', node, () -> events.writeInt(port));
    }

    void connect(String node, long connection, String address) {
        event('C', node, () -> {
            events.writeLong(connection);
            text(address);
        });
    }

    void data(String node, long connection, byte[] data) {
        event('D', node, () -> {
            events.writeLong(connection);
            events.writeInt(data.length);
            events.write(data);
        });
    }

    void close(String node, long connection) {
        event('X', node, () -> events.writeLong(connection));
    }

    void log(String node, String lines) {
        event('G', node, () -> text(lines));
    }

    /** Tells that a process has ended by itself. */
    void died(String node, String why) {
        event('E', node, () -> text(why));
    }

    /** Tells what a loss of power took. */
    public void lost(String node, Disk.Lost lost) {
        event('W', node, () -> {
            events.writeInt(lost.files());
            events.writeInt(lost.changed());
            events.writeLong(lost.bytes());
        });
    }

    /** Tells that the run cannot go on. */
    public void failed(String why) {
        event('F', "", () -> text(why));
    }

    /** Tells the digest of the schedule, and how many decisions it has. */
    public void trace(long digest, long decisions) {
        event('T', "", () -> {
            events.writeLong(digest);
            events.writeLong(decisions);
        });
    }

    private interface Content {
        void write() throws IOException;
    }

    private void event(char kind, String node, Content content) {
        try {
            events.writeByte(kind);
            text(node);
            content.write();
        } catch (IOException e) {
            throw new UncheckedIOException(e); // cannot happen: the bytes are in memory
        }
    }

    private void text(String text) throws IOException {
        byte[] encoded = (text.length() > MAX_TEXT ? text.substring(0, MAX_TEXT) : text).getBytes(StandardCharsets.UTF_8);
        events.writeInt(encoded.length);
        events.write(encoded);
    }
}
