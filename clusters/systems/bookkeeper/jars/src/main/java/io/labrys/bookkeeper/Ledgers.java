package io.labrys.bookkeeper;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.api.BKException;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/** The requests on ledgers. Handles of ledgers that this process writes are kept by the id of the ledger. */
final class Ledgers {
    /** The process has no handle to write the ledger with. */
    static final class NoHandle extends Exception {
        private static final long serialVersionUID = 1L;
    }

    private static final byte[] PASSWORD = "labrys".getBytes(StandardCharsets.UTF_8);

    private final Shared<BookKeeper> bookKeeper;
    private final DigestType digest;
    private final Copies copies;
    private final Map<Long, WriteHandle> written = new ConcurrentHashMap<>();

    Ledgers(Shared<BookKeeper> bookKeeper, ClientConfiguration settings) {
        this.bookKeeper = bookKeeper;
        this.copies = new Copies(bookKeeper, settings);
        this.digest = DigestType.valueOf(settings.getString("labrysDigest", DigestType.CRC32C.name()));
    }

    /** Creates a ledger, and returns its id. */
    long create(int ensemble, int writeQuorum, int ackQuorum) throws Exception {
        WriteHandle handle = bookKeeper.get()
                .newCreateLedgerOp()
                .withEnsembleSize(ensemble)
                .withWriteQuorumSize(writeQuorum)
                .withAckQuorumSize(ackQuorum)
                .withDigestType(digest)
                .withPassword(PASSWORD)
                .execute()
                .get();
        written.put(handle.getId(), handle);
        return handle.getId();
    }

    /** Appends an entry to a ledger that this process has created, and returns the id of the entry. */
    long append(long ledger, String body) throws Exception {
        return handle(ledger).appendAsync(body.getBytes(StandardCharsets.UTF_8)).get();
    }

    /** Closes a ledger that this process writes, and returns its last entry; -1 if it is empty. */
    long close(long ledger) throws Exception {
        WriteHandle handle = handle(ledger);
        handle.close();
        written.remove(ledger);
        return handle.getLedgerMetadata().getLastEntryId();
    }

    /** Opens a ledger with recovery, which fences it and closes it, and returns its last entry; -1 if it is empty. */
    long recover(long ledger) throws Exception {
        try (ReadHandle handle = open(ledger, true)) {
            return handle.getLastAddConfirmed();
        }
    }

    /** Opens a ledger without recovery, and asks its bookies for the last confirmed entry; -1 if there is none. */
    long confirmed(long ledger) throws Exception {
        try (ReadHandle handle = open(ledger, false)) {
            return handle.readLastAddConfirmedAsync().get();
        }
    }

    /**
     * Reads the confirmed entries of a range from a ledger, which it opens without recovery.
     *
     * @return the bodies of the entries from the first one on; fewer than the range if the last ones are not confirmed
     */
    List<String> read(long ledger, long first, long last) throws Exception {
        List<String> bodies = new ArrayList<>();
        try (ReadHandle handle = open(ledger, false)) {
            long end = Math.min(last, handle.readLastAddConfirmedAsync().get());
            if (end < first) {
                return bodies;
            }
            try (LedgerEntries entries = handle.readAsync(first, end).get()) {
                for (LedgerEntry entry : entries) {
                    bodies.add(new String(entry.getEntryBytes(), StandardCharsets.UTF_8));
                }
            }
        }
        return bodies;
    }

    /** Reads a range of entries from each bookie that should have them. */
    List<Copies.Copy> copies(long ledger, long first, long last) throws Exception {
        return copies.read(ledger, metadata(ledger), PASSWORD, digest, first, last);
    }

    /** Returns what ZooKeeper knows of a ledger. */
    LedgerMetadata metadata(long ledger) throws Exception {
        try (ReadHandle handle = open(ledger, false)) {
            return handle.getLedgerMetadata();
        }
    }

    /** Returns the code of an error of BookKeeper somewhere below an exception; null if there is none. */
    static BKException cause(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof BKException found) {
                return found;
            }
        }
        return null;
    }

    private ReadHandle open(long ledger, boolean recovery) throws Exception {
        return bookKeeper.get()
                .newOpenLedgerOp()
                .withLedgerId(ledger)
                .withRecovery(recovery)
                .withDigestType(digest)
                .withPassword(PASSWORD)
                .execute()
                .get();
    }

    private WriteHandle handle(long ledger) throws NoHandle {
        WriteHandle handle = written.get(ledger);
        if (handle == null) {
            throw new NoHandle();
        }
        return handle;
    }
}
