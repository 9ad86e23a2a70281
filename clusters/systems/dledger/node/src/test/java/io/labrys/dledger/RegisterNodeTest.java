package io.labrys.dledger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import io.labrys.dledger.serve.DumpRequest;
import io.labrys.dledger.serve.KvRequest;
import io.labrys.dledger.serve.PromptRequest;
import io.labrys.dledger.serve.StatusRequest;
import io.openmessaging.storage.dledger.protocol.DLedgerRequestCode;
import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineCommandHeader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyRemotingClient;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Requests to a real node in a group of one. All tests share it, since the library takes seconds to shut down. */
@Timeout(60)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class RegisterNodeTest {
    private static final long LEAD_LIMIT_MILLIS = 20_000;

    private final NettyRemotingClient client = new NettyRemotingClient(new NettyClientConfig());
    private NodeOptions options;
    private RegisterNode node;

    @BeforeAll
    void start(@TempDir Path directory) throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        // Files so small that snapshots make the library delete some: the first deletion needs the exported package.
        options = new NodeOptions("g", "n1", "n1-127.0.0.1:" + port, directory.resolve("data"), directory.resolve("log"),
            OptionalInt.of(20), 0, 200, 1000, 4096, 64, true);
        client.start();
        startNode();
    }

    private void startNode() throws Exception {
        node = new RegisterNode(options, error -> {
            throw new AssertionError("the library gave up", error);
        });
        node.start();
        long deadline = System.nanoTime() + LEAD_LIMIT_MILLIS * 1_000_000;
        while (status().getLongValue("readyTerm") < 0) {
            assertTrue(System.nanoTime() < deadline, "a group of one still has no leader: " + status());
            Thread.sleep(20);
        }
    }

    @AfterAll
    void stop() {
        client.shutdown();
        node.close();
    }

    private RemotingCommand send(int type, byte[] body) throws Exception {
        RemotingCommand request = RemotingCommand.createRequestCommand(DLedgerRequestCode.USER_DEFINE_REQUEST.getCode(),
            new UserDefineCommandHeader(type));
        request.setBody(body);
        return client.invokeSync(options.address(), request, 10_000);
    }

    private JSONObject ask(int type, Map<String, Object> fields) throws Exception {
        Map<String, Object> body = new HashMap<>(Map.of("group", "g", "remoteId", "n1"));
        body.putAll(fields);
        return JSON.parseObject(new String(send(type, JSON.toJSONBytes(body)).getBody()));
    }

    private JSONObject status() throws Exception {
        return ask(StatusRequest.TYPE, Map.of());
    }

    private JSONObject put(String key, long value) throws Exception {
        return ask(KvRequest.TYPE, Map.of("op", "put", "key", key, "value", value));
    }

    private JSONObject get(String key, String mode) throws Exception {
        return ask(KvRequest.TYPE, Map.of("op", "get", "key", key, "readMode", mode));
    }

    /** Writes continue while snapshots truncate the log; a restart has all state; a dump agrees with its index. */
    @Test
    void snapshotsAndRestart() throws Exception {
        for (int i = 0; i < 300; i++) {
            JSONObject answer = put("k" + i % 7, i);
            assertEquals(200, answer.getIntValue("code"), answer.toString());
            assertTrue(answer.getBoolean("applied"), answer.toString());
            assertEquals(i, answer.getLongValue("value"), answer.toString());
        }
        JSONObject before = status();
        assertTrue(before.getLongValue("snapshotsSaved") >= 5, before.toString());
        assertTrue(before.getLongValue("ledgerBeforeBeginIndex") > 0, "nothing was cut off: " + before);
        assertEquals(0, before.getIntValue("waitingWrites"));

        node.close();
        startNode();

        assertEquals(1, status().getLongValue("snapshotsLoaded"));
        for (String mode : new String[] {"read-index", "raft-log", "unsafe"}) {
            JSONObject answer = get("k6", mode);
            assertEquals(200, answer.getIntValue("code"), answer.toString());
            assertEquals(293, answer.getLongValue("value"), answer.toString());
        }
        JSONObject dump = ask(DumpRequest.TYPE, Map.of());
        assertEquals(299, dump.getJSONObject("registers").getLongValue("k5"));
        assertEquals(status().getLongValue("appliedIndex"), dump.getLongValue("appliedIndex"));
    }

    /** The answer of a cas has the state machine's decision; absent registers differ from those with a value. */
    @Test
    void casAndAbsence() throws Exception {
        assertFalse(get("a", "read-index").getBoolean("found"));
        JSONObject created = ask(KvRequest.TYPE, Map.of("op", "cas", "key", "a", "value", 1));
        assertTrue(created.getBoolean("applied"));
        JSONObject refused = ask(KvRequest.TYPE, Map.of("op", "cas", "key", "a", "expected", 9, "value", 2));
        assertEquals(200, refused.getIntValue("code"));
        assertFalse(refused.getBoolean("applied"));
        assertEquals(1, refused.getLongValue("value"));
        assertTrue(ask(KvRequest.TYPE, Map.of("op", "cas", "key", "a", "expected", 1, "value", 2)).getBoolean("applied"));
        assertEquals(2, get("a", "raft-log").getLongValue("value"));
    }

    /** A request makes the node its own preferred leader, which takes over without the wait of an election. */
    @Test
    void promptness() throws Exception {
        assertNull(node.server().getDLedgerConfig().getPreferredLeaderIds());
        assertEquals(200, ask(PromptRequest.TYPE, Map.of()).getIntValue("code"));
        assertEquals("n1", node.server().getDLedgerConfig().getPreferredLeaderIds());
        assertEquals(401, ask(PromptRequest.TYPE, Map.of("remoteId", "n2")).getIntValue("code"));
    }

    /** A bad request gets an answer with its own code, and has no effect. */
    @Test
    void refusals() throws Exception {
        int before = status().getIntValue("registers");
        assertEquals(411, ask(KvRequest.TYPE, Map.of("op", "zap", "key", "a")).getIntValue("code"));
        assertEquals(411, ask(KvRequest.TYPE, Map.of("op", "put", "key", "a")).getIntValue("code"));
        assertEquals(411, ask(KvRequest.TYPE, Map.of("op", "put", "value", 1)).getIntValue("code"));
        assertEquals(411, put("x".repeat(2000), 1).getIntValue("code"));
        assertEquals(411, get("a", "lease").getIntValue("code"));
        assertEquals(400, ask(KvRequest.TYPE, Map.of("group", "h", "op", "put", "key", "a", "value", 1)).getIntValue("code"));
        JSONObject misaddressed = ask(KvRequest.TYPE, Map.of("remoteId", "n2", "op", "put", "key", "a", "value", 1));
        assertEquals(401, misaddressed.getIntValue("code"));
        JSONObject empty = JSON.parseObject(new String(send(KvRequest.TYPE, "null".getBytes()).getBody()));
        assertEquals(411, empty.getIntValue("code"));
        assertNotNull(empty.getString("message"));
        for (byte[] body : new byte[][] {null, "{\"value\":[".getBytes()}) {
            RemotingCommand unreadable = send(KvRequest.TYPE, body);
            assertEquals(1, unreadable.getCode());
            assertNull(unreadable.getBody());
        }
        assertEquals(before, status().getIntValue("registers"));
    }
}
