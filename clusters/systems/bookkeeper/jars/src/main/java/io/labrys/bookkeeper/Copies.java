package io.labrys.bookkeeper;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.nio.NioEventLoopGroup;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.api.BKException;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.proto.BookieClient;
import org.apache.bookkeeper.proto.BookieClientImpl;
import org.apache.bookkeeper.proto.BookieProtocol;
import org.apache.bookkeeper.proto.DataFormats;
import org.apache.bookkeeper.proto.checksum.DigestManager;
import org.apache.bookkeeper.stats.NullStatsLogger;

/**
 * Reads the entries of a ledger from each bookie, one by one: those that its metadata name, and others. The library's own reads ask
 * only one of those that they name.
 */
final class Copies {
    /**
     * The copy of an entry on a bookie.
     *
     * @param entry the id of the entry
     * @param bookie the bookie
     * @param body the body; null if the bookie has no copy, or did not answer
     * @param code the bookie's code, as in {@link BKException.Code}
     * @param named whether the metadata name the bookie for the entry
     */
    record Copy(long entry, String bookie, String body, int code, boolean named) {}

    private final Shared<BookieClient> bookies;

    Copies(Shared<BookKeeper> bookKeeper, ClientConfiguration settings) {
        bookies = new Shared<>(() -> {
            BookKeeper client = bookKeeper.get();
            return new BookieClientImpl(
                    settings,
                    new NioEventLoopGroup(1),
                    UnpooledByteBufAllocator.DEFAULT,
                    client.getMainWorkerPool(),
                    Executors.newSingleThreadScheduledExecutor(),
                    NullStatsLogger.INSTANCE,
                    client.getBookieAddressResolver());
        });
    }

    /** Returns the copies of a range of entries on the bookies of their write quorums, and on other bookies. */
    List<Copy> read(
            long ledger,
            LedgerMetadata metadata,
            byte[] password,
            DigestType digest,
            long first,
            long last,
            List<BookieId> others)
            throws Exception {
        DigestManager check = DigestManager.instantiate(
                ledger,
                password,
                DataFormats.LedgerMetadataFormat.DigestType.valueOf(digest == DigestType.MAC ? "HMAC" : digest.name()),
                UnpooledByteBufAllocator.DEFAULT,
                false);
        Map<String, CompletableFuture<Copy>> asked = new LinkedHashMap<>();
        for (long entry = first; entry <= last; entry++) {
            List<BookieId> named = writeQuorum(metadata, entry);
            Set<BookieId> all = new LinkedHashSet<>(named);
            all.addAll(others);
            for (BookieId bookie : all) {
                asked.put(entry + " " + bookie, ask(ledger, entry, bookie, named.contains(bookie), check));
            }
        }
        List<Copy> found = new ArrayList<>();
        for (CompletableFuture<Copy> each : asked.values()) {
            found.add(each.get());
        }
        return found;
    }

    private static List<BookieId> writeQuorum(LedgerMetadata metadata, long entry) {
        List<BookieId> ensemble = metadata.getEnsembleAt(entry);
        List<BookieId> quorum = new ArrayList<>();
        for (int place = 0; place < metadata.getWriteQuorumSize(); place++) {
            quorum.add(ensemble.get((int) ((entry + place) % ensemble.size())));
        }
        return quorum;
    }

    private CompletableFuture<Copy> ask(long ledger, long entry, BookieId bookie, boolean named, DigestManager check)
            throws Exception {
        CompletableFuture<Copy> copy = new CompletableFuture<>();
        bookies.get().readEntry(
                bookie,
                ledger,
                entry,
                (code, ledgerOfAnswer, entryOfAnswer, buffer, context) ->
                        copy.complete(copyOf(entry, bookie, named, code, buffer, check)),
                null,
                BookieProtocol.FLAG_NONE);
        return copy;
    }

    private static Copy copyOf(
            long entry, BookieId bookie, boolean named, int code, ByteBuf buffer, DigestManager check) {
        if (code != BKException.Code.OK) {
            return new Copy(entry, bookie.toString(), null, code, named);
        }
        try {
            String body = check.verifyDigestAndReturnData(entry, buffer).toString(StandardCharsets.UTF_8);
            return new Copy(entry, bookie.toString(), body, code, named);
        } catch (org.apache.bookkeeper.client.BKException.BKDigestMatchException error) {
            return new Copy(entry, bookie.toString(), null, error.getCode(), named);
        }
    }
}
