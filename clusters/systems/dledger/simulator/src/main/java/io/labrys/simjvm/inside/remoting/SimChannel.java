package io.labrys.simjvm.inside.remoting;

import io.labrys.simjvm.run.Mailbox;
import io.labrys.simjvm.run.Scheduler;
import io.labrys.simjvm.run.Sockets;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelId;
import io.netty.channel.DefaultChannelPromise;
import io.netty.util.concurrent.ImmediateEventExecutor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.remoting.exception.RemotingCommandException;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * One connection that carries commands of RocketMQ's remoting. {@link #channel} is Netty's view of it for the code above.
 *
 * <p>A frame is a length of four bytes, which does not count itself, and what {@code RemotingCommand.decode} reads. (Source:
 * RocketMQ's NettyDecoder and NettyEncoder.) Netty's view has the methods that RocketMQ 5.1.0 and 5.3.3 call. Any other one ends the
 * run with an error that has its name.
 */
final class SimChannel {
    private static final int MAX_FRAME_BYTES = 16 << 20;
    private static final int LENGTH_BYTES = 4;

    private final long connection;
    private final SocketAddress peer;
    private final Channel channel;
    private final ChannelHandlerContext context;
    private final CompletableFuture<Boolean> opened = new CompletableFuture<>();
    private final Runnable closing;
    private byte[] received = {};
    private boolean closed;

    /** The address of a peer, as RocketMQ prints it. */
    private static final class Peer extends SocketAddress {
        private static final long serialVersionUID = 1;
        private final String text;

        Peer(String text) {
            this.text = text;
        }

        @Override
        public String toString() {
            return text;
        }
    }

    /** The identity of a channel, as RocketMQ logs it. */
    private record Id(long connection) implements ChannelId {
        @Override
        public String asShortText() {
            return Long.toString(connection);
        }

        @Override
        public String asLongText() {
            return asShortText();
        }

        @Override
        public String toString() {
            return asShortText();
        }

        @Override
        public int compareTo(ChannelId other) {
            return asLongText().compareTo(other.asLongText());
        }
    }

    /** Receives the commands of a connection. */
    interface Receiver {
        /** Handles one command. */
        void receive(ChannelHandlerContext context, RemotingCommand command);
    }

    private SimChannel(long connection, String peer, Runnable closing) {
        this.connection = connection;
        this.peer = new Peer(peer);
        this.closing = closing;
        this.channel = proxy(Channel.class, (self, method, arguments) -> ofChannel(method.getName(), arguments));
        this.context = proxy(ChannelHandlerContext.class, (self, method, arguments) -> ofContext(method.getName(), arguments));
    }

    /** Begins a connection; see {@link #awaitOpen}. */
    static SimChannel connect(String address, Mailbox mailbox, Closing closing) {
        SimChannel[] made = new SimChannel[1];
        made[0] = new SimChannel(Sockets.connect(address, mailbox), address, () -> closing.closed(made[0]));
        return made[0];
    }

    /** Returns the channel of a connection that a peer has begun. */
    static SimChannel accepted(long connection, String peer, Closing closing) {
        SimChannel[] made = new SimChannel[1];
        made[0] = new SimChannel(connection, peer, () -> closing.closed(made[0]));
        made[0].opened.complete(true);
        return made[0];
    }

    /** What happens when this side closes a channel, or finds it closed. */
    interface Closing {
        /** Handles the end of a channel. */
        void closed(SimChannel channel);
    }

    @SuppressWarnings("unchecked")
    private static <T> T proxy(Class<T> type, InvocationHandler handler) {
        return (T) Proxy.newProxyInstance(SimChannel.class.getClassLoader(), new Class<?>[] {type}, handler);
    }

    long connection() {
        return connection;
    }

    String address() {
        return peer.toString();
    }

    Channel channel() {
        return channel;
    }

    boolean isActive() {
        return !closed && opened.getNow(false);
    }

    boolean isDone() {
        return opened.isDone();
    }

    CompletableFuture<Boolean> opened() {
        return opened;
    }

    /** Closes the connection; does nothing if it is closed. */
    void close() {
        if (!closed) {
            closed = true;
            opened.complete(false);
            Sockets.close(connection);
            closing.run();
        }
    }

    /** Adds bytes that have arrived, and gives each whole command to the receiver. Closes the connection on a wrong frame. */
    void receive(byte[] data, Receiver receiver) {
        byte[] all = new byte[received.length + data.length];
        System.arraycopy(received, 0, all, 0, received.length);
        System.arraycopy(data, 0, all, received.length, data.length);
        ByteBuffer in = ByteBuffer.wrap(all);
        while (in.remaining() >= LENGTH_BYTES) {
            int length = in.getInt(in.position());
            if (length < 0 || length > MAX_FRAME_BYTES) {
                close();
                return;
            }
            if (in.remaining() - LENGTH_BYTES < length) {
                break;
            }
            byte[] frame = new byte[length];
            in.getInt();
            in.get(frame);
            try {
                RemotingCommand command = RemotingCommand.decode(frame);
                command.setProcessTimer(com.google.common.base.Stopwatch.createStarted());
                receiver.receive(context, command);
            } catch (RemotingCommandException e) {
                close();
                return;
            }
        }
        received = new byte[in.remaining()];
        in.get(received);
    }

    private Object ofChannel(String method, Object... arguments) {
        return switch (method) {
            case "writeAndFlush" -> write((RemotingCommand) arguments[0]);
            case "isActive", "isOpen", "isWritable" -> isActive();
            case "remoteAddress" -> peer;
            case "id" -> new Id(connection);
            case "close" -> {
                close();
                yield done(null);
            }
            case "hasAttr" -> false;
            case "attr" -> null; // RocketMQ then asks for the address itself
            case "toString" -> "[" + peer + "]";
            case "hashCode" -> Long.hashCode(connection);
            case "equals" -> arguments[0] == channel;
            default -> throw Scheduler.get().guard().unhooked("the method " + method + " of a channel");
        };
    }

    private Object ofContext(String method, Object... arguments) {
        return switch (method) {
            case "channel" -> channel;
            case "writeAndFlush" -> write((RemotingCommand) arguments[0]);
            case "toString" -> "[" + peer + "]";
            default -> throw Scheduler.get().guard().unhooked("the method " + method + " of the context of a channel");
        };
    }

    private ChannelFuture write(RemotingCommand command) {
        ByteBuffer encoded = command.encode();
        byte[] bytes = new byte[encoded.remaining()];
        encoded.get(bytes);
        boolean sent = !closed && Sockets.send(connection, bytes);
        return done(sent ? null : new ClosedChannelException());
    }

    private ChannelFuture done(Throwable error) {
        DefaultChannelPromise promise = new DefaultChannelPromise(channel, ImmediateEventExecutor.INSTANCE);
        return error == null ? promise.setSuccess() : promise.setFailure(error);
    }
}
