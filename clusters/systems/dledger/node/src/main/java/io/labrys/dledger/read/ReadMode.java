package io.labrys.dledger.read;

/** How a read makes sure that it sees the latest value, or that it does not. */
public enum ReadMode {
    /** Confirms leadership by a heartbeat quorum, waits until the commit index is applied, and reads. Linearizable. */
    READ_INDEX("read-index"),
    /** Appends an empty entry and reads when it is applied. Linearizable, at the price of a write. */
    RAFT_LOG("raft-log"),
    /** Reads what this node has, whatever it is. Stale by design: the negative control. */
    UNSAFE("unsafe");

    private final String wireName;

    ReadMode(String wireName) {
        this.wireName = wireName;
    }

    /** Returns the mode of that name in requests; null if there is none. */
    public static ReadMode named(String name) {
        for (ReadMode mode : values()) {
            if (mode.wireName.equals(name)) {
                return mode;
            }
        }
        return null;
    }
}
