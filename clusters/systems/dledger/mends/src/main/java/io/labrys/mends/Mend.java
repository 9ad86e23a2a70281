package io.labrys.mends;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.TypeInsnNode;
import org.objectweb.asm.tree.VarInsnNode;

/** The mends of DLedger 0.4.0, by the numbers of the findings in docs/findings/dledger-0.4.0.md. */
enum Mend {
    /** A dispatcher compares from the end of the log at each new leadership, and not at the start of the process. Also for finding 5. */
    COMPARE_FROM_END("1", Names.DISPATCHER, Mend::compareFromEnd),

    /** A follower takes a snapshot after another one: its slot for a request is empty again. */
    EMPTY_SLOT("2", Names.HANDLER, Mend::emptySlot),

    /** A follower that has a snapshot already answers success, so that the leader goes on after it. */
    HAS_SNAPSHOT("2", Names.SNAPSHOTS, Mend::hasSnapshot),

    /** A dispatcher that sends entries again forgets the requests without an answer. */
    FORGET_LOST_REQUESTS("4", Names.DISPATCHER, Mend::forgetLostRequests),

    /** A follower cuts its file at the position in its own index, and not at that of the leader. */
    CUT_AT_OWN_POSITION("7", Names.STORE, Mend::cutAtOwnPosition),

    /** A leader steps down on any answer with a higher term, also on a late one. */
    STEP_DOWN("8", Names.ELECTOR, Mend::stepDown),

    /** A follower whose log contradicts a snapshot drops the log. */
    DROP_CONFLICT("9", Names.STORE, Mend::dropConflict);

    private static final class Names {
        static final String LIBRARY = "io/openmessaging/storage/dledger/";
        static final String DISPATCHER = LIBRARY + "DLedgerEntryPusher$EntryDispatcher";
        static final String HANDLER = LIBRARY + "DLedgerEntryPusher$EntryHandler";
        static final String SNAPSHOTS = LIBRARY + "snapshot/SnapshotManager";
        static final String STORE = LIBRARY + "store/file/DLedgerMmapFileStore";
        static final String ELECTOR = LIBRARY + "DLedgerLeaderElector";
        static final String REQUEST = LIBRARY + "protocol/PushEntryRequest";
        static final String HELP = Stores.class.getName().replace('.', '/');
        static final String MAP = "java/util/concurrent/ConcurrentMap";
    }

    private final String finding;
    private final String type;
    private final Consumer<ClassNode> change;

    Mend(String finding, String type, Consumer<ClassNode> change) {
        this.finding = finding;
        this.type = type;
        this.change = change;
    }

    /** Returns the internal name of the class that it changes. */
    String type() {
        return type;
    }

    /** Returns whether the changed class calls {@link Stores}. */
    boolean needsHelp() {
        return type.equals(Names.STORE);
    }

    /** Returns the mends of a finding. */
    static List<Mend> of(String finding) {
        List<Mend> found = Arrays.stream(values()).filter(mend -> mend.finding.equals(finding)).toList();
        if (found.isEmpty()) {
            throw new IllegalArgumentException("expected the number of a finding with a mend, got " + finding);
        }
        return found;
    }

    /** Returns the bytes of the changed class. */
    byte[] mended(byte[] original) {
        ClassNode node = new ClassNode();
        new ClassReader(original).accept(node, 0);
        change.accept(node);
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        node.accept(writer);
        return writer.toByteArray();
    }

    /** Repeats what {@code start} does to the index, and drops what the dispatcher knows of the leadership before. */
    private static void compareFromEnd(ClassNode node) {
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

    private static void forgetLostRequests(ClassNode node) {
        MethodNode check = method(node, "doCheckAppendResponse");
        check.instructions.insert(only(check, each -> puts(each, "writeIndex")), clearPending(node));
    }

    private static InsnList clearPending(ClassNode node) {
        InsnList made = new InsnList();
        made.add(new VarInsnNode(Opcodes.ALOAD, 0));
        made.add(new FieldInsnNode(Opcodes.GETFIELD, node.name, "pendingMap", "L" + Names.MAP + ";"));
        made.add(new MethodInsnNode(Opcodes.INVOKEINTERFACE, Names.MAP, "clear", "()V", true));
        return made;
    }

    /** Puts null into the slot, and not a pair of two nulls. */
    private static void emptySlot(ClassNode node) {
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

    private static void hasSnapshot(ClassNode node) {
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

    private static void cutAtOwnPosition(ClassNode node) {
        MethodNode cut = node.methods.stream().filter(each -> each.name.equals("truncate") && each.desc.equals("(J)J"))
            .findFirst().orElseThrow();
        AbstractInsnNode position = only(cut, each -> each instanceof MethodInsnNode call && call.name.equals("getPos"));
        InsnList own = new InsnList();
        own.add(new InsnNode(Opcodes.POP)); // the entry
        own.add(new VarInsnNode(Opcodes.ALOAD, 0));
        own.add(new VarInsnNode(Opcodes.LLOAD, 1));
        own.add(new MethodInsnNode(Opcodes.INVOKESTATIC, Names.HELP, "position", "(L" + node.name + ";J)J", false));
        cut.instructions.insert(position, own);
        cut.instructions.remove(position);
    }

    /**
     * Lets the handler of an answer with a higher term step down itself, and ask for votes in a higher term. In its old term, it
     * would be elected again at once.
     */
    private static void stepDown(ClassNode node) {
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

    private static void dropConflict(ClassNode node) {
        InsnList drop = new InsnList();
        drop.add(new VarInsnNode(Opcodes.ALOAD, 0));
        drop.add(new VarInsnNode(Opcodes.LLOAD, 1));
        drop.add(new VarInsnNode(Opcodes.LLOAD, 3));
        drop.add(new MethodInsnNode(Opcodes.INVOKESTATIC, Names.HELP, "dropConflict", "(L" + node.name + ";JJ)V", false));
        method(node, "reset").instructions.insert(drop);
    }

    private static boolean puts(AbstractInsnNode each, String field) {
        return each instanceof FieldInsnNode put && put.getOpcode() == Opcodes.PUTFIELD && put.name.equals(field);
    }

    private static MethodNode method(ClassNode node, String name) {
        List<MethodNode> found = node.methods.stream().filter(each -> each.name.equals(name)).toList();
        if (found.size() != 1) {
            throw new IllegalStateException("expected one method " + name + " in " + node.name + ", found " + found.size());
        }
        return found.get(0);
    }

    private static AbstractInsnNode only(MethodNode method, Predicate<AbstractInsnNode> wanted) {
        List<AbstractInsnNode> found = Arrays.stream(method.instructions.toArray()).filter(wanted).toList();
        if (found.size() != 1) {
            throw new IllegalStateException("expected one place in " + method.name + ", found " + found.size());
        }
        return found.get(0);
    }
}
