package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.common.ReadClosure;
import io.openmessaging.storage.dledger.common.ReadMode;
import io.openmessaging.storage.dledger.common.Status;
import io.openmessaging.storage.dledger.common.WriteClosure;
import io.openmessaging.storage.dledger.common.WriteTask;
import io.openmessaging.storage.dledger.exception.DLedgerException;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineProcessor;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves get, put and cas.
 *
 * <p>Called by the few network threads that also serve votes and heartbeats, so nothing here blocks. Every refusal leaves as
 * one of the library's codes; the client decides from the code alone whether an operation may have happened.
 */
final class RegisterProcessor extends UserDefineProcessor<RegisterRequest, RegisterResponse> {
    private static final Logger LOG = LoggerFactory.getLogger(RegisterProcessor.class);
    private static final int MAX_KEY_BYTES = 1024;

    private final RegisterStateMachine machine;
    private final ReadIndex readIndex;
    /** Ids of commands: random start, so that those of a restarted process are others. */
    private final AtomicLong ids = new AtomicLong(new SecureRandom().nextLong());

    RegisterProcessor(DLedgerServer server, RegisterStateMachine machine, ReadIndex readIndex) {
        super(server);
        this.machine = machine;
        this.readIndex = readIndex;
    }

    @Override
    public Integer getRequestTypeCode() {
        return RegisterRequest.TYPE;
    }

    @Override
    public CompletableFuture<RegisterResponse> handleRequest(RegisterRequest request) {
        CompletableFuture<RegisterResponse> answer = new CompletableFuture<>();
        try {
            DLedgerResponseCode refusal = refusal(request);
            if (refusal != DLedgerResponseCode.SUCCESS) {
                answer.complete(refuse(refusal));
            } else if ("get".equals(request.getOp())) {
                get(request, answer);
            } else {
                change(request, answer);
            }
        } catch (DLedgerException refused) {
            answer.complete(refuse(refused.getCode()));
        } catch (RuntimeException failed) {
            LOG.error("a {} of {} failed", request.getOp(), request.getKey(), failed);
            answer.complete(refuse(DLedgerResponseCode.INTERNAL_ERROR));
        }
        return answer;
    }

    private DLedgerResponseCode refusal(RegisterRequest request) {
        DLedgerResponseCode addressed = Answers.addressed(dLedgerServer, request);
        if (addressed != DLedgerResponseCode.SUCCESS) {
            return addressed;
        }
        String op = String.valueOf(request.getOp());
        boolean complete = switch (op) {
            case "get" -> true;
            case "put" -> request.getValue() != null;
            case "cas" -> request.getValue() != null && request.getExpected() != null;
            default -> false;
        };
        String key = request.getKey();
        boolean named = key != null && !key.isEmpty() && key.getBytes(StandardCharsets.UTF_8).length <= MAX_KEY_BYTES;
        return complete && named ? DLedgerResponseCode.SUCCESS : DLedgerResponseCode.UNEXPECTED_ARGUMENT;
    }

    private RegisterResponse refuse(DLedgerResponseCode code) {
        return Answers.fill(dLedgerServer, new RegisterResponse(), code);
    }

    private void get(RegisterRequest request, CompletableFuture<RegisterResponse> answer) {
        switch (String.valueOf(request.getReadMode())) {
            case "read-index" -> readIndex.permit().thenAccept(code -> answer.complete(read(request, code)));
            // The library refuses a log read at a follower with a code that says nothing; say what it is.
            case "raft-log" -> {
                if (dLedgerServer.getMemberState().isLeader()) {
                    libraryRead(ReadMode.RAFT_LOG_READ, request, answer);
                } else {
                    answer.complete(refuse(DLedgerResponseCode.NOT_LEADER));
                }
            }
            case "unsafe" -> libraryRead(ReadMode.UNSAFE_READ, request, answer);
            default -> answer.complete(refuse(DLedgerResponseCode.UNSUPPORTED));
        }
    }

    private void libraryRead(ReadMode mode, RegisterRequest request, CompletableFuture<RegisterResponse> answer) {
        dLedgerServer.handleRead(mode, new ReadClosure() {
            @Override
            public void done(Status status) {
                answer.complete(read(request, status.code));
            }
        });
    }

    /** Reads the register, if it may be read. Must run when the permission is given, not when the request came. */
    private RegisterResponse read(RegisterRequest request, DLedgerResponseCode code) {
        RegisterResponse response = refuse(code);
        if (code == DLedgerResponseCode.SUCCESS) {
            response.setValue(machine.registers().get(request.getKey()));
        }
        return response;
    }

    private void change(RegisterRequest request, CompletableFuture<RegisterResponse> answer) {
        boolean cas = "cas".equals(request.getOp());
        Command command = new Command(
                cas ? Command.Kind.CAS : Command.Kind.PUT,
                ids.incrementAndGet(),
                request.getKey(),
                cas ? request.getExpected() : 0,
                request.getValue());
        WriteTask task = new WriteTask();
        task.setBody(command.encode());
        machine.expect(command.id());
        // Whatever way the answer is completed, nothing is left waiting for it.
        answer.whenComplete((response, failed) -> machine.collect(command.id()));
        dLedgerServer.handleWrite(task, new WriteClosure<Registers.Result>() {
            private volatile Registers.Result result;

            @Override
            public void setResp(Registers.Result applied) {
                result = applied;
            }

            @Override
            public Registers.Result getResp() {
                return result;
            }

            @Override
            public void done(Status status) {
                RegisterResponse response = refuse(status.code);
                Registers.Result known = result != null ? result : machine.collect(command.id());
                if (status.isOk() && known != null) {
                    response.setApplied(known.applied());
                    response.setValue(known.value());
                }
                answer.complete(response);
            }
        });
    }
}
