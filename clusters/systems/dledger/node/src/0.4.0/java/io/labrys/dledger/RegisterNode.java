package io.labrys.dledger;

import io.labrys.dledger.read.DLedgerRaft;
import io.labrys.dledger.read.ReadIndex;
import io.labrys.dledger.read.Turns;
import io.labrys.dledger.serve.DumpProcessor;
import io.labrys.dledger.serve.KvProcessor;
import io.labrys.dledger.serve.PromptProcessor;
import io.labrys.dledger.serve.StatusProcessor;
import io.labrys.dledger.state.RegisterState;
import io.labrys.dledger.state.RegisterStateMachine;
import io.labrys.dledger.state.WaitingAnswers;
import io.openmessaging.storage.dledger.DLedgerConfig;
import io.openmessaging.storage.dledger.DLedgerLeaderElector;
import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.exception.DLedgerException;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/**
 * One member of the group: the library, the registers on top of it, and the requests that it answers.
 *
 * <p>The constructor connects all parts before the library starts, so they see every role change, entry and snapshot.
 */
public final class RegisterNode implements Node {
    private static final int WORKERS = 4;
    private static final int MAX_QUEUED = 10_000;
    private static final long MIN_ROUND_MILLIS = 200;

    private final DLedgerServer server;
    private final RegisterState state = new RegisterState();
    private final ThreadPoolExecutor workers;
    private final Turns.Thread turns = new Turns.Thread("read-index");
    private final ReadIndex readIndex;

    /**
     * Makes a node. It opens its files and its port when it starts.
     *
     * @param fatal receives the error when the library gives up; the process should then end at once
     */
    public RegisterNode(NodeOptions options, Consumer<DLedgerException> fatal) {
        DLedgerConfig config = Library.config(options);
        config.setEnableSnapshot(options.snapshotThreshold().isPresent());
        options.snapshotThreshold().ifPresent(config::setSnapshotThreshold);
        server = Library.server(options, config);
        workers = workers();

        WaitingAnswers waiting = new WaitingAnswers();
        RegisterStateMachine machine =
            new RegisterStateMachine(options.group(), options.self(), state, waiting, fatal, options.snapshotMillis());
        server.registerStateMachine(machine);

        DLedgerRaft raft = new DLedgerRaft(server);
        readIndex = new ReadIndex(raft, state::get, turns, Math.max(MIN_ROUND_MILLIS, options.heartbeatMillis()));
        Promptness promptness = new Promptness(server.getDLedgerConfig(), raft);
        server.getDLedgerLeaderElector().addRoleChangeHandler(new Roles(readIndex, promptness));

        KvProcessor kv = new KvProcessor(server, workers, state, waiting, raft, readIndex);
        server.registerUserDefineProcessors(List.of(
            kv,
            new StatusProcessor(server, workers, state, machine, waiting, readIndex, kv),
            new DumpProcessor(server, workers, machine),
            new PromptProcessor(server, workers, promptness)));
    }

    @Override
    public void start() {
        server.startup();
    }

    /** Returns the library's server. */
    public DLedgerServer server() {
        return server;
    }

    @Override
    public String state(String key) {
        return Library.state(server, state.get(key));
    }

    @Override
    public void close() {
        readIndex.close();
        server.shutdown();
        turns.close();
        workers.shutdown();
    }

    private static ThreadPoolExecutor workers() {
        AtomicInteger number = new AtomicInteger();
        return new ThreadPoolExecutor(WORKERS, WORKERS, 0, TimeUnit.SECONDS, new ArrayBlockingQueue<>(MAX_QUEUED), task -> {
            Thread thread = new Thread(task, "request-" + number.getAndIncrement());
            thread.setDaemon(true);
            return thread;
        });
    }

    private record Roles(ReadIndex readIndex, Promptness promptness) implements DLedgerLeaderElector.RoleChangeHandler {
        @Override
        public void handle(long term, MemberState.Role role) {
            if (role == MemberState.Role.LEADER) {
                promptness.lead(term);
            }
            readIndex.roleChanged(term, role == MemberState.Role.LEADER);
        }

        @Override
        public void startup() {
            // has nothing to start
        }

        @Override
        public void shutdown() {
            // close() of the node ends the reads
        }
    }
}
