package example;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import com.esotericsoftware.kryo.util.DefaultInstantiatorStrategy;
import io.microraft.model.message.RaftMessage;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.objenesis.strategy.StdInstantiatorStrategy;

/** What connections carry: a length, a kind, and a message of Raft or a text. */
final class Frames {
    private static final byte RAFT = 0;
    private static final byte TEXT = 1;
    private static final int MOST_BYTES = 1 << 24;

    private Frames() {}

    /** The content of a frame. */
    record Frame(boolean isRaft, byte[] content) {}

    static byte[] raft(RaftMessage message) {
        Output out = new Output(1024, -1);
        kryo().writeClassAndObject(out, message);
        return frame(RAFT, out.toBytes());
    }

    static byte[] text(String text) {
        return frame(TEXT, text.getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] frame(byte kind, byte[] content) {
        return ByteBuffer.allocate(Integer.BYTES + 1 + content.length).putInt(content.length).put(kind).put(content).array();
    }

    /** Reads a frame; returns null at the end of the connection. */
    static Frame read(DataInputStream in) throws IOException {
        try {
            int length = in.readInt();
            if (length < 0 || length > MOST_BYTES) {
                throw new IOException("expected at most " + MOST_BYTES + " bytes, found " + length);
            }
            boolean isRaft = in.readByte() == RAFT;
            byte[] content = new byte[length];
            in.readFully(content);
            return new Frame(isRaft, content);
        } catch (EOFException e) {
            return null;
        }
    }

    static RaftMessage message(Frame frame) {
        return (RaftMessage) kryo().readClassAndObject(new Input(frame.content()));
    }

    private static Kryo kryo() {
        Kryo kryo = new Kryo();
        kryo.setRegistrationRequired(false);
        kryo.setReferences(true);
        kryo.setInstantiatorStrategy(new DefaultInstantiatorStrategy(new StdInstantiatorStrategy()));
        return kryo;
    }
}
