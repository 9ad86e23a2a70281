package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.exception.DLedgerException;
import java.util.function.Consumer;

/** What differs between the versions of the library. This is DLedger 0.3.1.2. */
final class Version {
    private Version() {}

    /** Refuses: this version has neither requests of a user's own, nor reads, nor answers of a state machine. */
    static Node registers(NodeOptions options, Consumer<DLedgerException> fatal) {
        throw new IllegalArgumentException("--state-machine registers needs DLedger 0.4.0, and this node has DLedger 0.3.1.2");
    }

    /** Returns the last index that a server knows to be committed. */
    static long committed(DLedgerServer server) {
        return server.getDLedgerStore().getCommittedIndex();
    }
}
