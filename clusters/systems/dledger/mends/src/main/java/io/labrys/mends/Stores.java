package io.labrys.mends;

import io.openmessaging.storage.dledger.entry.DLedgerEntryCoder;
import io.openmessaging.storage.dledger.store.file.DLedgerMmapFileStore;
import io.openmessaging.storage.dledger.store.file.SelectMmapBufferResult;

/** What mended classes call. A mended jar has this class. */
public final class Stores {
    private Stores() {}

    /** Returns the position of an entry in the data file of a store, by the store's own index. */
    public static long position(DLedgerMmapFileStore store, long index) {
        int unit = DLedgerMmapFileStore.INDEX_UNIT_SIZE;
        SelectMmapBufferResult found = store.getIndexFileList().getData(index * unit, unit);
        try {
            return DLedgerEntryCoder.decodeIndex(found.getByteBuffer()).getPosition();
        } finally {
            found.release();
        }
    }

    /**
     * Drops the log from an entry on, if the entry has another term than the last one in a snapshot. Source: the paper about Raft,
     * figure 13, steps 6 and 7.
     *
     * @param index the last entry in the snapshot
     * @param term its term
     */
    public static void dropConflict(DLedgerMmapFileStore store, long index, long term) {
        boolean has = index > store.getLedgerBeforeBeginIndex() && index <= store.getLedgerEndIndex();
        if (has && store.get(index).getTerm() != term) {
            store.truncate(index);
        }
    }
}
