package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.exception.DLedgerException;
import java.util.function.Consumer;

/** What differs between the versions of the library. This is DLedger 0.4.0. */
final class Version {
    private Version() {}

    /** Returns a node with registers. */
    static Node registers(NodeOptions options, Consumer<DLedgerException> fatal) {
        return new RegisterNode(options, fatal);
    }

    /** Returns the last index that a server knows to be committed. */
    static long committed(DLedgerServer server) {
        return server.getMemberState().getCommittedIndex();
    }
}
