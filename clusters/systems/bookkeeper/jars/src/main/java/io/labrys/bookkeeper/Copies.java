package io.labrys.bookkeeper;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.nio.NioEventLoopGroup;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
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

/** Reads the entries of a ledger from each bookie that its metadata name, one by one. The library's own reads ask only one. */
final class Copies {
    /**
     * The copy of an entry on a bookie.
     *
     * @param entry the id of the entry
     * @param bookie the bookie
     * @param body the body; null if the bookie has no copy, or did not answer
     * @param code the bookie's code, as in {@link BKException.Code}
     */
    record Copy(long entry, String bookie, String body, int code) {}

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

    /** Returns the copies of a range of entries on the bookies of their write quorums. */
    List<Copy> read(long ledger, LedgerMetadata metadata, byte[] password, DigestType digest, long first, long last)
            throws Exception {
        DigestManager check = DigestManager.instantiate(
                ledger,
                password,
                DataFormats.LedgerMetadataFormat.DigestType.valueOf(digest == DigestType.MAC ? "HMAC" : digest.name()),
                UnpooledByteBufAllocator.DEFAULT,
                false);
        Map<String, CompletableFuture<Copy>> asked = new LinkedHashMap<>();
        for (long entry = first; entry <= last; entry++) {
            for (BookieId bookie : writeQuorum(metadata, entry)) {
                asked.put(entry + " " + bookie, ask(ledger, entry, bookie, check));
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

    private CompletableFuture<Copy> ask(long ledger, long entry, BookieId bookie, DigestManager check) throws Exception {
        CompletableFuture<Copy> copy = new CompletableFuture<>();
        bookies.get().readEntry(
                bookie,
                ledger,
                entry,
                (code, ledgerOfAnswer, entryOfAnswer, buffer, context) ->
                        copy.complete(copyOf(entry, bookie, code, buffer, check)),
                null,
                BookieProtocol.FLAG_NONE);
        return copy;
    }

    private static Copy copyOf(long entry, BookieId bookie, int code, ByteBuf buffer, DigestManager check) {
        if (code != BKException.Code.OK) {
            return new Copy(entry, bookie.toString(), null, code);
        }
        try {
            String body = check.verifyDigestAndReturnData(entry, buffer).toString(StandardCharsets.UTF_8);
            return new Copy(entry, bookie.toString(), body, code);
        } catch (org.apache.bookkeeper.client.BKException.BKDigestMatchException error) {
            return new Copy(entry, bookie.toString(), null, error.getCode());
        }
    }
}
