package io.labrys.mends;

import static io.labrys.mends.Code.field;
import static io.labrys.mends.Code.method;
import static io.labrys.mends.Code.only;
import static io.labrys.mends.Code.ours;
import static io.labrys.mends.Code.puts;

import java.util.ArrayList;
import java.util.Arrays;
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
import org.objectweb.asm.tree.TypeInsnNode;
import org.objectweb.asm.tree.VarInsnNode;

/** The mends of what DLedger does with its log, its snapshots, its elections and its small files. */
final class LogMends {
    private LogMends() {}

    /** Repeats what {@code start} does to the index, and drops what the dispatcher knows of the leadership before. */
    static void compareFromEnd(ClassNode node) {
        MethodNode fresh = method(node, "checkNotLeaderAndFreshState");
        MethodNode start = method(node, "start");
        InsnList reset = new InsnList();
        AbstractInsnNode each = only(start, call -> call.getOpcode() == Opcodes.INVOKESPECIAL).getNext();
        for (; each.getOpcode() != Opcodes.RETURN; each = each.getNext()) {
            if (each.getOpcode() >= 0) {
                reset.add(each.clone(null));
            }
        }
        reset.add(new VarInsnNode(Opcodes.ALOAD, 0));
        reset.add(new LdcInsnNode(-1L));
        reset.add(new FieldInsnNode(Opcodes.PUTFIELD, node.name, "matchIndex", "J"));
        reset.add(clearPending(node));
        reset.add(new VarInsnNode(Opcodes.ALOAD, 0));
        reset.add(new FieldInsnNode(Opcodes.GETFIELD, node.name, "batchAppendEntryRequest", "L" + Names.REQUEST + ";"));
        reset.add(new MethodInsnNode(Opcodes.INVOKEVIRTUAL, Names.REQUEST, "clear", "()V", false));
        fresh.instructions.insert(only(fresh, put -> puts(put, "leaderId")), reset);
    }

    static void forgetLostRequests(ClassNode node) {
        MethodNode check = method(node, "doCheckAppendResponse");
        check.instructions.insert(only(check, each -> puts(each, "writeIndex")), clearPending(node));
    }

    static void repeatOldEntries(ClassNode node) {
        MethodNode check = method(node, "doCheckAppendResponse");
        AbstractInsnNode ofTerm = only(check, each -> each instanceof MethodInsnNode call && call.name.contains("PeerWaterMark"));
        InsnList ofFollower = new InsnList();
        ofFollower.add(new InsnNode(Opcodes.POP2));
        ofFollower.add(field(node, "matchIndex"));
        check.instructions.insert(ofTerm, ofFollower);
    }

    private static InsnList clearPending(ClassNode node) {
        InsnList made = new InsnList();
        made.add(new VarInsnNode(Opcodes.ALOAD, 0));
        made.add(new FieldInsnNode(Opcodes.GETFIELD, node.name, "pendingMap", "L" + Names.MAP + ";"));
        made.add(new MethodInsnNode(Opcodes.INVOKEINTERFACE, Names.MAP, "clear", "()V", true));
        return made;
    }

    /** Puts null into the slot, and not a pair of two nulls. */
    static void emptySlot(ClassNode node) {
        MethodNode work = method(node, "doWork");
        AbstractInsnNode pair = only(work, each -> each instanceof TypeInsnNode made && made.getOpcode() == Opcodes.NEW
            && made.desc.endsWith("/Pair"));
        List<AbstractInsnNode> making = new ArrayList<>();
        for (AbstractInsnNode each = pair; !puts(each, "inflightInstallSnapshotRequest"); each = each.getNext()) {
            making.add(each);
        }
        work.instructions.insertBefore(pair, new InsnNode(Opcodes.ACONST_NULL));
        making.forEach(work.instructions::remove);
    }

    static void hasSnapshot(ClassNode node) {
        MethodNode install = method(node, "installSnapshot");
        int changed = 0;
        for (AbstractInsnNode each : install.instructions.toArray()) {
            if (each instanceof LdcInsnNode said && said.cst instanceof String text && text.startsWith("Ignore installing")) {
                AbstractInsnNode end = each;
                while (end.getOpcode() != Opcodes.IRETURN) {
                    end = end.getNext();
                }
                install.instructions.set(end.getPrevious(), new InsnNode(Opcodes.ICONST_1));
                changed++;
            }
        }
        if (changed != 2) {
            throw new IllegalStateException("expected two places that ignore a snapshot, found " + changed);
        }
    }

    static void cutAtOwnPosition(ClassNode node) {
        MethodNode cut = truncate(node);
        AbstractInsnNode position = only(cut, each -> each instanceof MethodInsnNode call && call.name.equals("getPos"));
        InsnList own = new InsnList();
        own.add(new InsnNode(Opcodes.POP)); // the entry
        own.add(new VarInsnNode(Opcodes.ALOAD, 0));
        own.add(new VarInsnNode(Opcodes.LLOAD, 1));
        own.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Stores"), "position", "(L" + node.name + ";J)J", false));
        cut.instructions.insert(position, own);
        cut.instructions.remove(position);
    }

    /**
     * Lets the handler of an answer with a higher term step down itself, and ask for votes in a higher term. In its old term, it
     * would be elected again at once.
     */
    static void stepDown(ClassNode node) {
        MethodNode handler = node.methods.stream().filter(each -> each.name.startsWith("lambda$sendHeartbeats$"))
            .findFirst().orElseThrow();
        MethodInsnNode term = (MethodInsnNode) only(handler, each -> each instanceof MethodInsnNode call
            && call.name.equals("getTerm") && call.owner.endsWith("/HeartBeatResponse"));
        VarInsnNode answer = (VarInsnNode) term.getPrevious();
        InsnList steps = new InsnList();
        steps.add(new VarInsnNode(Opcodes.ALOAD, 0));
        steps.add(answer.clone(null));
        steps.add(term.clone(null));
        steps.add(new MethodInsnNode(Opcodes.INVOKEVIRTUAL, node.name, "changeRoleToCandidate", "(J)V", false));
        steps.add(new VarInsnNode(Opcodes.ALOAD, 0));
        steps.add(new InsnNode(Opcodes.ICONST_1));
        steps.add(new FieldInsnNode(Opcodes.PUTFIELD, node.name, "needIncreaseTermImmediately", "Z"));
        handler.instructions.insert(term.getNext(), steps);
    }

    static void compareAfterSnapshot(ClassNode node) {
        MethodNode install = method(node, "doInstallSnapshot");
        FieldInsnNode state = (FieldInsnNode) only(install, each -> each instanceof FieldInsnNode read
            && read.getOpcode() == Opcodes.GETSTATIC && read.name.equals("APPEND"));
        state.name = "COMPARE";
        // The library sets the index only if the snapshot has more than the follower is known to have.
        InsnList behind = new InsnList();
        behind.add(new VarInsnNode(Opcodes.ALOAD, 0));
        behind.add(field(node, "matchIndex"));
        behind.add(new InsnNode(Opcodes.LCONST_1));
        behind.add(new InsnNode(Opcodes.LADD));
        behind.add(new FieldInsnNode(Opcodes.PUTFIELD, node.name, "writeIndex", "J"));
        install.instructions.insertBefore(state.getPrevious(), behind);
    }

    /** Takes the end from the snapshot, and not from the index of an entry that was dropped. */
    static void endWithSnapshot(ClassNode node) {
        MethodNode cut = truncate(node);
        List<AbstractInsnNode> ends = Arrays.stream(cut.instructions.toArray()).filter(each -> puts(each, "ledgerEndIndex")).toList();
        JumpInsnNode past = (JumpInsnNode) ends.get(0).getNext(); // behind the branch of a log that becomes empty
        AbstractInsnNode other = past.getNext();
        while (!(other instanceof FrameNode)) {
            other = other.getNext();
        }
        LabelNode goesOn = new LabelNode();
        InsnList check = new InsnList();
        check.add(new VarInsnNode(Opcodes.LLOAD, 1));
        check.add(new InsnNode(Opcodes.LCONST_1));
        check.add(new InsnNode(Opcodes.LSUB));
        check.add(field(node, "ledgerBeforeBeginIndex"));
        check.add(new InsnNode(Opcodes.LCMP));
        check.add(new JumpInsnNode(Opcodes.IFNE, goesOn));
        for (String what : List.of("Term", "Index")) {
            check.add(new VarInsnNode(Opcodes.ALOAD, 0));
            check.add(field(node, "ledgerBeforeBegin" + what));
            check.add(new FieldInsnNode(Opcodes.PUTFIELD, node.name, "ledgerEnd" + what, "J"));
        }
        check.add(new JumpInsnNode(Opcodes.GOTO, past.label));
        check.add(goesOn);
        check.add(new FrameNode(Opcodes.F_SAME, 0, null, 0, null));
        cut.instructions.insert(other, check);
    }

    static void knowTermOfSnapshot(ClassNode node) {
        LabelNode goesOn = new LabelNode();
        InsnList check = new InsnList();
        check.add(new VarInsnNode(Opcodes.LLOAD, 1));
        check.add(field(node, "ledgerBeforeBeginIndex"));
        check.add(new InsnNode(Opcodes.LCMP));
        check.add(new JumpInsnNode(Opcodes.IFNE, goesOn));
        check.add(new VarInsnNode(Opcodes.ALOAD, 0));
        check.add(new VarInsnNode(Opcodes.LLOAD, 3));
        check.add(new FieldInsnNode(Opcodes.PUTFIELD, node.name, "ledgerBeforeBeginTerm", "J"));
        check.add(goesOn);
        check.add(new FrameNode(Opcodes.F_SAME, 0, null, 0, null));
        method(node, "reset").instructions.insert(check);
    }

    /** Releases what a truncation reads of the index, after it has read it. */
    static void releaseIndex(ClassNode node) {
        MethodNode cut = truncate(node);
        AbstractInsnNode read = only(cut, each -> each instanceof MethodInsnNode call && call.name.equals("getByteBuffer"));
        AbstractInsnNode end = read;
        while (!puts(end, "ledgerEndIndex")) {
            end = end.getNext();
        }
        InsnList release = new InsnList();
        release.add(new VarInsnNode(Opcodes.ALOAD, ((VarInsnNode) read.getPrevious()).var));
        release.add(new MethodInsnNode(Opcodes.INVOKEVIRTUAL, Names.RESULT, "release", "()V", false));
        cut.instructions.insert(end, release);
    }

    /** Answers the index that was compared, and not the first one of its term. */
    static void compareEachEntry(ClassNode node) {
        MethodNode compare = method(node, "handleDoCompare");
        AbstractInsnNode asked = only(compare, each -> each instanceof MethodInsnNode call && call.name.equals("getPreLogIndex")
            && call.getNext().getOpcode() == Opcodes.LSTORE);
        AbstractInsnNode index = only(compare, each -> each instanceof MethodInsnNode call && call.name.equals("setXIndex")).getPrevious();
        InsnList same = new InsnList();
        same.add(new InsnNode(Opcodes.POP)); // the first entry of the term
        same.add(new VarInsnNode(Opcodes.LLOAD, ((VarInsnNode) asked.getNext()).var));
        compare.instructions.insert(index, same);
        compare.instructions.remove(index);
    }

    static void truncateInTerm(ClassNode node) {
        MethodNode cut = method(node, "handleDoTruncate");
        AbstractInsnNode log = only(cut, each -> each instanceof MethodInsnNode call && call.name.equals("truncate"));
        MethodInsnNode commit = (MethodInsnNode) only(cut, each -> each instanceof MethodInsnNode call
            && call.name.equals("followerUpdateCommittedIndex"));
        List<AbstractInsnNode> state = new ArrayList<>(); // the instructions that load the state of the member
        for (AbstractInsnNode each = commit.getPrevious().getPrevious(); state.size() < 3; each = each.getPrevious()) {
            state.add(0, each);
        }
        InsnList check = new InsnList();
        check.add(new VarInsnNode(Opcodes.ALOAD, 3)); // the request
        state.forEach(each -> check.add(each.clone(null)));
        check.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Requests"), "checkTerm",
            "(L" + Names.REQUEST + ";L" + commit.owner + ";)V", false));
        // The stack has the store and the index here, and the check leaves them.
        cut.instructions.insertBefore(log, check);
    }

    /** Asks for votes in the next term first, if the node has voted for itself in the term that it loads. */
    static void leadInNewTerm(ClassNode node) {
        String state = node.fields.stream().filter(each -> each.name.equals("memberState")).findFirst().orElseThrow().desc;
        InsnList check = new InsnList();
        check.add(new VarInsnNode(Opcodes.ALOAD, 0));
        check.add(new InsnNode(Opcodes.DUP));
        check.add(new FieldInsnNode(Opcodes.GETFIELD, node.name, "memberState", state));
        check.add(new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Elections"), "mayHaveLed", "(" + state + ")Z", false));
        check.add(new FieldInsnNode(Opcodes.PUTFIELD, node.name, "needIncreaseTermImmediately", "Z"));
        node.methods.stream().filter(each -> each.name.equals("startup") && each.desc.equals("()V")).findFirst().orElseThrow()
            .instructions.insert(check);
    }

    /** Leaves out the removal of the old file. */
    static void replaceAtOnce(ClassNode node) {
        MethodNode write = method(node, "string2File");
        AbstractInsnNode delete = only(write, each -> each instanceof MethodInsnNode call && call.name.equals("delete"));
        write.instructions.remove(delete.getPrevious()); // loads the file
        write.instructions.remove(delete.getNext()); // drops the result
        write.instructions.remove(delete);
    }

    static void syncFiles(ClassNode node) {
        MethodNode write = method(node, "string2File");
        for (AbstractInsnNode each : write.instructions.toArray()) {
            if (each instanceof MethodInsnNode call && call.name.equals("string2FileNotSafe")) {
                InsnList sync = new InsnList();
                sync.add(new VarInsnNode(Opcodes.ALOAD, ((VarInsnNode) each.getPrevious()).var));
                sync.add(sync("file"));
                write.instructions.insert(each, sync);
            } else if (each.getOpcode() == Opcodes.RETURN) {
                InsnList sync = new InsnList();
                sync.add(new VarInsnNode(Opcodes.ALOAD, 1)); // the name of the file
                sync.add(sync("folderOf"));
                write.instructions.insertBefore(each, sync);
            }
        }
    }

    private static MethodInsnNode sync(String method) {
        return new MethodInsnNode(Opcodes.INVOKESTATIC, ours("Syncs"), method, "(Ljava/lang/String;)V", false);
    }

    /** Tells the new end of the log to those who vote, as an append does. */
    static void voteByEnd(ClassNode node) {
        for (MethodNode changes : List.of(truncate(node), method(node, "reset"))) {
            for (AbstractInsnNode each : changes.instructions.toArray()) {
                if (each.getOpcode() == Opcodes.LRETURN) {
                    InsnList tell = new InsnList();
                    tell.add(new VarInsnNode(Opcodes.ALOAD, 0));
                    tell.add(new MethodInsnNode(Opcodes.INVOKEVIRTUAL, node.name, "updateLedgerEndIndexAndTerm", "()V", false));
                    changes.instructions.insertBefore(each, tell);
                }
            }
        }
    }

    private static MethodNode truncate(ClassNode node) {
        return node.methods.stream().filter(each -> each.name.equals("truncate") && each.desc.equals("(J)J")).findFirst().orElseThrow();
    }
}
