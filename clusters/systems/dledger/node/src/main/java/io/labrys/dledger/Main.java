package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerServer;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Starts one DLedger node with a register state machine, and serves until it is ended. */
public final class Main {
    private static final Logger LOG = LoggerFactory.getLogger(Main.class);
    private static final int BAD_ARGUMENTS = 64;
    private static final int CANNOT_START = 1;

    private Main() {}

    public static void main(String[] arguments) {
        NodeOptions options;
        try {
            options = NodeOptions.parse(arguments);
        } catch (IllegalArgumentException bad) {
            System.err.println("dledger-node: " + bad.getMessage());
            System.err.println(NodeOptions.USAGE);
            System.exit(BAD_ARGUMENTS);
            return;
        }
        try {
            start(options);
        } catch (Exception failed) {
            // The library's own threads are not daemons and would keep a node that does not serve alive.
            LOG.error("{} could not start on {}", options.self(), options.peers(), failed);
            System.exit(CANNOT_START);
        }
    }

    /** Starts a node; returns when it listens. */
    static DLedgerServer start(NodeOptions options) {
        RegisterStateMachine registers = new RegisterStateMachine(options.group() + "-" + options.self());
        DLedgerServer server = new DLedgerServer(options.toConfig());
        server.registerStateMachine(registers);
        ReadIndex readIndex = new ReadIndex(server, options.heartbeatMs());
        server.getDLedgerLeaderElector().addRoleChangeHandler(readIndex);
        server.registerUserDefineProcessors(List.of(
                new RegisterProcessor(server, registers, readIndex),
                new StatusProcessor(server, registers, readIndex),
                new DumpProcessor(server, registers)));
        server.startup();
        LOG.info("{} listens on {}", options.self(), server.getListenAddress());
        return server;
    }
}
