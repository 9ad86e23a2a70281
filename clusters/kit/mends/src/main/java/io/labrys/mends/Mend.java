package io.labrys.mends;

import static io.labrys.mends.Code.field;
import static io.labrys.mends.Code.method;
import static io.labrys.mends.Code.only;
import static io.labrys.mends.Code.ours;
import static io.labrys.mends.Code.puts;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
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

/**
 * All mends, by the findings that they mend: those of DLedger 0.4.0 in clusters/systems/dledger/findings/dledger-0.4.0.md, and those of RocketMQ's controllers
 * in clusters/systems/rocketmq/findings/rocketmq-controller-5.3.3.md.
 */
enum Mend {
    /** A dispatcher compares from the end of the log at each new leadership, and not at the start of the process. Also for finding 5. */
    COMPARE_FROM_END("dledger-1", Names.DISPATCHER, Mend::compareFromEnd),

    /** A follower takes a snapshot after another one: its slot for a request is empty again. */
    EMPTY_SLOT("dledger-2", Names.HANDLER, Mend::emptySlot),

    /** A follower that has a snapshot already answers success, so that the leader goes on after it. */
    HAS_SNAPSHOT("dledger-2", Names.SNAPSHOTS, Mend::hasSnapshot),

    /** A dispatcher that sends entries again forgets the requests without an answer. */
    FORGET_LOST_REQUESTS("dledger-4", Names.DISPATCHER, Mend::forgetLostRequests),

    /** A dispatcher looks for overdue requests behind what the follower has, and not behind what it has of this term. */
    REPEAT_OLD_ENTRIES("dledger-6", Names.DISPATCHER, Mend::repeatOldEntries),

    /** A follower cuts its file at the position in its own index, and not at that of the leader. */
    CUT_AT_OWN_POSITION("dledger-7", Names.STORE, Mend::cutAtOwnPosition, "Stores"),

    /** A leader steps down on any answer with a higher term, also on a late one. */
    STEP_DOWN("dledger-8", Names.ELECTOR, Mend::stepDown),

    /** After a snapshot, a leader compares the logs before it sends entries, so that the follower drops what contradicts its own. */
    COMPARE_AFTER_SNAPSHOT("dledger-9", Names.DISPATCHER, Mend::compareAfterSnapshot),

    /** A store whose entries after a snapshot are all dropped ends with the snapshot. */
    END_WITH_SNAPSHOT("dledger-10", Names.STORE, Mend::endWithSnapshot),

    /** A store that starts again learns the term of the last entry in its snapshot. */
    KNOW_TERM_OF_SNAPSHOT("dledger-11", Names.STORE, Mend::knowTermOfSnapshot),

    /** A node votes by the end of its log also after a cut and after a snapshot. */
    VOTE_BY_END("dledger-12", Names.STORE, Mend::voteByEnd),

    /** A store that is cut releases what it read of the index, so that a later reset can delete the file at once. */
    RELEASE_INDEX("dledger-13", Names.STORE, Mend::releaseIndex),

    /** A comparison goes back entry by entry, so that a follower drops only what contradicts the leader. */
    COMPARE_EACH_ENTRY("dledger-14", Names.HANDLER, Mend::compareEachEntry),

    /** A follower refuses to truncate for a leader of an old term. */
    TRUNCATE_IN_TERM("dledger-15", Names.HANDLER, Mend::truncateInTerm, "Requests"),

    /** A process does not lead in the term in which an earlier process of its node can have led. */
    LEAD_IN_NEW_TERM("dledger-16", Names.ELECTOR, Mend::leadInNewTerm, "Elections"),

    /** A file is replaced by a rename, so that a node that is killed meanwhile keeps its term and vote. */
    REPLACE_AT_ONCE("dledger-17", Names.FILES, Mend::replaceAtOnce),

    /** A file is on the disk before a node goes on, so that a node without power keeps its term and vote. */
    SYNC_FILES("dledger-18", Names.FILES, Mend::syncFiles, "Syncs"),

    /** An entry gets space on the disk before it is written, so that a full disk refuses it. */
    ALLOCATE_PAGES("dledger-19", Names.MAPPED_FILE, FullDiskMends::allocatePages, "Pages"),

    /** An entry for which a full disk has space, and none for its index, does not stay in the log. */
    DROP_WITHOUT_INDEX("dledger-19", Names.STORE, FullDiskMends::dropWithoutIndex, "Stores"),

    /** A node takes no term and gives no vote that it cannot store. */
    STORE_OR_TAKE_BACK("dledger-20", Names.STATE, FullDiskMends::storeOrTakeBack),

    /** A node answers a request for its vote by the vote that it has stored. */
    ANSWER_BY_VOTE("dledger-20", Names.ELECTOR, FullDiskMends::answerByVote, "Elections"),

    /** A candidate that cannot store its term waits before it tries again. */
    WAIT_AFTER_FAILURE("dledger-20", Names.MAINTAINER, FullDiskMends::waitAfterFailure, "Elections"),

    /** A controller steps down on any answer with a higher term, also if a majority follows it. */
    CONTROLLER_STEPS_DOWN("controller-4", Names.ELECTOR, Mend::stepDown),

    /** An entry of a controller gets space on the disk before it is written, so that a full disk refuses it. */
    CONTROLLER_ALLOCATES_PAGES("controller-6", Names.MAPPED_FILE, FullDiskMends::allocatePages, "Pages"),

    /** An entry of a controller for which a full disk has space, and none for its index, does not stay in the log. */
    CONTROLLER_DROPS_WITHOUT_INDEX("controller-6", Names.STORE, FullDiskMends::dropWithoutIndex, "Stores"),

    /** A controller decides no change while an earlier one can be in the log without an answer. */
    WAIT_FOR_ENTRY("controller-9", Names.CONTROLLER, ControllerMends::waitForEntry, "Appends"),

    /** A controller that is killed while it stores its term keeps the term and the vote. */
    CONTROLLER_REPLACES_AT_ONCE("controller-10", Names.FILES, Mend::replaceAtOnce),

    /** A controller that loses its power keeps the term and the vote. */
    CONTROLLER_SYNCS_FILES("controller-10", Names.FILES, Mend::syncFiles, "Syncs"),

    /** An entry is on the disk of a controller before the controller counts or acknowledges it. */
    SYNC_ENTRIES("controller-11", Names.STORE, ControllerMends::syncEntries, "Stores"),

    /** The answer to a transfer of the leadership ends when the connection to the target fails. */
    ANSWER_TRANSFER("controller-12", Names.SERVICE, ControllerMends::answerTransfer, "Transfers"),

    /** A controller takes no term and gives no vote that it cannot store. */
    CONTROLLER_STORES_OR_TAKES_BACK("controller-13", Names.STATE, FullDiskMends::storeOrTakeBack),

    /** A controller answers a request for its vote by the vote that it has stored. */
    CONTROLLER_ANSWERS_BY_VOTE("controller-13", Names.ELECTOR, FullDiskMends::answerByVote, "Elections"),

    /** A controller that cannot store its term waits before it tries again. */
    CONTROLLER_WAITS_AFTER_FAILURE("controller-13", Names.MAINTAINER, FullDiskMends::waitAfterFailure, "Elections");

    private static final class Names {
        static final String LIBRARY = "io/openmessaging/storage/dledger/";
        static final String PUSHER = LIBRARY + "DLedgerEntryPusher";
        static final String DISPATCHER = PUSHER + "$EntryDispatcher";
        static final String HANDLER = PUSHER + "$EntryHandler";
        static final String SNAPSHOTS = LIBRARY + "snapshot/SnapshotManager";
        static final String STORE = LIBRARY + "store/file/DLedgerMmapFileStore";
        static final String MAPPED_FILE = LIBRARY + "store/file/DefaultMmapFile";
        static final String RESULT = LIBRARY + "store/file/SelectMmapBufferResult";
        static final String ELECTOR = LIBRARY + "DLedgerLeaderElector";
        static final String MAINTAINER = ELECTOR + "$StateMaintainer";
        static final String REQUEST = LIBRARY + "protocol/PushEntryRequest";
        static final String STATE = LIBRARY + "MemberState";
        static final String SERVICE = LIBRARY + "DLedgerRpcNettyService";
        static final String FILES = LIBRARY + "utils/IOUtils";
        static final String MAP = "java/util/concurrent/ConcurrentMap";
        static final String CONTROLLER = "org/apache/rocketmq/controller/impl/DLedgerController";
    }

    private final String finding;
    private final String type;
    private final Consumer<ClassNode> change;
    private final List<String> called;

    Mend(String finding, String type, Consumer<ClassNode> change, String... called) {
        this.finding = finding;
        this.type = type;
        this.change = change;
        this.called = List.of(called);
    }

    /** Returns the internal name of the class that it changes. */
    String type() {
        return type;
    }

    /** Returns the names of the classes of this package that the changed class needs. */
    List<String> called() {
        return called;
    }

    /** Returns the mends of a finding. */
    static List<Mend> of(String finding) {
        List<Mend> found = Arrays.stream(values()).filter(mend -> mend.finding.equals(finding)).toList();
        if (found.isEmpty()) {
            throw new IllegalArgumentException("expected a finding with a mend, e.g. dledger-1, got " + finding);
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

    private static void repeatOldEntries(ClassNode node) {
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

    private static void compareAfterSnapshot(ClassNode node) {
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
    private static void endWithSnapshot(ClassNode node) {
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

    private static void knowTermOfSnapshot(ClassNode node) {
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
    private static void releaseIndex(ClassNode node) {
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
    private static void compareEachEntry(ClassNode node) {
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

    private static void truncateInTerm(ClassNode node) {
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
    private static void leadInNewTerm(ClassNode node) {
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
    private static void replaceAtOnce(ClassNode node) {
        MethodNode write = method(node, "string2File");
        AbstractInsnNode delete = only(write, each -> each instanceof MethodInsnNode call && call.name.equals("delete"));
        write.instructions.remove(delete.getPrevious()); // loads the file
        write.instructions.remove(delete.getNext()); // drops the result
        write.instructions.remove(delete);
    }

    private static void syncFiles(ClassNode node) {
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
    private static void voteByEnd(ClassNode node) {
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
