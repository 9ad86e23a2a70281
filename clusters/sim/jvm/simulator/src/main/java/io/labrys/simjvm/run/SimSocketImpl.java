package io.labrys.simjvm.run;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.BindException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketImpl;
import java.net.SocketOptions;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * What a {@link SimSocket} and a {@link SimServerSocket} do: connections of {@link Sockets}. A connection is closed in both directions.
 * Options of the kernel are kept, and only the time limit has an effect.
 */
final class SimSocketImpl extends SocketImpl {
    /** The texts of the events of connections that are refused or reset; see {@code clusters/sim/streams.py}. */
    private static final String REFUSED = "refused";
    private static final String RESET = "reset";
    private static final int MOST_PORTS = 1 << 16;

    private final Map<Integer, Object> options = new HashMap<>();
    private Mailbox mailbox = new Mailbox();
    private boolean accepts;
    private boolean closed;
    private long connection;
    private byte[] bytes = {};
    private int taken;
    private NetEvent end;
    private boolean refused;

    /** The connections to a port that nobody has accepted yet. Each one has a mailbox of its own at once. */
    private static final class Backlog extends Mailbox {
        private final SimProcess process;
        private final Map<Long, Mailbox> waiting = new HashMap<>();

        Backlog(SimProcess process) {
            this.process = process;
        }

        @Override
        void put(NetEvent event) {
            if (event.kind() == NetEvent.Kind.ACCEPTED) {
                Mailbox own = new Mailbox();
                waiting.put(event.connection(), own);
                process.connect(event.connection(), own);
            }
            super.put(event);
        }
    }

    @Override
    protected void create(boolean stream) {
        // Nothing to do: a connection begins with connect or accept.
    }

    @Override
    protected void connect(String host, int port) throws IOException {
        connect(new InetSocketAddress(host, port), 0);
    }

    @Override
    protected void connect(InetAddress host, int port) throws IOException {
        connect(new InetSocketAddress(host, port), 0);
    }

    @Override
    protected void connect(SocketAddress to, int millis) throws IOException {
        InetSocketAddress at = (InetSocketAddress) to;
        if (at.isUnresolved()) {
            throw new UnknownHostException(at.getHostString());
        }
        address = at.getAddress();
        port = at.getPort();
        connection = Sockets.connect(address.getHostAddress() + ":" + port, mailbox);
        NetEvent event = mailbox.take(millis);
        if (event == null) {
            close();
            throw new SocketTimeoutException("Connect timed out");
        }
        if (event.kind() == NetEvent.Kind.CLOSED) {
            close();
            throw new ConnectException(event.text().equals(REFUSED) ? "Connection refused" : event.text());
        }
    }

    @Override
    protected void bind(InetAddress host, int number) throws IOException {
        if (number == 0) {
            throw Scheduler.get().guard().unhooked("a socket that the kernel gives a port");
        }
        if (SimProcess.current().listens(number)) {
            throw new BindException("Address already in use");
        }
        localport = number;
    }

    @Override
    protected void listen(int backlog) {
        accepts = true;
        mailbox = new Backlog(SimProcess.current());
        Sockets.listen(localport, mailbox);
    }

    @Override
    protected void accept(SocketImpl accepted) throws IOException {
        NetEvent event = next();
        SimSocketImpl to = (SimSocketImpl) accepted;
        int colon = event.text().lastIndexOf(':');
        to.mailbox = ((Backlog) mailbox).waiting.remove(event.connection());
        to.connection = event.connection();
        to.localport = localport;
        to.address = InetAddress.getByAddress(event.text().substring(0, colon), new byte[] {0, 0, 0, 0});
        to.port = (int) (Long.parseLong(event.text().substring(colon + 1)) % MOST_PORTS);
    }

    /** Waits for the next event, as long as the option says. */
    private NetEvent next() throws IOException {
        NetEvent event = closed ? null : mailbox.take((int) options.getOrDefault(SocketOptions.SO_TIMEOUT, 0));
        requireOpen();
        if (event == null) {
            throw new SocketTimeoutException(accepts ? "Accept timed out" : "Read timed out");
        }
        return event;
    }

    private void requireOpen() throws IOException {
        if (closed) {
            throw new SocketException("Socket closed");
        }
    }

    @Override
    protected int available() throws IOException {
        requireOpen();
        return bytes.length - taken;
    }

    @Override
    protected void close() {
        if (closed) {
            return;
        }
        closed = true;
        if (accepts) {
            SimProcess.current().listen(localport, null);
        } else if (connection != 0) {
            Sockets.close(connection);
        }
        mailbox.put(new NetEvent(NetEvent.Kind.CLOSED, connection, "", null)); // for a thread that waits
    }

    @Override
    protected InputStream getInputStream() {
        return new InputStream() {
            @Override
            public int read() throws IOException {
                byte[] one = new byte[1];
                return read(one, 0, 1) < 0 ? -1 : Byte.toUnsignedInt(one[0]);
            }

            @Override
            public int read(byte[] to, int from, int length) throws IOException {
                if (length == 0) {
                    return 0;
                }
                if (end == null) {
                    requireOpen(); // as in the JDK, the end can be read again
                }
                while (taken == bytes.length && end == null) {
                    NetEvent event = next();
                    if (event.kind() == NetEvent.Kind.CLOSED) {
                        end = event;
                    } else {
                        bytes = event.data();
                        taken = 0;
                    }
                }
                if (taken == bytes.length) {
                    if (end.text().equals(RESET)) {
                        throw new SocketException("Connection reset");
                    }
                    return -1;
                }
                int count = Math.min(length, bytes.length - taken);
                System.arraycopy(bytes, taken, to, from, count);
                taken += count;
                return count;
            }

            @Override
            public int available() throws IOException {
                return SimSocketImpl.this.available();
            }

            @Override
            public void close() {
                SimSocketImpl.this.close();
            }
        };
    }

    @Override
    protected OutputStream getOutputStream() {
        return new OutputStream() {
            @Override
            public void write(int value) throws IOException {
                write(new byte[] {(byte) value}, 0, 1);
            }

            @Override
            public void write(byte[] from, int at, int length) throws IOException {
                requireOpen();
                if (length == 0 || Sockets.send(connection, Arrays.copyOfRange(from, at, at + length))) {
                    return;
                }
                if (refused) {
                    throw new SocketException("Broken pipe");
                }
                refused = true; // a kernel takes the bytes, and then learns that nobody reads them
            }

            @Override
            public void close() {
                SimSocketImpl.this.close();
            }
        };
    }

    @Override
    protected void shutdownInput() {
        throw Scheduler.get().guard().unhooked("Socket.shutdownInput");
    }

    @Override
    protected void shutdownOutput() {
        throw Scheduler.get().guard().unhooked("Socket.shutdownOutput");
    }

    @Override
    protected void sendUrgentData(int data) {
        throw Scheduler.get().guard().unhooked("Socket.sendUrgentData");
    }

    @Override
    public void setOption(int option, Object value) {
        options.put(option, value);
    }

    @Override
    public Object getOption(int option) throws SocketException {
        Object unset = switch (option) {
            case SocketOptions.SO_TIMEOUT -> 0;
            case SocketOptions.SO_BINDADDR -> null; // of no host
            case SocketOptions.SO_RCVBUF, SocketOptions.SO_SNDBUF -> MOST_PORTS;
            default -> false;
        };
        return options.getOrDefault(option, unset);
    }
}
