package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerServer;

/**
 * The library's server with nothing on top of it, as the library's own command line starts it: no state machine, no snapshot,
 * no request of ours. Clients append to its log and get entries from it.
 */
public final class PlainNode implements Node {
    private final DLedgerServer server;

    /** Makes a node; it opens its files and its port when it starts. */
    public PlainNode(NodeOptions options) {
        server = Library.server(options);
    }

    @Override
    public void start() {
        server.startup();
    }

    @Override
    public void close() {
        server.shutdown();
    }
}
