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

/**
 * The mends of classes of RocketMQ's controllers, and of the DLedger 0.3.1.2 that they use, by the findings in
 * clusters/systems/rocketmq/findings/rocketmq-controller-5.3.3.md.
 */
public final class ControllerMends implements Mends {
    private static final String CONTROLLER = "org/apache/rocketmq/controller/impl/DLedgerController";
    private static final List<Mend> ALL = List.of(
        // A controller steps down on any answer with a higher term, also if a majority follows it.
        new Mend("controller-4", Names.ELECTOR, LogMends::stepDown),

        // An entry of a controller gets space on the disk before it is written, so that a full disk refuses it.
        new Mend("controller-6", Names.MAPPED_FILE, FullDiskMends::allocatePages, "Pages"),

        // An entry of a controller for which a full disk has space, and none for its index, does not stay in the log.
        new Mend("controller-6", Names.STORE, FullDiskMends::dropWithoutIndex, "Stores"),

        // A controller decides no change while an earlier one can be in the log without an answer.
        new Mend("controller-9", CONTROLLER, ControllerMends::waitForEntry, "Appends"),

        // A controller that is killed while it stores its term keeps the term and the vote.
        new Mend("controller-10", Names.FILES, LogMends::replaceAtOnce),

        // A controller that loses its power keeps the term and the vote.
        new Mend("controller-10", Names.FILES, LogMends::syncFiles, "Syncs"),

        // An entry is on the disk of a controller before the controller counts or acknowledges it.
        new Mend("controller-11", Names.STORE, ControllerMends::syncEntries, "Stores"),

        // The answer to a transfer of the leadership ends when the connection to the target fails.
        new Mend("controller-12", Names.SERVICE, ControllerMends::answerTransfer, "Transfers"),

        // A controller takes no term and gives no vote that it cannot store.
        new Mend("controller-13", Names.STATE, FullDiskMends::storeOrTakeBack),

        // A controller answers a request for its vote by the vote that it has stored.
        new Mend("controller-13", Names.ELECTOR, FullDiskMends::answerByVote, "Elections"),

        // A controller that cannot store its term waits before it tries again.
        new Mend("controller-13", Names.MAINTAINER, FullDiskMends::waitAfterFailure, "Elections"));

    @Override
    public List<Mend> all() {
        return ALL;
    }

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
