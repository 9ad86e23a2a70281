package example;

import io.microraft.Ordered;
import io.microraft.QueryPolicy;
import io.microraft.RaftConfig;
import io.microraft.RaftEndpoint;
import io.microraft.RaftNode;
import io.microraft.exception.CannotReplicateException;
import io.microraft.exception.NotLeaderException;
import io.microraft.model.message.RaftMessage;
import io.microraft.report.RaftNodeReport;
import io.microraft.statemachine.StateMachine;
import io.microraft.transport.Transport;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.function.Consumer;

/** A node with registers on MicroRaft. It speaks with other nodes and with clients over plain sockets. */
public final class Node {
    private final Map<String, Peer> peers = new HashMap<>();
    private RaftNode raft;

    private Node() {}

    /** A member of the group. */
    public record Member(String name) implements RaftEndpoint {
        @Override
        public Object getId() {
            return name;
        }
    }

    /** The registers. All nodes apply the same operations in the same order. An operation is a function, a key and values. */
    private static final class Registers implements StateMachine {
        private final Map<String, String> values = new HashMap<>();

        @Override
        public Object runOperation(long index, Object operation) {
            if (operation == null) {
                return null; // the first entry of a term
            }
            String[] words = (String[]) operation;
            String now = values.getOrDefault(words[1], "");
            switch (words[0]) {
                case "read":
                    return "ok " + now;
                case "write":
                    values.put(words[1], words[2]);
                    return "ok";
                default:
                    if (!now.equals(words[2])) {
                        return "mismatch " + now;
                    }
                    values.put(words[1], words[3]);
                    return "ok";
            }
        }

        @Override
        public void takeSnapshot(long index, Consumer<Object> chunks) {
            chunks.accept(new HashMap<>(values));
        }

        @Override
        @SuppressWarnings("unchecked")
        public void installSnapshot(long index, List<Object> chunks) {
            values.clear();
            chunks.forEach(chunk -> values.putAll((Map<String, String>) chunk));
        }

        @Override
        public Object getNewTermOperation() {
            return null;
        }
    }

    /** Starts a node. The arguments: its name, its port, and all members as NAME=HOST:PORT. */
    public static void main(String[] arguments) throws IOException {
        new Node().start(arguments[0], Integer.parseInt(arguments[1]), List.of(arguments).subList(2, arguments.length));
    }

    private void start(String name, int port, List<String> members) throws IOException {
        List<RaftEndpoint> endpoints = new ArrayList<>();
        for (String member : members) {
            String[] parts = member.split("[=:]");
            endpoints.add(new Member(parts[0]));
            if (!parts[0].equals(name)) {
                Peer peer = new Peer(parts[1], Integer.parseInt(parts[2]));
                peers.put(parts[0], peer);
                begin("peer-" + parts[0], peer);
            }
        }
        raft = RaftNode.newBuilder().setGroupId("registers").setLocalEndpoint(new Member(name)).setInitialGroupMembers(endpoints)
            .setConfig(RaftConfig.newBuilder().setLeaderHeartbeatPeriodSecs(1).setLeaderHeartbeatTimeoutSecs(3).build())
            .setTransport(new Transport() {
                @Override
                public void send(RaftEndpoint to, RaftMessage message) {
                    peers.get(to.getId()).send(Frames.raft(message));
                }

                @Override
                public boolean isReachable(RaftEndpoint member) {
                    return peers.get(member.getId()).isConnected();
                }
            }).setStateMachine(new Registers()).build();
        raft.start();
        ServerSocket server = new ServerSocket(port);
        begin("accept", () -> {
            try {
                while (true) {
                    Socket socket = server.accept();
                    begin("serve-" + socket.getPort(), () -> serve(socket));
                }
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    private static void begin(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(name.startsWith("serve"));
        thread.start();
    }

    /** Handles the frames of a connection: messages of Raft, and requests of clients. */
    private void serve(Socket socket) {
        try (socket) {
            DataInputStream in = new DataInputStream(socket.getInputStream());
            OutputStream out = socket.getOutputStream();
            while (true) {
                Frames.Frame frame = Frames.read(in);
                if (frame == null) {
                    return;
                }
                if (frame.isRaft()) {
                    raft.handle(Frames.message(frame));
                } else {
                    String answer = answer(new String(frame.content(), StandardCharsets.UTF_8).split(" ", -1));
                    out.write(Frames.text(answer));
                }
            }
        } catch (IOException e) {
            // the other side has closed the connection
        }
    }

    private String answer(String[] words) {
        try {
            if (words[0].equals("status")) {
                RaftNodeReport report = raft.getReport().join().getResult();
                RaftEndpoint leader = report.getTerm().getLeaderEndpoint();
                return report.getRole().name().toLowerCase() + " " + report.getTerm().getTerm() + " "
                    + (leader == null ? "-" : leader.getId()) + " " + report.getLog().getCommitIndex();
            }
            Ordered<String> done = words[0].equals("read")
                ? raft.<String>query(words, QueryPolicy.LINEARIZABLE, Optional.empty(), Optional.empty()).join()
                : raft.<String>replicate(words).join();
            return done.getResult();
        } catch (CompletionException e) {
            Throwable cause = e.getCause();
            boolean nothing = words[0].equals("read") || cause instanceof NotLeaderException || cause instanceof CannotReplicateException;
            return (nothing ? "fail " : "info ") + cause.getClass().getSimpleName();
        }
    }
}
