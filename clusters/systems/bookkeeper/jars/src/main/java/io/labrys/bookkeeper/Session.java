package io.labrys.bookkeeper;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.bookkeeper.client.api.BKException;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.net.BookieId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The requests of one connection: a JSON object on each line, and an object with the result on a line for each.
 *
 * <p>A request has the member {@code do} and its arguments. An answer has {@code ok} with the result, {@code code} with
 * BookKeeper's code of an error, or {@code refused} if BookKeeper was not asked. {@code error} is a text about it.
 */
final class Session {
    private static final Logger LOG = LoggerFactory.getLogger(Session.class);
    private static final int MAX_ERROR = 300;

    private final ObjectMapper json = new ObjectMapper();
    private final Ledgers ledgers;
    private final Lists lists;

    Session(Ledgers ledgers, Lists lists) {
        this.ledgers = ledgers;
        this.lists = lists;
    }

    void serve(InputStream in, OutputStream out) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
        String line;
        while ((line = lines.readLine()) != null) {
            ObjectNode answer = answer(json.readTree(line));
            out.write((json.writeValueAsString(answer) + "\n").getBytes(StandardCharsets.UTF_8));
            out.flush();
        }
    }

    private ObjectNode answer(JsonNode request) {
        ObjectNode answer = json.createObjectNode();
        try {
            answer.set("ok", carryOut(request));
        } catch (Ledgers.NoHandle none) {
            answer.put("refused", "no-handle").put("error", "this process does not write the ledger");
        } catch (IllegalArgumentException bad) {
            answer.put("refused", "bad-request").put("error", text(bad));
        } catch (Exception error) {
            Throwable root = error instanceof ExecutionException ? error.getCause() : error;
            BKException known = Ledgers.cause(error);
            if (known != null) {
                answer.put("code", known.getCode()).put("error", BKException.codeLogger(known.getCode()).toString());
            } else {
                answer.put("error", text(root));
            }
        }
        return answer;
    }

    private JsonNode carryOut(JsonNode request) throws Exception {
        long ledger = request.path("ledger").asLong(-1);
        String what = request.path("do").asText();
        switch (what) {
            case "create":
                return json.getNodeFactory().numberNode(ledgers.create(
                        request.path("ensemble").asInt(), request.path("write").asInt(), request.path("ack").asInt()));
            case "append":
                return json.getNodeFactory().numberNode(ledgers.append(ledger, request.path("body").asText()));
            case "close":
                return json.getNodeFactory().numberNode(ledgers.close(ledger));
            case "recover":
                return json.getNodeFactory().numberNode(ledgers.recover(request.path("name").asText(), ledger));
            case "confirmed":
                return json.getNodeFactory().numberNode(ledgers.confirmed(ledger));
            case "read":
                ArrayNode bodies = json.createArrayNode();
                ledgers.read(ledger, request.path("first").asLong(), request.path("last").asLong()).forEach(bodies::add);
                return bodies;
            case "copies":
                List<BookieId> others = new ArrayList<>();
                request.path("bookies").forEach(each -> others.add(BookieId.parse(each.asText())));
                return copies(ledger, request.path("first").asLong(), request.path("last").asLong(), others);
            case "metadata":
                return described(ledgers.metadata(ledger));
            case "get":
                Lists.Entry entry = lists.get(request.path("name").asText());
                return json.createObjectNode().put("version", entry.version()).put("text", entry.text());
            case "put":
                return json.getNodeFactory().numberNode(put(request, ledger));
            case "status":
                return status();
            default:
                throw new IllegalArgumentException("unknown request '" + what + "'");
        }
    }

    /** Changes the list of a log; if that succeeds, this process writes the log's last ledger. */
    private int put(JsonNode request, long ledger) throws Exception {
        String name = request.path("name").asText();
        int version = lists.put(name, request.path("version").asInt(), request.path("text").asText());
        if (version != Lists.ABSENT) {
            ledgers.write(name, ledger, request.path("term").asInt());
            LOG.info("writes ledger {} of {} in term {}", ledger, name, request.path("term").asInt());
        }
        return version;
    }

    /** Returns log, ledger, term, last confirmed and last sent entry of each log that this process writes or recovers. */
    private JsonNode status() {
        ArrayNode writes = json.createArrayNode();
        ledgers.writing().forEach((log, each) -> {
            try {
                long[] ends = ledgers.ends(each.ledger());
                writes.addArray().add(log).add(each.ledger()).add(each.term()).add(ends[0]).add(ends[1]);
            } catch (Ledgers.NoHandle closed) {
                // It was closed since, and this process no longer writes the log.
            }
        });
        ObjectNode status = json.createObjectNode();
        status.set("writes", writes);
        ArrayNode recovers = status.putArray("recovers");
        ledgers.recovering().forEach((log, ledger) -> recovers.addArray().add(log).add(ledger));
        return status;
    }

    /** Returns entry, bookie, body and code of each copy, and whether the metadata name the bookie for the entry. */
    private JsonNode copies(long ledger, long first, long last, List<BookieId> others) throws Exception {
        ArrayNode found = json.createArrayNode();
        for (Copies.Copy copy : ledgers.copies(ledger, first, last, others)) {
            found.addArray().add(copy.entry()).add(copy.bookie()).add(copy.body()).add(copy.code()).add(copy.named());
        }
        return found;
    }

    private JsonNode described(LedgerMetadata metadata) {
        ObjectNode ensembles = json.createObjectNode();
        for (Map.Entry<Long, ? extends List<BookieId>> each : metadata.getAllEnsembles().entrySet()) {
            ArrayNode bookies = ensembles.putArray(each.getKey().toString());
            each.getValue().forEach(bookie -> bookies.add(bookie.toString()));
        }
        ObjectNode described = json.createObjectNode();
        described.put("state", metadata.getState().toString());
        described.put("writeQuorum", metadata.getWriteQuorumSize());
        described.put("ackQuorum", metadata.getAckQuorumSize());
        described.put("last", metadata.isClosed() ? metadata.getLastEntryId() : -1);
        described.set("ensembles", ensembles);
        return described;
    }

    private static String text(Throwable error) {
        String text = String.valueOf(error);
        return text.substring(0, Math.min(text.length(), MAX_ERROR));
    }
}
