package io.labrys.mends;

import io.openmessaging.storage.dledger.entry.DLedgerEntryCoder;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.store.file.DLedgerMmapFileStore;
import io.openmessaging.storage.dledger.store.file.SelectMmapBufferResult;
import io.openmessaging.storage.dledger.utils.PreConditions;

/** What the mended class of the store calls; a jar with this mend has this class. */
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

    /** Waits until the log of a store is on the disk. Each flush writes one file. */
    public static void sync(DLedgerMmapFileStore store) {
        long before = -1;
        while (store.getFlushPos() < store.getWritePos() && store.getFlushPos() > before) {
            before = store.getFlushPos();
            store.flush();
        }
    }

    /** Comes after an entry was written; the position is -1 if that failed, and an entry without data gets no index. */
    public static void checkWritten(long position) {
        PreConditions.check(position != -1, DLedgerResponseCode.DISK_ERROR);
    }

    /** Comes after the index of an entry was written; {@code index} is -1 if that failed, and the log then drops the data. */
    public static void dropWithoutIndex(DLedgerMmapFileStore store, long position, long index) {
        if (index == -1) {
            store.getDataFileList().truncateOffset(position);
        }
    }
}
