package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerServer;

/**
 * The library's plain server, as the library's own command line starts it. It has no state machine, no snapshots and no
 * requests of ours. Clients append entries to its log and get entries from it.
 */
public final class PlainNode implements Node {
    private final DLedgerServer server;

    /** Makes a node. It opens its files and its port when it starts. */
    public PlainNode(NodeOptions options) {
        server = Library.server(options);
    }

    @Override
    public void start() {
        server.startup();
    }

    @Override
    public String state(String key) {
        return Library.state(server, null);
    }

    @Override
    public void close() {
        server.shutdown();
    }
}
