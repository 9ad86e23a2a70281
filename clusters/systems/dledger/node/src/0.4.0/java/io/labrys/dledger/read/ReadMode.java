package io.labrys.dledger.read;

/** How a node makes sure that a read sees the latest value. */
public enum ReadMode {
    /** Confirms the leadership by a quorum of heartbeats, waits until the commit index is applied, and reads. Linearizable. */
    READ_INDEX("read-index"),
    /** Appends an empty entry, and reads when it is applied. Linearizable, but costs a log entry. */
    RAFT_LOG("raft-log"),
    /** Reads this node's state in any role. Not linearizable: the negative control. */
    UNSAFE("unsafe");

    private final String wireName;

    ReadMode(String wireName) {
        this.wireName = wireName;
    }

    /** Returns the mode that has this name in requests; null if there is none. */
    public static ReadMode named(String name) {
        for (ReadMode mode : values()) {
            if (mode.wireName.equals(name)) {
                return mode;
            }
        }
        return null;
    }
}
