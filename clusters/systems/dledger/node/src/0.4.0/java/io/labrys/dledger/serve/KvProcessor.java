package io.labrys.dledger.serve;

import io.labrys.dledger.read.DLedgerRaft;
import io.labrys.dledger.read.ReadIndex;
import io.labrys.dledger.read.ReadMode;
import io.labrys.dledger.read.Reading;
import io.labrys.dledger.state.Answer;
import io.labrys.dledger.state.Command;
import io.labrys.dledger.state.CommandCodec;
import io.labrys.dledger.state.OpId;
import io.labrys.dledger.state.RegisterState;
import io.labrys.dledger.state.WaitingAnswers;
import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.common.Status;
import io.openmessaging.storage.dledger.common.WriteClosure;
import io.openmessaging.storage.dledger.common.WriteTask;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Serves get, put and cas.
 *
 * <p>An answer with code 200 always has the state machine's result. If the library reports success without it, this class takes
 * it from {@link WaitingAnswers}. If it is not there either, the code is 500, since the result is unknown.
 */
public final class KvProcessor extends TypedProcessor<KvRequest, KvResponse> {
    private final RegisterState state;
    private final WaitingAnswers waiting;
    private final DLedgerRaft raft;
    private final ReadIndex readIndex;
    private final OpId.Source ids = new OpId.Source();
    private final AtomicLong repaired = new AtomicLong();

    /** Makes the processor of one node. */
    public KvProcessor(DLedgerServer server, Executor workers, RegisterState state, WaitingAnswers waiting, DLedgerRaft raft,
        ReadIndex readIndex) {
        super(server, workers);
        this.state = state;
        this.waiting = waiting;
        this.raft = raft;
        this.readIndex = readIndex;
    }

    @Override
    public Integer getRequestTypeCode() {
        return KvRequest.TYPE;
    }

    /** Returns the number of answers that the library lost and {@link WaitingAnswers} kept. */
    public long repairedAnswers() {
        return repaired.get();
    }

    @Override
    KvResponse blank() {
        return new KvResponse();
    }

    @Override
    CompletableFuture<KvResponse> serve(KvRequest request) {
        if (request.getKey() == null || request.getOp() == null) {
            return unexpected("a request needs an op and a key");
        }
        return switch (request.getOp()) {
            case "get" -> get(request);
            case "put" -> write(request, Command.Kind.PUT);
            case "cas" -> write(request, Command.Kind.CAS);
            default -> unexpected("op is get, put or cas");
        };
    }

    private CompletableFuture<KvResponse> get(KvRequest request) {
        ReadMode mode = ReadMode.named(request.getReadMode());
        if (mode == null) {
            return unexpected("readMode is read-index, raft-log or unsafe");
        }
        String key = request.getKey();
        CompletableFuture<Reading> reading = switch (mode) {
            case READ_INDEX -> readIndex.read(key);
            case RAFT_LOG -> readLogged(key);
            case UNSAFE -> CompletableFuture.completedFuture(Reading.of(state.get(key)));
        };
        return reading.thenApply(this::read);
    }

    /** Checks for the usual refusals first, since the library reports every refusal of such a read as "unknown". */
    private CompletableFuture<Reading> readLogged(String key) {
        if (!raft.leads()) {
            return CompletableFuture.completedFuture(Reading.failed(DLedgerResponseCode.NOT_LEADER));
        }
        if (raft.transferring()) {
            return CompletableFuture.completedFuture(Reading.failed(DLedgerResponseCode.LEADER_TRANSFERRING));
        }
        return raft.readLogged(() -> state.get(key));
    }

    private KvResponse read(Reading reading) {
        if (reading.code() != DLedgerResponseCode.SUCCESS) {
            return refused(reading.code(), null);
        }
        KvResponse response = blank();
        response.setFound(reading.value() != null);
        response.setValue(reading.value());
        return response;
    }

    private CompletableFuture<KvResponse> write(KvRequest request, Command.Kind kind) {
        if (request.getValue() == null) {
            return unexpected("a write needs a value");
        }
        Long expected = kind == Command.Kind.CAS ? request.getExpected() : null;
        OpId id = ids.next();
        WriteTask task = new WriteTask();
        try {
            task.setBody(CommandCodec.encode(new Command(id, kind, request.getKey(), request.getValue(), expected)));
        } catch (IllegalArgumentException e) {
            return unexpected(e.getMessage());
        }
        CompletableFuture<KvResponse> result = new CompletableFuture<>();
        waiting.expect(id);
        try {
            dLedgerServer.handleWrite(task, new Completion(id, result));
        } catch (RuntimeException | Error e) {
            waiting.take(id);
            throw e;
        }
        return result.orTimeout(LIMIT_MILLIS, TimeUnit.MILLISECONDS).whenComplete((response, error) -> waiting.take(id));
    }

    private CompletableFuture<KvResponse> unexpected(String message) {
        return CompletableFuture.completedFuture(refused(DLedgerResponseCode.UNEXPECTED_ARGUMENT, message));
    }

    /** Turns the end of a write into its answer. The library can end a write twice, from two threads; the first one counts. */
    private final class Completion extends WriteClosure<Answer> {
        private final OpId id;
        private final CompletableFuture<KvResponse> result;
        private volatile Answer given;

        Completion(OpId id, CompletableFuture<KvResponse> result) {
            this.id = id;
            this.result = result;
        }

        @Override
        public void setResp(Answer answer) {
            given = answer;
        }

        @Override
        public Answer getResp() {
            return given;
        }

        @Override
        public void done(Status status) {
            Answer kept = waiting.take(id);
            if (!status.isOk()) {
                result.complete(refused(status.code, null));
                return;
            }
            Answer answer = given;
            if (answer == null && kept != null) {
                repaired.incrementAndGet();
                answer = kept;
            }
            result.complete(answer == null
                ? refused(DLedgerResponseCode.INTERNAL_ERROR, "the write was applied, but its answer is lost")
                : written(answer));
        }

        private KvResponse written(Answer answer) {
            KvResponse response = blank();
            response.setApplied(answer.applied());
            response.setFound(answer.value() != null);
            response.setValue(answer.value());
            response.setIndex(answer.index());
            return response;
        }
    }
}
