package io.labrys.dledger.read;

import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;

/**
 * What {@link ReadIndex} needs of the library: its own state, and two ways to ask the group. No method blocks, and the futures
 * always complete, with a code and never exceptionally.
 */
public interface Raft {
    /** Returns whether this node believes to lead. */
    boolean leads();

    /** Returns whether a transfer of the leadership is under way. */
    boolean transferring();

    /** Returns this node's current term. */
    long term();

    /** Returns the last index that this node knows to be committed; -1 if it knows none. */
    long committedIndex();

    /** Returns the last index that this node's state machine has applied; -1 if there is none. */
    long appliedIndex();

    /** Returns the ids of the other members. */
    Collection<String> others();

    /** Returns whether so many members, this one included, are a quorum. */
    boolean quorum(int members);

    /**
     * Sends a heartbeat of this leader in {@code term} to another member. SUCCESS is that member's word that it has not
     * entered a higher term yet, and so has not voted for another leader.
     */
    CompletableFuture<DLedgerResponseCode> heartbeat(String member, long term);

    /** Appends an empty entry in the current term. SUCCESS means that it was committed and applied here. */
    CompletableFuture<DLedgerResponseCode> appendEmpty();
}
