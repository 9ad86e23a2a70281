package io.labrys.simjvm.run;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;

/** {@link ServerSocket} for simulated processes. */
public class SimServerSocket extends ServerSocket {
    private static final int BACKLOG = 50;

    /** Makes a socket without a port. */
    public SimServerSocket() throws IOException {
        super(new SimSocketImpl());
    }

    /** Accepts connections to a port. */
    public SimServerSocket(int port) throws IOException {
        this(port, BACKLOG, null);
    }

    /** Accepts connections to a port. */
    public SimServerSocket(int port, int backlog) throws IOException {
        this(port, backlog, null);
    }

    /** Accepts connections to a port. */
    public SimServerSocket(int port, int backlog, InetAddress address) throws IOException {
        this();
        bind(new InetSocketAddress(address, port), backlog);
    }

    @Override
    public SimSocket accept() throws IOException {
        SimSocket accepted = new SimSocket();
        implAccept(accepted);
        return accepted;
    }
}
