package io.labrys.mends;

import static io.labrys.mends.Code.internal;
import static io.labrys.mends.Code.method;
import static io.labrys.mends.Code.only;

import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.VarInsnNode;

/** The mends of classes of RocketMQ's controllers. */
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
        wait.add(new MethodInsnNode(Opcodes.INVOKESTATIC, internal(Appends.class), "answer",
            "(Ljava/util/concurrent/Future;JLjava/util/concurrent/TimeUnit;" + state + ")Ljava/lang/Object;", false));
        append.instructions.insert(get, wait);
        append.instructions.remove(get);
    }
}
