package io.labrys.simjvm.run;

/**
 * The network of a process: connections that carry bytes in order, as those of TCP do. The other half of the simulator carries the
 * packets, draws their delays, and loses them.
 */
public final class Sockets {
    private Sockets() {}

    /** Accepts connections to a port. Their events go to the mailbox. */
    public static void listen(int port, Mailbox mailbox) {
        SimProcess process = SimProcess.current();
        process.listen(port, mailbox);
        Scheduler.get().output().listen(process.name(), port);
    }

    /**
     * Begins a connection. Its events go to the mailbox: OPENED or CLOSED first.
     *
     * @param address HOST:PORT
     * @return the number of the connection
     */
    public static long connect(String address, Mailbox mailbox) {
        SimProcess process = SimProcess.current();
        long connection = Scheduler.get().nextConnection();
        process.connect(connection, mailbox);
        Scheduler.get().output().connect(process.name(), connection, address);
        return connection;
    }

    /** Sends bytes. Returns false if the connection is closed. */
    public static boolean send(long connection, byte[] data) {
        SimProcess process = SimProcess.current();
        if (!process.isOpen(connection)) {
            return false;
        }
        Scheduler.get().output().data(process.name(), connection, data);
        Scheduler.get().acted();
        return true;
    }

    /** Closes a connection. Its mailbox gets no further event of it. */
    public static void close(long connection) {
        SimProcess process = SimProcess.current();
        if (process.isOpen(connection)) {
            process.close(connection);
            Scheduler.get().output().close(process.name(), connection);
        }
    }
}
