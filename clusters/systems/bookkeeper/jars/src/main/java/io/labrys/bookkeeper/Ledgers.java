package io.labrys.bookkeeper;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.api.BKException;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.net.BookieId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The requests on ledgers. Handles of ledgers that this process writes are kept by the id of the ledger. */
final class Ledgers {
    /** The process has no handle to write the ledger with. */
    static final class NoHandle extends Exception {
        private static final long serialVersionUID = 1L;
    }

    /**
     * A log that this process writes.
     *
     * @param ledger the id of its last ledger
     * @param term the place of this ledger in the list of the log, which grows with each writer
     */
    record Writing(long ledger, int term) {}

    private static final Logger LOG = LoggerFactory.getLogger(Ledgers.class);
    private static final byte[] PASSWORD = "labrys".getBytes(StandardCharsets.UTF_8);

    private final Shared<BookKeeper> bookKeeper;
    private final DigestType digest;
    private final Copies copies;
    private final Map<Long, WriteHandle> written = new ConcurrentHashMap<>();
    private final Set<Long> created = ConcurrentHashMap.newKeySet();
    private final Map<String, Writing> writing = new ConcurrentHashMap<>();
    private final Map<String, Long> recovering = new ConcurrentHashMap<>();

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
        created.add(handle.getId());
        return handle.getId();
    }

    /** Appends an entry to a ledger that this process has created, and returns the id of the entry. */
    long append(long ledger, String body) throws Exception {
        WriteHandle handle = handle(ledger);
        try {
            return handle.appendAsync(body.getBytes(StandardCharsets.UTF_8)).get();
        } catch (ExecutionException error) {
            stopWriting(ledger); // a handle takes nothing after an error
            throw error;
        }
    }

    /** Notes that a log has a ledger of this process as its last one. */
    void write(String log, long ledger, int term) {
        writing.put(log, new Writing(ledger, term));
    }

    /** Returns the logs that this process writes, as far as it knows. */
    Map<String, Writing> writing() {
        return Map.copyOf(writing);
    }

    /** Returns the logs of which this process recovers a ledger now, with the ledger. */
    Map<String, Long> recovering() {
        return Map.copyOf(recovering);
    }

    /** Returns the last confirmed entry of a ledger that this process writes, and the last one that it sent; -1 for none. */
    long[] ends(long ledger) throws NoHandle {
        WriteHandle handle = handle(ledger);
        return new long[] {handle.getLastAddConfirmed(), handle.getLastAddPushed()};
    }

    /** Closes a ledger that this process writes, and returns its last entry; -1 if it is empty. */
    long close(long ledger) throws Exception {
        WriteHandle handle = handle(ledger);
        stopWriting(ledger);
        handle.close();
        written.remove(ledger);
        return handle.getLedgerMetadata().getLastEntryId();
    }

    /** Opens a ledger of a log with recovery, which fences it and closes it, and returns its last entry; -1 if it is empty. */
    long recover(String log, long ledger) throws Exception {
        recovering.put(log, ledger);
        LOG.info("recovers ledger {} of {}, which {} process created", ledger, log, created.contains(ledger) ? "this" : "another");
        try (ReadHandle handle = open(ledger, true)) {
            LOG.info("has recovered ledger {} of {} to {}", ledger, log, handle.getLastAddConfirmed());
            return handle.getLastAddConfirmed();
        } finally {
            recovering.remove(log, ledger);
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

    /** Reads a range of entries from each bookie that should have them, and from others. */
    List<Copies.Copy> copies(long ledger, long first, long last, List<BookieId> others) throws Exception {
        return copies.read(ledger, metadata(ledger), PASSWORD, digest, first, last, others);
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

    private void stopWriting(long ledger) {
        writing.values().removeIf(each -> each.ledger() == ledger);
    }

    private WriteHandle handle(long ledger) throws NoHandle {
        WriteHandle handle = written.get(ledger);
        if (handle == null) {
            throw new NoHandle();
        }
        return handle;
    }
}
