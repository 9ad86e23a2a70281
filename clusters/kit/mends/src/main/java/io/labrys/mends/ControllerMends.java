package io.labrys.mends;

import static io.labrys.mends.Code.method;
import static io.labrys.mends.Code.only;
import static io.labrys.mends.Code.ours;
import static io.labrys.mends.Code.puts;

import java.util.List;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.VarInsnNode;

/** The mends of classes of RocketMQ's controllers, and of the DLedger 0.3.1.2 that they use. */
final class ControllerMends {
    private ControllerMends() {}

    /** Waits for the answer of the library beyond the time limit, while the member leads. */
    static void waitForEntry(ClassNode node) {
        MethodNode append = method(node, "appendToDLedgerAndWait");
        AbstractInsnNode get = only(append, each -> each instanceof MethodInsnNode call && call.name.equals("get")
            && call.desc.equals("(JLjava/util/concurrent/TimeUnit;)Ljava/lang/Object;"));
        String state = method(node, "getMemberState").desc.substring("()".length());
        InsnList wait = new InsnList();
        wait.add(new VarInsnNode(Opcodes.ALOAD, 0));
        wait.add(new MethodInsnNode(Opcodes.INVOKEVIRTUAL, node.name, "getMemberState", "()" + state, false));
        wait.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Appends"), "answer",
            "(Ljava/util/concurrent/Future;JLjava/util/concurrent/TimeUnit;" + state + ")Ljava/lang/Object;", false));
        append.instructions.insert(get, wait);
        append.instructions.remove(get);
    }

    /** Syncs the files of the log before the log counts an entry. */
    static void syncEntries(ClassNode node) {
        for (String name : List.of("appendAsLeader", "appendAsFollower")) {
            MethodNode append = method(node, name);
            InsnList sync = new InsnList();
            sync.add(new VarInsnNode(Opcodes.ALOAD, 0));
            sync.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Stores"), "sync", "(L" + node.name + ";)V", false));
            // The stack has the store and the index here, and the sync leaves them.
            append.instructions.insertBefore(only(append, each -> puts(each, "ledgerEndIndex")), sync);
        }
    }

    /** Completes the answer to a transfer also in the callback's other method. */
    static void answerTransfer(ClassNode node) {
        MethodNode transfer = method(node, "leadershipTransfer");
        AbstractInsnNode send = only(transfer, each -> each instanceof MethodInsnNode call && call.name.equals("invokeAsync"));
        String callback = "Lorg/apache/rocketmq/remoting/InvokeCallback;";
        InsnList wrap = new InsnList();
        wrap.add(new VarInsnNode(Opcodes.ALOAD, 1)); // the request
        wrap.add(new VarInsnNode(Opcodes.ALOAD, 2)); // the answer
        wrap.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Transfers"), "answered", "(" + callback
            + "Lio/openmessaging/storage/dledger/protocol/LeadershipTransferRequest;Ljava/util/concurrent/CompletableFuture;)"
            + callback, false));
        transfer.instructions.insertBefore(send, wrap);
    }
}
