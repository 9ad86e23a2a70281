package io.labrys.dledger.read;

import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;

/**
 * The parts of the library that {@link ReadIndex} uses: the node's state, heartbeats and empty entries. No method blocks. The
 * futures always complete with a code, and never exceptionally.
 */
public interface Raft {
    /** Returns whether this node believes that it is the leader. */
    boolean leads();

    /** Returns whether this node is transferring its leadership. */
    boolean transferring();

    /** Returns this node's current term. */
    long term();

    /** Returns the commit index that this node knows; -1 if it knows none. */
    long committedIndex();

    /** Returns the last index that this node's state machine has applied; -1 if there is none. */
    long appliedIndex();

    /** Returns the ids of the other members. */
    Collection<String> others();

    /** Returns whether this number of members, this one included, is a quorum. */
    boolean quorum(int members);

    /**
     * Sends a heartbeat of this leader in {@code term} to another member. SUCCESS means that the member has not entered a
     * higher term yet, so it has not voted for another leader.
     */
    CompletableFuture<DLedgerResponseCode> heartbeat(String member, long term);

    /** Appends an empty entry in the current term. SUCCESS means that it is committed, and that this node has applied it. */
    CompletableFuture<DLedgerResponseCode> appendEmpty();
}
