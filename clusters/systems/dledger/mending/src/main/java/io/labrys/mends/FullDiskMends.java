package io.labrys.mends;

import static io.labrys.mends.Code.method;
import static io.labrys.mends.Code.only;
import static io.labrys.mends.Code.ours;

import java.util.List;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.FrameNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.JumpInsnNode;
import org.objectweb.asm.tree.LabelNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.TryCatchBlockNode;
import org.objectweb.asm.tree.VarInsnNode;

/** The mends of what DLedger does on a full disk. The classes are the same in 0.4.0 and in the 0.3.1.2 of RocketMQ's controllers. */
final class FullDiskMends {
    private static final String STRING = "java/lang/String";
    private static final int TERM = 2; // the variables of a method that restores the state
    private static final int VOTE = 4;

    private FullDiskMends() {}

    /** Gets space for an entry; without it, the method returns what it returns for an entry that does not fit into the file. */
    static void allocatePages(ClassNode node) {
        MethodNode append = node.methods.stream()
            .filter(each -> each.name.equals("appendMessage") && each.desc.equals("([BII)Z")).findFirst().orElseThrow();
        JumpInsnNode full = (JumpInsnNode) only(append, each -> each.getOpcode() == Opcodes.IF_ICMPGT);
        VarInsnNode position = (VarInsnNode) only(append, each -> each.getOpcode() == Opcodes.ISTORE);
        String channel = "Ljava/nio/channels/FileChannel;";
        InsnList allocate = new InsnList();
        allocate.add(new VarInsnNode(Opcodes.ALOAD, 0));
        allocate.add(new FieldInsnNode(Opcodes.GETFIELD, node.name, "fileChannel", channel));
        allocate.add(new VarInsnNode(Opcodes.ILOAD, position.var));
        allocate.add(new VarInsnNode(Opcodes.ILOAD, 3)); // the length
        allocate.add(new VarInsnNode(Opcodes.ALOAD, 0));
        allocate.add(new FieldInsnNode(Opcodes.GETFIELD, node.name, "fileSize", "I"));
        allocate.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Pages"), "allocated", "(" + channel + "III)Z", false));
        allocate.add(new JumpInsnNode(Opcodes.IFEQ, full.label));
        append.instructions.insert(full, allocate);
    }

    static void dropWithoutIndex(ClassNode node) {
        for (String name : List.of("appendAsLeader", "appendAsFollower")) {
            MethodNode append = method(node, name);
            VarInsnNode data = (VarInsnNode) appended(append, "([BII)J");
            VarInsnNode index = (VarInsnNode) appended(append, "([BIIZ)J");
            InsnList check = new InsnList();
            check.add(new VarInsnNode(Opcodes.LLOAD, data.var));
            check.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Stores"), "checkWritten", "(J)V", false));
            append.instructions.insert(data, check);
            InsnList drop = new InsnList();
            drop.add(new VarInsnNode(Opcodes.ALOAD, 0));
            drop.add(new VarInsnNode(Opcodes.LLOAD, data.var));
            drop.add(new VarInsnNode(Opcodes.LLOAD, index.var));
            drop.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Stores"), "dropWithoutIndex", "(L" + node.name + ";JJ)V", false));
            append.instructions.insert(index, drop);
        }
    }

    /** Returns the instruction that keeps the position of what an append to a list of files has written. */
    private static AbstractInsnNode appended(MethodNode method, String signature) {
        return only(method, each -> each instanceof MethodInsnNode call && call.name.equals("append") && call.desc.equals(signature))
            .getNext();
    }

    /** Takes back a term or a vote that cannot be stored. A request for a term then throws; the answer to a request for a vote shows the vote. */
    static void storeOrTakeBack(ClassNode node) {
        MethodNode store = node.methods.stream().filter(FullDiskMends::stores).findFirst().orElseThrow();
        AbstractInsnNode said = only(store, each -> each instanceof MethodInsnNode call && call.name.equals("error"));
        InsnList fail = new InsnList();
        fail.add(said.getPrevious().clone(null)); // loads the exception
        fail.add(new InsnNode(Opcodes.ATHROW));
        store.instructions.insert(said, fail);
        takeBackAfterFailure(node, method(node, "nextTerm"));
        takeBackAfterFailure(node, method(node, "setCurrVoteFor"));
    }

    /** Answers a request for a vote by the vote that is stored. */
    static void answerByVote(ClassNode node) {
        MethodNode vote = method(node, "handleVote");
        FieldInsnNode accept = (FieldInsnNode) only(vote, each -> each instanceof FieldInsnNode read && read.name.equals("ACCEPT"));
        String state = node.fields.stream().filter(each -> each.name.equals("memberState")).findFirst().orElseThrow().desc;
        InsnList answer = new InsnList();
        answer.add(new VarInsnNode(Opcodes.ALOAD, 0));
        answer.add(new FieldInsnNode(Opcodes.GETFIELD, node.name, "memberState", state));
        answer.add(new VarInsnNode(Opcodes.ALOAD, 1)); // the request
        answer.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Elections"), "answer",
            "(" + state + vote.desc.substring(1, vote.desc.indexOf(';') + 1) + ")" + accept.desc, false));
        vote.instructions.insert(accept, answer);
        vote.instructions.remove(accept);
    }

    /** Lets a thread that maintains the role wait after a failure too; it would try again without end. */
    static void waitAfterFailure(ClassNode node) {
        MethodNode work = method(node, "doWork");
        AbstractInsnNode said = only(work, each -> each instanceof MethodInsnNode call && call.name.equals("error"));
        work.instructions.insert(said, new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Elections"), "waitAfterFailure", "()V", false));
    }

    private static boolean stores(MethodNode method) {
        for (AbstractInsnNode each : method.instructions.toArray()) {
            if (each instanceof LdcInsnNode text && text.cst.equals("Persist curr term failed")) {
                return true;
            }
        }
        return false;
    }

    /** Puts a method in the place of one, which calls it and takes back the term and the vote if it throws. That of a vote then returns. */
    private static void takeBackAfterFailure(ClassNode node, MethodNode changes) {
        MethodNode takesBack = new MethodNode(changes.access, changes.name, changes.desc, null, changes.exceptions.toArray(new String[0]));
        changes.name += "$stored";
        LabelNode begin = new LabelNode();
        LabelNode end = new LabelNode();
        InsnList code = takesBack.instructions;
        save(code, node, "currTerm", "J", Opcodes.LSTORE, TERM);
        save(code, node, "currVoteFor", "L" + STRING + ";", Opcodes.ASTORE, VOTE);
        code.add(begin);
        code.add(new VarInsnNode(Opcodes.ALOAD, 0));
        boolean isVote = changes.desc.startsWith("(L" + STRING);
        if (isVote) {
            code.add(new VarInsnNode(Opcodes.ALOAD, 1));
        }
        code.add(new MethodInsnNode(Opcodes.INVOKEVIRTUAL, node.name, changes.name, changes.desc, false));
        code.add(new InsnNode(isVote ? Opcodes.RETURN : Opcodes.LRETURN));
        code.add(end);
        code.add(new FrameNode(Opcodes.F_FULL, 4, new Object[] {node.name, isVote ? STRING : Opcodes.TOP, Opcodes.LONG, STRING},
            1, new Object[] {"java/lang/Throwable"}));
        restore(code, node, "currTerm", "J", Opcodes.LLOAD, TERM);
        restore(code, node, "currVoteFor", "L" + STRING + ";", Opcodes.ALOAD, VOTE);
        code.add(new InsnNode(isVote ? Opcodes.RETURN : Opcodes.ATHROW));
        takesBack.tryCatchBlocks.add(new TryCatchBlockNode(begin, end, end, null));
        node.methods.add(takesBack);
    }

    private static void save(InsnList code, ClassNode node, String name, String type, int store, int variable) {
        code.add(new VarInsnNode(Opcodes.ALOAD, 0));
        code.add(new FieldInsnNode(Opcodes.GETFIELD, node.name, name, type));
        code.add(new VarInsnNode(store, variable));
    }

    private static void restore(InsnList code, ClassNode node, String name, String type, int load, int variable) {
        code.add(new VarInsnNode(Opcodes.ALOAD, 0));
        code.add(new VarInsnNode(load, variable));
        code.add(new FieldInsnNode(Opcodes.PUTFIELD, node.name, name, type));
    }
}
