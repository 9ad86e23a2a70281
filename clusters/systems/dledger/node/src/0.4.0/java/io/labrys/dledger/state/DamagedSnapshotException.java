package io.labrys.dledger.state;

import java.io.IOException;

/** A snapshot file differs from the one that {@link SnapshotFile#save} wrote. The node must not load it. */
public final class DamagedSnapshotException extends IOException {
    private static final long serialVersionUID = 1L;

    /** Makes the exception; {@code message} has the expected and the actual content. */
    public DamagedSnapshotException(String message) {
        super(message);
    }
}
