package io.labrys.dledger;

import io.openmessaging.storage.dledger.exception.DLedgerException;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts a node in the simulator of Java programs, which runs all nodes in one JVM. The arguments are those of {@link Main}.
 *
 * <p>It makes the same node as {@link Main}. It opens no log file and no lock, because the simulator takes the log, and runs at most
 * one process on a node.
 */
public final class Simulated {
    private static final Logger LOG = LoggerFactory.getLogger(Simulated.class);

    private Simulated() {}

    /** Starts the node. Returns what tells its state; see {@link Node#state}. */
    public static Function<String, String> begin(String[] arguments) {
        NodeOptions options = NodeOptions.parse(arguments);
        NodeLog.startSimulated();
        Node node = options.registers() ? Version.registers(options, Simulated::giveUp) : new PlainNode(options);
        node.start();
        LOG.info("listening on {}, data in {}", options.address(), options.directory());
        return node::state;
    }

    private static void giveUp(DLedgerException error) {
        LOG.error("FATAL: the library has given up", error);
        System.exit(1);
    }
}
