package io.labrys.dledger;

import io.labrys.dledger.read.Raft;
import io.openmessaging.storage.dledger.DLedgerConfig;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Makes a leadership transfer to this node prompt. It is off until a request turns it on, so elections during a workload are
 * those of the library.
 *
 * <p>The library loses time at two places:
 * <ul>
 *   <li>The node that takes over waits as long as in an ordinary election before it asks for votes. It waits only 30 to 100 ms
 *       if it is a preferred leader, so this names the node as its own preferred leader. A leader that is preferred itself
 *       hands its leadership to nobody.
 *   <li>A new leader compares its log with a follower that has not heard of it yet. The follower refuses, and the leader waits
 *       half a second. So this tells the followers first. The library calls it under the lock that the comparison needs.
 * </ul>
 */
public final class Promptness {
    private static final long ANNOUNCE_LIMIT_MILLIS = 100;

    private final DLedgerConfig config;
    private final Raft raft;
    private volatile boolean on;

    /** Makes the promptness of the node with this configuration, turned off. */
    public Promptness(DLedgerConfig config, Raft raft) {
        this.config = config;
        this.raft = raft;
    }

    /** Turns it on, for the rest of this process. */
    public void turnOn() {
        config.setPreferredLeaderIds(config.getSelfId());
        on = true;
    }

    /** Sends a heartbeat of the new leader to each other member, and waits for the answers a short time. */
    void lead(long term) {
        if (!on) {
            return;
        }
        CompletableFuture<?>[] answers =
            raft.others().stream().map(member -> raft.heartbeat(member, term)).toArray(CompletableFuture<?>[]::new);
        CompletableFuture.allOf(answers).completeOnTimeout(null, ANNOUNCE_LIMIT_MILLIS, TimeUnit.MILLISECONDS).join();
    }
}
