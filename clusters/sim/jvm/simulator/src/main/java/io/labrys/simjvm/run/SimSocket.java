package io.labrys.simjvm.run;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;

/** {@link Socket} for simulated processes. */
public class SimSocket extends Socket {
    /** Makes a socket without a connection. */
    public SimSocket() throws IOException {
        super(new SimSocketImpl());
    }

    /** Connects to a host. */
    public SimSocket(String host, int port) throws IOException {
        this();
        connect(new InetSocketAddress(host, port));
    }

    /** Connects to a host. */
    public SimSocket(InetAddress host, int port) throws IOException {
        this();
        connect(new InetSocketAddress(host, port));
    }
}
