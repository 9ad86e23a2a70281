package io.labrys.dledger.state;

import java.io.IOException;

/** A snapshot file is not what {@link SnapshotFile#save} left there; it must not be loaded. */
public final class DamagedSnapshotException extends IOException {
    private static final long serialVersionUID = 1L;

    /** Says in {@code message} what was expected and what came. */
    public DamagedSnapshotException(String message) {
        super(message);
    }
}
